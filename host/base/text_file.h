// A text that is read whole.
#pragma once
#include <string>

namespace fovea {

/// A file's text, a pipe's too, of at most 64 MB, which is a dozen times that of memory once it is encoded. Throws host::Error.
[[nodiscard]] std::string read_text_file(const std::string& path);

}  // namespace fovea
