// Arrays of numbers and masks, read from .npy files for the verbs that compute with vectors.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fovea/encode.h"
#include "host/model/opened.h"
#include "host/model/runtime.h"

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

/// `n` whole numbers below 2^32; refuses others, and any other count.
[[nodiscard]] std::vector<std::uint32_t> read_lengths(const std::string& path, std::uint64_t n);

/// How large an attention is, for the masks over it.
struct AttentionSize {
    std::uint64_t n_sequences = 1, n_heads = 1, n_queries = 0, n_keys = 0;
};

/// A mask and the numbers its pointers lead to.
struct MaskArray {
    std::vector<std::uint8_t> hidden;
    std::vector<float> added;
    Mask mask;
};

/// [key], [query, key], [n_sequences·n_heads or n_sequences or n_heads or 1, query, key] or [sequence, head, query,
/// key], where any but the last may be 1 for all. Fewer keys than there are hide the rest. Booleans hide, or with
/// `keep` show, a pair; numbers are added. An empty path gives no mask.
[[nodiscard]] MaskArray read_mask(const std::string& path, bool keep, const AttentionSize& size);

/// [sequence, key] or, of one sequence, [key]: true or −inf hides a key, other numbers are added.
[[nodiscard]] MaskArray read_padding(const std::string& path, const AttentionSize& size);

/// Computes a result `repeat` times; the median of the seconds it took.
[[nodiscard]] double timed(std::uint32_t repeat, const std::function<void()>& compute);

/// host::Error if an array and what --json prints would both go to standard output.
void check_output(const std::string& output, bool json);

/// The end of attend and encode. Writes the result to `output`, unless that is empty, its first two dimensions swapped
/// back if it is `seq_first`; with --json prints the report on it, `weights_shape` empty if there are no weights.
/// Without an output the report has the numbers, too.
void finish_arrays(const std::string& output, FloatArray result, bool seq_first, bool json,
                   std::span<const std::uint64_t> weights_shape, const host::Runtime<Session>& running, double seconds);

/// Writes a whole array.
void write_npy(const std::string& path, std::span<const std::uint64_t> shape, std::span<const float> data);

}  // namespace fovea
