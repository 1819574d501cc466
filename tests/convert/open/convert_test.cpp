// The converter: what it writes is what transformers computes with, byte for byte the same each time.
#include "convert/open/convert.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "convert/sources/hf_config.h"
#include "convert/weights/rope.h"
#include "host/base/elements.h"
#include "host/base/exact_math.h"
#include "host/base/npy.h"
#include "host/model/listing.h"
#include "host/model/parameters.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

void convert_folder(const fs::path& source, const fs::path& output, std::optional<Type> type = {}) {
    ConvertOptions options;
    options.source = source;
    options.output = output;
    options.type = type;
    convert_source(options);
}

const std::string& info_value(const ModelSource& source, const std::string& key) {
    static const std::string kNone;
    for (const auto& [name, value] : source.info)
        if (name == key) return value;
    return kNone;
}

}  // namespace

TEST_CASE("convert: every kind of Hugging Face model has transformers' logits") {
    std::size_t n_models = 0;
    for (const auto& entry : fs::directory_iterator(golden_models())) {
        const std::string name = entry.path().filename();
        CAPTURE(name);
        TemporaryFolder folder;
        convert_folder(entry.path(), folder / "model.fovea");
        const Converted converted(folder / "model.fovea");
        // Logits reach 6 and pass through at most 3 layers of sums of at most 96 terms: errors of some tens of float32
        // roundings of 6, 5e-7 each. A window, activation, epsilon or rotary setting that is changed shows as 0.0009 or
        // more, most of them as more than 0.5.
        CHECK(logits_error(converted.model, entry.path() / "expected_logits.npy") < 5e-5f);
        if (name == "mistral_window") CHECK(tensors(converted.model)[0].type == Type::f16);
        if (name == "qwen2_window") {
            CHECK(tensors(converted.model)[0].type == Type::bf16);
            CHECK(converted.model.config().decoder.block(0).attention.window == 0);
            CHECK(converted.model.config().decoder.block(1).attention.window == 4);
        }
        ++n_models;
    }
    CHECK(n_models == 12);
}

TEST_CASE("convert: the same source gives the same bytes, by way of another Fovea file too") {
    TemporaryFolder folder;
    for (const char* name : {"llama_wide_heads", "gpt2_untied"}) {
        CAPTURE(name);
        fs::copy(golden_models() / name, folder / "elsewhere");
        convert_folder(golden_models() / name, folder / "a.fovea");
        convert_folder(folder / "elsewhere", folder / "b.fovea");
        CHECK(read_text(folder / "a.fovea") == read_text(folder / "b.fovea"));
        for (const Type type : {Type::f16, Type::bf16}) {
            convert_folder(golden_models() / name, folder / "direct.fovea", type);
            convert_folder(folder / "a.fovea", folder / "retyped.fovea", type);
            CHECK(read_text(folder / "direct.fovea") == read_text(folder / "retyped.fovea"));
        }
        fs::remove_all(folder / "elsewhere");
    }
    CHECK(folder.n_files() == 4);  // no temporary file is left
}

TEST_CASE("convert: metadata") {
    TemporaryFolder folder;
    fs::copy(golden_models() / "llama_tied", folder / "model");
    edit_json(folder / "model/config.json", [](auto& json) {
        json["prompt_suffix"] = "\n";
        json["_name_or_path"] = "someone/Tiny-Llama/";
    });
    ConvertOptions options;
    options.source = folder / "model";
    SUBCASE("name, prompt_suffix, source_type") {
        const ModelSource source = read_source(options);
        CHECK(info_value(source, "name") == "Tiny-Llama");
        CHECK(info_value(source, "architecture") == "llama");
        CHECK(info_value(source, "prompt_suffix") == "\n");
        CHECK(info_value(source, "source_type") == "f32");
        CHECK(info_value(source, "chat_template").empty());
        CHECK(source.tokenizer.empty());
    }
    SUBCASE("a chat template that is a text") {
        write_text(folder / "model/tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
        CHECK(info_value(read_source(options), "chat_template") == "{{ messages }}");
    }
    SUBCASE("a chat template among several") {
        write_text(
            folder / "model/tokenizer_config.json",
            R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
        CHECK(info_value(read_source(options), "chat_template") == "d");
    }
    SUBCASE("a chat template in a file of its own") {
        write_text(folder / "model/tokenizer_config.json", R"({"chat_template": "older"})");
        write_text(folder / "model/chat_template.jinja", "newer");
        CHECK(info_value(read_source(options), "chat_template") == "newer");
    }
    SUBCASE("another config.json") {
        fs::rename(folder / "model/config.json", folder / "other.json");
        CHECK(contains(refusal_of([&] { static_cast<void>(read_source(options)); }), "config.json"));
        options.config = folder / "other.json";
        CHECK(info_value(read_source(options), "name") == "Tiny-Llama");
    }
    SUBCASE("the file alone") {
        options.source = folder / "model/model.safetensors";
        CHECK(info_value(read_source(options), "name") == "Tiny-Llama");
    }
}

TEST_CASE("convert: end tokens of both files, once each, those beyond the vocabulary left out") {
    TemporaryFolder folder;
    fs::copy(golden_models() / "llama_tied" / "config.json", folder / "config.json");
    edit_json(folder / "config.json", [](auto& json) {
        json["bos_token_id"] = nullptr;
        json["eos_token_id"] = {5, 61, -1, 2};
    });
    write_text(folder / "generation_config.json", R"({"bos_token_id": 3, "eos_token_id": [2, 60]})");
    const HfConfig config = read_hf_config(folder / "config.json", folder / "generation_config.json");
    CHECK(config.bos == Token{3});
    CHECK(config.eos == std::vector<Token>{5, 2, 60});
    CHECK(read_hf_config(folder / "config.json", folder / "none").eos == std::vector<Token>{5, 2});
}

TEST_CASE("convert: GPT-2 without any bias, and without its outer names") {
    TemporaryFolder folder;
    fs::copy(golden_models() / "gpt2_tied", folder / "model");
    auto file = SafetensorsText::read(folder / "model/model.safetensors");
    const auto header = file.header;
    for (const auto& [name, tensor] : header.items()) {
        file.header.erase(name);
        if (name.starts_with("transformer.") && !name.ends_with(".bias"))
            file.header[name.substr(std::string("transformer.").size())] = tensor;
    }
    write_text(folder / "model/model.safetensors", file.text());
    convert_folder(folder / "model", folder / "model.fovea");
    const Converted converted(folder / "model.fovea");
    const Block& block = converted.model.config().decoder.block(0);
    CHECK_FALSE(block.attention.query_bias);
    CHECK_FALSE(block.norm_bias);
    CHECK_FALSE(converted.model.config().decoder.final_norm_bias);
    CHECK(logits_error(converted.model, golden_models() / "gpt2_tied/expected_logits.npy") > 0.01f);
    ConvertOptions options;
    options.source = folder / "model";
    const ModelSource source = read_source(options);
    REQUIRE(source.notes.size() == 1);
    CHECK(source.notes[0].find("h.0.attn.c_attn.bias nor any other bias") != std::string::npos);
}

TEST_CASE("convert: llama2.c versions 0 and 1") {
    // Three layers of nothing in particular, untied, then tied: version 1 holds the same numbers in another order.
    const std::int32_t dim = 12, hidden = 20, n_layers = 3, n_heads = 3, n_kv_heads = 1, vocab = 17, length = 9;
    const int kv = dim / n_heads * n_kv_heads;
    const auto numbers = [](int seed, int n) {
        std::string bytes;
        for (int i = 0; i < n; ++i) {
            const float value = static_cast<float>((seed * 37 + i * 11) % 101 - 50) / 64.0f;
            bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        }
        return bytes;
    };
    const std::string embedding = numbers(1, vocab * dim), norm1 = numbers(2, n_layers * dim),
                      query = numbers(3, n_layers * dim * dim), key = numbers(4, n_layers * kv * dim),
                      value = numbers(5, n_layers * kv * dim), out = numbers(6, n_layers * dim * dim),
                      norm2 = numbers(7, n_layers * dim), gate = numbers(8, n_layers * hidden * dim),
                      down = numbers(9, n_layers * dim * hidden), up = numbers(10, n_layers * hidden * dim),
                      last_norm = numbers(11, dim), tables = numbers(12, length * dim / n_heads),
                      head = numbers(13, vocab * dim);
    TemporaryFolder folder;
    for (const bool tied : {true, false}) {
        CAPTURE(tied);
        const std::int32_t shape[] = {dim, hidden, n_layers, n_heads, n_kv_heads, tied ? vocab : -vocab, length};
        const std::int32_t start[] = {0x616b3432, 1, dim, hidden, n_layers, n_heads, n_kv_heads, vocab, length};
        std::string v0(reinterpret_cast<const char*>(shape), sizeof shape);
        std::string v1(reinterpret_cast<const char*>(start), sizeof start);
        v1 += static_cast<char>(tied);
        v1.resize(256);
        v0 += embedding + norm1 + query + key + value + out + norm2 + gate + down + up + last_norm + tables;
        v1 += norm1 + norm2 + last_norm + embedding + query + key + value + out + gate + down + up;
        write_text(folder / "v0.bin", tied ? v0 : v0 + head);
        write_text(folder / "v1.bin", tied ? v1 : v1 + head);
        convert_folder(folder / "v0.bin", folder / "v0.fovea");
        convert_folder(folder / "v1.bin", folder / "v1.fovea");
        CHECK(read_text(folder / "v0.fovea") == read_text(folder / "v1.fovea"));
        const Converted converted(folder / "v0.fovea");
        CHECK(converted.model.config().decoder.tied_output == tied);
        CHECK(converted.model.config().decoder.max_positions == length);
        // Gate and up by panels in turn: row 16 of `up` is row 0 of up, row 32 row 16 of gate, row 36 padding.
        ConvertOptions options;
        options.source = folder / "v1.bin";
        const ModelSource source = read_source(options);
        std::vector<float> rows(64 * dim), want(hidden * dim);
        source.read_rows({Role::up, StackIndex::decoder, 2, Layout::panels, 64, dim}, 0, 64, rows.data());
        std::memcpy(want.data(), up.data() + 2 * want.size() * 4, want.size() * 4);
        CHECK(rows[16 * dim + 5] == want[5]);
        CHECK(rows[(48 + 3) * dim] == want[(16 + 3) * dim]);
        CHECK(rows[(48 + 4) * dim] == 0.0f);
        std::memcpy(want.data(), gate.data() + 2 * want.size() * 4, want.size() * 4);
        CHECK(rows[(32 + 3) * dim + 1] == want[(16 + 3) * dim + 1]);
    }
}

TEST_CASE("convert: llama2.c's int8 checkpoints are read exactly, in groups of any size that divides") {
    TemporaryFolder folder;
    const std::int32_t dim = 12, hidden = 20, n_heads = 2, vocab = 9, length = 8, group = 6;
    std::mt19937 random(3);
    std::vector<float> wanted;  // of all matrices, one after another
    const auto matrix = [&](std::int32_t n) {
        std::string quants, scales;
        for (std::int32_t i = 0; i < n; ++i) {
            if (i % group == 0) {
                const float scale = std::ldexp(1.0f + static_cast<float>(random() % 1000) / 1000.0f, -7);
                scales.append(reinterpret_cast<const char*>(&scale), sizeof scale);
            }
            float scale;
            std::memcpy(&scale, scales.data() + scales.size() - sizeof scale, sizeof scale);
            quants += static_cast<char>(random());
            wanted.push_back(static_cast<float>(static_cast<std::int8_t>(quants.back())) * scale);
        }
        return quants + scales;
    };
    const std::int32_t start[] = {0x616b3432, 2, dim, hidden, 1, n_heads, n_heads, vocab, length};
    std::string file(reinterpret_cast<const char*>(start), sizeof start);
    file += '\1';  // a shared head
    file.append(reinterpret_cast<const char*>(&group), sizeof group);
    file.resize(256);
    file += std::string(3 * dim * sizeof(float), '\0');  // norms
    for (const std::int32_t n :
         {vocab * dim, dim * dim, dim * dim, dim * dim, dim * dim, hidden * dim, dim * hidden, hidden * dim})
        file += matrix(n);
    write_text(folder / "v2.bin", file);
    ConvertOptions options;
    options.source = folder / "v2.bin";
    const ModelSource source = read_source(options);
    CHECK(source.type == Type::q8);
    const auto check_rows = [&](Role role, std::uint32_t n_rows, std::uint32_t n_cols, std::size_t begin) {
        std::vector<float> rows(std::size_t{n_rows} * n_cols);
        source.read_rows({role, StackIndex::decoder, 0, Layout::panels, n_rows, n_cols}, 0, n_rows, rows.data());
        CHECK(std::equal(rows.begin(), rows.end(), wanted.begin() + static_cast<std::ptrdiff_t>(begin)));
    };
    check_rows(Role::token_embedding, vocab, dim, 0);
    check_rows(Role::query, dim, dim, vocab * dim);
    check_rows(Role::attention_output, dim, dim, vocab * dim + 3 * dim * dim);
    check_rows(Role::down, dim, hidden, vocab * dim + 4 * dim * dim + hidden * dim);
    std::vector<float> row(dim);  // row 16 of gate and up is up's first
    source.read_rows({Role::up, StackIndex::decoder, 0, Layout::panels, 64, dim}, 16, 1, row.data());
    CHECK(std::equal(row.begin(), row.end(), wanted.end() - hidden * dim));

    const auto refused = [&](std::size_t at, std::int32_t number) {
        std::string spoiled = file;
        std::memcpy(spoiled.data() + at, &number, sizeof number);
        write_text(folder / "bad.bin", spoiled);
        options.source = folder / "bad.bin";
        return refusal_of([&] { static_cast<void>(read_source(options)); });
    };
    for (const std::int32_t size : {0, -1, 1 << 30})
        CHECK(contains(refused(37, size), "group_size: expected a number"));
    CHECK(contains(refused(37, 7), "group_size: expected a divisor of a matrix's 108 elements, got 7"));
    CHECK(contains(refused(37, 4), "bytes for its header"));
    CHECK(contains(refused(8, 1 << 20), "got "));
    CHECK(contains(refused(4, 3), "version 0, 1 or 2, got version 3"));
}

TEST_CASE("convert: the reference checkpoints of both versions of llama2.c give one file") {
    const fs::path stories = fs::path(FOVEA_SOURCE_DIR) / "../shared/models/stories260k";
    if (!fs::exists(stories)) {
        const char* ci = std::getenv("CI");
        CHECK_MESSAGE((!ci || !*ci), "no reference models at ", stories.string());
        MESSAGE("skipped: no reference models at ", stories.string());
        return;
    }
    TemporaryFolder folder;
    convert_folder(stories / "checkpoint_legacy.bin", folder / "v0.fovea");
    convert_folder(stories / "checkpoint_v1.bin", folder / "v1.fovea");
    CHECK(read_text(folder / "v0.fovea") == read_text(folder / "v1.fovea"));
    const Converted converted(folder / "v0.fovea");
    CHECK(count_parameters(converted.model.config()).total == 260032);
    CHECK_FALSE(converted.model.tokenizer_bytes().empty());
}

TEST_CASE("elements: float16 and bfloat16 round to nearest even and come back") {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float f16 = from_f16(half), bf16 = from_bf16(half);
        if (!std::isnan(f16)) REQUIRE(to_f16(f16) == half);
        if (!std::isnan(bf16)) REQUIRE(to_bf16(bf16) == half);
    }
    CHECK(to_f16(1.0f + 0x1p-11f) == 0x3c00);      // ties go to even, down
    CHECK(to_f16(1.0f + 3 * 0x1p-11f) == 0x3c02);  // and up
    CHECK(to_f16(1.0f + 0x1.002p-11f) == 0x3c01);
    CHECK(to_f16(0x1p-25f) == 0);  // half of the smallest subnormal
    CHECK(to_f16(0x1.002p-25f) == 1);
    CHECK(to_f16(-0x1.ffep-15f) == 0x83ff + 1);  // the largest subnormals round up to a normal number
    CHECK(to_f16(65519.0f) == 0x7bff);
    CHECK(to_f16(65520.0f) == 0x7c00);
    CHECK(to_f16(-INFINITY) == 0xfc00);
    CHECK(to_f16(NAN) == 0x7e00);
    CHECK(to_bf16(1.0f + 0x1p-8f) == 0x3f80);
    CHECK(to_bf16(1.0f + 3 * 0x1p-8f) == 0x3f82);
    CHECK(to_bf16(NAN) == 0x7fc0);
}

TEST_CASE("rope: frequencies, logarithms and powers without the C library are those of it") {
    for (int i = 0; i < 110; ++i) {
        const double x = 1e-6 * std::pow(1.37, i);  // to 1e9
        CHECK(exact_log(x) == doctest::Approx(std::log(x)).epsilon(1e-15));
        CHECK(exact_exp(std::log(x)) == doctest::Approx(std::exp(std::log(x))).epsilon(1e-15));
        CHECK(quick_exp(std::log(x)) == doctest::Approx(std::exp(std::log(x))).epsilon(1e-15));
    }
    for (int i = -2800; i <= 2800; ++i)
        CHECK(quick_exp(i * 0.25) == doctest::Approx(std::exp(i * 0.25)).scale(0).epsilon(1e-15));
    for (const double base : {10000.0, 500000.0, 1e6})
        for (const std::uint32_t dim : {2u, 8u, 20u, 128u}) {
            const std::vector<float> frequencies = rope_frequencies({.base = base, .divisors = {}}, dim);
            REQUIRE(frequencies.size() == dim / 2);
            for (std::uint32_t i = 0; i < dim / 2; ++i)  // an exponent of up to 14 rounded to float32, twice a rounding
                CHECK(frequencies[i] == doctest::Approx(std::pow(base, -2.0 * i / dim)).epsilon(2e-6));
        }
    CHECK(yarn_attention_factor(1.0, 1.0) == 1.0);
    CHECK(yarn_attention_factor(4.0, 1.0) == doctest::Approx(0.1 * std::log(4.0) + 1.0).epsilon(1e-15));
}
