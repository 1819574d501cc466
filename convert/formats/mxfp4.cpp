#include "convert/formats/mxfp4.h"

#include "host/base/elements.h"

namespace fovea {
namespace {

/// Byte i of a group's sixteen holds columns 2i, in the low bits, and 2i + 1.
void take_apart(const std::byte* block, std::byte scale, QuantizedGroup& out) {
    out.scale = mxfp4_scale(std::to_integer<std::uint32_t>(scale));
    for (std::uint32_t i = 0; i < kGroup / 2; ++i) {
        out.quants[2 * i] = std::to_integer<std::int8_t>(block[i] & std::byte{15});
        out.quants[2 * i + 1] = std::to_integer<std::int8_t>(block[i] >> 4);
    }
}

}  // namespace

std::uint16_t mxfp4_scale(std::uint32_t e) noexcept {
    return static_cast<std::uint16_t>(e < 2 ? 0x20u << e : (e - 1) << 7);
}

TensorView mxfp4_view(const std::byte* blocks, const std::byte* scales, std::uint32_t n_cols, std::uint32_t row_step) {
    TensorView view;
    view.data = blocks;
    view.group_type = Type::mxfp4;
    const std::uint64_t n_groups = n_cols / kGroup;
    view.groups = [=](std::uint64_t row, QuantizedGroup* out) {
        const std::uint64_t first = row * row_step * n_groups;
        for (std::uint64_t i = first; i < first + n_groups; ++i) take_apart(blocks + i * kGroup / 2, scales[i], *out++);
    };
    view.dequantize = [=](std::uint64_t row, float* out) {
        const std::uint64_t first = row * row_step * n_groups;
        for (std::uint64_t i = first; i < first + n_groups; ++i) {
            QuantizedGroup group;
            take_apart(blocks + i * kGroup / 2, scales[i], group);
            for (const std::int8_t quant : group.quants)
                *out++ = from_bf16(group.scale) * static_cast<float>(format_of(Type::mxfp4).codebook[quant]);
        }
    };
    return view;
}

}  // namespace fovea
