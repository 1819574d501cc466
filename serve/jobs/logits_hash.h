// The fingerprint of the logits that a text was chosen from, which a client may ask for.
#pragma once
#include <bit>
#include <cstdint>
#include <span>

namespace fovea::serve {

/// FNV-1a, 64 bits, over 32-bit words (Fowler, Noll and Vo 1991): what `fovea certify` computes of logits.
inline constexpr std::uint64_t kLogitsHashSeed = 0xcbf29ce484222325u;
[[nodiscard]] inline std::uint64_t hash_logits(std::span<const float> logits, std::uint64_t hash) {
    for (const float logit : logits) hash = (hash ^ std::bit_cast<std::uint32_t>(logit)) * 0x100000001b3u;
    return hash;
}

}  // namespace fovea::serve
