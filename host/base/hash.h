// Fingerprints: FNV-1a with 64 bits (Fowler, Noll and Vo 1991), over whole words where they are wider than bytes.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace fovea {

inline constexpr std::uint64_t kHashSeed = 0xcbf29ce484222325u;
[[nodiscard]] constexpr std::uint64_t hash_word(std::uint32_t word, std::uint64_t seed) noexcept {
    return (seed ^ word) * 0x100000001b3u;
}
/// A list's or a text's, whose pieces compose by way of the seed. Two runs are compared by those of their floats.
[[nodiscard]] constexpr std::uint64_t hash_bits(std::span<const float> values,
                                                std::uint64_t seed = kHashSeed) noexcept {
    for (const float value : values) seed = hash_word(std::bit_cast<std::uint32_t>(value), seed);
    return seed;
}
[[nodiscard]] constexpr std::uint64_t hash_text(std::string_view text, std::uint64_t seed = kHashSeed) noexcept {
    for (const char c : text) seed = hash_word(static_cast<unsigned char>(c), seed);
    return seed;
}

}  // namespace fovea
