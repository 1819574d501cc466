// Matrices whose rows are ggml's blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convert/formats/gguf_blocks.h"
#include "convert/formats/safetensors.h"

namespace fovea {

/// The tensor that lies at `data` in such blocks, row-major; quantized ones become packed matrices. `bytes` are those of all.
[[nodiscard]] SourceTensor tensor_of_blocks(const GgufBlocks& blocks, const std::byte* data,
                                            std::vector<std::uint64_t> shape, std::uint64_t bytes);

}  // namespace fovea
