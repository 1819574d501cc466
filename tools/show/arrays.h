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

/// host::Error if an array and what --json prints would both go to standard output.
void check_output(const std::string& output, bool json);

/// The end of attend and encode. Writes the result to `output`, unless that is empty, its first two dimensions swapped
/// back if it is `seq_first`; with --json prints the report on it, `weights_shape` empty if there are no weights.
/// Without an output the report has the numbers, too.
void finish_arrays(const std::string& output, FloatArray result, bool seq_first, bool json,
                   std::span<const std::uint64_t> weights_shape, const host::Runtime<Session>& running, double seconds);

}  // namespace fovea
