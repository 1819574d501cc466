// Other programs' models, which are not read here: what they are, and what to do.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace fovea {

/// "an ONNX model; give the folder of transformers that it was made of", for a file that begins with `start`, or a folder without
/// weights that are read here; empty for any other.
[[nodiscard]] std::string foreign_model(const std::filesystem::path& path, std::string_view start);

}  // namespace fovea
