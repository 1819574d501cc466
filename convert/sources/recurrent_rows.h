// Where a source has what a recurrent part is made of.
#pragma once
#include <span>
#include <vector>

#include "convert/families/family.h"
#include "convert/sources/source_rows.h"

namespace fovea {

/// Outputs of a recurrent part's map, or of its bias.
[[nodiscard]] std::uint32_t recurrent_width(const RecurrentShape& r, Role role);

/// Whether a source's vector is not ours as it is.
[[nodiscard]] constexpr bool is_remade(Role role) noexcept {
    return role == Role::recurrent_kernel || role == Role::recurrent_kernel_bias || role == Role::recurrent_decay ||
           role == Role::recurrent_step_bias || role == Role::router_norm;
}

/// Whether it is a decay for each value and dim of a key, not for each head.
[[nodiscard]] constexpr bool has_decays_of_values(const RecurrentShape& r, Role role) noexcept {
    return role == Role::recurrent_decay && r.kind == Recurrence::selective;
}
/// Whether what is made of a tensor of GGUF is a vector there too, not a matrix.
[[nodiscard]] constexpr bool is_plain_vector(const RecurrentShape& r, Role role) noexcept {
    return role == Role::recurrent_kernel_bias || role == Role::recurrent_step_bias || role == Role::router_norm ||
           (role == Role::recurrent_decay && r.kind == Recurrence::delta) ||
           (role == Role::recurrent_skip && r.kind == Recurrence::selective);
}
/// Elements that a row of the source has, of a vector of ours that has rows there.
[[nodiscard]] constexpr std::uint32_t row_length(const RecurrentShape& r, Role role) noexcept {
    return role == Role::recurrent_kernel ? r.n_taps : has_decays_of_values(r, role) ? r.key_dim : 1;
}

/// One map among the rows of the matrix that holds it.
[[nodiscard]] SourceRows recurrent_part(const RecurrentShape& r, std::span<const RecurrentRows> all, Role map);

/// Queries or the output gate, where one matrix has each head's gate behind its queries.
[[nodiscard]] SourceRows beside_gate(const AttentionShape& a, Role role);

/// Such a vector of ours, of the source's values: a router's norm over √d_model, the decay −e^A of each head or [value][key dim], or what kernel_of and in_our_channels make.
[[nodiscard]] std::vector<float> remade(const HfConfig& config, Role role, std::vector<float> values);
/// The same of GGUF's, whose decays' exponentials are ready, of a view with a row for each channel, value or head.
[[nodiscard]] std::vector<float> recurrent_vector(const RecurrentShape& r, std::span<const RecurrentRows> all,
                                                  const TensorSpec& spec, const TensorView& found);
/// The shape that the source has it in, where ours has n elements.
[[nodiscard]] std::vector<std::uint64_t> shape_before(const RecurrentShape& r, Role role, std::uint64_t n);

/// Our kernel [n_taps][n_channels], of a source's [n_channels][n_taps] whose channels are those of queries, keys and values as its
/// matrix has them.
[[nodiscard]] std::vector<float> kernel_of(const RecurrentShape& r, std::span<const RecurrentRows> all,
                                           std::span<const float> source);
/// A number for each channel, from the source's order to ours.
[[nodiscard]] std::vector<float> in_our_channels(const RecurrentShape& r, std::span<const RecurrentRows> all,
                                                 std::span<const float> source);

}  // namespace fovea
