// GGUF files as a source: the gguf package's floats for every type, transformers' logits for every architecture.
#include "convert/gguf_model.h"

#include <doctest/doctest.h>

#include "convert/gguf.h"
#include "convert/source_file.h"
#include "convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

fs::path golden_gguf() { return fs::path(FOVEA_GOLDEN_DIR) / "gguf"; }

ModelSource read_model(const char* name) {
    ConvertOptions options;
    options.source = golden_gguf() / name;
    return read_source(options);
}

void convert_file(const fs::path& source, const fs::path& output, std::optional<Type> type = {}) {
    ConvertOptions options;
    options.source = source;
    options.output = output;
    options.type = type;
    convert(options);
}

}  // namespace

TEST_CASE("gguf: every type of tensor dequantizes to the gguf package's floats") {
    const ModelSource source = read_model("blocks.gguf");
    const NpyArray expected = read_npy((golden_gguf() / "blocks.npy").string());
    const Stack& stack = source.config.decoder;
    constexpr std::uint32_t kTypes = 11;
    REQUIRE(stack.n_layers == kTypes);
    REQUIRE(expected.data.size() == std::size_t{kTypes} * 6 * stack.d_model * sizeof(float));
    const std::size_t part_bytes = 2 * stack.d_model * sizeof(float);
    std::size_t at = 0;
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer)
        for (const Role role : {Role::query, Role::key, Role::value}) {
            CAPTURE(layer);
            std::vector<float> rows(2 * stack.d_model), alone(stack.d_model);
            TensorSpec spec{role, StackIndex::decoder, layer, Layout::panels, 2, stack.d_model};
            source.read_rows(spec, 0, 2, rows.data());
            CHECK(std::memcmp(rows.data(), expected.data.data() + at, part_bytes) == 0);
            source.read_rows(spec, 1, 1, alone.data());
            CHECK(std::memcmp(alone.data(), expected.data.data() + at + part_bytes / 2, part_bytes / 2) == 0);
            at += part_bytes;
        }
}

TEST_CASE("gguf: every architecture has transformers' logits of the dequantized weights") {
    const char* const kNames[] = {"llama_q8_0", "llama_yarn", "llama_linear", "qwen2_q4_0", "qwen3", "gpt2"};
    for (const std::string name : kNames) {
        CAPTURE(name);
        TemporaryFolder folder;
        convert_file(golden_gguf() / (name + ".gguf"), folder / "model.fovea", Type::f32);
        const Converted converted(folder / "model.fovea");
        // As in convert_test.cpp: logits reach 6, sums have at most 96 terms, and a wrong order of rows, rotation,
        // frequency or bias shows as 0.001 or far more. Rotary frequencies are float32 here and in GGUF's rope_freqs.
        CHECK(logits_error(converted.model, golden_gguf() / (name + "_logits.npy")) < 5e-5f);
    }
}

TEST_CASE("gguf: the shape follows from metadata and tensors") {
    const ModelSource llama = read_model("llama_q8_0.gguf"), yarn = read_model("llama_yarn.gguf");
    const Stack& stack = llama.config.decoder;
    CHECK(stack.tied_output);
    CHECK(stack.vocab_size == 61);
    CHECK(stack.max_positions == 64);
    CHECK(stack.blocks[0].n_heads == 4);
    CHECK(stack.blocks[0].n_kv_heads == 2);
    CHECK(stack.blocks[0].rotary_dim == 16);
    CHECK(!stack.blocks[0].query_bias);
    CHECK(!yarn.config.decoder.tied_output);
    CHECK(yarn.config.decoder.blocks[0].query_bias);
    CHECK(yarn.config.decoder.blocks[0].up_bias);
    CHECK(yarn.config.decoder.blocks[0].rope_scale > 1.0f);
    CHECK(read_model("qwen3.gguf").config.decoder.blocks[0].query_key_norm == Norm::rms);
    CHECK(read_model("gpt2.gguf").config.decoder.position == Position::learned);

    const auto info = [](const ModelSource& source, const std::string& key) {
        for (const auto& [name, value] : source.info)
            if (name == key) return value;
        return std::string();
    };
    CHECK(info(llama, "name") == "random");
    CHECK(info(llama, "architecture") == "llama");
    CHECK(info(llama, "chat_template") == "{{ messages }}");
    CHECK(info(llama, "source_type") == "Q8_0");
    CHECK(info(llama, "converter") != "");
    CHECK(info(yarn, "chat_template") == "");
    CHECK(llama.tokenizer.empty());
    CHECK(llama.notes.empty());
}

TEST_CASE("gguf: a tokenizer named on the command line, and none but its own configuration") {
    TemporaryFolder folder;
    ConvertOptions options;
    options.source = golden_gguf() / "llama_q8_0.gguf";
    options.tokenizer = fs::path(FOVEA_GOLDEN_DIR) / "tokenizer_smollm.json";
    CHECK(contains(refusal_of([&] { static_cast<void>(read_source(options)); }), "vocab_size 61"));
    options.config = golden_models() / "llama_tied/config.json";
    CHECK(contains(refusal_of([&] { static_cast<void>(read_source(options)); }), "--config"));
}
