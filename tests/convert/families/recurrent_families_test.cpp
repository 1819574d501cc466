// Families with recurrent layers: what of them is refused.
#include <doctest/doctest.h>

#include "tests/convert/families/family_cases.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("families: Falcon-H1's factors and widths must be what its layers can have") {
    for (const char* bias : {"attention_bias", "mlp_bias", "mamba_proj_bias", "projectors_bias"})
        check_refused("falcon_h1", bias, true, "false");
    check_refused("falcon_h1", "ssm_multipliers", SortedJson::array({1, 2}), "5 numbers");
    check_refused("falcon_h1", "mlp_multipliers", SortedJson::array({1, "2"}), "2 numbers");
    check_refused("falcon_h1", "ssm_out_multiplier", "1", "a number");
    check_refused("falcon_h1", "mamba_d_ssm", 25, "24, as mamba_n_heads of mamba_d_head have");
    CHECK(line_of("falcon_h1", [](SortedJson& json) { json["mamba_d_head"] = "auto"; }).empty());
    CHECK(contains(line_of("falcon_h1", [](SortedJson& json) { json["mamba_rms_norm"] = true; }),
                   "mamba.norm.weight: expected [24], got none"));
}

TEST_CASE("families: Jamba's periods and ranks must be what its tensors can have") {
    check_refused("jamba", "attn_layer_offset", 2, "from 0 to 1");
    check_refused("jamba", "expert_layer_period", 0, "from 1 to");
    check_refused("jamba", "hidden_act", "relu", "silu");
    CHECK(contains(line_of("jamba", [](SortedJson& json) { json["mamba_dt_rank"] = 2; }),
                   "mamba.x_proj.weight: expected shape [12, 24], got [13, 24]"));
    CHECK(contains(line_of("jamba", [](SortedJson& json) { json["mamba_d_state"] = 4; }),
                   "mamba.x_proj.weight: expected shape [11, 24], got [13, 24]"));
}

TEST_CASE("families: LFM3's layers are of three kinds, and its windows have a width") {
    const auto types = [](const char* second) { return SortedJson::array({"conv", second, "full_attention"}); };
    check_refused("lfm3", "layer_types", types("linear_attention"), "full_attention, sliding_attention or conv");
    check_refused("lfm3", "layer_types", SortedJson::array({"conv"}), "3 of them");
    check_refused("lfm3", "sliding_window", 0, "at least 1");
    check_refused("lfm3", "conv_L_cache", 1, "at least 2");
    CHECK(contains(line_of("lfm3", [](SortedJson& json) { json["use_attention_gate"] = false; }), "gate_proj"));
}

TEST_CASE("families: Ling's decays have a bound below 0, and layers attend by a list or in turn") {
    check_refused("bailing_hybrid", "kda_lower_bound", 1.0, "from -1e+06 to");
    check_refused("bailing_hybrid", "score_function", "softmax", "sigmoid");
    check_refused("bailing_hybrid", "layer_types", SortedJson::array({"conv", "full_attention"}), "linear_attention");
    const auto in_turn = [](std::uint32_t period) {
        return line_of("bailing_hybrid", [&](SortedJson& json) {
            json.erase("layer_types");
            json["layer_group_size"] = period;
        });
    };
    CHECK(in_turn(2).empty());
    CHECK(contains(in_turn(3), "layers.1.attention."));
}

TEST_CASE("families: Zamba2's layers are of two kinds, and share what the checkpoint has once") {
    const auto kinds = [](const char* second) { return SortedJson::array({"mamba", second, "hybrid"}); };
    CHECK(line_of("zamba2", [&](SortedJson& json) { json["layers_block_type"] = kinds("hybrid"); }).empty());
    check_refused("zamba2", "layers_block_type", kinds("attention"), "hybrid or linear_attention");
    check_refused("zamba2", "layers_block_type", SortedJson::array({"hybrid"}), "3 of them");
    check_refused("zamba2", "num_attention_heads", 7, "a divisor of 24");
    CHECK(contains(line_of("zamba2", [](SortedJson& json) { json["num_hidden_layers"] = 4; }), "expected 4 of them"));
    CHECK(contains(line_of("zamba2", [](SortedJson& json) { json["num_mem_blocks"] = 2; }),
                   "layers.2.shared_transformer.input_layernorm.weight"));
    CHECK(contains(line_of("zamba2", [](SortedJson& json) { json["intermediate_size"] = 13; }), "[26, 12]"));
}
