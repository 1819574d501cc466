// What a draft has of the model that it proposes for.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fovea/host/opened.h"

namespace fovea::host {

/// Elements of DraftModel::vectors: a next-token head reads a prompt's last 512 tokens at most, or what its own session holds. 0: the
/// draft is a model of its own.
[[nodiscard]] inline std::size_t n_draft_vectors(const Opened& draft, std::uint32_t max_kv_len,
                                                 std::uint32_t n_proposed) {
    const Stack& stack = draft.config().decoder;
    const std::size_t n_rows = std::max(n_proposed + std::size_t{2}, std::min<std::size_t>(max_kv_len, 512));
    return stack.joins_rows ? n_rows * stack.d_model : 0;
}

}  // namespace fovea::host
