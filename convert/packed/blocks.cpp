#include "convert/packed/blocks.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "convert/packed/packed.h"
#include "host/base/error.h"

namespace fovea {

SourceTensor tensor_of_blocks(const GgufBlocks& blocks, const std::byte* data, std::vector<std::uint64_t> shape,
                              std::uint64_t bytes) {
    SourceTensor tensor{.dtype = blocks.plain == Type::f16    ? "F16"
                                 : blocks.plain == Type::bf16 ? "BF16"
                                                              : "F32",
                        .shape = std::move(shape),
                        .data = data,
                        .bytes = bytes};
    if (!blocks.dequantize) return tensor;
    const std::uint64_t row_bytes = tensor.shape.back() / blocks.n_elements * blocks.n_bytes;
    PackedMatrix matrix;
    matrix.type = blocks.group_type;
    matrix.dequantize = [&blocks, data, row_bytes](std::uint64_t row, float* out) {
        const std::byte* block = data + row * row_bytes;
        for (const std::byte* end = block + row_bytes; block != end; block += blocks.n_bytes, out += blocks.n_elements)
            blocks.dequantize(block, out);
    };
    if (blocks.take_apart)
        matrix.groups = [&blocks, data, row_bytes](std::uint64_t row, QuantizedGroup* out) {
            const std::byte* block = data + row * row_bytes;
            for (const std::byte* end = block + row_bytes; block != end; block += blocks.n_bytes) {
                blocks.take_apart(block, out);
                if (blocks.n_elements == kGroup &&
                    std::count(out->quants.begin(), out->quants.end(), std::int8_t{-128}))
                    throw host::Error("quants: expected -127 to 127, got -128; --type f32 takes it");
                out += blocks.n_elements / kGroup;
            }
        };
    tensor.packed = std::make_shared<const PackedMatrix>(std::move(matrix));
    return tensor;
}

}  // namespace fovea
