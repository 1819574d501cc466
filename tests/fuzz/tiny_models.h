// Models of a few kilobytes, with tokenizers: what is damaged, and what fuzzing starts from.
#pragma once
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../encoder_models.h"
#include "../small_models.h"
#include "convert/random_model.h"
#include "convert/tokenizer_json.h"
#include "convert/writer.h"
#include "opened.h"
#include "report.h"

namespace fovea::fuzz {

/// A few hundred bytes of weights, so that nearly all of the file is structure.
inline Config tiny(Config config) {
    for (Stack* stack : {&config.encoder, &config.decoder}) {
        if (!stack->n_layers) continue;
        stack->n_layers = 1;
        stack->d_model = 8;
        if (stack->vocab_size) stack->vocab_size = 300;
        if (stack->max_positions) stack->max_positions = 12;
        Block& block = stack->blocks[0];
        block.n_heads = 2;
        block.n_kv_heads = block.n_kv_heads > 1 ? 2 : 1;
        block.head_dim = block.value_head_dim = 4;
        block.rotary_dim = block.rotary_dim ? 4 : 0;
        block.d_ff = 8;
    }
    return config;
}

struct Tiny {
    const char* name;
    Config config;
    Type type;
    const char* tokenizer;
};

/// One of each kind.
inline std::vector<Tiny> tiny_models() {
    using namespace testing;
    return {{"llama_f32", tiny(llama_config()), Type::f32, "metaspace"},
            {"gpt2_f16", tiny(gpt2_config()), Type::f16, "gpt2"},
            {"bert_f32", tiny(bert_config()), Type::f32, "bert"},
            {"encoder_decoder_f32", tiny(both_config(NormPlace::pre)), Type::f32, nullptr}};
}

inline AlignedBytes file_of(const Tiny& tiny) {
    ModelSource source = random_model(tiny.config, 1);
    if (tiny.tokenizer) {
        const std::string path = std::string(FOVEA_GOLDEN_DIR "/tokenizer_") + tiny.tokenizer + ".json";
        std::ifstream file(path, std::ios::binary);
        const std::string json((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        source.tokenizer = tokenizer_section_from_json(json, path, {.vocab_size = 100000, .bos = {}, .eos = {}});
    }
    source.info = {{"name", tiny.name}, {"architecture", "test"}};
    return write_bytes(source, {.type = tiny.type, .weights_alignment = 64});
}

/// The first of them, opened, for sessions.
struct TinyOpened {
    AlignedBytes file = file_of(tiny_models().front());
    OpenedModel opened;

    TinyOpened() {
        opened.name = "tiny";
        require(open_model(file, opened.model), opened.name);
    }
};

}  // namespace fovea::fuzz
