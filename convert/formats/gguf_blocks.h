// How GGUF stores a tensor's elements: blocks of some elements in some bytes, and their way back to float32.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "convert/quantize/quantize.h"
#include "fovea/config.h"

namespace fovea {

struct GgufBlocks {
    std::uint32_t number = 0;  ///< as it stands in the file
    const char* name = "";
    std::uint32_t n_elements = 1;  ///< of a block; a row is whole blocks
    std::uint32_t n_bytes = 4;
    /// Writes a block's elements to out [n_elements], in the order of roundings of ggml's own conversion; null if
    /// the elements are plain.
    void (*dequantize)(const std::byte* block, float* out) = nullptr;
    Type plain = Type::f32;  ///< the elements' type if they are not quantized
    /// Takes a block apart into the groups of 32 of a type that holds them as they are; null if there is none.
    void (*take_apart)(const std::byte* block, QuantizedGroup* out) = nullptr;
    Type group_type = Type::q8;  ///< that type
    /// After a tensor's last block: a float32 that all its elements are multiplied with, and padding.
    std::uint32_t n_scale_bytes = 0;
};

/// Null for a number that this converter does not know.
[[nodiscard]] const GgufBlocks* find_gguf_blocks(std::uint32_t number) noexcept;
/// "F32, F16 or BF16": every type that is read.
[[nodiscard]] std::string known_gguf_blocks();

}  // namespace fovea
