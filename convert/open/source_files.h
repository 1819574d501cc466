// The files that a source is made of.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace fovea {

/// Every file of a folder and of the folders in it, where sentence-transformers keeps parts of a model; of a .safetensors file
/// those beside it too, which say what it is; of a GGUF file its parts; of any other itself.
[[nodiscard]] std::vector<std::filesystem::path> source_files(const std::filesystem::path& path);

/// Keeps an input, and the files of a model's folder that are its source, from being written (host/base/output_file.h).
/// Results may lie there.
void keep_source(const std::string& path);

}  // namespace fovea
