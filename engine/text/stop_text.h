// Stop strings over a text that comes byte by byte.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/status.h"

namespace fovea {

/// One byte of a stop string. The strings stand one after the other.
struct StopByte {
    std::uint16_t fallback = 0;  ///< how many of the string's first bytes end here, without all of them
    std::uint16_t matched = 0;   ///< of a string's first byte: how many of its bytes the text ends with
    std::uint16_t length = 0;    ///< of a string's first byte: how many it has
    char byte = 0;
};
static_assert(sizeof(StopByte) == 8);

/// Finds the first stop string that is complete. Time: amortised O(1) a byte and string (Knuth, Morris and Pratt 1977).
class StopText {
public:
    StopText() = default;
    explicit StopText(std::span<StopByte> bytes) noexcept : bytes_(bytes) {}

    /// Errors: bad_argument (an empty string, one that is not UTF-8), buffer_too_small.
    [[nodiscard]] static Status check(std::span<const std::string_view> strings, std::size_t max_bytes) noexcept;
    /// Strings that passed check.
    void set(std::span<const std::string_view> strings) noexcept;

    /// The text's next byte. Returns the bytes of the string that it completes, the longest of several, or 0.
    std::uint32_t push(char byte) noexcept;
    /// How many of the text's last bytes may begin a stop string.
    [[nodiscard]] std::uint32_t held() const noexcept { return held_; }

private:
    std::span<StopByte> bytes_;
    std::uint32_t n_used_ = 0;  // of bytes_
    std::uint32_t held_ = 0;
};

}  // namespace fovea
