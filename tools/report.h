// How results and failures are worded.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "convert/parameters.h"
#include "fovea/config.h"
#include "fovea/status.h"

namespace fovea {

/// Throws Refusal unless `status` is ok: its words, after `subject` (mostly a file's name) where there is one.
void require(const Status& status, const std::string& subject = {});

/// Gives standard output what is still waiting, or Refusal where it did not take all there was.
void flush_output();

/// 1572864 becomes "1,572,864".
[[nodiscard]] std::string with_separators(std::uint64_t number);

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
