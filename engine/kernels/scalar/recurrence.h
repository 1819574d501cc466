// Convolutions over time and states of recurrent parts, see Convolve and UpdateState. Part of the scalar kernels.
#pragma once
#include "engine/kernels/kernels.h"
#include "engine/kernels/scalar/math.h"

#include "engine/kernels/math.h"

namespace fovea {
namespace {

/// The input of a channel `back` rows before a row.
float input_before(const Convolve& c, std::uint32_t row, std::uint32_t back, std::size_t channel) {
    if (back > row) return c.past ? c.past[(c.n_taps - 1 + row - back) * c.kernel_stride + channel] : 0.0f;
    const std::size_t at = (row - back) * c.x_stride + channel;
    return c.factor ? c.x[at] * c.factor[at] : c.x[at];
}

/// In ascending order, so that what is kept may lie where the past is.
void keep_inputs(const Convolve& c, std::size_t channel) {
    for (std::uint32_t i = 0; i + 1 < c.n_taps; ++i)
        c.kept[i * c.kernel_stride + channel] = input_before(c, c.n_rows, c.n_taps - 1 - i, channel);
}

void convolve(const Convolve& c) noexcept {
    for (std::size_t channel = 0; channel < c.n_channels; ++channel) {
        for (std::uint32_t row = 0; row < c.n_rows; ++row) {
            float sum = c.bias ? c.bias[channel] : 0.0f;
            for (std::uint32_t tap = 0; tap < c.n_taps; ++tap)
                sum = fma_f32(c.kernel[tap * c.kernel_stride + channel],
                              input_before(c, row, c.n_taps - 1 - tap, channel), sum);
            const float y = c.output_factor ? sum * c.output_factor[row * c.x_stride + channel] : silu(sum);
            c.out[row * c.out_stride + channel] = canonical(y);
        }
        keep_inputs(c, channel);
    }
}

/// A column's product with a query or a key.
float dot_column(const float* x, const float* state, std::uint32_t key_dim, std::uint32_t lane) {
    float chains[4] = {};
    for (std::uint32_t i = 0; i < key_dim; ++i)
        chains[i % 4] = fma_f32(x[i], state[std::size_t{i} * kLanes + lane], chains[i % 4]);
    return (chains[0] + chains[2]) + (chains[1] + chains[3]);
}

void update_state(const UpdateState& u) noexcept {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        for (std::size_t i = 0; i < u.key_dim; ++i)
            u.state[i * kLanes + lane] = u.from && lane < u.n_values ? u.from[i * kLanes + lane] : 0.0f;
        for (std::size_t row = 0; row < u.n_rows && lane < u.n_values; ++row) {
            const std::size_t own = u.exponent ? lane : 0;
            const float rate = u.rate[row * u.scalar_stride + own];
            const auto decay = [&](std::size_t i) {
                return u.exponent ? exp(u.exponent[i * u.exponent_stride + lane] * rate)
                                  : u.decay[row * u.scalar_stride + (u.decays_dims ? i : 0)];
            };
            const float *key = u.key + row * u.stride, value = u.value[row * u.stride + lane];
            float* state = u.state + lane;
            for (std::size_t i = 0; i < u.key_dim; ++i) state[i * kLanes] = state[i * kLanes] * decay(i);
            const float known = u.skip ? 0.0f : dot_column(key, u.state, u.key_dim, lane);
            const float d = u.skip ? value * rate : (value - known) * rate;
            for (std::size_t i = 0; i < u.key_dim; ++i) state[i * kLanes] = fma_f32(key[i], d, state[i * kLanes]);
            const float y = dot_column(u.query + row * u.stride, u.state, u.key_dim, lane);
            u.out[row * u.out_stride + lane] = canonical(u.skip ? fma_f32(u.skip[own], value, y) : y);
        }
    }
}

}  // namespace
}  // namespace fovea
