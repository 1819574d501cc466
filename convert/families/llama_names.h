// The names that Llama's classes in Hugging Face's transformers have, and with them most decoders after it.
#pragma once
#include <array>

#include "convert/families/family.h"

namespace fovea {

inline constexpr TensorName kLlamaNames[] = {
    {Role::token_embedding, "embed_tokens.weight"},
    {Role::final_norm, "norm.weight"},
    {Role::final_norm_bias, "norm.bias"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#input_layernorm.weight"},
    {Role::attention_norm_bias, "#input_layernorm.bias"},
    {Role::query, "#self_attn.q_proj.weight"},
    {Role::query_bias, "#self_attn.q_proj.bias"},
    {Role::key, "#self_attn.k_proj.weight"},
    {Role::key_bias, "#self_attn.k_proj.bias"},
    {Role::value, "#self_attn.v_proj.weight"},
    {Role::value_bias, "#self_attn.v_proj.bias"},
    {Role::query_norm, "#self_attn.q_norm.weight"},
    {Role::key_norm, "#self_attn.k_norm.weight"},
    {Role::attention_output, "#self_attn.o_proj.weight"},
    {Role::attention_output_bias, "#self_attn.o_proj.bias"},
    {Role::feed_forward_norm, "#post_attention_layernorm.weight"},
    {Role::feed_forward_norm_bias, "#post_attention_layernorm.bias"},
    {Role::up, "#mlp.up_proj.weight", Within::alone, "#mlp.gate_proj.weight"},
    {Role::up_bias, "#mlp.up_proj.bias", Within::alone, "#mlp.gate_proj.bias"},
    {Role::down, "#mlp.down_proj.weight"},
    {Role::down_bias, "#mlp.down_proj.bias"},
};

/// Llama's names, with others in place of some: the first for a role counts.
template<std::size_t n>
constexpr auto with_llama_names(const TensorName (&others)[n]) {
    std::array<TensorName, n + std::size(kLlamaNames)> names{};
    std::size_t at = 0;
    for (const TensorName& name : others) names[at++] = name;
    for (const TensorName& name : kLlamaNames) names[at++] = name;
    return names;
}

}  // namespace fovea
