// What the verbs that compute with vectors end with.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "fovea/host/runtime.h"
#include "host/base/arrays.h"

namespace fovea {

/// Computes a result `repeat` times; the median of the seconds it took.
[[nodiscard]] double timed(std::uint32_t repeat, const std::function<void()>& compute);

/// Rows of [batch, seq, width] or [seq, width], whose first two dimensions are swapped if they are `seq_first`; others throw host::Error.
void settle_rows(FloatArray& array, std::uint32_t width, bool seq_first);

/// A limit with room for n; larger numbers than a plan takes become one that it refuses.
[[nodiscard]] std::uint32_t fitting_limit(std::uint64_t n);

/// host::Error if an array and what --json prints would both go to standard output.
void check_output(const std::string& output, bool json);

/// The end of attend and encode. Writes the result to `output`, unless that is empty, its first two dimensions swapped
/// back if it is `seq_first`; with --json prints the report on it, `weights_shape` empty if there are no weights.
/// Without an output the report has the numbers, too.
void finish_arrays(const std::string& output, FloatArray result, bool seq_first, bool json,
                   std::span<const std::uint64_t> weights_shape, const host::Runtime<Session>& running, double seconds);

}  // namespace fovea
