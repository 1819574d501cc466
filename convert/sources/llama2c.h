// llama2.c's checkpoints, versions 0 to 2, as a ModelSource without its tokenizer.
#pragma once
#include <filesystem>
#include <span>

#include "convert/weights/model_source.h"
#include "fovea/mapping.h"

namespace fovea {

/// Version 0: seven int32 (a negative vocabulary says that the output head is apart) and float32 weights, no magic
/// number. Version 1: the magic number 0x616b3432, the version, the seven, one byte for a shared head, weights from byte
/// 256 on. Version 2: an int32 more, how many int8 weights of a matrix share a float32 scale, both exactly read. The file
/// must be exactly as long as its header says. Throws host::Error naming `path`. The result keeps the mapping.
[[nodiscard]] ModelSource read_llama2c(const std::filesystem::path& path, Mapping mapping);

/// Whether `bytes` starts as a version 1 (or later) checkpoint does.
[[nodiscard]] bool is_llama2c(std::span<const std::byte> bytes) noexcept;

}  // namespace fovea
