// Families whose layers have experts: what of them is refused, and what their files may hold besides.
#include "family_cases.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("families: DeepSeek's fields that they cannot have are refused by name") {
    for (const char* family : {"deepseek_v2", "deepseek_v3"}) {
        check_refused(family, "rms_norm_eps", 1e-5, "1e-06");
        check_refused(family, "attention_bias", true, "false");
        check_refused(family, "mlp_bias", true, "false");
        check_refused(family, "moe_layer_freq", 2, "1");
        check_refused(family, "kv_lora_rank", 0, "got 0");
        check_refused(family, "q_lora_rank", 0, "got 0");
        check_refused(family, "qk_rope_head_dim", 1, "got 1");
        check_refused(family, "qk_nope_head_dim", 1 << 17, "got 131072");
        check_refused(family, "v_head_dim", 0, "got 0");
        check_refused(family, "n_shared_experts", 1025, "from 0 to 1024, got 1025");
        check_refused(family, "routed_scaling_factor", 0.0, "other than 0");
        check_refused(family, "n_routed_experts", 0, "got 0");
    }
    check_refused("deepseek_v2", "norm_topk_prob", true, "false");
    check_refused("deepseek_v2", "scoring_func", "sigmoid", "softmax");
    check_refused("deepseek_v2", "topk_method", "noaux_tc", "greedy or group_limited_greedy");
    check_refused("deepseek_v3", "scoring_func", "softmax", "sigmoid");
    check_refused("deepseek_v3", "topk_method", "greedy", "noaux_tc");
    check_refused("deepseek_v3", "n_group", 3, "a divisor of n_routed_experts, 4");
    check_refused("deepseek_v3", "n_group", 5, "from 1 to 4, got 5");
    check_refused("deepseek_v3", "topk_group", 3, "from 1 to 2, got 3");
    check_refused("deepseek_v3", "num_nextn_predict_layers", 1 << 20, "got 1048576");
    CHECK(contains(line_of("deepseek_v2", [](Json& json) { json["kv_lora_rank"] = 12; }),
                   "kv_a_proj_with_mqa.weight: expected shape [16, 12], got [14, 12]"));
    CHECK(contains(line_of("deepseek_v3", [](Json& json) { json["qk_nope_head_dim"] = 4, json["v_head_dim"] = 7; }),
                   "q_b_proj.weight: expected shape [16, 11], got [18, 11]"));
    CHECK(contains(line_of("deepseek_v3", [](Json& json) { json["first_k_dense_replace"] = 0; }),
                   "model.layers.0.mlp.gate.weight: expected [4, 12], got none"));
}

TEST_CASE("families: layers that predict further tokens are left out") {
    const auto with = [](std::uint32_t n_more) {
        return line_of("deepseek_v3", [&](Json& json) {
            json["num_hidden_layers"] = 1;
            json["num_nextn_predict_layers"] = n_more;
        });
    };
    CHECK(with(1).empty());
    CHECK(contains(with(0), "tensor model.layers.1."));
}

TEST_CASE("families: experts that the file has more or fewer of are refused by the tensor's name") {
    CHECK(contains(line_of("mixtral", [](Json& json) { json["num_local_experts"] = 5; }),
                   "tensor model.layers.0.block_sparse_moe.gate.weight: expected shape [5, 12], got [4, 12]"));
    CHECK(contains(line_of("qwen3_moe", [](Json& json) { json["moe_intermediate_size"] = 10; }),
                   "experts.0.gate_proj.weight: expected shape [10, 12], got [9, 12]"));
    CHECK(contains(line_of("qwen3_moe", [](Json& json) { json["mlp_only_layers"] = Json::array({1}); }),
                   "tensor model.layers.1.mlp."));
}

TEST_CASE("families: fields that experts of GLM 4.5 and those like it cannot have are refused by name") {
    for (const char* family : {"glm4_moe", "dots1", "solar_open", "exaone_moe"}) {
        check_refused(family, "scoring_func", "softmax", "sigmoid");
        check_refused(family, "topk_method", "greedy", "noaux_tc");
        check_refused(family, "n_group", 3, "a divisor of ");
        check_refused(family, "moe_intermediate_size", 0, "got 0");
        CHECK(line_of(family, [](Json& json) { json["scoring_func"] = "noaux_tc"; }).empty());
    }
    check_refused("exaone_moe", "mlp_layer_types", Json::array({"dense"}), "2 of them");
    check_refused("exaone_moe", "mlp_layer_types", Json::array({"dense", "hash"}), "dense or sparse");
    check_refused("exaone_moe", "num_shared_experts", 1025, "from 0 to 1024");
    CHECK(contains(line_of("glm4_moe", [](Json& json) { json["first_k_dense_replace"] = 2; }),
                   "model.layers.1.mlp.up_proj.weight: expected "));
    CHECK(contains(line_of("glm4_moe", [](Json& json) { json["use_qk_norm"] = true; }),
                   "self_attn.q_norm.weight: expected [8], got none"));
}

TEST_CASE("families: K-EXAONE's bias for the choice has two names, and layers for further tokens are left out") {
    TemporaryFolder folder;
    fs::copy(golden_families() / "exaone_moe", folder / "model");
    ConvertOptions options;
    options.source = folder / "model";
    options.output = folder / "hub.fovea";
    convert(options);
    SafetensorsText text = SafetensorsText::read(folder / "model/model.safetensors");
    const std::string hub = "model.layers.1.mlp.e_score_correction_bias";
    REQUIRE(text.header.contains(hub));
    text.header["model.layers.1.mlp.gate.e_score_correction_bias"] = text.header[hub];
    text.header.erase(hub);
    text.header["mtp.layers.0.input_layernorm.weight"] = {
        {"dtype", "BF16"}, {"shape", {1}}, {"data_offsets", {text.data.size(), text.data.size() + 2}}};
    text.data.append(2, '\0');
    write_text(folder / "model/model.safetensors", text.text());
    options.output = folder / "own.fovea";
    convert(options);
    CHECK(read_text(folder / "own.fovea") == read_text(folder / "hub.fovea"));
}
