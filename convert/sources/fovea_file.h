// A Fovea file as a ModelSource, so that it can be written again with another type.
#pragma once
#include <filesystem>

#include "convert/weights/model_source.h"
#include "fovea/mapping.h"

namespace fovea {

/// Validates the file, checksums included. Throws host::Error naming `path`. The result keeps the mapping.
[[nodiscard]] ModelSource read_fovea_file(const std::filesystem::path& path, Mapping mapping);

}  // namespace fovea
