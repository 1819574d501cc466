// A text that is read whole, and the lines of standard input.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace fovea {

/// A file's text, a pipe's too, without the byte order mark that editors put before it. "-" is standard input; that,
/// /dev/stdin and /dev/fd/N are read by their descriptor, from where it stands. 64 MB are a dozen times that of memory once
/// they are encoded. Throws host::Error.
[[nodiscard]] std::string read_text_file(const std::string& path, std::size_t most_bytes = std::size_t{64} << 20);

/// A text without the byte order mark of UTF-8, where it begins with one.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

/// The next line of standard input without its break, as it comes; false at the end. Throws host::Error where it cannot be read.
[[nodiscard]] bool read_input_line(std::string& line);

/// Whether standard input can be read; not where the caller closed it.
[[nodiscard]] bool has_input();

}  // namespace fovea
