// Everything of a Fovea file that comes before the weights.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convert/writer/writer.h"

namespace fovea {

struct FileHead {
    std::vector<std::byte> bytes;       ///< from the file's start to that of the weights; checksums still missing
    std::vector<TensorSpec> specs;      ///< in the file's order
    std::vector<TensorRecord> records;  ///< one for each of `specs`
    std::vector<TensorRecord> shared;   ///< of layers that use another's bytes
    std::uint64_t weights_bytes = 0;
};

/// Throws host::Error if the configuration is invalid.
[[nodiscard]] FileHead make_head(const ModelSource& source, const WriteOptions& options);

/// Puts all checksums in; the weights' is given.
void seal(FileHead& head, std::uint32_t weights_crc);

}  // namespace fovea
