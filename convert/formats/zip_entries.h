// The entries of a ZIP file that stores them uncompressed, as torch.save writes it.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace fovea {

/// Each entry's bytes by its name, views of `file`. Nothing is trusted: every offset and size is compared with the file
/// before it is used. Throws host::Error, beginning with `name`, if the file is no ZIP file, if an entry is compressed,
/// encrypted, not within the file or there twice.
[[nodiscard]] std::map<std::string, std::span<const std::byte>> zip_entries(std::span<const std::byte> file,
                                                                            const std::string& name);

}  // namespace fovea
