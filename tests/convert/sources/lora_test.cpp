// Low-rank adapters merged into a model's weights: what becomes of the logits, and what is refused.
#include "convert/sources/lora.h"
#include "fovea/host/opened.h"
#include "host/base/json.h"

#include <doctest/doctest.h>

#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

fs::path adapters() { return fs::path(FOVEA_GOLDEN_DIR) / "lora"; }

fs::path base_of(const fs::path& adapter) {
    std::string name = read_text(adapter / "base.txt");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return fs::path(FOVEA_GOLDEN_DIR) / name;
}

/// What merging a copy of that adapter says after a change; "" where it does not refuse.
std::string line_of(const char* adapter, const std::function<void(const fs::path&)>& change, float scale = 1.0f) {
    TemporaryFolder folder;
    fs::copy(adapters() / adapter, folder / "adapter");
    change(folder / "adapter");
    ConvertOptions options{.source = base_of(adapters() / adapter), .output = folder / "out.fovea"};
    options.loras = {{folder / "adapter", scale}};
    return refusal_of([&] { convert_source(options); });
}

void check_config_refused(const char* field, const SortedJson& value, const char* words) {
    const std::string line = line_of("llama", [&](const fs::path& adapter) {
        edit_json(adapter / "adapter_config.json", [&](SortedJson& json) { json[field] = value; });
    });
    CAPTURE(line);
    CHECK(contains(line, "adapter_config.json: "));
    CHECK(contains(line, words));
}

void edit_tensors(const fs::path& adapter, const std::function<void(SortedJson&)>& edit) {
    auto tensors = SafetensorsText::read(adapter / "adapter_model.safetensors");
    edit(tensors.header);
    write_text(adapter / "adapter_model.safetensors", tensors.text());
}

void check_tensors_refused(const std::function<void(SortedJson&)>& edit, const char* words) {
    const std::string line = line_of("llama", [&](const fs::path& adapter) {
        edit_json(adapter / "adapter_config.json", [](SortedJson& json) { json["target_modules"] = "all-linear"; });
        edit_tensors(adapter, edit);
    });
    CAPTURE(line);
    CHECK(contains(line, "adapter_model.safetensors: tensor "));
    CHECK(contains(line, words));
}

void rename(SortedJson& header, const std::string& from, const std::string& to) {
    header[to] = header.at(from);
    header.erase(from);
}

constexpr const char* kQuery = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";

}  // namespace

TEST_CASE("lora: merged adapters make the logits of the sums") {
    std::size_t n = 0;
    for (const auto& entry : fs::directory_iterator(adapters())) {
        const std::string name = entry.path().filename();
        CAPTURE(name);
        TemporaryFolder folder;
        ConvertOptions options{.source = base_of(entry.path()), .output = folder / "m.fovea", .type = Type::f32};
        convert_source(options);
        CHECK(logits_error(Converted(folder / "m.fovea").model, entry.path() / "expected_logits.npy") > 0.1f);
        options.loras = {{entry.path()}};
        convert_source(options);
        CHECK(logits_error(Converted(folder / "m.fovea").model, entry.path() / "expected_logits.npy") < 1e-4f);
        ++n;
    }
    CHECK(n == 13);
}

TEST_CASE("lora: a GGUF file's adapters make the logits of the sums; what is of another format is told what to give") {
    const fs::path golden = FOVEA_GOLDEN_DIR;
    for (const char* name : {"llama_q8_0", "qwen2_q4_0"}) {
        CAPTURE(name);
        TemporaryFolder folder;
        const std::string file = std::string(name) + ".gguf";
        const fs::path adapter = golden / "lora_gguf" / file, base = golden / "gguf" / file,
                       expected = golden / "lora_gguf" / (std::string(name) + "_logits.npy");
        ConvertOptions options{.source = base, .output = folder / "m.fovea", .type = Type::f32};
        convert_source(options);
        CHECK(logits_error(Converted(folder / "m.fovea").model, expected) > 0.1f);
        options.output = folder / "merged.fovea";
        options.loras = {{adapter, 0.25f}, {adapter, 0.75f}};
        convert_source(options);
        CHECK(logits_error(Converted(folder / "merged.fovea").model, expected) < 1e-4f);
        // What is not of one format is told which it is to be.
        const std::string other = refusal_of([&] {
            convert_source({.source = adapter, .output = folder / "b.fovea", .base = base_of(adapters() / "llama")});
        });
        CHECK(contains(other, "--base: expected the model of the adapter in the adapter's own format"));
        const std::string alone =
            refusal_of([&] { convert_source({.source = adapter, .output = folder / "b.fovea"}); });
        CHECK(contains(alone, "expected a model, got an adapter of one; --base MODEL makes a file of it"));
        options.loras = {{adapters() / "llama"}};
        CHECK(contains(refusal_of([&] { convert_source(options); }),
                       "--lora: expected an adapter as a GGUF file beside a GGUF model, got "));
        host::Opened opened = host::open_file((folder / "m.fovea").string());
        const std::string unconverted = refusal_of([&] { opened.add_adapter(adapter.string(), 1.0f); });
        CHECK(contains(unconverted, "expected an adapter's Fovea file, got a GGUF file; convert ADAPTER --base MODEL"));
    }
}

TEST_CASE("lora: an adapter at a scale and again at what is left of 1 is the adapter") {
    TemporaryFolder folder;
    const fs::path adapter = adapters() / "phi3";
    ConvertOptions options{.source = base_of(adapter), .output = folder / "m.fovea", .type = Type::f32};
    options.loras = {{adapter, 0.25f}, {adapter, 0.75f}};
    convert_source(options);
    CHECK(logits_error(Converted(folder / "m.fovea").model, adapter / "expected_logits.npy") < 1e-4f);
    options.loras = {{adapter, 0.25f}};
    convert_source(options);
    CHECK(logits_error(Converted(folder / "m.fovea").model, adapter / "expected_logits.npy") > 1e-2f);
}

TEST_CASE("lora: a model of the bare class takes an adapter of the class with a head") {
    TemporaryFolder folder;
    fs::copy(base_of(adapters() / "llama"), folder / "bare");
    auto tensors = SafetensorsText::read(folder / "bare/model.safetensors");
    const SortedJson header = tensors.header;
    for (const auto& [name, entry] : header.items())
        if (name.starts_with("model.")) rename(tensors.header, name, name.substr(6));
    write_text(folder / "bare/model.safetensors", tensors.text());
    ConvertOptions options{.source = folder / "bare", .output = folder / "m.fovea", .type = Type::f32};
    options.loras = {{adapters() / "llama"}};
    convert_source(options);
    CHECK(logits_error(Converted(folder / "m.fovea").model, adapters() / "llama/expected_logits.npy") < 1e-4f);
}

TEST_CASE("lora: any number of threads writes the same bytes") {
    TemporaryFolder folder;
    ConvertOptions options{.source = base_of(adapters() / "gpt2"), .output = folder / "1.fovea", .type = Type::q8};
    options.loras = {{adapters() / "gpt2"}};
    convert_source(options);
    options.output = folder / "3.fovea";
    options.n_threads = 3;
    convert_source(options);
    CHECK(read_text(folder / "1.fovea") == read_text(folder / "3.fovea"));
}

TEST_CASE("lora: configurations of anything but products are refused by name") {
    check_config_refused("peft_type", "LOHA", "peft_type: expected LORA, got \"LOHA\"");
    check_config_refused("use_dora", true, "use_dora: expected none, got true");
    check_config_refused("lora_bias", true, "lora_bias: expected none");
    check_config_refused("target_parameters", SortedJson::array({"experts"}), "target_parameters: expected none");
    check_config_refused("layer_replication", SortedJson::array({SortedJson::array({0, 2})}),
                         "layer_replication: expected none");
    check_config_refused("trainable_token_indices", SortedJson::array({1}), "trainable_token_indices: expected none");
    check_config_refused("init_lora_weights", "pissa", "gaussian, orthogonal or eva, got \"pissa\"");
    check_config_refused("r", 0, "r: expected a number from");
    check_config_refused("lora_alpha", "8", "lora_alpha: expected a number from");
    check_config_refused("use_rslora", 1, "use_rslora: expected true or false");
    check_config_refused("alpha_pattern", SortedJson::array(), "alpha_pattern: expected an object");
    check_config_refused("alpha_pattern", {{"q_proj|v_proj", 3}}, "expected names of modules, got the expression");
    check_config_refused("alpha_pattern", {{"v_proj", 3}, {"self_attn.v_proj", 4}}, "expected one number for");
    check_config_refused("alpha_pattern", {{"v_proj", -1}}, "alpha_pattern: v_proj: expected a number from");
}

TEST_CASE("lora: a factor has as many rows as the configuration says") {
    const std::string line = line_of("llama", [](const fs::path& adapter) {
        edit_json(adapter / "adapter_config.json", [](SortedJson& json) { json["r"] = 5; });
    });
    CHECK(contains(line, "mlp.down_proj.lora_A.weight: expected 5 rows as adapter_config.json says, got 4"));
}

TEST_CASE("lora: products of modules that the settings leave out are refused") {
    const auto line = [](const char* field, const SortedJson& value) {
        return line_of("llama", [&](const fs::path& adapter) {
            edit_json(adapter / "adapter_config.json", [&](SortedJson& json) { json[field] = value; });
        });
    };
    CHECK(contains(line("target_modules", SortedJson::array({"q_proj", "v_proj", "gate_proj"})),
                   "mlp.down_proj.lora_A.weight: expected a module that adapter_config.json's target_modules keeps"));
    CHECK(contains(line("exclude_modules", SortedJson::array({"v_proj"})), "exclude_modules keeps"));
    CHECK(contains(line("layers_to_transform", SortedJson::array({0})), "layers_to_transform keeps"));
    CHECK(contains(line("layers_to_transform", 1), "layers_to_transform keeps"));
    CHECK(contains(line("layers_to_transform", true), "layers_to_transform: expected numbers of layers"));
    CHECK(line("layers_to_transform", SortedJson::array({0, 1, 2})) == "");
    CHECK(line("target_modules", ".*_proj") == "");
}

TEST_CASE("lora: fields that say nothing are as if they were not there") {
    CHECK(line_of("llama", [](const fs::path& adapter) {
              edit_json(adapter / "adapter_config.json", [](SortedJson& json) {
                  json["use_dora"] = false;
                  json["target_parameters"] = nullptr;
                  json["trainable_token_indices"] = nullptr;
                  json["layer_replication"] = nullptr;
                  json["init_lora_weights"] = true;
              });
          }) == "");
}

TEST_CASE("lora: tensors that are no product of the model's are refused by name") {
    check_tensors_refused([](SortedJson& header) { rename(header, kQuery, "a.model.q.lora_A.weight"); },
                          "expected a name that begins with base_model.model.");
    check_tensors_refused([](SortedJson& header) { header.erase(kQuery); },
                          "expected the product's other factor beside it");
    check_tensors_refused(
        [](SortedJson& header) { header.erase("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"); },
        "expected the other factor, got none");
    check_tensors_refused(
        [](SortedJson& header) {
            header["base_model.model.model.layers.0.lora_magnitude_vector"] = {
                {"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
        },
        "expected a factor of a product");
    check_tensors_refused(
        [](SortedJson& header) {
            header[kQuery]["shape"] = {header[kQuery]["shape"][1], header[kQuery]["shape"][0]};
        },
        "expected a matrix of as many rows as the other factor has columns");
    check_tensors_refused([](SortedJson& header) { header[kQuery]["dtype"] = "I32"; },
                          "expected F32, F16 or BF16, got I32");
    for (const char* module : {"model.layers.9.self_attn.q_proj", "lm_tail", "model.norm"}) {
        const std::string a = std::string("base_model.model.") + module + ".lora_A.weight";
        const std::string b = std::string("base_model.model.") + module + ".lora_B.weight";
        check_tensors_refused(
            [&](SortedJson& header) {
                rename(header, kQuery, a);
                rename(header, "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", b);
            },
            std::string(module) == "model.norm" ? "expected factors of a matrix"
                                                : "expected a tensor that the model's files have");
    }
    check_tensors_refused(
        [](SortedJson& header) {  // a product as wide as another matrix
            rename(header, "base_model.model.model.layers.0.mlp.gate_proj.lora_A.weight",
                   "base_model.model.model.layers.0.self_attn.o_proj.lora_A.weight");
            rename(header, "base_model.model.model.layers.0.mlp.gate_proj.lora_B.weight",
                   "base_model.model.model.layers.0.self_attn.o_proj.lora_B.weight");
        },
        "expected factors of [");
}

TEST_CASE("lora: what is replaced has the shape of the model's, and no scale") {
    const std::string scaled = line_of(
        "embedding", [](const fs::path&) {}, 0.5f);
    CHECK(contains(scaled, "expected products alone where a scale is given, got lm_head.weight"));
    const std::string shape = line_of("embedding", [](const fs::path& adapter) {
        edit_tensors(adapter, [](SortedJson& header) {
            SortedJson& size = header["base_model.model.lm_head.weight"]["shape"];
            size = SortedJson::array({size[0].get<int>() * size[1].get<int>()});
        });
    });
    CHECK(contains(shape, "tensor lm_head.weight: expected the shape of the model's lm_head.weight"));
}

TEST_CASE("lora: folders and sources of another kind are refused") {
    TemporaryFolder folder;
    ConvertOptions options{.source = base_of(adapters() / "llama"), .output = folder / "m.fovea"};
    options.loras = {{folder.path()}};
    CHECK(contains(refusal_of([&] { convert_source(options); }), "expected a PEFT adapter's folder"));
    fs::copy(adapters() / "llama/adapter_config.json", folder / "adapter_config.json");
    CHECK(contains(refusal_of([&] { convert_source(options); }),
                   "expected adapter_model.safetensors or adapter_model.bin"));
    options.loras = {{adapters() / "llama"}};
    options.source = fs::path(FOVEA_GOLDEN_DIR) / "llama2c_v0.bin";
    CHECK(contains(refusal_of([&] { convert_source(options); }),
                   "--lora: expected a Hugging Face source or a GGUF file, got another kind"));
    options.source = fs::path(FOVEA_GOLDEN_DIR) / "torch_text";
    for (const auto& entry : fs::directory_iterator(options.source)) options.source = entry.path();
    CHECK(
        contains(refusal_of([&] { convert_source(options); }), "a model of transformers, whose modules --lora names"));
    options = {.source = adapters() / "llama", .output = folder / "m.fovea"};
    options.base = fs::path(FOVEA_GOLDEN_DIR) / "pairs/bart";
    CHECK(
        contains(refusal_of([&] { convert_source(options); }), "model_type: expected a model of one stack for --base"));
    CHECK(!fs::exists(options.output));
}
