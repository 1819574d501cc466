// The names that tensors have in GGUF files.
#pragma once
#include "convert/families/family.h"

namespace fovea {

/// What tensors of ours are called, but for a family's own names.
inline constexpr TensorName kGgufNames[] = {
    {Role::token_embedding, "token_embd.weight"},
    {Role::position_embedding, "position_embd.weight"},
    {Role::type_embedding, "token_types.weight"},
    {Role::embedding_norm, "token_embd_norm.weight"},
    {Role::final_norm, "output_norm.weight"},
    {Role::output, "output.weight"},
    {Role::output_bias, "output.bias"},
    {Role::attention_norm, "#attn_norm.weight"},
    {Role::attention_post_norm, "#post_attention_norm.weight"},
    {Role::query, "#attn_q.weight"},
    {Role::key, "#attn_k.weight"},
    {Role::value, "#attn_v.weight"},
    {Role::query_norm, "#attn_q_norm.weight"},
    {Role::key_norm, "#attn_k_norm.weight"},
    {Role::attention_output, "#attn_output.weight"},
    {Role::feed_forward_norm, "#ffn_norm.weight"},
    {Role::feed_forward_post_norm, "#post_ffw_norm.weight"},
    {Role::layer_embedding, "per_layer_token_embd.weight"},
    {Role::layer_input_map, "per_layer_model_proj.weight"},
    {Role::layer_input_norm, "per_layer_proj_norm.weight"},
    {Role::layer_gate, "#inp_gate.weight"},
    {Role::layer_output, "#proj.weight"},
    {Role::layer_output_norm, "#post_norm.weight"},
    {Role::layer_scale, "#layer_output_scale.weight"},
    {Role::up, "#ffn_up.weight", Within::alone, "#ffn_gate.weight"},
    {Role::down, "#ffn_down.weight"},
    {Role::router, "#ffn_gate_inp.weight"},
    {Role::attention_sinks, "#attn_sinks.weight"},
    {Role::choice_bias, "#exp_probs_b.bias"},
    {Role::expert_up, "#ffn_up_exps.weight", Within::alone, "#ffn_gate_exps.weight"},
    {Role::expert_down, "#ffn_down_exps.weight"},
    {Role::shared_gate, "#ffn_gate_inp_shexp.weight"},
    {Role::shared_up, "#ffn_up_shexp.weight", Within::alone, "#ffn_gate_shexp.weight"},
    {Role::shared_down, "#ffn_down_shexp.weight"},
};

/// Latent attention's.
inline constexpr auto kLatent = names_of({{Role::query_down, "#attn_q_a.weight"},
                                          {Role::query_down_norm, "#attn_q_a_norm.weight"},
                                          {Role::key, "#attn_kv_a_mqa.weight"},
                                          {Role::latent_norm, "#attn_kv_a_norm.weight"},
                                          {Role::latent_query, "#attn_k_b.weight"},
                                          {Role::latent_value, "#attn_v_b.weight"}});

// Names beside the usual ones, in models with recurrent layers.
inline constexpr auto kShortConvolutions =
    names_of({{Role::final_norm, "token_embd_norm.weight"},
              {Role::recurrent_norm, "#attn_norm.weight"},
              {Role::recurrent_query, "#shortconv.in_proj.weight", Within::joined},
              {Role::recurrent_key, "#shortconv.in_proj.weight", Within::joined},
              {Role::recurrent_value, "#shortconv.in_proj.weight", Within::joined},
              {Role::recurrent_kernel, "#shortconv.conv.weight"},
              {Role::recurrent_output, "#shortconv.out_proj.weight"}});
inline constexpr auto kMamba = names_of({{Role::recurrent_norm, "#attn_norm.weight"},
                                         {Role::recurrent_query, "#ssm_in.weight", Within::joined},
                                         {Role::recurrent_key, "#ssm_in.weight", Within::joined},
                                         {Role::recurrent_value, "#ssm_in.weight", Within::joined},
                                         {Role::recurrent_gate, "#ssm_in.weight", Within::joined},
                                         {Role::recurrent_step, "#ssm_in.weight", Within::joined},
                                         {Role::recurrent_step_bias, "#ssm_dt.bias"},
                                         {Role::recurrent_kernel, "#ssm_conv1d.weight"},
                                         {Role::recurrent_decay, "#ssm_a"},
                                         {Role::recurrent_skip, "#ssm_d"},
                                         {Role::recurrent_state_norm, "#ssm_norm.weight"},
                                         {Role::recurrent_output, "#ssm_out.weight"}});

inline constexpr auto kDelta = names_of({{Role::query, "#attn_q.weight", Within::gate_beside},
                                         {Role::attention_gate, "#attn_q.weight", Within::gate_beside},
                                         {Role::key, "#attn_k.weight"},
                                         {Role::value, "#attn_v.weight"},
                                         {Role::feed_forward_norm, "#post_attention_norm.weight"},
                                         {Role::recurrent_norm, "#attn_norm.weight"},
                                         {Role::recurrent_query, "#attn_qkv.weight", Within::joined},
                                         {Role::recurrent_key, "#attn_qkv.weight", Within::joined},
                                         {Role::recurrent_value, "#attn_qkv.weight", Within::joined},
                                         {Role::recurrent_gate, "#attn_gate.weight"},
                                         {Role::recurrent_step, "#ssm_alpha.weight"},
                                         {Role::recurrent_rate, "#ssm_beta.weight"},
                                         {Role::recurrent_step_bias, "#ssm_dt.bias"},
                                         {Role::recurrent_kernel, "#ssm_conv1d.weight"},
                                         {Role::recurrent_decay, "#ssm_a"},
                                         {Role::recurrent_state_norm, "#ssm_norm.weight"},
                                         {Role::recurrent_output, "#ssm_out.weight"}});
/// Kimi Linear's; kernels of queries, keys and values are a tensor each.
inline constexpr auto kKimi = kLatent.with({{Role::recurrent_norm, "#attn_norm.weight"},
                                            {Role::recurrent_query, "#attn_q.weight"},
                                            {Role::recurrent_key, "#attn_k.weight"},
                                            {Role::recurrent_value, "#attn_v.weight"},
                                            {Role::recurrent_gate_down, "#ssm_g_a.weight"},
                                            {Role::recurrent_gate, "#ssm_g_b.weight"},
                                            {Role::recurrent_step_down, "#ssm_f_a.weight"},
                                            {Role::recurrent_step, "#ssm_f_b.weight"},
                                            {Role::recurrent_step_bias, "#ssm_dt.bias"},
                                            {Role::recurrent_rate, "#ssm_beta.weight"},
                                            {Role::recurrent_kernel, "#ssm_conv1d_*.weight"},
                                            {Role::recurrent_decay, "#ssm_a"},
                                            {Role::recurrent_state_norm, "#ssm_norm.weight"},
                                            {Role::recurrent_output, "#attn_output.weight"}});
/// Mamba's, which files call as Mamba-2's where both have it.
inline constexpr auto kSelective = kMamba.with({{Role::recurrent_query, "#ssm_x.weight", Within::joined},
                                                {Role::recurrent_key, "#ssm_x.weight", Within::joined},
                                                {Role::recurrent_step_down, "#ssm_x.weight", Within::joined},
                                                {Role::recurrent_step, "#ssm_dt.weight"}});
inline constexpr auto kJamba = kSelective.with({{Role::recurrent_query_norm, "#ssm_c_norm.weight"},
                                                {Role::recurrent_key_norm, "#ssm_b_norm.weight"},
                                                {Role::recurrent_step_norm, "#ssm_dt_norm.weight"}});
/// Files have no ending there.
inline constexpr auto kFalconH1 = kMamba.with({{Role::feed_forward_norm, "#ffn_norm"}});
/// What is normed alike comes in one layer or the other.
inline constexpr auto kNemotronH = kMamba.with({{Role::feed_forward_norm, "#attn_norm.weight"}});
/// Steps and rates of each key head in turn; in older files also queries, keys, values and gates.
inline constexpr auto kQwenNext = kDelta.with({{Role::recurrent_step, "#ssm_ba.weight", Within::joined},
                                               {Role::recurrent_rate, "#ssm_ba.weight", Within::joined}});
inline constexpr auto kOlderQwenNext = kQwenNext.with({{Role::recurrent_query, "#ssm_in.weight", Within::joined},
                                                       {Role::recurrent_key, "#ssm_in.weight", Within::joined},
                                                       {Role::recurrent_value, "#ssm_in.weight", Within::joined},
                                                       {Role::recurrent_gate, "#ssm_in.weight", Within::joined}});

}  // namespace fovea
