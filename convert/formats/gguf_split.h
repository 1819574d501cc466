// Models in several GGUF files, as llama.cpp's gguf-split names them: NAME-00001-of-00003.gguf and so on.
#pragma once
#include <filesystem>
#include <vector>

#include "convert/formats/gguf.h"

namespace fovea {

/// The paths of all parts of the model of which `path` is one by its name, in order; of any other `path` alone.
[[nodiscard]] std::vector<std::filesystem::path> gguf_parts(const std::filesystem::path& path);

/// A file and, where it is the first part of a model, the tensors of the others beside it. Throws host::Error where a part lacks, is
/// another one than its name says, or has a tensor that another has too.
[[nodiscard]] Gguf read_gguf_parts(const std::filesystem::path& path, Mapping mapping);

}  // namespace fovea
