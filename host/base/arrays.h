// Arrays of numbers and masks, as .npy files and callers have them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/encode.h"

namespace fovea {

/// A row-major array of float32, whatever floats or whole numbers the file held.
struct FloatArray {
    std::string path;
    std::vector<std::uint64_t> shape;
    std::vector<float> data;
    [[nodiscard]] bool given() const { return !path.empty(); }
};

/// "[2, 3]", for refusals.
[[nodiscard]] std::string in_words(std::span<const std::uint64_t> shape);

/// Throws host::Error, also for an array without elements. An empty path gives an array that is not given().
[[nodiscard]] FloatArray read_floats(const std::string& path);

/// [a, b, …] becomes [b, a, …].
[[nodiscard]] FloatArray swap_first_two(const FloatArray& array);

/// Whole numbers below 2^32; refuses others, and any other number of them than `n`.
[[nodiscard]] std::vector<std::uint32_t> read_lengths(const std::string& path, std::uint64_t n);

/// How large an attention is, for the masks over it.
struct AttentionSize {
    std::uint64_t n_sequences = 1, n_heads = 1, n_queries = 0, n_keys = 0;
};

/// Where a mask's elements lie, [key] to [sequence, head, query, key] as read_mask has them; nothing where the shape does not
/// fit. The pointers are the caller's to set.
[[nodiscard]] std::optional<Mask> lay_out_mask(std::vector<std::uint64_t> shape, const AttentionSize& size);
/// The same of [sequence, key] or, of one sequence, [key].
[[nodiscard]] std::optional<Mask> lay_out_padding(std::vector<std::uint64_t> shape, const AttentionSize& size);

/// A mask and the numbers its pointers lead to.
struct MaskArray {
    std::vector<std::uint8_t> hidden;
    std::vector<float> added;
    Mask mask;
};

/// [key], [query, key], [n_sequences·n_heads or n_sequences or n_heads or 1, query, key] or [sequence, head, query,
/// key], where any but the last may be 1 for all. Fewer keys than there are hide the rest. Booleans hide, or with
/// `keep` show, a pair; numbers are added. An empty path gives a mask of nothing.
[[nodiscard]] MaskArray read_mask(const std::string& path, bool keep, const AttentionSize& size);

/// [sequence, key] or, of one sequence, [key]: true or −inf hides a key, other numbers are added.
[[nodiscard]] MaskArray read_padding(const std::string& path, const AttentionSize& size);

/// Writes a whole array.
void write_npy(const std::string& path, std::span<const std::uint64_t> shape, std::span<const float> data);

}  // namespace fovea
