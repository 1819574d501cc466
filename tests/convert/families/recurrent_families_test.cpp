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
