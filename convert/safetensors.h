// Safetensors files, single or in shards, as views into their mappings.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fovea/mapping.h"

namespace fovea {

struct SourceTensor {
    std::string dtype;  ///< as the file spells it: "F32", "BF16", …
    std::vector<std::uint64_t> shape;
    const std::byte* data = nullptr;  ///< of any alignment
    std::uint64_t bytes = 0;
    std::size_t file = 0;  ///< which of Safetensors::files
};

struct Safetensors {
    std::vector<std::filesystem::path> files;
    std::vector<Mapping> mappings;
    std::map<std::string, SourceTensor, std::less<>> tensors;
};

/// Reads the headers of a folder's model.safetensors, or of the shards that its model.safetensors.index.json lists.
/// Every tensor lies within its file and overlaps no other, its bytes are those of its shape. Throws Refusal.
[[nodiscard]] Safetensors read_safetensors_folder(const std::filesystem::path& folder);

/// The files that an index lists in its weight_map. Throws Refusal for a name that leads out of the folder.
[[nodiscard]] std::set<std::string> shard_names(const std::filesystem::path& index);

/// The same for one file.
[[nodiscard]] Safetensors read_safetensors_file(const std::filesystem::path& path);

}  // namespace fovea
