// Hugging Face folders whose config.json and files do not agree, or do not say all: output heads, windows, a text model within
// another.
#include <doctest/doctest.h>

#include <cmath>

#include "convert/sources/hf_config.h"
#include "host/base/json.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// A copy of a golden model whose files a test changes.
class Changed {
public:
    explicit Changed(const fs::path& golden) { fs::copy(golden, model()); }

    [[nodiscard]] fs::path model() const { return folder_ / "model"; }
    void config(const std::function<void(SortedJson&)>& edit) const { edit_json(model() / "config.json", edit); }
    void tensors(const std::function<void(SafetensorsText&)>& edit) const {
        SafetensorsText file = SafetensorsText::read(model() / "model.safetensors");
        edit(file);
        write_text(model() / "model.safetensors", file.text());
    }

    /// Converts it to f32; what it had to say is in notes.
    [[nodiscard]] fs::path converted() {
        ConvertOptions options;
        options.source = model();
        options.output = folder_ / "out.fovea";
        options.type = Type::f32;
        const ModelSource source = read_source(options);
        notes = source.notes;
        write_file(source, options.output, write_options(options, source));
        return options.output;
    }

    std::vector<std::string> notes;

private:
    TemporaryFolder folder_;
};

/// A tensor of the same numbers under another name.
void copy_tensor(SafetensorsText& file, const std::string& from, const std::string& to) {
    const SortedJson entry = file.header.at(from);
    const std::uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    file.header[to] = entry;
    file.header[to]["data_offsets"] = {file.data.size(), file.data.size() + end - begin};
    file.data += file.data.substr(begin, end - begin);
}

/// Takes a tensor away and closes the gap.
void remove_tensor(SafetensorsText& file, const std::string& name) {
    const std::uint64_t begin = file.header.at(name)["data_offsets"][0], end = file.header.at(name)["data_offsets"][1];
    file.header.erase(name);
    file.data.erase(begin, end - begin);
    for (auto& [key, entry] : file.header.items()) {
        if (!entry.contains("data_offsets") || entry["data_offsets"][0] < end) continue;
        for (auto& offset : entry["data_offsets"]) offset = offset.get<std::uint64_t>() - (end - begin);
    }
}

float error_of(Changed& model, const fs::path& expected) {
    const Converted converted(model.converted());
    return logits_error(converted.model, expected);
}

std::vector<float> logits_of(Changed& model) {
    const Converted converted(model.converted());
    std::vector<Token> tokens;
    for (Token i = 0; i < 24; ++i) tokens.push_back((7 * i + 3) % converted.model.config().decoder.vocab_size);
    return all_logits(converted.model, tokens);
}

}  // namespace

TEST_CASE("heads: one of other numbers than the embeddings that config.json ties it to is the head, with a note") {
    const fs::path folder = golden_path("families/llama");
    Changed model(folder);
    model.config([](SortedJson& json) { json["tie_word_embeddings"] = true; });
    CHECK(error_of(model, folder / "expected_logits.npy") < 1e-4f);
    REQUIRE(model.notes.size() >= 1);
    CHECK(contains(model.notes.front(), "lm_head.weight: the configuration ties it to the embeddings, but it differs"));
}

TEST_CASE("heads: one of the embeddings' numbers is tied, and may stand for both") {
    const fs::path folder = golden_path("families/smollm3"), expected = folder / "expected_logits.npy";
    Changed twice(folder);
    twice.tensors([](SafetensorsText& file) { copy_tensor(file, "model.embed_tokens.weight", "lm_head.weight"); });
    CHECK(error_of(twice, expected) < 1e-4f);
    CHECK(Converted(twice.converted()).model.config().decoder.tied_output);
    for (const std::string& note : twice.notes) CHECK(!contains(note, "lm_head"));
    Changed alone(folder);
    alone.tensors([](SafetensorsText& file) {
        copy_tensor(file, "model.embed_tokens.weight", "lm_head.weight");
        remove_tensor(file, "model.embed_tokens.weight");
    });
    CHECK(error_of(alone, expected) < 1e-4f);
    CHECK(Converted(alone.converted()).model.config().decoder.tied_output);
}

TEST_CASE("heads: a decoder's bias of its own is taken before the one that is tied to it") {
    const auto bias_of = [](Changed& model) {
        ConvertOptions options;
        options.source = model.model();
        std::vector<float> bias(50);
        read_source(options).read_rows({Role::output_bias, StackIndex::encoder, 0, Layout::vector, 1, 50}, 0, 1,
                                       bias.data());
        return bias;
    };
    Changed plain(golden_path("encoders/bert_masked")), own(golden_path("encoders/bert_masked"));
    own.config([](SortedJson& json) { json["tie_word_embeddings"] = false; });
    own.tensors([](SafetensorsText& file) {
        copy_tensor(file, "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight");
        copy_tensor(file, "cls.predictions.bias", "cls.predictions.decoder.bias");
        const std::uint64_t begin = file.header["cls.predictions.bias"]["data_offsets"][0],
                            end = file.header["cls.predictions.bias"]["data_offsets"][1];
        std::fill(file.data.begin() + static_cast<std::ptrdiff_t>(begin),
                  file.data.begin() + static_cast<std::ptrdiff_t>(end), '\0');
    });
    CHECK(bias_of(own) == bias_of(plain));
    CHECK(bias_of(plain) != std::vector<float>(50, 0.0f));
}

TEST_CASE("heads: without a field for its activation a head has the feed-forward part's") {
    const Changed model(golden_path("encoders/nomic_bert_model"));
    model.config([](SortedJson& json) {
        json["architectures"] = {"NomicBertForMaskedLM"};
        json.erase("hidden_act");
        json.erase("activation_function");
    });
    HfConfig config = read_hf_config(model.model() / "config.json", {});
    CHECK(config.stack().blocks[0].feed.activation == Activation::silu);
    CHECK(config.stack().head[0].activation == Activation::silu);
}

TEST_CASE("windows: which layers have one where config.json lists no kinds of layers") {
    struct Case {
        const char* family;
        SortedJson fields, types;
    };
    const std::string sliding = "sliding_attention", full = "full_attention";
    // As transformers' configurations have it: SmolLM 3's layers without rotary positions, Qwen 2 MoE's even ones below the
    // limit.
    const Case cases[] = {{"smollm3", {{"no_rope_layers", {1, 0}}}, {full, sliding}},
                          {"qwen2_moe", {{"max_window_layers", 28}}, {sliding, full}},
                          {"qwen2_moe", {{"max_window_layers", 0}}, {full, full}}};
    for (const Case& c : cases) {
        CAPTURE(c.family);
        const fs::path folder = golden_path("families") / c.family;
        Changed by_rule(folder), by_list(folder), all(folder);
        const auto edit = [&](SortedJson& json, const SortedJson& types) {
            json.update(c.fields);
            json["use_sliding_window"] = true;
            json["sliding_window"] = 5;
            types.is_null() ? json.erase("layer_types") : (json["layer_types"] = types, 1u);
        };
        by_rule.config([&](SortedJson& json) { edit(json, {}); });
        by_list.config([&](SortedJson& json) { edit(json, c.types); });
        all.config([&](SortedJson& json) { edit(json, {full, full}); });
        const std::vector<float> got = logits_of(by_rule);
        CHECK(got == logits_of(by_list));
        CHECK((got == logits_of(all)) == (c.types == SortedJson{full, full}));
    }
}

TEST_CASE("text part: of a model that sees or hears, too, the text model is read, whatever its names begin with") {
    for (const std::string prefix : {"language_model.", "model.language_model."}) {
        CAPTURE(prefix);
        const fs::path folder = golden_path("families/gemma3_text");
        Changed model(folder);
        model.config([](SortedJson& json) {
            SortedJson whole = {
                {"model_type", "gemma3"}, {"eos_token_id", {1, 2}}, {"vision_config", {{"hidden_size", 8}}}};
            json.erase("architectures");
            whole["text_config"] = json;
            json = whole;
        });
        model.tensors([&](SafetensorsText& file) {
            SortedJson renamed;
            for (const auto& [name, entry] : file.header.items()) {
                const bool of_model = name.starts_with("model.") && prefix.starts_with("model.");
                renamed[name == "__metadata__" ? name : prefix + (of_model ? name.substr(6) : name)] = entry;
            }
            file.header = renamed;
            copy_tensor(file, prefix + (prefix.starts_with("model.") ? "norm.weight" : "model.norm.weight"),
                        "vision_tower.norm.weight");
        });
        CHECK(error_of(model, folder / "expected_logits.npy") < 1e-4f);
        REQUIRE(!model.notes.empty());
        CHECK(model.notes.front() == "config.json: of gemma3 the model of texts is read alone");
    }
}

TEST_CASE("text part: Qwen's models of pictures say what texts need among their own fields, as they are published") {
    for (const char* type : {"qwen2_vl", "qwen2_5_vl"}) {
        CAPTURE(type);
        const fs::path folder = golden_path((std::string("families/") + type + "_text").c_str());
        Changed model(folder);
        model.config([&](SortedJson& json) {
            SortedJson flat = json["text_config"];
            flat["model_type"] = type;
            flat["vision_config"] = json["vision_config"];
            flat["rope_theta"] = flat["rope_parameters"]["rope_theta"];
            flat["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {1, 1, 1}}};
            flat.erase("rope_parameters");
            json = flat;
        });
        CHECK(error_of(model, folder / "expected_logits.npy") < 1e-4f);
    }
}

TEST_CASE("text part: a head is tied where the whole or its part says so") {
    const fs::path folder = golden_path("families/qwen3_vl_text");
    for (const bool of_whole : {true, false}) {
        Changed model(folder);
        model.config([&](SortedJson& json) {
            json["tie_word_embeddings"] = of_whole;
            json["text_config"]["tie_word_embeddings"] = !of_whole;
        });
        model.tensors([](SafetensorsText& file) { file.header.erase("lm_head.weight"); });
        CHECK(refusal_of([&] { (void)model.converted(); }).empty());
    }
}

TEST_CASE("text part: sizes that text_config leaves to the class, and names that two tensors would have") {
    const fs::path folder = golden_path("families/gemma3_text");
    Changed model(folder);
    model.config([](SortedJson& json) {
        json = {{"model_type", "gemma3"},  // as the published files of four billion weights have it
                {"text_config",
                 {{"hidden_size", 2560},
                  {"intermediate_size", 10240},
                  {"model_type", "gemma3_text"},
                  {"num_hidden_layers", 34},
                  {"sliding_window", 1024}}}};
    });
    HfConfig config = read_hf_config(model.model() / "config.json", {});
    CHECK(config.stack().vocab_size == 262208);
    CHECK(config.stack().blocks[0].attention.n_heads == 8);
    CHECK(config.stack().blocks[0].attention.n_kv_heads == 4);
    CHECK(config.stack().blocks[0].attention.head_dim == 256);

    Changed twice(folder);
    twice.config([](SortedJson& json) { json = {{"model_type", "gemma3"}, {"text_config", json}}; });
    twice.tensors([](SafetensorsText& file) {
        copy_tensor(file, "model.norm.weight", "language_model.model.norm.weight");
        copy_tensor(file, "model.norm.weight", "model.language_model.norm.weight");
    });
    CHECK(contains(refusal_of([&] { (void)twice.converted(); }),
                   "expected one tensor of the text model's model.norm.weight"));
}

TEST_CASE("heads: tensors whose type has no size are not read beyond their bytes") {
    Changed model(golden_path("families/smollm3"));
    model.tensors([](SafetensorsText& file) {
        copy_tensor(file, "model.embed_tokens.weight", "lm_head.weight");
        for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) file.header[name]["dtype"] = "F8_E5M2";
        file.header["lm_head.weight"]["data_offsets"] = {file.data.size(), file.data.size()};
    });
    CHECK(!refusal_of([&] { (void)model.converted(); }).empty());
}
