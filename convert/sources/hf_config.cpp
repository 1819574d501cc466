#include "convert/sources/hf_config.h"

#include <set>
#include <string>

#include "convert/families/heads.h"
#include "convert/families/reading.h"
#include "convert/sources/hf_target.h"
#include "convert/sources/sampling_info.h"
#include "convert/sources/text_part.h"
#include "convert/sources/whisper.h"
#include "host/base/error.h"

namespace fovea {
namespace {

/// One id or a list of them, added to `ids` if in the vocabulary and new.
void add_ids(const Fields& fields, const char* name, std::uint32_t vocab_size, std::vector<Token>& ids) {
    if (!fields.has(name)) return;
    const SortedJson& field = fields.json()[name];
    std::set<Token> known(ids.begin(), ids.end());
    for (const SortedJson& id : field.is_array() ? field : SortedJson::array({field})) {
        if (!id.is_number_integer()) fields.refuse(name, "a token's id or a list of them");
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocab_size) continue;
        const auto token = id.get<Token>();
        if (known.insert(token).second) ids.push_back(token);
    }
}

/// What makes logits of a decoder's rows.
void leave_out_logits(const Fields& fields, HfConfig& result) {
    Stack& stack = result.stack();
    result.left_out = {stack.tied_output, stack.output_bias, stack.logit_softcap, stack.logit_scale};
    stack.has_output_head = stack.tied_output = stack.output_bias = false;
    stack.logit_softcap = 0.0f;
    stack.logit_scale = Stack{}.logit_scale;
    if (!result.table_maps.empty()) fields.refuse("word_embed_proj_dim", "hidden_size, where rows become vectors");
}

/// What the folder says of texts that its decoder writes.
void add_generation_info(const Fields& fields, const std::filesystem::path& generation, ModelSource& source) {
    const Stack& decoder = source.config.decoder;
    if (source.config.encoder.n_layers && decoder.n_layers)
        source.info.emplace_back("target", target_info(fields, generation, decoder.vocab_size));
    else if (decoder.has_output_head)
        add_sampling_info(fields, generation, source);
}

}  // namespace

HfConfig read_hf_config(const std::filesystem::path& config, const std::filesystem::path& generation, bool pooled) {
    const Fields whole = Fields::read(config);
    const std::optional<Fields> part = text_part(whole);
    const Fields& written = part ? *part : whole;
    const std::string type = written.text("model_type");
    HfConfig result;
    result.is_text_part = part.has_value();
    if (part)
        result.source.notes.push_back("config.json: of " + whole.text("model_type") +
                                      " the model of texts is read alone");
    result.family = find_family(type);
    if (!result.family) {
        std::vector<std::string> known = known_model_types();
        known.emplace_back(kWhisperType);  // which has a reader of its own
        written.refuse("model_type", alternatives(known));
    }
    const Fields fields = with_defaults(written, *result.family, type);
    const Family* other = result.family->variant ? result.family->variant(fields) : nullptr;
    // Sentence vectors of a model with an encoder and a decoder are the encoder's.
    if (other && !(pooled && !other->encoder_names.empty())) result.family = other;
    // Families whose own reader knows MXFP4 have its two tensors a matrix taken as they are.
    if (fields.has("quantization_config") &&
        !(result.family->reads_mxfp4 && fields.object("quantization_config").text("quant_method") == "mxfp4"))
        result.quantization = read_quantization(fields.object("quantization_config"));
    const bool decodes = result.family->stack == StackIndex::decoder;
    const HeadForms* heads = result.family->heads || !decodes ? result.family->heads : &kDecoderHeads;
    result.encodes = decodes && (pooled || has_classes(fields, *heads));
    result.family->read(fields, type, result);
    if (result.encodes) leave_out_logits(fields, result);
    if (decodes && !fields.flag_or("is_causal", true)) {
        if (!result.encodes) fields.refuse("is_causal", "true of a model that gives logits");
        for (Block& block : result.stack().blocks) {
            block.attention.causal = false;
            if (block.attention.window) ++block.attention.window;  // transformers counts the others on each side
        }
    }
    result.source.info = {{"name", model_name(fields, type)}, {"architecture", type}};
    if (heads && !pooled && (result.encodes || !decodes)) read_head(fields, *heads, result);
    std::vector<Token> pads;
    const Stack& stack = result.stack();
    if (result.encodes && !pooled && stack.pooling == Pooling::last && stack.blocks[0].attention.causal)
        add_ids(fields, "pad_token_id", stack.vocab_size, pads);
    if (!pads.empty()) result.unpooled = pads.front();
    require(check(result.source.config), config.string());
    std::vector<Token> bos;
    add_ids(fields, "bos_token_id", stack.vocab_size, bos);
    add_ids(fields, "eos_token_id", stack.vocab_size, result.eos);
    std::error_code error;
    if (std::filesystem::exists(generation, error)) {
        const Fields more = Fields::read(generation);
        add_ids(more, "bos_token_id", stack.vocab_size, bos);
        add_ids(more, "eos_token_id", stack.vocab_size, result.eos);
    }
    if (!bos.empty()) result.bos = bos.front();
    add_generation_info(fields, generation, result.source);
    if (const std::string suffix = fields.text_or("prompt_suffix", ""); !suffix.empty())
        result.source.info.emplace_back("prompt_suffix", suffix);
    return result;
}

}  // namespace fovea
