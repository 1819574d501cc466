// How results and failures are worded.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fovea/config.h"
#include "host/base/refusal.h"
#include "host/model/parameters.h"

namespace fovea {

/// Gives standard output what is still waiting, or Refusal where it did not take all there was.
void flush_output();

/// `text` as part of one line: control characters become '?', and what is very long is cut.
[[nodiscard]] std::string one_line(std::string_view text);

/// "a, b, c".
[[nodiscard]] std::string joined(std::span<const char* const> names);

/// Sixteen hexadecimal digits.
[[nodiscard]] std::string hex(std::uint64_t number);

/// A config in words, several lines that end with a line break: widths, heads, positions, norms, activation.
[[nodiscard]] std::string describe_config(const Config& config);

/// The table of parameters per part, with the first layer's heads; lines that end with a line break.
[[nodiscard]] std::string describe_parameters(const ParameterCount& count, const Config& config);

}  // namespace fovea
