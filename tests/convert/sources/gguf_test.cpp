// GGUF files as a source: the gguf package's floats for every type, transformers' logits for every architecture.
#include "convert/sources/gguf_model.h"

#include <doctest/doctest.h>

#include "convert/formats/gguf.h"
#include "host/base/elements.h"
#include "host/base/source_file.h"
#include "host/model/listing.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/panel_element.h"

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
    convert_source(options);
}

}  // namespace

TEST_CASE("gguf: every type of tensor dequantizes to the gguf package's floats") {
    const ModelSource source = read_model("blocks.gguf");
    const NpyArray expected = read_npy((golden_gguf() / "blocks.npy").string());
    const Stack& stack = source.config.decoder;
    constexpr std::uint32_t kBlockTypes = 18;
    REQUIRE(stack.n_layers == kBlockTypes);
    REQUIRE(expected.data.size() == std::size_t{kBlockTypes} * 6 * stack.d_model * sizeof(float));
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

TEST_CASE("gguf: blocks that a type of ours holds lie in panels number by number as the gguf package reads them") {
    const ModelSource source = read_model("blocks.gguf");
    const NpyArray expected = read_npy((golden_gguf() / "blocks.npy").string());
    constexpr std::uint32_t kCols = 256;
    constexpr std::pair<std::uint32_t, Type> kKept[] = {
        {4, Type::q4},    {5, Type::q4_1},    {6, Type::q5},      {7, Type::q5_1},   {8, Type::q4_k},
        {9, Type::q5_k},  {10, Type::q6_k},   {11, Type::iq4_nl}, {12, Type::mxfp4}, {13, Type::q3_k},
        {14, Type::q2_k}, {15, Type::iq4_xs}, {16, Type::tq2_0},  {17, Type::tq2_0}};
    constexpr Role kRoles[] = {Role::query, Role::key, Role::value};
    for (const auto& kept : kKept)
        for (std::uint32_t part = 0; part < 3; ++part) {
            const std::uint32_t layer = kept.first;
            const Type type = kept.second;
            CAPTURE(layer);
            const TensorSpec spec{kRoles[part], StackIndex::decoder, layer, Layout::panels, 2, kCols};
            REQUIRE(source.type_of(spec) == type);
            std::vector<QuantizedGroup> groups(kLanes * kCols / kGroup);
            REQUIRE(source.read_groups(spec, type, 0, 2, groups.data()));
            std::vector<std::byte> panel(panel_bytes(type, kCols));
            put_panel(type, groups.data(), kCols / kGroup, panel.data());
            for (std::uint32_t row = 0; row < 2; ++row)
                for (std::uint32_t col = 0; col < kCols; ++col) {
                    float want;
                    const std::size_t at = ((layer * 3 + part) * 2 + row) * kCols + col;
                    std::memcpy(&want, expected.data.data() + at * sizeof want, sizeof want);
                    REQUIRE(panel_element(type, panel.data(), row, col) == want);
                }
        }
}

TEST_CASE("gguf: quantized embeddings that are only looked up stay as they are, and give the rows they gave") {
    TemporaryFolder folder;
    convert_file(golden_gguf() / "qwen2_q4_0.gguf", folder / "own.fovea");
    const Converted own(folder / "own.fovea");
    const ModelSource source = read_model("qwen2_q4_0.gguf");
    std::size_t n_tables = 0;
    for (const TensorInfo& tensor : tensors(own.model)) {
        if (std::string_view(tensor.role) != "token_embedding") continue;
        ++n_tables;
        CHECK(std::string_view(tensor.layout) == "panels");
        CHECK(is_quantized(tensor.type));
        std::vector<float> row(tensor.n_cols);
        const TensorSpec spec{Role::token_embedding, StackIndex::decoder, 0,
                              Layout::rows,          tensor.n_rows,       tensor.n_cols};
        source.read_rows(spec, 7, 1, row.data());
        for (std::uint32_t col = 0; col < tensor.n_cols; ++col)
            CHECK(panel_element(tensor.type, own.mapping.bytes().data() + tensor.offset, 7, col) == row[col]);
    }
    CHECK(n_tables == 1);
}

TEST_CASE("gguf: every architecture has transformers' logits of the dequantized weights") {
    constexpr const char* kNames[] = {"llama_q8_0", "llama_yarn", "llama_linear", "qwen2_q4_0",
                                      "qwen3",      "gpt2",       "bitnet_i2_s"};
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

namespace {

float element(const TensorInfo& tensor, const std::byte* data, std::uint32_t row, std::uint32_t col) {
    if (is_quantized(tensor.type)) {
        const std::uint64_t stride = tensor.bytes / ((tensor.n_rows + 15) / 16);
        return panel_element(tensor.type, data + row / 16 * stride, row % 16, col);
    }
    if (tensor.type == Type::f16) {
        const bool in_panels = std::string(tensor.layout) == "panels";
        const std::uint64_t first = in_panels ? row / 16 * 16 : row, lanes = in_panels ? 16 : 1;
        return half_at(data + (first * tensor.n_cols + col * lanes + row - first) * 2);
    }
    float value;
    REQUIRE(tensor.type == Type::f32);
    REQUIRE(std::string(tensor.layout) != "panels");
    std::memcpy(&value, data + (std::uint64_t{row} * tensor.n_cols + col) * sizeof value, sizeof value);
    return value;
}

}  // namespace

// What the source's rows are was compared with the gguf package's floats above, and by the logits.
TEST_CASE("gguf: Q8_0, Q4_0 and I2_S files become q8, q4 and tq2_0 without a bit lost, tensor by tensor") {
    constexpr std::pair<const char*, Type> kFiles[] = {
        {"llama_q8_0.gguf", Type::q8}, {"qwen2_q4_0.gguf", Type::q4}, {"bitnet_i2_s.gguf", Type::tq2_0}};
    for (const auto& entry : kFiles) {
        const auto& name = entry.first;  // names, not bindings: clang 14 does not capture those
        const auto type = entry.second;
        CAPTURE(name);
        TemporaryFolder folder;
        convert_file(golden_gguf() / name, folder / "model.fovea");
        const Converted converted(folder / "model.fovea");
        const std::vector<TensorInfo> listed = tensors(converted.model);
        const ModelSource source = read_model(name);
        CHECK(source.type == type);
        std::uint32_t index = 0, n_of_type = 0;
        for_each_tensor(source.config.decoder, StackIndex::decoder, [&](const TensorSpec& spec) {
            const TensorInfo tensor = listed.at(index++);
            CAPTURE(tensor.role);
            CAPTURE(tensor.layer);
            REQUIRE(tensor.n_rows == spec.n_rows);
            n_of_type += tensor.type == type;
            std::vector<float> want(std::size_t{spec.n_rows} * spec.n_cols);
            source.read_rows(spec, 0, spec.n_rows, want.data());
            std::size_t n_different = 0;
            for (std::uint32_t row = 0; row < spec.n_rows; ++row)
                for (std::uint32_t col = 0; col < spec.n_cols; ++col) {
                    const float have = element(tensor, converted.mapping.bytes().data() + tensor.offset, row, col);
                    n_different += have != want[std::size_t{row} * spec.n_cols + col];
                }
            CHECK(n_different == 0);
        });
        CHECK(index == listed.size());
        CHECK(n_of_type >= 12);
    }
}

TEST_CASE("gguf: a quant that q8 does not have is refused, and taken by another type") {
    TemporaryFolder folder;
    std::string bytes = read_text(golden_gguf() / "llama_q8_0.gguf");
    bytes.replace(bytes.size() / 2, 40, 40, '\x80');  // more than a block of a matrix
    write_text(folder / "model.gguf", bytes);
    const auto refused = [&](std::optional<Type> type) {
        return refusal_of([&] { convert_file(folder / "model.gguf", folder / "out.fovea", type); });
    };
    CHECK(contains(refused({}), "expected quants from -127 to 127, got -128"));
    CHECK(refused(Type::f32) == "");
}

TEST_CASE("gguf: the shape follows from metadata and tensors") {
    const ModelSource llama = read_model("llama_q8_0.gguf"), yarn = read_model("llama_yarn.gguf");
    const Stack& stack = llama.config.decoder;
    CHECK(stack.tied_output);
    CHECK(stack.vocab_size == 61);
    CHECK(stack.max_positions == 64);
    CHECK(stack.blocks[0].attention.n_heads == 4);
    CHECK(stack.blocks[0].attention.n_kv_heads == 2);
    CHECK(stack.blocks[0].attention.rotary_dim == 16);
    CHECK(!stack.blocks[0].attention.query_bias);
    CHECK(!yarn.config.decoder.tied_output);
    CHECK(yarn.config.decoder.blocks[0].attention.query_bias);
    CHECK(yarn.config.decoder.blocks[0].feed.up_bias);
    CHECK(yarn.config.decoder.blocks[0].attention.rope_scale > 1.0f);
    CHECK(read_model("qwen3.gguf").config.decoder.blocks[0].attention.query_key_norm == Norm::rms);
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
