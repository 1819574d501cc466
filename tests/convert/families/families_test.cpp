// Families of Hugging Face models beyond the first six: what they compute, and what of them is refused.
#include <doctest/doctest.h>

#include <cmath>

#include "convert/families/family.h"
#include "convert/families/reading.h"
#include "host/model/listing.h"
#include "tests/convert/families/family_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

float largest_logit(const fs::path& expected_file) {
    const NpyArray expected = read_npy(expected_file.string());
    float largest = 0;
    for (std::size_t i = 0; i < expected.data.size(); i += sizeof(float)) {
        float logit;
        std::memcpy(&logit, expected.data.data() + i, sizeof logit);
        largest = std::max(largest, std::abs(logit));
    }
    return largest;
}

}  // namespace

TEST_CASE("families: every one has transformers' logits") {
    std::size_t n_models = 0;
    for (const auto& entry : fs::directory_iterator(golden_families())) {
        const std::string name = entry.path().filename();
        CAPTURE(name);
        TemporaryFolder folder;
        ConvertOptions options;
        options.source = entry.path();
        options.output = folder / "model.fovea";
        options.type = Type::f32;
        convert_source(options);
        const Converted converted(options.output);
        // transformers computed these in float32 too. Norms over twelve dims make the most of its errors and ours.
        const fs::path expected = entry.path() / "expected_logits.npy";
        CHECK(logits_error(converted.model, expected) < 1e-4f * largest_logit(expected));
        ++n_models;
    }
    CHECK(n_models >= 102);
}

TEST_CASE("families: a field that config.json lacks is what transformers takes it for") {
    const SortedJson defaults = SortedJson::parse(read_text(fs::path(FOVEA_GOLDEN_DIR) / "config_defaults.json"));
    std::size_t n_converted = 0;
    std::vector<fs::path> models;
    for (const char* goldens : {"families", "pairs"})
        for (const auto& entry : fs::directory_iterator(fs::path(FOVEA_GOLDEN_DIR) / goldens))
            models.push_back(entry.path());
    for (const fs::path& model : models) {
        const SortedJson golden = SortedJson::parse(read_text(model / "config.json"));
        const bool is_part = golden.contains("text_config");  // of a model of pictures too
        const std::string type = (is_part ? golden["text_config"] : golden)["model_type"];
        REQUIRE(defaults.contains(type));
        TemporaryFolder folder;
        fs::copy(model, folder / "model");
        ConvertOptions options;
        options.source = folder / "model";
        options.output = folder / "model.fovea";
        // The file, or the line that refuses it.
        const auto made = [&](const SortedJson& config) {
            write_text(folder / "model/config.json", config.dump());
            fs::remove(folder / "model.fovea");
            const std::string line = refusal_of([&] { convert_source(options); });
            return line.empty() ? read_text(folder / "model.fovea") : line;
        };
        for (const auto& [name, value] : defaults[type].items()) {
            const std::string field = name;
            CAPTURE(type);
            CAPTURE(field);
            SortedJson configs[] = {golden, golden};
            SortedJson& without = is_part ? configs[0]["text_config"] : configs[0];
            SortedJson& with = is_part ? configs[1]["text_config"] : configs[1];
            const bool is_rotary = field == "rope_theta" || field == "partial_rotary_factor";
            if (is_rotary && with.contains("rope_parameters")) {
                without["rope_parameters"].erase(field);
                with["rope_parameters"][field] = value;
            } else {
                without.erase(field);
                with[field] = value;
            }
            const std::string expected = made(configs[1]);
            CHECK(made(configs[0]) == expected);
            n_converted += fs::exists(folder / "model.fovea");
        }
    }
    CHECK(n_converted >= 400);
}

TEST_CASE("families: masks in a checkpoint of GPT-NeoX are left out, as Pythia's have them") {
    TemporaryFolder folder;
    fs::copy(golden_families() / "gpt_neox", folder / "model");
    ConvertOptions options;
    options.source = folder / "model";
    options.output = folder / "plain.fovea";
    convert_source(options);
    SafetensorsText text = SafetensorsText::read(folder / "model/model.safetensors");
    const auto add = [&](const char* name, const char* type, const SortedJson& shape, std::size_t n_bytes) {
        const std::size_t begin = text.data.size();
        text.data.append(n_bytes, '\1');
        text.header[std::string("gpt_neox.layers.0.attention.") + name] = {
            {"dtype", type}, {"shape", shape}, {"data_offsets", {begin, begin + n_bytes}}};
    };
    add("bias", "BOOL", {1, 1, 4, 4}, 16);
    add("masked_bias", "F32", SortedJson::array(), 4);
    add("rotary_emb.inv_freq", "F32", {4}, 16);
    write_text(folder / "model/model.safetensors", text.text());
    options.output = folder / "masks.fovea";
    convert_source(options);
    CHECK(read_text(folder / "masks.fovea") == read_text(folder / "plain.fovea"));
}

TEST_CASE("families: a GGUF file has the logits of the folder that it was made from, in every bit") {
    std::size_t n_models = 0, n_in_turn = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(FOVEA_GOLDEN_DIR) / "families_gguf")) {
        const std::string name = entry.path().filename();
        CAPTURE(name);
        TemporaryFolder folder;
        ConvertOptions options;
        options.output = folder / "model.fovea";
        options.type = Type::f32;
        bool in_turn = false;  // sums over heads are then rounded otherwise
        const auto logits_of = [&](const fs::path& source) {
            options.source = source;
            convert_source(options);
            const Converted converted(options.output);
            const RecurrentShape& r = converted.model.config().decoder.recurrent;
            in_turn |= r.keys_in_turn && r.n_key_heads > 1;
            std::vector<Token> tokens;
            for (Token i = 0; i < 16; ++i) tokens.push_back((7 * i + 3) % converted.model.config().decoder.vocab_size);
            return all_logits(converted.model, tokens);
        };
        const std::vector<float> expected = logits_of(entry.path());
        for (const auto& file : fs::directory_iterator(entry.path())) {
            if (file.path().extension() != ".gguf") continue;
            const std::vector<float> got = logits_of(file.path());
            REQUIRE(got.size() == expected.size());
            float error = 0, largest = 0;
            for (std::size_t i = 0; i < got.size(); ++i) {
                error = std::max(error, std::abs(got[i] - expected[i]));
                largest = std::max(largest, std::abs(expected[i]));
            }
            if (in_turn)
                CHECK(error < 1e-5f * largest);
            else
                CHECK(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0);
            ++n_models, n_in_turn += in_turn;
        }
    }
    CHECK(n_models >= 68);
    CHECK(n_in_turn == 1);
}

TEST_CASE("families: GGUF files with slopes have llama.cpp's logits") {
    std::size_t n_models = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(FOVEA_GOLDEN_DIR) / "slopes")) {
        const std::string name = entry.path().filename();
        CAPTURE(name);
        TemporaryFolder folder;
        ConvertOptions options;
        options.source = entry.path() / "model.gguf";
        options.output = folder / "model.fovea";
        options.type = Type::f32;
        convert_source(options);
        const Converted converted(options.output);
        const fs::path expected = entry.path() / "expected_logits.npy";
        CHECK(logits_error(converted.model, expected) < 1e-4f * largest_logit(expected));
        ++n_models;
    }
    CHECK(n_models == 3);
}

TEST_CASE("families: fields that they cannot have are refused by name") {
    CHECK(contains(line_of("opt", [](SortedJson& json) { json["word_embed_proj_dim"] = 5; }),
                   "embed_tokens.weight: expected shape [23, 5], got [23, 10]"));
    check_refused("opt_narrow", "word_embed_proj_dim", 0, "got 0");
    CHECK(contains(line_of("opt_narrow", [](SortedJson& json) { json["word_embed_proj_dim"] = 12; }),
                   "embed_tokens.weight: expected shape [23, 12], got [23, 5]"));
    CHECK(contains(line_of("opt_narrow", [](SortedJson& json) { json["tie_word_embeddings"] = false; }),
                   "tensor lm_head.weight: expected [23, 5], got none"));
    CHECK(contains(line_of("opt", [](SortedJson& json) { json["layer_norm_elementwise_affine"] = false; }),
                   "layer_norm.bias: expected only tensors that the configuration calls for"));
    check_refused("mpt", "no_bias", false, "true");
    check_refused("mpt", "logit_scale", "inv_sqrt_d_model", "none");
    check_refused("bloom", "apply_residual_connection_post_layernorm", true, "false");
    check_refused("falcon", "num_ln_in_parallel_attn", 3, "1 or 2, got 3");
    check_refused("falcon", "num_kv_heads", 3, "a divisor of num_attention_heads, 4");
    check_refused("gpt_neo", "attention_layers", SortedJson::array({"global", "near"}), "global or local");
    check_refused("gpt_neo", "attention_layers", SortedJson::array({"global"}), "2 layers");
    check_refused("gemma", "use_bidirectional_attention", true, "false");
    check_refused("gemma2", "layer_types", SortedJson::array({"full_attention"}), "2 of them");
    check_refused("granite", "logits_scaling", 0.0, "other than 0");
    check_refused("granite", "residual_multiplier", 0.0, "other than 0");
    check_refused("smollm3", "no_rope_layers", SortedJson::array({1}), "2 numbers");
    check_refused("phi", "hidden_act", "relu6", "silu, relu");
    check_refused("mixtral", "num_experts_per_tok", 5, "from 1 to 4, got 5");
    check_refused("mixtral", "num_local_experts", 0, "from 1 to 1024, got 0");
    check_refused("mixtral", "num_local_experts", 1025, "from 1 to 1024");
    check_refused("qwen2_moe", "decoder_sparse_step", 0, "at least 1, got 0");
    check_refused("qwen2_moe", "moe_intermediate_size", 0, "got 0");
    check_refused("qwen2_moe", "shared_expert_intermediate_size", 0, "got 0");
    check_refused("qwen3_moe", "mlp_only_layers", 1, "a list of layers, got 1");
    check_refused("qwen3_moe", "mlp_only_layers", SortedJson::array({-1}), "numbers of layers");
    check_refused("xglm", "add_cross_attention", true, "false");
    check_refused("xglm", "pad_token_id", 2, "from 0 to 1, got 2");
    check_refused("modernbert-decoder", "sliding_window", 0, "got 0");
    CHECK(contains(line_of("modernbert-decoder",
                           [](SortedJson& json) { json.erase("sliding_window"), json["local_attention"] = 1; }),
                   "local_attention: expected 2 or more, got 1"));
    check_refused("modernbert-decoder", "rope_scaling", SortedJson{{"rope_type", "linear"}}, "none");
    check_refused("minicpm3", "mlp_bias", true, "false");
    check_refused("minicpm3", "dim_model_base", 0, "a number from");
    check_refused("gemma4_unified_text", "use_bidirectional_attention", "all", "null or vision");
    check_refused("gptj", "activation_function", "mish", "silu, relu, relu2, tanh, gelu, quick_gelu, gelu_new");
    for (const char* family : {"gemma2", "vaultgemma"})
        for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
            check_refused(family, cap, 0.0, "expected a number from");
    check_refused("gemma3_text", "attn_logit_softcapping", 50.0, "null");
    check_refused("gpt_oss", "swiglu_alpha", 1.5, "1.702");
    check_refused("gpt_oss", "swiglu_limit", 6.0, "7.0");
    check_refused("gpt_oss", "hidden_act", "gelu", "silu, got \"gelu\"");
    const auto packed_as = [](const char* family, const char* method) {
        return line_of(family, [&](SortedJson& json) { json["quantization_config"] = {{"quant_method", method}}; });
    };
    CHECK(packed_as("mixtral", "mxfp4").empty());  // its weights are floats
    CHECK(contains(packed_as("gpt_oss", "gptq"),
                   "quantization_config: bits: expected a whole number from 2 to 8, got nothing"));
    for (const char* family : {"olmo3", "cohere2", "exaone4", "gemma3_text"})
        check_refused(family, "sliding_window", 0, "at least 1");
}

TEST_CASE("families: OPT's narrow tables become products with their maps, whose names and shapes are checked") {
    TemporaryFolder folder;
    fs::copy(golden_families() / "opt_narrow", folder / "model");
    const fs::path weights = folder / "model/model.safetensors";
    const auto whole = SafetensorsText::read(weights);
    ConvertOptions options;
    options.source = folder / "model";
    options.output = folder / "out.fovea";
    const auto line = [&](const std::function<void(SortedJson&)>& edit) {
        auto file = whole;
        edit(file.header);
        write_text(weights, file.text());
        return refusal_of([&] { convert_source(options); });
    };
    const std::string in = "model.decoder.project_in.weight", out = "model.decoder.project_out.weight";
    CHECK(contains(line([&](SortedJson& json) {
                       json[in]["shape"] = {5, 12};
                   }),
                   in + ": expected shape [12, 5], got [5, 12]"));
    CHECK(contains(line([&](SortedJson& json) { json.erase(out); }), out + ": expected [5, 12], got none"));
    auto twice = whole;  // a checkpoint may hold the tied table again
    SortedJson& again = twice.header["lm_head.weight"] = twice.header["model.decoder.embed_tokens.weight"];
    const std::size_t begin = again["data_offsets"][0], end = again["data_offsets"][1];
    again["data_offsets"] = {twice.data.size(), twice.data.size() + end - begin};
    twice.data += twice.data.substr(begin, end - begin);
    write_text(weights, twice.text());
    convert_source(options);
    const Converted converted(options.output);
    const Stack& stack = converted.model.config().decoder;
    CHECK(!stack.tied_output);
    CHECK(stack.embedding_width == 0);
    CHECK(find_info(converted.model, "source_type") == "bf16");
}

TEST_CASE("families: experts in MXFP4 keep their numbers, in a folder as in a GGUF file") {
    TemporaryFolder folder;
    ConvertOptions options;
    options.output = folder / "model.fovea";
    std::vector<float> logits[2];
    for (const char* source : {"families_gguf/gpt_oss_mxfp4", "families_gguf/gpt_oss_mxfp4/model.gguf"}) {
        const bool is_gguf = fs::path(source).extension() == ".gguf";
        options.source = fs::path(FOVEA_GOLDEN_DIR) / source;
        convert_source(options);
        const Converted converted(options.output);
        std::size_t n_seen = 0;
        for (const TensorInfo& tensor : tensors(converted.model)) {
            const std::string role = tensor.role;
            const bool of_experts = role == "expert_up" || role == "expert_down";
            if (!of_experts && role != "query") continue;
            CAPTURE(role);
            CHECK(tensor.type == (of_experts ? Type::mxfp4 : Type::bf16));
            ++n_seen;
        }
        CHECK(n_seen == 6);
        logits[is_gguf] = all_logits(converted.model, {3, 10, 17, 1, 8, 15, 22, 6, 13, 20});
    }
    REQUIRE(logits[0].size() == logits[1].size());
    CHECK(std::memcmp(logits[0].data(), logits[1].data(), logits[0].size() * sizeof(float)) == 0);
}

TEST_CASE("families: MXFP4 that is not whole is refused by the tensor's name") {
    constexpr const char* kBlocks = "model.layers.0.mlp.experts.gate_up_proj_blocks";
    const auto line = [&](const char* name, const std::function<void(SortedJson&, const std::string&)>& edit) {
        TemporaryFolder folder;
        fs::copy(golden_families() / "gpt_oss_mxfp4", folder / "model");
        auto file = SafetensorsText::read(folder / "model/model.safetensors");
        edit(file.header, name);
        write_text(folder / "model/model.safetensors", file.text());
        ConvertOptions options;
        options.source = folder / "model";
        options.output = folder / "out.fovea";
        return refusal_of([&] { convert_source(options); });
    };
    CHECK(contains(line(kBlocks, [](SortedJson& json, const std::string& name) { json[name]["dtype"] = "I8"; }),
                   "gate_up_proj_blocks: expected U8, got I8"));
    CHECK(contains(line(kBlocks,
                        [](SortedJson& json, const std::string& name) {
                            json[name]["shape"] = {3, 32, 2, 16};
                        }),
                   "gate_up_proj_blocks: expected shape [3, 64, 1, 16], got [3, 32, 2, 16]"));
    CHECK(contains(line("model.layers.1.mlp.experts.down_proj_scales",
                        [](SortedJson& json, const std::string& name) {
                            json["other"] = json[name];
                            json.erase(name);
                        }),
                   "down_proj_scales: expected [3, 32, 1], got none"));
    CHECK(contains(line_of("gpt_oss_mxfp4", [](SortedJson& json) { json["hidden_size"] = 24; }),
                   "expected shape [23, 24]"));
    CHECK(contains(line_of("gpt_oss_mxfp4", [](SortedJson& json) { json["intermediate_size"] = 40; }),
                   "gate_up_proj_blocks: expected shape [3, 80, 1, 16], got [3, 64, 1, 16]"));
}

TEST_CASE("families: OLMo 3's and Gemma 3's scaling is their full layers', in either spelling") {
    const auto made = [](const char* family, const std::function<void(SortedJson&)>& edit) {
        TemporaryFolder folder;
        fs::copy(golden_families() / family, folder / "model");
        edit_json(folder / "model/config.json", edit);
        ConvertOptions options;
        options.source = folder / "model";
        options.output = folder / "out.fovea";
        convert_source(options);
        return read_text(options.output);
    };
    const SortedJson scaling = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}};
    for (const char* family : {"olmo3", "gemma3_text"}) {
        const auto by_kind = [&](const SortedJson& full, const SortedJson& older) {
            return made(family, [&](SortedJson& json) {
                json["rope_parameters"] = {{"full_attention", full}, {"sliding_attention", {{"rope_type", "default"}}}};
                for (SortedJson& kind : json["rope_parameters"]) kind["rope_theta"] = 500000.0;
                json["rope_scaling"] = older;
            });
        };
        CHECK(by_kind(scaling, nullptr) == by_kind({{"rope_type", "default"}}, scaling));
    }
    const auto with_window_base = [&](const SortedJson& windows) {
        return made("gemma3_text", [&](SortedJson& json) { json["rope_parameters"]["sliding_attention"] = windows; });
    };
    CHECK(with_window_base({{"rope_theta", 10000.0}}) == with_window_base(SortedJson::object()));
    const auto file_of = [&](const std::function<void(SortedJson&)>& edit) { return made("olmo3", edit); };
    const std::string now = file_of([&](SortedJson& json) {
        json["rope_parameters"] = {{"full_attention", scaling}, {"sliding_attention", {{"rope_type", "default"}}}};
        for (SortedJson& kind : json["rope_parameters"]) kind["rope_theta"] = 500000.0;
    });
    const std::string then = file_of([&](SortedJson& json) {
        json.erase("rope_parameters");
        json["rope_scaling"] = scaling;
        json["rope_theta"] = 500000.0;
    });
    CHECK(now == then);
    CHECK(now != file_of([&](SortedJson& json) {
              json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
          }));
}

TEST_CASE("families: older spellings give the same file") {
    const auto check_same = [](const char* family, const char* dropped, const std::function<void(SortedJson&)>& edit) {
        CAPTURE(family);
        TemporaryFolder folder;
        fs::copy(golden_families() / family, folder / "model");
        ConvertOptions options;
        options.source = folder / "model";
        options.output = folder / "now.fovea";
        convert_source(options);
        edit_json(folder / "model/config.json", edit);
        auto file = SafetensorsText::read(folder / "model/model.safetensors");
        SortedJson renamed;
        for (const auto& [name, value] : file.header.items())
            renamed[name.starts_with(dropped) ? name.substr(std::string(dropped).size()) : name] = value;
        file.header = renamed;
        write_text(folder / "model/model.safetensors", file.text());
        options.output = folder / "then.fovea";
        convert_source(options);
        CHECK(read_text(folder / "now.fovea") == read_text(folder / "then.fovea"));
    };
    const auto rename = [](SortedJson& json, const char* now, const char* then) {
        json[then] = json[now];
        json.erase(now);
    };
    check_same("bloom", "transformer.", [&](SortedJson& json) {
        rename(json, "hidden_size", "n_embed");
        rename(json, "n_head", "num_attention_heads");
        rename(json, "n_layer", "num_hidden_layers");
    });
    check_same("exaone", "transformer.", [&](SortedJson& json) {
        rename(json, "num_hidden_layers", "num_layers");
        rename(json, "rms_norm_eps", "layer_norm_epsilon");
        rename(json, "hidden_act", "activation_function");
    });
    check_same("opt", "model.", [](SortedJson&) {});
    check_same("gptj", "", [](SortedJson& json) { json["activation_function"] = "gelu_accurate"; });
    check_same("starcoder2", "", [](SortedJson& json) { json["hidden_act"] = "gelu_python_tanh"; });
    check_same("gemma2", "", [](SortedJson& json) { json.erase("layer_types"); });
    check_same("gpt_neox", "gpt_neox.", [](SortedJson& json) {
        json["rotary_pct"] = json["rope_parameters"]["partial_rotary_factor"];
        json["rotary_emb_base"] = json["rope_parameters"]["rope_theta"];
        json.erase("rope_parameters");
    });
    check_same("gemma3_text", "model.", [](SortedJson& json) {
        json["rope_theta"] = json["rope_parameters"]["full_attention"]["rope_theta"];
        json["rope_local_base_freq"] = json["rope_parameters"]["sliding_attention"]["rope_theta"];
        json.erase("rope_parameters");
    });
}

TEST_CASE("families: scaling by two lists wants both, each with a number for every pair that turns") {
    const SortedJson three = {1.0, 2.0, 3.0};
    for (const std::string name : {"short_factor", "long_factor"}) {
        const auto with = [&](const SortedJson& factors) {
            return line_of("phi3_long", [&](SortedJson& json) { json["rope_parameters"][name] = factors; });
        };
        CAPTURE(name);
        CHECK(with(three).empty());
        CHECK(contains(with({1.0, 2.0}), (name + ": expected 3 numbers").c_str()));
        CHECK(contains(with({1.0, 0.0, 3.0}), (name + ": expected numbers above 0").c_str()));
        CHECK(contains(with("1"), (name + ": expected a list of numbers").c_str()));
    }
    const auto without_long = [&](std::uint32_t original) {
        return line_of("phi3_long", [&](SortedJson& json) {
            json["original_max_position_embeddings"] = original;
            json["rope_parameters"].erase("long_factor");
        });
    };
    CHECK(contains(without_long(12), "long_factor: expected a list of numbers, got nothing"));
    CHECK(without_long(64).empty());  // as many as the model has
}

TEST_CASE("families: Phi-3's scaling began from 4,096 positions where config.json does not say from how many") {
    TemporaryFolder folder;
    fs::copy(golden_families() / "phi3", folder / "model");
    const auto made = [&](std::optional<std::uint32_t> original) {
        SortedJson json = SortedJson::parse(read_text(golden_families() / "phi3/config.json"));
        json["max_position_embeddings"] = 8192;
        json["rope_parameters"] = {
            {"rope_type", "longrope"}, {"short_factor", {1.0, 2.0, 3.0}}, {"long_factor", {2.0, 4.0, 8.0}}};
        json.erase("original_max_position_embeddings");
        if (original) json["original_max_position_embeddings"] = *original;
        write_text(folder / "model/config.json", json.dump());
        ConvertOptions options;
        options.source = folder / "model";
        options.output = folder / "model.fovea";
        convert_source(options);
        return read_text(options.output);
    };
    CHECK(made({}) == made(4096));
    CHECK(made({}) != made(512));
}

TEST_CASE("families: slopes are powers of two, for numbers of heads that are none those of the next") {
    CHECK(alibi_slopes(4) == std::vector<float>{0.25f, 0.0625f, 0.015625f, 0.00390625f});
    const std::vector<float> six = alibi_slopes(6);
    REQUIRE(six.size() == 6);
    CHECK(std::vector<float>(six.begin(), six.begin() + 4) == alibi_slopes(4));
    CHECK(six[4] == 0.5f);
    CHECK(six[5] == 0.125f);
}

TEST_CASE("families: every type is read by one") {
    CHECK(find_family("rwkv") == nullptr);
    CHECK(find_family("gemma2") == &families::gemma2);
    const std::string known = alternatives(known_model_types());
    CHECK(contains(known, "llama, mistral, "));
    CHECK(known.size() < 500);  // a refusal says behind them what it got
    CHECK(alternatives({"one"}) == "one");
    CHECK(alternatives({"one", "two", "three"}) == "one, two or three");
    CHECK(contains(alternatives(std::vector<std::string>(100, "seventeen")), ", seventeen or one of "));
    CHECK(contains(known, " more in docs/families.md"));
}
