// Families whose layers have experts: what of them is refused, and what their files may hold besides.
#include "tests/convert/families/family_cases.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("families: DeepSeek's fields that they cannot have are refused by name") {
    for (const char* family : {"deepseek_v2", "deepseek_v3"}) {
        check_refused(family, "attention_bias", true, "false");
        check_refused(family, "mlp_bias", true, "false");
        check_refused(family, "moe_layer_freq", 2, "1");
        check_refused(family, "kv_lora_rank", 0, "got 0");
        check_refused(family, "q_lora_rank", 0, "got 0");
        check_refused("deepseek_v2", "qk_rope_head_dim", 1, "got 1");
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
    CHECK(contains(line_of("deepseek_v2", [](SortedJson& json) { json["kv_lora_rank"] = 12; }),
                   "kv_a_proj_with_mqa.weight: expected shape [16, 12], got [14, 12]"));
    CHECK(
        contains(line_of("deepseek_v3", [](SortedJson& json) { json["qk_nope_head_dim"] = 4, json["v_head_dim"] = 7; }),
                 "q_b_proj.weight: expected shape [16, 11], got [18, 11]"));
    CHECK(contains(line_of("deepseek_v3", [](SortedJson& json) { json["first_k_dense_replace"] = 0; }),
                   "model.layers.0.mlp.gate.weight: expected [4, 12], got none"));
}

TEST_CASE("families: layers that predict further tokens are left out") {
    const auto with = [](std::uint32_t n_more) {
        return line_of("deepseek_v3", [&](SortedJson& json) {
            json["num_hidden_layers"] = 1;
            json["num_nextn_predict_layers"] = n_more;
        });
    };
    CHECK(with(1).empty());
    CHECK(contains(with(0), "tensor model.layers.1."));
}

TEST_CASE("families: experts that the file has more or fewer of are refused by the tensor's name") {
    CHECK(contains(line_of("mixtral", [](SortedJson& json) { json["num_local_experts"] = 5; }),
                   "tensor model.layers.0.block_sparse_moe.gate.weight: expected shape [5, 12], got [4, 12]"));
    CHECK(contains(line_of("qwen3_moe", [](SortedJson& json) { json["moe_intermediate_size"] = 10; }),
                   "experts.0.gate_proj.weight: expected shape [10, 12], got [9, 12]"));
    CHECK(contains(line_of("qwen3_moe", [](SortedJson& json) { json["mlp_only_layers"] = SortedJson::array({1}); }),
                   "tensor model.layers.1.mlp."));
}

TEST_CASE("families: fields that experts of GLM 4.5 and those like it cannot have are refused by name") {
    for (const char* family : {"glm4_moe", "dots1", "solar_open", "exaone_moe"}) {
        check_refused(family, "scoring_func", "softmax", "sigmoid");
        check_refused(family, "topk_method", "greedy", "noaux_tc");
        check_refused(family, "n_group", 3, "a divisor of ");
        check_refused(family, "moe_intermediate_size", 0, "got 0");
        CHECK(line_of(family, [](SortedJson& json) { json["scoring_func"] = "noaux_tc"; }).empty());
    }
    check_refused("exaone_moe", "mlp_layer_types", SortedJson::array({"dense"}), "2 of them");
    check_refused("exaone_moe", "mlp_layer_types", SortedJson::array({"dense", "hash"}), "dense or sparse");
    check_refused("exaone_moe", "num_shared_experts", 1025, "from 0 to 1024");
    CHECK(contains(line_of("glm4_moe", [](SortedJson& json) { json["first_k_dense_replace"] = 2; }),
                   "model.layers.1.mlp.up_proj.weight: expected "));
    CHECK(contains(line_of("glm4_moe", [](SortedJson& json) { json["use_qk_norm"] = true; }),
                   "self_attn.q_norm.weight: expected [8], got none"));
}

TEST_CASE("families: fields that later models with experts cannot have are refused by name") {
    check_refused("cohere2_moe", "expert_selection_fn", "relu", "softmax or sigmoid");
    check_refused("cohere2_moe", "shared_expert_combination_strategy", "product", "average or sum");
    check_refused("cohere2_moe", "prefix_dense_intermediate_size", nullptr, "got null");
    check_refused("dbrx", "tie_word_embeddings", true, "false");
    CHECK(contains(line_of("dbrx", [](SortedJson& json) { json["ffn_config"]["moe_normalize_expert_weights"] = 2.0; }),
                   "moe_normalize_expert_weights: expected 1 or null, got 2.0"));
    CHECK(contains(line_of("dbrx", [](SortedJson& json) { json["ffn_config"]["moe_num_experts"] = 5; }),
                   "ffn.router.layer.weight: expected shape [5, 12], got [4, 12]"));
    check_refused("afmoe", "global_attn_every_n_layers", 0, "got 0");
    check_refused("afmoe", "num_shared_experts", 1025, "from 0 to 1024");
    check_refused("mellum", "mlp_layer_types", SortedJson::array({"dense"}), "2 of them");
    check_refused("granitemoe_swa", "layer_rope_theta", SortedJson::array({1}), "2 numbers");
    check_refused("hunyuan_v1_moe", "moe_topk", SortedJson::array({1}), "2 numbers");
    check_refused("hunyuan_v1_moe", "moe_topk", SortedJson::array({1, "2"}), "a whole number");
    check_refused("glm4_moe_lite", "mlp_layer_types", SortedJson::array({"dense", "hash"}), "dense or sparse");
    check_refused("glm4_moe_lite", "partial_rotary_factor", 0.5, "1, got 0.5");
    check_refused("llama4_text", "layer_types", SortedJson::array({"full_attention", "sliding_attention"}),
                  "full_attention or chunked_attention");
    check_refused("llama4_text", "no_rope_layers", SortedJson::array({1}), "2 numbers");
    check_refused("llama4_text", "moe_layers", 1, "a list of layers, got 1");
    check_refused("llama4_text", "moe_layers", SortedJson::array({-1}), "numbers of layers");
    check_refused("llama4_text", "floor_scale", 0, "got 0");
    check_refused("llama4_text", "interleave_moe_layer_step", 0, "got 0");
    CHECK(contains(line_of("phimoe",
                           [](SortedJson& json) {
                               json["rope_parameters"] = {{"rope_type", "longrope"},
                                                          {"short_factor", {1.0, 1.0, 1.0}},
                                                          {"long_factor", {1.0, 1.0, 1.0}},
                                                          {"short_mscale", 1.0},
                                                          {"long_mscale", 1.5}};
                           }),
                   "long_mscale: expected short_mscale, 1.0, got 1.5"));
    CHECK(contains(line_of("phimoe",
                           [](SortedJson& json) {
                               json["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}};
                           }),
                   "type: expected default or longrope"));
}

TEST_CASE("families: K-EXAONE's bias for the choice has two names, and layers for further tokens are left out") {
    TemporaryFolder folder;
    fs::copy(golden_families() / "exaone_moe", folder / "model");
    ConvertOptions options;
    options.source = folder / "model";
    options.output = folder / "hub.fovea";
    convert_source(options);
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
    convert_source(options);
    CHECK(read_text(folder / "own.fovea") == read_text(folder / "hub.fovea"));
}

TEST_CASE("families: layers of Granite's hybrids are what config.json says") {
    check_refused("granitemoehybrid", "layer_types", SortedJson::array({"attention", "sliding"}), "full_attention");
    check_refused("granitemoehybrid", "layer_types", SortedJson::array({"attention"}), "2 of them");
    for (const char* recurrent : {"mamba", "linear_attention"})
        CHECK(contains(line_of("granitemoehybrid",
                               [&](SortedJson& json) {
                                   json["layer_types"] = SortedJson::array({"full_attention", recurrent});
                               }),
                       "model.layers.1.mamba.in_proj.weight: expected"));
    check_refused("granitemoehybrid", "position_embedding_type", "alibi", "rope or nope");
    const auto hub = [](SortedJson& json) { json["layer_types"] = SortedJson::array({"attention", "attention"}); };
    CHECK(line_of("granitemoehybrid", hub).empty());
    CHECK(contains(line_of("granitemoehybrid", [](SortedJson& json) { json["num_local_experts"] = 0; }),
                   "block_sparse_moe."));
    CHECK(contains(line_of("granitemoe", [](SortedJson& json) { json["num_local_experts"] = 5; }),
                   "block_sparse_moe.router.layer.weight: expected shape [5, 12], got [4, 12]"));
    CHECK(contains(line_of("granitemoe", [](SortedJson& json) { json["intermediate_size"] = 15; }),
                   "block_sparse_moe.input_linear.weight: expected shape [4, 30, 12], got [4, 28, 12]"));
}

TEST_CASE("families: forms of MiniMax M2 and Qwen 3 VL that they cannot have are refused by name") {
    check_refused("minimax_m2", "use_qk_norm", false, "true");
    check_refused("minimax_m2", "use_routing_bias", false, "true");
    check_refused("minimax_m2", "qk_norm_type", "per_head", "per_layer");
    check_refused("minimax_m2", "scoring_func", "softmax", "sigmoid");
    check_refused("minimax_m2", "shared_intermediate_size", 8, "0");
    check_refused("minimax_m2", "attn_type_list", SortedJson::array({1, 0}), "1 for each layer");
    check_refused("minimax_m2", "rotary_dim", 9, "from 2 to 8, got 9");
    const std::string line =
        line_of("qwen3_vl_moe_text", [](SortedJson& json) { json["text_config"]["moe_intermediate_size"] = 10; });
    CHECK(contains(line, "model.layers.0.mlp.experts.gate_up_proj: expected shape [4, 12, 20], got [4, 12, 18]"));
}

TEST_CASE("families: Qwen 3 VL's experts are one tensor, columns or rows first") {
    TemporaryFolder folder;
    fs::copy(golden_families() / "qwen3_vl_moe_text", folder / "model");
    ConvertOptions options;
    options.source = folder / "model";
    options.output = folder / "columns.fovea";
    convert_source(options);
    SafetensorsText text = SafetensorsText::read(folder / "model/model.safetensors");
    std::size_t n_turned = 0;
    for (auto& [name, tensor] : text.header.items()) {
        if (!contains(name, ".mlp.experts.")) continue;
        const std::size_t n = tensor["shape"][0], n_cols = tensor["shape"][1], n_rows = tensor["shape"][2];
        const std::size_t begin = tensor["data_offsets"][0];
        const std::string columns = text.data.substr(begin, 2 * n * n_cols * n_rows);
        for (std::size_t i = 0; i < n * n_cols * n_rows; ++i) {
            const std::size_t expert = i / (n_cols * n_rows), col = i / n_rows % n_cols, row = i % n_rows;
            text.data.replace(begin + 2 * ((expert * n_rows + row) * n_cols + col), 2, columns, 2 * i, 2);
        }
        tensor["shape"] = {n, n_rows, n_cols};
        ++n_turned;
    }
    CHECK(n_turned == 4);
    write_text(folder / "model/model.safetensors", text.text());
    options.output = folder / "rows.fovea";
    convert_source(options);
    CHECK(read_text(folder / "rows.fovea") == read_text(folder / "columns.fovea"));
}

TEST_CASE("families: an adapter's product for the tensor of all experts is refused") {
    TemporaryFolder folder;
    fs::copy(fs::path(FOVEA_GOLDEN_DIR) / "lora" / "llama", folder / "adapter");
    edit_json(folder / "adapter/adapter_config.json", [](SortedJson& json) { json["target_modules"] = "all-linear"; });
    auto tensors = SafetensorsText::read(folder / "adapter/adapter_model.safetensors");
    const std::string prefix = "base_model.model.model.layers.0.";
    SortedJson header;
    std::string data;
    for (const std::string factor : {"A", "B"}) {
        const SortedJson of_query = tensors.header.at(prefix + "self_attn.q_proj.lora_" + factor + ".weight");
        const std::size_t begin = of_query["data_offsets"][0], end = of_query["data_offsets"][1];
        SortedJson& own = header[prefix + "block_sparse_moe.input_linear.lora_" + factor + ".weight"] = of_query;
        own["data_offsets"] = {data.size(), data.size() + end - begin};
        data += tensors.data.substr(begin, end - begin);
    }
    tensors.header = header;
    tensors.data = data;
    write_text(folder / "adapter/adapter_model.safetensors", tensors.text());
    ConvertOptions options{.source = golden_families() / "granitemoe", .output = folder / "out.fovea"};
    options.loras = {{folder / "adapter", 1.0f}};
    CHECK(contains(refusal_of([&] { convert_source(options); }),
                   "input_linear.lora_A.weight: expected a matrix, got model.layers.0.block_sparse_moe.input_linear"));
}

TEST_CASE("families: ERNIE's fields that its experts cannot have are refused by name") {
    check_refused("ernie4_5_moe", "use_bias", true, "false");
    check_refused("ernie4_5_moe", "moe_gate", "random", "topk");
    check_refused("ernie4_5_moe", "moe_gate_act", "sigmoid", "softmax");
    check_refused("ernie4_5_moe", "moe_norm_min", 0.1, "at most 1e-12");
    check_refused("ernie4_5_moe", "moe_k", 5, "from 1 to 4, got 5");
    check_refused("ernie4_5_moe", "moe_num_experts", 0, "got 0");
    check_refused("ernie4_5_moe", "moe_num_shared_experts", 1025, "from 0 to 1024");
    CHECK(contains(line_of("ernie4_5_moe", [](SortedJson& json) { json["moe_layer_start_index"] = 0; }),
                   "model.layers.0.mlp.gate.weight: expected [4, 12], got none"));
    CHECK(contains(line_of("ernie4_5_moe", [](SortedJson& json) { json["moe_layer_end_index"] = 0; }),
                   "model.layers.1.mlp.up_proj.weight: expected "));
}
