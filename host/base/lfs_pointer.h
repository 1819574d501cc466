// Git LFS's notes of where a file is, which a clone without git-lfs leaves in its place.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace fovea {

/// host::Error where a file's bytes are such a note.
void refuse_lfs_pointer(std::span<const std::byte> bytes, const std::string& path);

}  // namespace fovea
