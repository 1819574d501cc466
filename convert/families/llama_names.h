// The names that Llama's classes in Hugging Face's transformers have, and with them most decoders after it.
#pragma once
#include <array>
#include <string_view>

#include "convert/families/family.h"

namespace fovea {

inline constexpr auto kLlamaNames = names_of({
    {Role::token_embedding, "embed_tokens.weight"},
    {Role::final_norm, "norm.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#input_layernorm.weight"},
    {Role::query, "#self_attn.q_proj.weight"},
    {Role::key, "#self_attn.k_proj.weight"},
    {Role::value, "#self_attn.v_proj.weight"},
    {Role::query_norm, "#self_attn.q_norm.weight"},
    {Role::key_norm, "#self_attn.k_norm.weight"},
    {Role::attention_output, "#self_attn.o_proj.weight"},
    {Role::feed_forward_norm, "#post_attention_layernorm.weight"},
    {Role::up, "#mlp.up_proj.weight", Within::alone, "#mlp.gate_proj.weight"},
    {Role::down, "#mlp.down_proj.weight"},
});

/// With experts, each of which has tensors of its own, and with shared ones beside them.
inline constexpr auto kExpertNames = kLlamaNames.with({
    {Role::router, "#mlp.gate.weight"},
    {Role::expert_up, "#mlp.experts.*.up_proj.weight", Within::alone, "#mlp.experts.*.gate_proj.weight"},
    {Role::expert_down, "#mlp.experts.*.down_proj.weight"},
});
inline constexpr auto kSharedExpertNames = kExpertNames.with({
    {Role::shared_up, "#mlp.shared_experts.up_proj.weight", Within::alone, "#mlp.shared_experts.gate_proj.weight"},
    {Role::shared_down, "#mlp.shared_experts.down_proj.weight"},
});

/// DeepSeek's latent attention.
inline constexpr TensorName kLatentNames[] = {
    {Role::query_down, "#self_attn.q_a_proj.weight"},    {Role::query_down_norm, "#self_attn.q_a_layernorm.weight"},
    {Role::key, "#self_attn.kv_a_proj_with_mqa.weight"}, {Role::latent_norm, "#self_attn.kv_a_layernorm.weight"},
    {Role::latent_query, "#self_attn.kv_b_proj.weight"}, {Role::latent_value, "#self_attn.kv_b_proj.weight"},
};

/// Tensors that predict tokens behind the next.
inline bool is_of_further_tokens(std::string_view name) { return name.starts_with("mtp."); }

}  // namespace fovea
