// Models in several GGUF files, as llama.cpp's gguf-split names them: NAME-00001-of-00003.gguf and so on.
#pragma once
#include <filesystem>
#include <vector>

#include "convert/formats/gguf.h"

namespace fovea {

/// The paths of all parts of a model, in order, if the name of `path` says that it is one of them; else only `path`.
[[nodiscard]] std::vector<std::filesystem::path> gguf_parts(const std::filesystem::path& path);

/// A file and, if it is the first part of a model, the tensors of the others beside it. Throws host::Error if a part is
/// missing, is another one than its name says, or repeats a tensor of another part.
[[nodiscard]] Gguf read_gguf_parts(const std::filesystem::path& path, Mapping mapping);

}  // namespace fovea
