// Sources that are wrong: one line each, that names the file, the field, what was wanted and what was there.
#include "convert/open/convert.h"
#include "host/base/json.h"

#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <random>

#include "convert/formats/safetensors.h"
#include "tests/fuzz/fovea_file.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// A copy of a golden model to spoil, and what converting it then says.
class Spoiled {
public:
    explicit Spoiled(const char* name = "llama_tied") {
        fs::copy(golden_models() / name, folder_ / "model");
        write_text(folder_ / "out.fovea", kOlderFile);
    }
    fs::path operator/(const char* name) const { return folder_ / "model" / name; }
    Spoiled& config(const std::function<void(SortedJson&)>& edit) {
        edit_json(*this / "config.json", edit);
        return *this;
    }
    Spoiled& tensors(const std::function<void(SafetensorsText&)>& edit) {
        auto file = SafetensorsText::read(*this / "model.safetensors");
        edit(file);
        write_text(*this / "model.safetensors", file.text());
        return *this;
    }
    std::string line(const char* source = "model") const {
        ConvertOptions options;
        options.source = folder_ / source;
        options.output = folder_ / "out.fovea";
        std::string line = refusal_of([&] { convert_source(options); });
        CHECK(read_text(folder_ / "out.fovea") == kOlderFile);
        return line;
    }
    const TemporaryFolder& folder() const { return folder_; }

private:
    TemporaryFolder folder_;
};

void check_has(const std::string& line, std::initializer_list<const char*> parts) {
    CAPTURE(line);
    for (const std::string part : parts) {
        CAPTURE(part);
        CHECK(contains(line, part));
    }
}

SortedJson& tensor(SafetensorsText& file, const char* name) { return file.header[name]; }

constexpr const char* kQuery = "model.layers.1.self_attn.q_proj.weight";

}  // namespace

TEST_CASE("refusals: config.json") {
    const auto with = [](const char* field, SortedJson value, const char* model = "llama_tied") {
        return Spoiled(model).config([&](SortedJson& json) { json[field] = value; }).line();
    };
    const auto without = [](const char* field) {
        return Spoiled().config([&](SortedJson& json) { json.erase(field); }).line();
    };
    for (const char* field :
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "model_type"})
        check_has(without(field), {"config.json", field, "expected", "got nothing"});
    check_has(with("hidden_size", "wide"), {"config.json: hidden_size: expected a whole number", "got \"wide\""});
    check_has(with("hidden_size", -1), {"hidden_size", "got -1"});
    check_has(with("hidden_size", 1ull << 60), {"hidden_size", "got 1152921504606846976"});
    check_has(with("num_key_value_heads", 3), {"num_key_value_heads: expected a divisor of num_attention_heads, 4"});
    check_has(with("head_dim", 7), {"config.json", "head_dim, even"});
    check_has(with("model_type", "rwkv"), {"model_type: expected llama, mistral", "got \"rwkv\""});
    check_has(with("hidden_act", "swiglu"), {"hidden_act: expected silu", "swiglu"});
    check_has(with("quantization_config", SortedJson::object({{"bits", 4}})),
              {"quantization_config: quant_method: expected a text"});
    check_has(with("tie_word_embeddings", "yes"), {"tie_word_embeddings: expected true or false"});
    check_has(with("rope_theta", -1.0), {"rope_theta: expected a number"});
    check_has(with("rope_scaling", SortedJson{{"type", "ntk"}}),
              {"rope_scaling: type: expected default, linear", "ntk"});
    check_has(with("rope_scaling", SortedJson{{"type", "longrope"}}), {"rope_scaling: short_factor: expected a list"});
    check_has(with("rope_scaling", SortedJson{{"rope_type", "linear"}}), {"rope_scaling: factor", "got nothing"});
    check_has(with("rope_scaling", SortedJson{{"rope_type", "linear"}, {"factor", 0}}), {"factor", "got 0"});
    check_has(with("rope_scaling", SortedJson{{"full_attention", SortedJson::object()}}),
              {"full_attention", "for all layers"});
    check_has(with("eos_token_id", "end"), {"eos_token_id: expected a token's id"});
    check_has(with("layer_types", SortedJson::array({"full_attention"}), "qwen2_window"), {"layer_types: expected 3"});
    check_has(with("layer_types", SortedJson::array({"a", "b", "c"}), "qwen2_window"),
              {"layer_types: expected full_attention"});
    check_has(with("add_cross_attention", true, "gpt2_tied"), {"add_cross_attention: expected false"});
    check_has(with("n_head", 5, "gpt2_tied"), {"n_embd: expected a multiple of n_head, 5"});
    check_has(with("activation_function", "quick_silu", "gpt2_tied"), {"activation_function", "quick_silu"});
    const auto deep = [](SortedJson& json) {
        json["n_layer"] = 9;
        json["scale_attn_by_inverse_layer_idx"] = true;
    };
    check_has(Spoiled("gpt2_untied").config(deep).line(), {"at most 8 different kinds of layers"});
}

TEST_CASE("refusals: files that are not what they should be") {
    Spoiled spoiled;
    SUBCASE("config.json is not JSON") {
        write_text(spoiled / "config.json", "{\"hidden_size\": ");
        check_has(spoiled.line(), {"config.json: expected JSON, got something else at byte"});
    }
    SUBCASE("config.json has a number beyond a double") {
        write_text(spoiled / "config.json", "{\"rms_norm_eps\": 1e705}");
        check_has(spoiled.line(), {"config.json: expected numbers that a double can hold"});
    }
    SUBCASE("config.json is a list") {
        write_text(spoiled / "config.json", "[]");
        check_has(spoiled.line(), {"config.json: expected a JSON object, got array"});
    }
    SUBCASE("config.json is deep") {
        for (const std::size_t n : {65u, 100'000u}) {
            write_text(spoiled / "config.json", R"({"model_type": "[\"[", "x": )" + std::string(n, '['));
            check_has(spoiled.line(), {"config.json: expected at most 64 levels of JSON"});
        }
        write_text(spoiled / "config.json", R"({"model_type": )" + std::string(63, '[') + std::string(63, ']') + "}");
        check_has(spoiled.line(), {"config.json: model_type: expected a text"});
    }
    SUBCASE("config.json is large") {
        write_text(spoiled / "config.json", std::string(5u << 20, ' '));
        check_has(spoiled.line(), {"config.json: expected at most 4194304 bytes"});
    }
    SUBCASE("no config.json") {
        fs::remove(spoiled / "config.json");
        check_has(spoiled.line(), {"config.json", "no such file"});
    }
    SUBCASE("no weights") {
        fs::remove(spoiled / "model.safetensors");
        check_has(spoiled.line(), {"expected model.safetensors or pytorch_model.bin, or the index.json of either"});
    }
    SUBCASE("nothing") { check_has(spoiled.line("none"), {"none", "no such file"}); }
    SUBCASE("an empty file") {
        write_text(spoiled.folder() / "empty", "");
        check_has(spoiled.line("empty"), {"empty: expected a model, got an empty file"});
    }
    SUBCASE("a text") {
        write_text(spoiled.folder() / "text", "It was a dark and stormy night; the rain fell in torrents.");
        check_has(spoiled.line("text"), {"text", "llama2.c checkpoint", "expected a number from 1"});
    }
    SUBCASE("GGUF") {
        write_text(spoiled.folder() / "m.gguf", "GGUF and so on");
        check_has(spoiled.line("m.gguf"), {"expected GGUF version 2 or 3"});
    }
    SUBCASE("a Fovea file cut short") {
        ConvertOptions options;
        options.source = spoiled.folder() / "model";
        options.output = spoiled.folder() / "whole.fovea";
        convert_source(options);
        const std::string text = read_text(spoiled.folder() / "whole.fovea");
        write_text(spoiled.folder() / "cut.fovea", text.substr(0, text.size() - 1));
        check_has(spoiled.line("cut.fovea"), {"cut.fovea: truncated"});
        std::string flipped = text;
        flipped.back() ^= 1;
        write_text(spoiled.folder() / "flipped.fovea", flipped);
        check_has(spoiled.line("flipped.fovea"), {"flipped.fovea: weights: expected crc "});
    }
    SUBCASE("a Fovea file whose tensors share their bytes") {
        AlignedBytes file = write_bytes(random_model(llama_config(), 1), {});
        auto* bytes = reinterpret_cast<std::uint8_t*>(file.data());
        const auto* sections = reinterpret_cast<const SectionRecord*>(bytes + sizeof(FileHeader));
        const auto is_list = [](const SectionRecord& s) {
            return s.kind == static_cast<std::uint32_t>(SectionKind::tensors);
        };
        auto* tensors = reinterpret_cast<TensorRecord*>(bytes + std::find_if(sections, sections + 2, is_list)->offset);
        for (int i = 1; tensors[i].layer == 0; ++i) tensors[i].offset = tensors[0].offset;
        fuzz::make_right(bytes, file.size());
        write_text(spoiled.folder() / "shared.fovea", {reinterpret_cast<const char*>(bytes), file.size()});
        check_has(spoiled.line("shared.fovea"), {"shared.fovea: expected tensors with bytes of their own"});
    }
    SUBCASE("llama2.c of a wrong size or version") {
        std::int32_t shape[] = {8, 16, 1, 2, 2, 11, 5, 0, 0, 0};
        const auto write = [&] {
            write_text(spoiled.folder() / "m.bin", {reinterpret_cast<const char*>(shape), sizeof shape});
        };
        write();
        check_has(spoiled.line("m.bin"), {"m.bin: expected 3116 bytes", "got 40"});
        shape[3] = 3;
        write();
        check_has(spoiled.line("m.bin"), {"dim: expected a multiple of n_heads, 3, got 8"});
        shape[5] = std::numeric_limits<std::int32_t>::min();
        write();
        check_has(spoiled.line("m.bin"), {"vocab_size", "got -2147483648"});
        shape[0] = 0x616b3432;
        shape[1] = 3;
        write_text(spoiled.folder() / "m.bin", {reinterpret_cast<const char*>(shape), 8});
        check_has(spoiled.line("m.bin"), {"expected a header of 256 bytes, got 8"});
        write_text(spoiled.folder() / "m.bin",
                   std::string(reinterpret_cast<const char*>(shape), 40) + std::string(300, 0));
        check_has(spoiled.line("m.bin"), {"version 0, 1 or 2, got version 3"});
    }
}

TEST_CASE("refusals: safetensors") {
    const auto edited = [](const std::function<void(SafetensorsText&)>& edit) {
        return Spoiled().tensors(edit).line();
    };
    check_has(edited([](auto& f) { f.header.erase(kQuery); }),
              {"model.safetensors: tensor ", kQuery, "[32, 32]", "got none"});
    check_has(edited([](auto& f) { f.header["extra"] = tensor(f, kQuery), f.header.erase(kQuery); }),
              {kQuery, "got none"});
    check_has(edited([](auto& f) {
                  tensor(f, kQuery)["shape"] = {16, 64};
              }),
              {kQuery, "expected shape [32, 32], got [16, 64]"});
    check_has(edited([](auto& f) {
                  tensor(f, kQuery)["shape"] = {32, 31};
              }),
              {kQuery, "expected 3968 bytes", "got 4096"});
    check_has(edited([](auto& f) { tensor(f, kQuery)["dtype"] = "I32"; }),
              {kQuery, "expected F32, F16 or BF16, got I32"});
    check_has(edited([](auto& f) { tensor(f, kQuery)["dtype"] = "F4_X"; }), {kQuery, "got F4_X"});
    check_has(edited([](auto& f) { tensor(f, kQuery)["dtype"] = 7; }), {kQuery, "dtype: expected a text"});
    check_has(edited([](auto& f) { tensor(f, kQuery).erase("shape"); }), {kQuery, "shape: expected a list"});
    check_has(edited([](auto& f) { tensor(f, kQuery)["shape"] = {1ull << 33, 1ull << 33}; }), {"shape", "below 2^64"});
    check_has(edited([](auto& f) { tensor(f, kQuery)["shape"] = {-1, 4}; }), {kQuery, "whole numbers"});
    check_has(edited([](auto& f) {
                  tensor(f, kQuery)["data_offsets"] = {0, 1ull << 62};
              }),
              {kQuery, "bytes within the"});
    check_has(edited([](auto& f) { tensor(f, kQuery)["data_offsets"] = {8, 4}; }), {kQuery, "got 8 to 4"});
    check_has(edited([](auto& f) {
                  tensor(f, kQuery)["data_offsets"] =
                      tensor(f, "model.layers.0.self_attn.q_proj.weight")["data_offsets"];
              }),
              {"do not overlap"});
    check_has(edited([](auto& f) { f.header["a"] = 5; }), {"header: expected an object of objects"});
    check_has(edited([](auto& f) { f.header = SortedJson::array(); }), {"header: expected an object of objects"});
    check_has(edited([](auto& f) { f.data.resize(f.data.size() - 1); }), {"tensor ", "bytes within the"});
    check_has(edited([](auto& f) {
                  SortedJson extra = tensor(f, kQuery);
                  extra["shape"] = SortedJson::array({0, 3});  // clang 14 leaks a bare list in a template
                  extra["data_offsets"] = SortedJson::array({0, 0});
                  f.header["model.layers.0.self_attn.q_norm.weight"] = extra;
              }),
              {"q_norm", "expected only tensors that the configuration calls for"});
    check_has(edited([](auto& f) { f.header["two\nlines"] = tensor(f, kQuery); }), {"do not overlap"});
}

TEST_CASE("refusals: safetensors headers that lie about their size, or are no JSON") {
    Spoiled spoiled;
    const std::string text = read_text(spoiled / "model.safetensors");
    const auto line_of = [&](const std::string& changed) {
        write_text(spoiled / "model.safetensors", changed);
        return spoiled.line();
    };
    std::string huge = text;
    const std::uint64_t size = 1ull << 60;
    std::memcpy(huge.data(), &size, sizeof size);
    check_has(line_of(huge), {"model.safetensors: expected a header of at most", "got one of 1152921504606846976"});
    check_has(line_of(""), {"model.safetensors: expected at least 8 bytes, got 0"});
    check_has(line_of(text.substr(0, 7)), {"expected at least 8 bytes, got 7"});
    check_has(line_of(text.substr(0, 100)), {"expected a header of at most 92 bytes"});
    std::string broken = text;
    broken[8] = '[';
    check_has(line_of(broken), {"header: expected an object of objects"});
    broken[8] = '!';
    check_has(line_of(broken), {"header: expected JSON"});
    std::string overflowing = text;
    const std::string number = "1e705,";
    overflowing.replace(overflowing.find('[') + 1, number.size(), number);
    check_has(line_of(overflowing), {"header: expected numbers that a double can hold"});
    const std::string deep = std::string(1000, '[');
    std::string nested(8, '\0');
    const std::uint64_t n = deep.size();
    std::memcpy(nested.data(), &n, sizeof n);
    check_has(line_of(nested + deep), {"header: expected"});
    std::string objects = R"({"a":{)";
    for (int i = 0; i < 100'000; ++i) objects += '"' + std::to_string(i) + R"(":{},)";
    const std::uint64_t objects_bytes = objects.size();
    std::memcpy(nested.data(), &objects_bytes, sizeof objects_bytes);
    check_has(line_of(nested + objects), {"header: expected objects of numbers, got deeper nesting"});
    std::string mixed = "{";
    for (int i = 0; i < 40'000; ++i) mixed += '"' + std::to_string(i) + "\":1,";
    for (int i = 0; i < 40'000; ++i)
        mixed += "\"t" + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)";
    const std::uint64_t mixed_bytes = mixed.size();
    std::memcpy(nested.data(), &mixed_bytes, sizeof mixed_bytes);
    const auto begun = std::chrono::steady_clock::now();
    check_has(line_of(nested + mixed), {"header: expected an object of objects"});
    // Half a minute, where the numbers were looked through whenever an object ended.
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10));
    std::string twice =
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
    const std::uint64_t twice_bytes = twice.size();
    std::memcpy(nested.data(), &twice_bytes, sizeof twice_bytes);
    check_has(line_of(nested + twice + std::string(8, '\0')), {"tensor a: expected once, got twice"});
}

TEST_CASE("refusals: shards") {
    constexpr const char* kIndex = "model.safetensors.index.json";
    const auto named = [](const char* name) {
        Spoiled spoiled("llama_wide_heads");
        edit_json(spoiled / kIndex, [&](SortedJson& json) { json["weight_map"]["lm_head.weight"] = name; });
        return spoiled.line();
    };
    for (const char* name : {"../model.safetensors", "/etc/passwd", "..", ""})
        check_has(named(name), {kIndex, "lm_head.weight: expected the name of a file in this folder"});
    check_has(named("model-9.safetensors"), {"model-9.safetensors", "no such file"});
    Spoiled cut("llama_wide_heads");
    const std::string text = read_text(cut / "model-00002-of-00004.safetensors");
    write_text(cut / "model-00002-of-00004.safetensors", text.substr(0, text.size() / 2));
    check_has(cut.line(), {"model-00002-of-00004.safetensors: tensor ", "bytes within the"});
    Spoiled empty("llama_wide_heads");
    edit_json(empty / kIndex, [&](SortedJson& json) { json["weight_map"] = SortedJson::object(); });
    check_has(empty.line(), {kIndex, "weight_map: expected at least one file"});
}

TEST_CASE("refusals: GPT-2 with some of its biases missing") {
    Spoiled spoiled("gpt2_tied");
    spoiled.tensors([](auto& f) { f.header.erase("transformer.h.0.attn.c_attn.bias"); });
    check_has(spoiled.line(), {"tensor transformer.h.0.attn.c_attn.bias: expected [96], got none"});
    Spoiled of_a_kind("gpt2_tied");  // in every layer
    of_a_kind.tensors([](auto& f) {
        const auto header = f.header;
        for (const auto& [name, tensor] : header.items())
            if (name.ends_with("c_proj.bias")) f.header.erase(name);
    });
    check_has(of_a_kind.line(), {"c_proj.bias: expected [", "got none"});
}

TEST_CASE("refusals: no byte of a safetensors file or config.json makes more than a refusal") {
    std::mt19937 random(11);
    TemporaryFolder folder;
    fs::copy(golden_models() / "gpt2_untied", folder / "model");
    const std::string weights = read_text(folder / "model/model.safetensors");
    const std::string config = read_text(folder / "model/config.json");
    std::uint64_t header_bytes;
    std::memcpy(&header_bytes, weights.data(), sizeof header_bytes);
    ConvertOptions options;
    options.source = folder / "model";
    std::size_t n_refused = 0;
    for (int i = 0; i < 400; ++i) {
        const bool in_config = i % 2;
        std::string changed = in_config ? config : weights;
        const std::size_t within = in_config ? config.size() : 8 + header_bytes;
        for (int n = 0; n < 2; ++n) changed[random() % within] = "0123456789{}[]\",:-e\xff\0"[random() % 21];
        write_text(folder / (in_config ? "model/config.json" : "model/model.safetensors"), changed);
        n_refused += !refusal_of([&] { static_cast<void>(read_source(options)); }).empty();
        write_text(folder / (in_config ? "model/config.json" : "model/model.safetensors"),
                   in_config ? config : weights);
    }
    CHECK(n_refused > 200);
}
