// Where a conversation keeps the state of recurrent layers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "fovea/cache.h"

namespace fovea::host {

/// Positions of a prompt whose state a later turn goes on from: all but what opens the answer, for a template seldom writes an
/// answer as the model did, nor what it put before it. 0: there are none.
[[nodiscard]] inline std::uint32_t turn_begin(std::size_t n_prompt) {
    constexpr std::size_t kOpening = 8;  // tokens that open an answer, at most
    return n_prompt > kOpening ? static_cast<std::uint32_t>(n_prompt - kOpening) : 0;
}

/// Gives back what marks before `kv_len` have kept, of a model with recurrent layers.
inline void unmark_before(Cache& cache, std::uint32_t kv_len) {
    while (const std::uint32_t earlier = kv_len ? cache.reach(kv_len - 1) : 0) (void)unmark(cache, earlier);
}

}  // namespace fovea::host
