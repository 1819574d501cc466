// Sums of exponentials and logarithms of logits, in double and in one order, so that decisions by them are the same on
// every machine.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace fovea {

/// The largest, and sum of exp(logit − most); of none above −inf: sum 0. NaN makes the sum NaN.
struct ExpSum {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    /// The logarithm of the sum of the logits' exponentials.
    [[nodiscard]] double log() const;
};
[[nodiscard]] ExpSum exp_sum(std::span<const float> logits);

/// How many times smaller the text becomes under deflate (RFC 1951) with its fixed codes and the longest matches, in zlib's
/// wrapping: at 2.4 and more it mostly repeats itself. Only the first 16 KB of a text count. 0 for an empty one.
[[nodiscard]] double compression_ratio(std::string_view text);

}  // namespace fovea
