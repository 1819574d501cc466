#include "convert/families/defaults.h"

#include <string_view>

namespace fovea {
namespace {

/// A model_type, and what transformers takes fields for that its config.json does not have. A field that is null is there.
/// What is the same for every family, or is more than a number, stands where it is read.
struct Default {
    std::string_view type;
    const char* fields;
};

constexpr Default kDefaults[] = {
    {"llama", R"({"max_position_embeddings": 2048})"},
    {"mistral", R"({"max_position_embeddings": 131072, "sliding_window": 4096, "num_key_value_heads": 8})"},
    {"qwen2", R"({"max_position_embeddings": 32768, "max_window_layers": 28, "num_key_value_heads": 32})"},
    {"qwen3",
     R"({"max_position_embeddings": 32768, "max_window_layers": 28, "num_key_value_heads": 32, "head_dim": 128})"},
    {"arcee", R"({"max_position_embeddings": 4096, "hidden_act": "relu2", "rms_norm_eps": 1e-5})"},
    {"seed_oss", R"({"max_position_embeddings": 524288, "num_key_value_heads": 8, "head_dim": 128,
                     "attention_bias": true})"},
    {"nemotron", R"({"max_position_embeddings": 4096})"},
    {"bitnet", R"({"max_position_embeddings": 2048, "num_key_value_heads": 5, "rope_theta": 500000.0})"},
    {"gpt2", R"({"n_positions": 1024})"},
    {"bert", R"({"max_position_embeddings": 512})"},
    {"gemma", R"({"max_position_embeddings": 8192, "num_key_value_heads": 16, "head_dim": 256})"},
    {"gemma2",
     R"({"max_position_embeddings": 8192, "sliding_window": 4096, "num_key_value_heads": 4, "head_dim": 256})"},
    {"gemma3_text", R"({"max_position_embeddings": 131072, "sliding_window": 4096, "num_key_value_heads": 4,
                        "head_dim": 256, "rope_theta": 1000000.0})"},
    {"phi", R"({"max_position_embeddings": 2048})"},
    {"phi3", R"({"max_position_embeddings": 4096, "original_max_position_embeddings": 4096})"},
    {"gpt_neox", R"({"max_position_embeddings": 2048})"},
    {"gptj", R"({"n_positions": 2048, "rotary_dim": 64})"},
    {"gpt_neo", R"({"max_position_embeddings": 2048})"},
    {"opt", R"({"max_position_embeddings": 2048})"},
    {"mpt", R"({"max_seq_len": 2048})"},
    {"falcon", R"({"max_position_embeddings": 2048})"},
    {"stablelm", R"({"max_position_embeddings": 4096, "num_key_value_heads": 32})"},
    {"starcoder2", R"({"max_position_embeddings": 4096, "num_key_value_heads": 2})"},
    {"olmo", R"({"max_position_embeddings": 2048})"},
    {"olmo2", R"({"max_position_embeddings": 2048})"},
    {"olmo3", R"({"max_position_embeddings": 2048, "sliding_window": 4096, "rope_theta": 500000.0})"},
    {"exaone4", R"({"max_position_embeddings": 2048, "sliding_window": 4096, "num_key_value_heads": 32})"},
    {"cohere", R"({"max_position_embeddings": 8192, "rope_theta": 500000.0})"},
    {"cohere2", R"({"max_position_embeddings": 8192, "sliding_window": 4096})"},
    {"granite", R"({"max_position_embeddings": 2048})"},
    {"smollm3", R"({"max_position_embeddings": 32768, "num_key_value_heads": 4, "rope_theta": 2000000.0})"},
    {"ernie4_5",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128, "rope_theta": 500000.0})"},
    {"glm",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128, "attention_bias": true})"},
    {"glm4",
     R"({"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128, "attention_bias": true})"},
    {"mixtral", R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "num_local_experts": 8,
                    "num_experts_per_tok": 2, "rope_theta": 1000000.0})"},
    {"qwen2_moe",
     R"({"max_position_embeddings": 32768, "max_window_layers": 28, "num_key_value_heads": 16, "num_experts": 60,
                      "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632})"},
    {"qwen3_moe", R"({"max_position_embeddings": 32768, "num_key_value_heads": 4, "num_experts_per_tok": 8,
                      "moe_intermediate_size": 768})"},
    {"olmoe", R"({"max_position_embeddings": 4096, "num_experts_per_tok": 8})"},
    {"gpt_oss", R"({"max_position_embeddings": 131072, "sliding_window": 128, "num_key_value_heads": 8, "head_dim": 64,
                    "num_experts_per_tok": 4, "rope_theta": 150000.0})"},
    {"deepseek_v2", R"({"max_position_embeddings": 2048, "n_shared_experts": 2})"},
    {"deepseek_v3", R"({"max_position_embeddings": 4096, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 8,
                        "topk_group": 4, "num_nextn_predict_layers": 1})"},
    {"roberta", R"({"max_position_embeddings": 512})"},
    {"xlm-roberta", R"({"max_position_embeddings": 512})"},
    {"camembert", R"({"max_position_embeddings": 512})"},
    {"electra", R"({"max_position_embeddings": 512})"},
    {"distilbert", R"({"max_position_embeddings": 512})"},
    {"albert", R"({"max_position_embeddings": 512})"},
    {"mpnet", R"({"max_position_embeddings": 512})"},
    {"mt5", R"({"feed_forward_proj": "gated-gelu"})"},
    {"modernbert", R"({"max_position_embeddings": 8192})"},
};

}  // namespace

Fields with_defaults(const Fields& fields, const std::string& model_type) {
    for (const Default& d : kDefaults)
        if (d.type == model_type) return fields.or_else(nlohmann::json::parse(d.fields));
    return fields;
}

}  // namespace fovea
