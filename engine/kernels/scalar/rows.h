// Sums across lanes, and what is done to whole rows and heads: norms and rotations. Part of the scalar kernels.
#pragma once
#include "engine/kernels/kernels.h"
#include "engine/kernels/scalar/math.h"

#include "engine/kernels/math.h"

namespace fovea {
namespace {

// ---- sums ----------------------------------------------------------------------------------------------------------

float sum_of(float a, float b) { return a + b; }

/// Folds 16 lanes into one, by sums unless said otherwise: the upper half onto the lower half until one is left.
template<float (*join)(float, float) = sum_of>
float fold(const float (&lanes)[kLanes]) {
    float x[kLanes];
    for (std::uint32_t i = 0; i < kLanes; ++i) x[i] = lanes[i];
    for (std::uint32_t half = kLanes / 2; half > 0; half /= 2)
        for (std::uint32_t i = 0; i < half; ++i) x[i] = join(x[i], x[i + half]);
    return x[0];
}

// ---- norms ---------------------------------------------------------------------------------------------------------

/// The part that both norms share: scaling the distances from a mean.
void norm(const float* x, std::uint32_t n, float mean, const float* weight, const float* bias, float epsilon,
          float* y) {
    float squares[kLanes] = {};
    for (std::uint32_t i = 0; i < n; ++i) squares[i % kLanes] = fma_f32(x[i] - mean, x[i] - mean, squares[i % kLanes]);
    const float inverse = 1.0f / __builtin_sqrtf(fold(squares) * (1.0f / static_cast<float>(n)) + epsilon);
    for (std::uint32_t i = 0; i < n; ++i) {
        const float normal = (x[i] - mean) * inverse;
        y[i] = bias ? fma_f32(normal, weight[i], bias[i]) : normal * weight[i];
    }
}

void rms_norm(const float* x, std::uint32_t n, const float* weight, float epsilon, float* y) noexcept {
    norm(x, n, 0.0f, weight, nullptr, epsilon, y);
}

void layer_norm(const float* x, std::uint32_t n, const float* weight, const float* bias, float epsilon,
                float* y) noexcept {
    float sums[kLanes] = {};
    for (std::uint32_t i = 0; i < n; ++i) sums[i % kLanes] = sums[i % kLanes] + x[i];
    norm(x, n, fold(sums) * (1.0f / static_cast<float>(n)), weight, bias, epsilon, y);
}

// ---- positions -----------------------------------------------------------------------------------------------------

void rope_table(std::uint32_t pos, const float* frequency, std::uint32_t n_pairs, float scale, float* cos,
                float* sin) noexcept {
    for (std::size_t i = 0; i < n_pairs; ++i) {
        const float angle = static_cast<float>(pos) * frequency[i];
        cos[2 * i] = cos[2 * i + 1] = sine(angle, 1) * scale;
        sin[2 * i] = sin[2 * i + 1] = sine(angle, 0) * scale;
    }
}

void rotate(float* x, const float* cos, const float* sin, std::uint32_t n) noexcept {
    for (std::size_t i = 0; i + 1 < n; i += 2) {
        const float x0 = x[i], x1 = x[i + 1];
        x[i] = fma_f32(x0, cos[i], -(x1 * sin[i]));
        x[i + 1] = fma_f32(x1, cos[i + 1], x0 * sin[i + 1]);
    }
}

}  // namespace
}  // namespace fovea
