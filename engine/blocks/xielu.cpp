#include "engine/blocks/xielu.h"

namespace fovea {
namespace {

constexpr std::uint32_t kUnit = 512;  // elements of a row that a member takes at a time
constexpr std::uint32_t kPiece = 64;  // of these, as many as have their powers at once

/// e^min(x, ε) is made by the table's kernel, all else in the formula's order.
void apply(const Kernels& kernels, const float* numbers, float* x, std::uint32_t n) noexcept {
    const float alpha = numbers[0], of_negative = numbers[1], beta = numbers[2], epsilon = numbers[3];
    float power[kPiece];
    for (std::uint32_t i = 0; i < n; ++i) power[i] = x[i] < epsilon ? x[i] : epsilon;
    kernels.floats.unary[static_cast<int>(Unary::exp)](power, n, power);
    for (std::uint32_t i = 0; i < n; ++i) {
        const float linear = beta * x[i];
        const float above = alpha * x[i] * x[i] + linear, below = of_negative * (power[i] - 1.0f - x[i]) + linear;
        x[i] = x[i] > 0.0f ? above : below;
    }
}

}  // namespace

void apply_xielu(Pass& pass, const float* numbers, const Rows& rows, std::uint32_t width) noexcept {
    const std::uint32_t n_units = (width + kUnit - 1) / kUnit;
    pass.phase("xielu", pass.all(rows, width), in_parts(pass.seq_len * n_units), [&](Pass::Share mine) {
        for (std::uint32_t unit = mine.begin; unit < mine.end; ++unit) {
            const std::uint32_t first = unit % n_units * kUnit, left = width - first, n = left < kUnit ? left : kUnit;
            float* x = rows[unit / n_units] + first;
            for (std::uint32_t i = 0; i < n; i += kPiece)
                apply(*pass.workspace.kernels, numbers, x + i, n - i < kPiece ? n - i : kPiece);
        }
    });
}

}  // namespace fovea
