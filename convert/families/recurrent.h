// Shared by readers of families whose layers are recurrent or attend.
#pragma once
#include <string>
#include <vector>

#include "convert/families/reading.h"

namespace fovea {

/// Which layers are recurrent: those that layer_types or layers_block_type calls `recurrent` or "mamba", the others being of
/// `other` or, as full_attention, of attention.
[[nodiscard]] std::vector<bool> read_recurrent_layers(const Fields& fields, const std::string& recurrent,
                                                      std::uint32_t n_layers,
                                                      const std::string& other = "full_attention");

/// config.json's names for the sizes of Mamba-2 (Dao and Gu 2024), and of Mamba, which has neither heads nor groups.
struct MambaNames {
    const char* n_heads = "mamba_n_heads";
    const char* head_dim = "mamba_d_head";  ///< missing or "auto": all heads are `expand` times d_model
    const char* n_groups = "mamba_n_groups";
    const char* state_size = "mamba_d_state";
    const char* n_taps = "mamba_d_conv";
    const char* expand = "mamba_expand";
    const char* kernel_bias = "mamba_conv_bias";
    const char* bias = "mamba_proj_bias";
    const char* step_least = nullptr;         ///< of a step without an upper bound; null: time_step_limit has both
    const char* step_rank = "mamba_dt_rank";  ///< Mamba's; missing or "auto": a sixteenth of d_model
};

/// Gives the stack Mamba-2's recurrent part, all of whose maps are one matrix of the source.
void read_mamba2(const Fields& fields, const MambaNames& names, HfConfig& result);

/// Gives it Mamba's (Gu and Dao 2023).
void read_mamba(const Fields& fields, const MambaNames& names, HfConfig& result);

/// The gated delta rule by the linear_* fields of Qwen 3 Next (Yang et al. 2025).
[[nodiscard]] RecurrentShape read_delta(const Fields& fields);

/// Makes the kernels of queries, keys and values of each layer one tensor, conv1d.weight, where they are three.
void join_kernels(const HfConfig& config, Safetensors& files);

/// The tensors of both, in a module of that name.
#define FOVEA_MAMBA_NAMES(module)                                                                              \
    {Role::recurrent_query, module ".x_proj.weight", Within::joined},                                          \
        {Role::recurrent_key, module ".x_proj.weight", Within::joined},                                        \
        {Role::recurrent_step_down, module ".x_proj.weight", Within::joined},                                  \
        {Role::recurrent_value, module ".in_proj.weight", Within::joined},                                     \
        {Role::recurrent_gate, module ".in_proj.weight", Within::joined},                                      \
        {Role::recurrent_step, module ".dt_proj.weight"}, {Role::recurrent_step_bias, module ".dt_proj.bias"}, \
        {Role::recurrent_kernel, module ".conv1d.weight"}, {Role::recurrent_decay, module ".A_log"},           \
        {Role::recurrent_skip, module ".D"}, {                                                                 \
        Role::recurrent_output, module ".out_proj.weight"                                                      \
    }
#define FOVEA_MAMBA2_NAMES(module)                                                                         \
    {Role::recurrent_query, module ".in_proj.weight", Within::joined},                                     \
        {Role::recurrent_key, module ".in_proj.weight", Within::joined},                                   \
        {Role::recurrent_value, module ".in_proj.weight", Within::joined},                                 \
        {Role::recurrent_gate, module ".in_proj.weight", Within::joined},                                  \
        {Role::recurrent_step, module ".in_proj.weight", Within::joined},                                  \
        {Role::recurrent_step_bias, module ".dt_bias"}, {Role::recurrent_kernel, module ".conv1d.weight"}, \
        {Role::recurrent_decay, module ".A_log"}, {Role::recurrent_skip, module ".D"},                     \
        {Role::recurrent_state_norm, module ".norm.weight"}, {                                             \
        Role::recurrent_output, module ".out_proj.weight"                                                  \
    }

/// Refuses what is not SiLU behind the convolution.
void refuse_other_activation(const Fields& fields, const char* name);

/// The same block with the stack's recurrent part in place of attention.
[[nodiscard]] Block recurrent_block(Block block);

}  // namespace fovea
