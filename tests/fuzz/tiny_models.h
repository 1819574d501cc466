// Models of a few kilobytes, with tokenizers: what is damaged, and what fuzzing starts from.
#pragma once
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"
#include "convert/weights/random_model.h"
#include "convert/writer/writer.h"
#include "engine/format/format.h"
#include "engine/model/layers.h"
#include "fovea/host/opened.h"
#include "host/base/error.h"
#include "tests/support/encoder_models.h"
#include "tests/support/small_models.h"

namespace fovea::fuzz {

/// A few hundred bytes of weights, so that nearly all of the file is structure.
inline Config tiny(Config config, std::uint32_t vocab_size = 300) {
    for (Stack* stack : {&config.encoder, &config.decoder}) {
        if (!stack->n_layers) continue;
        stack->n_layers = 1;
        for (auto& map : stack->head)
            if (map.width == stack->d_model) map.width = 8;
        stack->d_model = 8;
        if (stack->vocab_size) stack->vocab_size = vocab_size;
        if (stack->max_positions) stack->max_positions = 12;
        if (stack->sound.is_speech()) stack->sound.n_fft = 8, stack->sound.n_mels = 5, stack->sound.n_frames = 24;
        if (stack->n_blocks > 1) stack->layer_blocks = stack->layer_blocks.first(stack->n_layers = stack->n_blocks);
        for (std::uint32_t i = 0; i < stack->n_blocks; ++i) {
            Block& block = stack->blocks[i];
            block.feed.d_ff = 8;
            if (block.recurrent) {
                stack->recurrent.key_dim = stack->recurrent.value_dim = stack->recurrent.has_states() ? 4 : 8;
                if (!block.attention.n_heads) continue;
            }
            block.attention.n_heads = 2;
            block.attention.n_kv_heads = block.attention.n_kv_heads > 1 ? 2 : 1;
            block.attention.head_dim = block.attention.value_head_dim = 4;
            block.attention.rotary_dim = block.attention.rotary_dim ? 4 : 0;
            if (block.experts.n > 4) block.experts.n = 4, block.experts.n_used = 2;
            if (block.experts.n_groups) block.experts.n_groups = 2, block.experts.n_groups_used = 1;
            if (block.latent.query_rank) block.latent.query_rank = 4;
            if (block.latent.query_dim)
                block.latent.query_dim = block.latent.value_dim = 4, block.attention.head_dim = 8;
            if (block.experts.shared_d_ff) block.experts.shared_d_ff = 8;
        }
    }
    return config;
}

struct Tiny {
    const char* name;
    Config config;
    Type type;
    const char* tokenizer;  // a file beside tests/golden/tokenizer_*.json, or null
};

/// One of each kind.
inline std::vector<Tiny> tiny_models() {
    using namespace testing;
    return {{"llama_f32", tiny(llama_config()), Type::f32, "tokenizer_metaspace.json"},
            {"delta_f16", tiny(recurrent_configs()[2].config), Type::f16, nullptr},
            {"selective_f32", tiny(recurrent_configs()[5].config), Type::f32, nullptr},
            {"gpt2_f16", tiny(gpt2_config()), Type::f16, "tokenizer_gpt2.json"},
            {"bert_f32", tiny(bert_config()), Type::f32, "tokenizer_bert.json"},
            {"disentangled_f32", tiny(disentangled_config(6, 4)), Type::f32, nullptr},
            {"encoder_decoder_f32", tiny(both_config(NormPlace::pre)), Type::f32, nullptr},
            {"sound_f32", tiny(sound_config()), Type::f32, nullptr}};
}

/// A tokenizer's section with little of its Unicode tables, which are most of it.
inline std::vector<std::byte> shortened(const std::vector<std::byte>& section) {
    constexpr std::size_t kMostBytes = 128;
    TokenizerHeader header;
    std::memcpy(&header, section.data(), sizeof header);
    std::vector<TokenizerTable> tables(header.n_tables);
    const std::size_t directory_bytes = tables.size() * sizeof tables[0];
    std::memcpy(tables.data(), section.data() + sizeof header, directory_bytes);
    std::vector<std::byte> out(section.begin(), section.begin() + tables[0].offset);
    for (TokenizerTable& table : tables) {
        const auto at = section.begin() + table.offset;
        if (table.kind >= static_cast<std::uint32_t>(TokenizerTableKind::classes) && table.bytes > kMostBytes)
            table.bytes = kMostBytes;
        table.offset = static_cast<std::uint32_t>(out.size());
        out.insert(out.end(), at, at + table.bytes);
        out.resize((out.size() + 63) / 64 * 64);
    }
    std::memcpy(out.data() + sizeof header, tables.data(), directory_bytes);
    return out;
}

/// One of every shape there is, in a few kilobytes each.
inline std::vector<Tiny> tinier_models() {
    using namespace testing;
    constexpr std::uint32_t kVocabSize = 20;
    std::vector<Tiny> all;
    const auto add = [&](const Config& config, const char* tokenizer) {
        constexpr Type kTypes[] = {Type::f32, Type::q8, Type::f16, Type::q4, Type::bf16};
        const bool large = config.encoder.n_layers && config.decoder.n_layers;  // quantized rows are of 64 columns
        const Type type = large ? Type::f16 : kTypes[all.size() % std::size(kTypes)];
        all.push_back({"tinier", tiny(config, kVocabSize), type, tokenizer});
    };
    for (const NamedConfig& decoder : decoder_configs()) add(decoder.config, nullptr);
    add(llama_config(), "../fuzz/small/tokenizer_json/metaspace");
    add(gpt2_config(), "../fuzz/small/tokenizer_json/llama3");
    add(bert_config(), "../fuzz/small/tokenizer_json/bert");
    for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
        Config config = both_config(place);
        add(config, nullptr);
        config.decoder = {};
        config.encoder.blocks[0].attention.bias_kv = config.encoder.blocks[0].attention.zero_attn = true;
        config.encoder.pooling = place == NormPlace::pre ? Pooling::mean : Pooling::none;
        add(config, nullptr);
    }
    Config sound = sound_config();
    add(sound, nullptr);
    sound.decoder = {};
    add(sound, nullptr);
    for (Config config : {llama_config(), bert_config()}) {  // with column scales, which quantized matrices alone have
        for (Stack* stack : {&config.encoder, &config.decoder}) {
            stack->tied_output = false;
            stack->output_columns = stack->has_output_head;
            stack->blocks[0].column_scales = stack->n_layers != 0;
        }
        add(config, nullptr);
        all.back().type = all.size() % 2 ? Type::q8 : Type::q4;
    }
    Config attention = both_config(NormPlace::pre);  // a lone one
    attention.decoder = {};
    attention.encoder.final_norm = attention.encoder.blocks[0].norm = Norm::none;
    attention.encoder.final_norm_bias = attention.encoder.blocks[0].norm_bias = false;
    attention.encoder.blocks[0].feed.up_bias = attention.encoder.blocks[0].feed.down_bias = false;
    add(attention, nullptr);
    all.back().config.encoder.blocks[0].feed.d_ff = 0;
    add(disentangled_config(6, 4), nullptr);
    return all;
}

/// Those of them that adapters are tried beside: every shape that makes logits.
inline std::vector<Tiny> tinier_adapted() {
    std::vector<Tiny> all;
    for (const Tiny& model : tinier_models())
        if (!model.config.encoder.n_layers) all.push_back(model);
    return all;
}

/// An adapter of such a model, for all matrices that it has and that may be adapted.
inline Config adapter_of(Config config, std::uint32_t rank, std::uint32_t adapted = kAllAdapted) {
    constexpr auto kOfDistances = static_cast<std::uint32_t>(Adapted::query) | static_cast<std::uint32_t>(Adapted::key);
    if (n_layers_with<DistanceTensors>(config))
        adapted = adapted & ~kOfDistances ? adapted & ~kOfDistances : kAllAdapted & ~kOfDistances;
    for (Stack* stack : {&config.encoder, &config.decoder})
        if (stack->n_layers) stack->adapter_rank = rank, stack->adapted = adapted;
    return config;
}

inline AlignedBytes file_of(const Tiny& tiny) {
    ModelSource source = random_model(tiny.config, 1);
    if (tiny.tokenizer) {
        const std::string path = std::string(FOVEA_GOLDEN_DIR "/") + tiny.tokenizer;
        std::ifstream file(path, std::ios::binary);
        const std::string json((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        source.tokenizer =
            tokenizer_section_from_json(json, path, {.vocab_size = 100000, .bos = {}, .eos = {}}, source.notes);
    }
    if (tiny.name == std::string_view("tinier") && tiny.tokenizer) source.tokenizer = shortened(source.tokenizer);
    source.info = {{"name", tiny.name}, {"architecture", "test"}};
    return write_bytes(source, {.type = tiny.type, .weights_alignment = 64});
}

/// The first of those, opened, for sessions.
struct TinyOpened {
    AlignedBytes file = file_of(tinier_models().front());
    host::Opened opened = host::open_bytes(file, "tiny");
};

}  // namespace fovea::fuzz
