// Weights of four bits as Hugging Face's folders hold them (OCP Microscaling Formats 1.0, 2023: E2M1 with a shared E8M0): a
// tensor NAME_blocks of bytes, each two columns, and a tensor NAME_scales, a byte for every 32 columns.
#pragma once
#include <cstddef>
#include <cstdint>

#include "convert/weights/mapped_weights.h"

namespace fovea {

/// The bfloat16 2^(e − 128) of a shared scale e: half its value, as Type::mxfp4's codebook is doubled.
[[nodiscard]] std::uint16_t mxfp4_scale(std::uint32_t e) noexcept;

/// A matrix of n_cols columns, a multiple of 32: row i has n_cols / 2 bytes of `blocks` from i·row_step of them on, and n_cols / 32
/// of `scales`. Its groups are Type::mxfp4's as they are.
[[nodiscard]] TensorView mxfp4_view(const std::byte* blocks, const std::byte* scales, std::uint32_t n_cols,
                                    std::uint32_t row_step);

}  // namespace fovea
