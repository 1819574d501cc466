// Decoders without experts: what of them is refused, and where their positions end.
#include <doctest/doctest.h>

#include "convert/sources/hf_config.h"
#include "tests/convert/families/family_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

HfConfig config_of(const char* family, const std::function<void(SortedJson&)>& edit) {
    TemporaryFolder folder;
    fs::copy(golden_families() / family / "config.json", folder / "config.json");
    edit_json(folder / "config.json", edit);
    return read_hf_config(folder / "config.json", {});
}

}  // namespace

TEST_CASE("dense families: fields that they cannot have are refused by name") {
    check_refused("iquestcoder", "clip_qkv", 8.0, "none, got 8.0");
    check_refused("iquestcoder", "use_sliding_window", true, "false, got true");
    check_refused("internlm3", "qkv_bias", true, "the same as bias, got true");
    check_refused("minicpm", "num_experts", 8, "none, got 8");
    check_refused("minicpm", "sparse_config", SortedJson::object(), "none, got {}");
    check_refused("minicpm", "hidden_act", "fatrelu", "silu, relu, relu2");
    check_refused("granite_swa", "layer_rope_theta", 1.0, "2 numbers, got 1.0");
    check_refused("granite_swa", "layer_rope_theta", SortedJson::array({1e4}), "2 numbers");
    check_refused("granite_swa", "layer_rope_theta", SortedJson::array({1e4, -1.0}), "numbers of 0 or above 1");
    check_refused("granite_swa", "layer_types", SortedJson::array({"full_attention"}), "2 of them");
    CHECK(contains(line_of("mllama_text_model",
                           [](SortedJson& json) {
                               json["text_config"]["cross_attention_layers"] = {0, 1, 2};
                           }),
                   "cross_attention_layers: expected fewer than the model's layers"));
    CHECK(contains(
        line_of("mllama_text_model", [](SortedJson& json) { json["text_config"]["cross_attention_layers"] = {-1}; }),
        "cross_attention_layers: expected numbers of layers"));
    CHECK(
        contains(line_of("mllama_text_model",
                         [](SortedJson& json) { json["text_config"]["cross_attention_layers"] = SortedJson::array(); }),
                 "layers.1.self_attn.q_proj.weight: expected [12, 12], got none"));
    check_refused("nanochat", "rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}, "rope_type default");
    check_refused("codegen", "n_head", 2, "a multiple of 4, got 2");
    check_refused("youtu", "attention_bias", true, "false, got true");
    check_refused("gpt_bigcode", "add_cross_attention", true, "false, got true");
    check_refused("ministral", "layer_types", SortedJson::array({"chunked_attention", "full_attention"}),
                  "sliding_attention");
    CHECK(contains(line_of("internlm2", [](SortedJson& json) { json["bias"] = false; }),
                   ".bias: expected only tensors that the configuration calls for"));
    CHECK(contains(line_of("qwen2_vl_text", [](SortedJson& json) { json["model_type"] = "qwen2_vl_moe"; }),
                   "model_type: "));
}

TEST_CASE("dense families: positions end where queries begin to be multiplied") {
    const auto with_beta = [](double beta) {
        return config_of("ministral3",
                         [&](SortedJson& json) { json["rope_parameters"]["llama_4_scaling_beta"] = beta; });
    };
    const HfConfig grows = with_beta(0.1), stays = with_beta(0.0);
    CHECK(grows.stack().max_positions == 44);
    REQUIRE(grows.source.notes.size() == 1);
    CHECK(grows.source.notes[0] ==
          "llama_4_scaling_beta: positions end where it begins to multiply queries; the model has 44 positions");
    CHECK(stays.stack().max_positions == 64);
    CHECK(stays.source.notes.empty());
}

TEST_CASE("dense families: a window is every layer's that layer_types lists, or that their rule says") {
    const auto windows = [](const char* family, const std::function<void(SortedJson&)>& edit) {
        const HfConfig config = config_of(family, edit);
        std::vector<std::uint32_t> found;
        for (std::uint32_t i = 0; i < config.stack().n_layers; ++i)
            found.push_back(config.stack().block(i).attention.window);
        return found;
    };
    const auto by_rule = [](SortedJson& json) {
        json.erase("layer_types");
        json["num_hidden_layers"] = 5;
        json.erase("layer_rope_theta");
    };
    CHECK(windows("cwm", by_rule) == std::vector<std::uint32_t>{0, 7, 7, 7, 0});
    CHECK(windows("granite_swa", by_rule) == std::vector<std::uint32_t>{0, 7, 7, 7, 0});
    CHECK(windows("ministral", by_rule) == std::vector<std::uint32_t>(5, 5));
}
