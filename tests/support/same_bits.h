// Whether results are the same in every bit.
#pragma once
#include <cstring>
#include <span>

namespace fovea::testing {

[[nodiscard]] inline bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace fovea::testing
