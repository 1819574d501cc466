// The C interface's models and their text.
#include <cstddef>
#include <new>

#include "engine/c/handles.h"
#include "engine/format/format.h"
#include "engine/format/parts.h"
#include "engine/model/kind.h"
#include "fovea/encode.h"

namespace fovea {

Status open_bytes(const void* file, std::size_t file_bytes, bool verify, Model& model, Tokenizer& tokenizer) noexcept {
    const std::span<const std::byte> bytes{static_cast<const std::byte*>(file), file_bytes};
    if (Status s = open_model(bytes, model, {.verify_checksums = verify}); !s.ok()) return s;
    return model.tokenizer_bytes().empty() ? Status{} : open_tokenizer(model.tokenizer_bytes(), tokenizer);
}

Status read_sampler(const fovea_sampler* given, SamplerOptions& options) noexcept {
    fovea_sampler known;
    if (Status s = read_struct(given, known); !s.ok()) return s;
    options = {};
#define FOVEA_SAMPLER_REAL(field, neutral, ...) options.field = known.field == 0.0f ? neutral : known.field;
#define FOVEA_SAMPLER_COUNT(field, ...) options.field = known.field;
#define FOVEA_SAMPLER_MORE_REAL(...)
#define FOVEA_SAMPLER_MORE_COUNT(...)
#define FOVEA_SAMPLER_SEED(field) options.field = known.field;
#include "fovea/sampler_options.inc"
    if (has(Part::penalties)) {
        static_assert(sizeof(LogitBias) == sizeof(fovea_logit_bias) &&
                      offsetof(LogitBias, bias) == offsetof(fovea_logit_bias, bias));
        if (known.n_bias && !known.bias) return is_null("bias: NULL");
        options.bias = {reinterpret_cast<const LogitBias*>(known.bias), known.n_bias};
    }
    static_assert(sizeof(MoreSamplers) == sizeof(fovea_more_samplers) &&
                  offsetof(MoreSamplers, min_tokens) == offsetof(fovea_more_samplers, min_tokens));
    options.more = reinterpret_cast<const MoreSamplers*>(known.more);
    return {};
}

}  // namespace fovea

using namespace fovea;

namespace {

/// A model's handle in its caller's memory.
struct OwnModel {
    fovea_model handle;
    Model model;
};
static_assert(sizeof(OwnModel) <= FOVEA_MODEL_BYTES && alignof(OwnModel) <= 8);

[[nodiscard]] Status check_memory(const void* memory, std::size_t memory_bytes) noexcept {
    if (!memory) return is_null("memory: NULL");
    if (memory_bytes < FOVEA_MODEL_BYTES)
        return {Code::arena_too_small, "bytes for a model's handle at least", FOVEA_MODEL_BYTES, memory_bytes};
    const std::uint64_t past = reinterpret_cast<std::uintptr_t>(memory) % 8;
    return past ? Status{Code::misaligned, "the memory's address modulo 8", 0, past} : Status{};
}

void keep(const Model& model, const Tokenizer& tokenizer, void* memory, fovea_model** out) noexcept {
    auto* own = new (memory) OwnModel{{nullptr, tokenizer}, model};
    own->handle.model = &own->model;
    *out = &own->handle;
}

[[nodiscard]] fovea_status no_model() noexcept { return refuse_null("model: NULL"); }

[[nodiscard]] fovea_text to_c(std::string_view text) noexcept { return {text.data(), text.size()}; }

[[nodiscard]] fovea_info info_of(const Model& model, const Tokenizer& tokenizer) noexcept {
    const Config& config = model.config();
    const Stack& last = stack_of(config, last_stack(config));
    const AttentionShape& first = last.block(0).attention;
    const Stack source = config.encoder.n_layers && config.decoder.n_layers ? config.encoder : Stack{};
    return {.struct_size = sizeof(fovea_info),
            .kind = static_cast<std::uint32_t>(kind_of(config)),
            .fingerprint = model.fingerprint(),
            .n_layers = last.n_layers,
            .d_model = last.d_model,
            .vocab_size = last.vocab_size,
            .max_positions = last.max_positions,
            .n_heads = first.n_heads,
            .n_kv_heads = first.n_kv_heads,
            .head_dim = first.head_dim,
            .value_head_dim = first.value_head_dim,
            .n_token_types = last.n_token_types,
            .pools = last.pooling != Pooling::none,
            .reads_memory = reads_memory(config),
            .source_n_layers = source.n_layers,
            .source_d_model = source.d_model,
            .source_vocab = source.vocab_size,
            .source_positions = source.max_positions,
            .source_types = source.n_token_types,
            .bos = tokenizer.bos(),
            .adds_bos = tokenizer.adds_bos(),
            .has_tokenizer = tokenizer.valid(),
            .file_bytes = model.bytes().size(),
            .max_piece_bytes = max_piece_bytes(tokenizer),
            .name = to_c(model.info().name),
            .architecture = to_c(model.info().architecture),
            .prompt_suffix = to_c(model.info().prompt_suffix),
            .chat_template = to_c(model.info().chat_template),
            .result_width = last.result_width()};
}

[[nodiscard]] fovea_layer layer_of(const Stack& stack, const Block& b, bool attends_alone) noexcept {
    const auto width = [&](std::uint32_t given) { return given ? given : stack.d_model; };
    const std::uint32_t merged = b.attention.n_heads * b.attention.value_head_dim;
    return {.struct_size = sizeof(fovea_layer),
            .n_heads = b.attention.n_heads,
            .n_kv_heads = b.attention.n_kv_heads,
            .head_dim = b.attention.head_dim,
            .value_head_dim = b.attention.value_head_dim,
            .d_ff = b.feed.d_ff,
            .window = b.attention.window,
            .causal = b.attention.causal,
            .cross_attention = b.attention.cross_attention,
            .n_appended = attends_alone ? std::uint32_t{b.attention.bias_kv} + b.attention.zero_attn : 0,
            .no_projections = b.attention.no_projections,
            .query_width = b.attention.no_projections ? b.attention.n_heads * b.attention.head_dim
                                                      : width(b.attention.query_width),
            .key_width = b.attention.no_projections ? b.attention.n_kv_heads * b.attention.head_dim
                                                    : width(b.attention.key_width),
            .value_width = b.attention.no_projections ? b.attention.n_kv_heads * b.attention.value_head_dim
                                                      : width(b.attention.value_width),
            .output_width =
                b.attention.no_projections || !b.attention.has_output_map ? merged : width(b.attention.output_width)};
}

}  // namespace

fovea_status fovea_open_model(const void* file, size_t file_bytes, uint32_t flags, void* memory, size_t memory_bytes,
                              fovea_model** model) {
    if (flags & ~std::uint32_t{FOVEA_VERIFY}) return to_c({Code::bad_argument, "flags at most", FOVEA_VERIFY, flags});
    if (Status s = check_memory(memory, memory_bytes); !s.ok()) return to_c(s);
    Model opened;
    Tokenizer tokenizer;
    if (Status s = open_bytes(file, file_bytes, flags & FOVEA_VERIFY, opened, tokenizer); !s.ok()) return to_c(s);
    keep(opened, tokenizer, memory, model);
    return success();
}

fovea_status fovea_verify_model(const fovea_model* model) {
    return model ? to_c(verify_checksums(*model->model)) : no_model();
}

fovea_status fovea_attention_model(const fovea_attention_shape* shape, void* memory, size_t memory_bytes,
                                   fovea_model** model) {
    fovea_attention_shape known;
    if (Status s = read_struct(shape, known); !s.ok()) return to_c(s);
    if (Status s = check_memory(memory, memory_bytes); !s.ok()) return to_c(s);
    const AttentionShape heads{.n_heads = known.n_heads,
                               .n_kv_heads = known.n_kv_heads ? known.n_kv_heads : known.n_heads,
                               .head_dim = known.head_dim,
                               .value_head_dim = known.value_head_dim ? known.value_head_dim : known.head_dim,
                               .window = known.window,
                               .softmax_scale = known.softmax_scale,
                               .score_softcap = known.score_softcap,
                               .causal = known.causal != 0,
                               .zero_attn = known.zero_attn != 0,
                               .no_projections = true};
    Model made;
    if (Status s = attention_model(heads, made); !s.ok()) return to_c(s);
    keep(made, {}, memory, model);
    return success();
}

fovea_status fovea_model_info(const fovea_model* model, fovea_info* info) {
    if (!model) return no_model();
    if (Status s = check_struct(info); !s.ok()) return to_c(s);
    const fovea_info made = info_of(*model->model, model->tokenizer);
    write_struct(&made, sizeof made, info);
    return success();
}

fovea_status fovea_model_layer(const fovea_model* model, int in_encoder, uint32_t layer, fovea_layer* out) {
    if (!model) return no_model();
    if (Status s = check_struct(out); !s.ok()) return to_c(s);
    const Config& config = model->model->config();
    const bool both = config.encoder.n_layers && config.decoder.n_layers;
    const Stack& stack = both && in_encoder ? config.encoder : stack_of(config, last_stack(config));
    if (layer >= stack.n_layers) return to_c({Code::bad_argument, "layer at most", stack.n_layers - 1, layer});
    const fovea_layer made = layer_of(stack, stack.block(layer), kind_of(config) == Kind::attend);
    write_struct(&made, sizeof made, out);
    return success();
}

uint64_t fovea_scratch_bytes(const fovea_model* model, uint64_t text_bytes) {
    return model && model->tokenizer.valid() ? tokenize_scratch_bytes(model->tokenizer, text_bytes) : 0;
}

uint64_t fovea_max_tokens(const fovea_model* model, uint64_t text_bytes) {
    return model ? max_tokens(model->tokenizer, text_bytes) : 0;
}

fovea_status fovea_model_tokenize(const fovea_model* model, const char* text, size_t text_bytes, int how, void* scratch,
                                  size_t scratch_bytes, uint32_t* tokens, size_t capacity, size_t* n_tokens) {
    constexpr int kAll = FOVEA_READ_SPECIAL | FOVEA_NO_SPECIAL;
    *n_tokens = 0;
    if (!model) return no_model();
    if (how & ~kAll) return to_c({Code::bad_argument, "how at most", kAll, static_cast<unsigned>(how)});
    const TokenizeOptions options{.add_special = (how & FOVEA_NO_SPECIAL) == 0,
                                  .parse_special = (how & FOVEA_READ_SPECIAL) != 0};
    return to_c(tokenize(model->tokenizer, {text, text_bytes}, options,
                         {static_cast<std::byte*>(scratch), scratch_bytes}, {tokens, capacity}, *n_tokens));
}

size_t fovea_model_decode(const fovea_model* model, fovea_decoder* decoder, uint32_t token, char* out,
                          size_t capacity) {
    if (!model) return 0;
    decoder->started = decoder->started != 0;
    auto own = std::bit_cast<Decoder>(*decoder);
    const std::size_t n = token == FOVEA_NO_TOKEN ? finish(own, {out, capacity}).size()
                                                  : decode(model->tokenizer, own, token, false, {out, capacity}).size();
    *decoder = std::bit_cast<fovea_decoder>(own);
    return n;
}

fovea_text fovea_token_bytes(const fovea_model* model, uint32_t token) {
    return model ? to_c(token_bytes(model->tokenizer, token)) : fovea_text{};
}

uint32_t fovea_token_flags(const fovea_model* model, uint32_t token) {
    if (!model) return 0;
    const Tokenizer& tokenizer = model->tokenizer;
    return (tokenizer.is_special(token) ? FOVEA_SPECIAL_TOKEN : 0) | (tokenizer.ends_text(token) ? FOVEA_END_TOKEN : 0);
}

fovea_status fovea_sample_logits(const fovea_sampler* sampler, uint32_t pos, const float* logits, size_t n_logits,
                                 const uint32_t* recent, size_t n_recent, const uint32_t* allowed, void* scratch,
                                 size_t scratch_bytes, uint32_t* token) {
    SamplerOptions options;
    Sampler own;
    if (Status s = read_sampler(sampler, options); !s.ok()) return to_c(s);
    if (Status s = make_sampler(options, own); !s.ok()) return to_c(s);
    const std::uint64_t past = reinterpret_cast<std::uintptr_t>(scratch) % alignof(Candidate);
    if (past) return to_c({Code::misaligned, "the scratch's address modulo 4", 0, past});
    return to_c(sample(own, pos, {logits, n_logits}, {recent, n_recent},
                       {static_cast<Candidate*>(scratch), scratch_bytes / sizeof(Candidate)}, *token,
                       {allowed, allowed ? (n_logits + 31) / 32 : 0}, {recent, n_recent}));
}
