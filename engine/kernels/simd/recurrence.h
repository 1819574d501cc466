// Convolutions over time and states of recurrent parts, see Convolve and UpdateState.
#pragma once
#include "engine/kernels/kernels.h"
#include "engine/kernels/lanes/math.h"
#include "engine/kernels/simd/rows.h"

namespace fovea {
namespace {

/// The inputs of some channels `back` rows before a row.
FOVEA_LANES F32x16 input_before(const Convolve& c, std::uint32_t row, std::uint32_t back, std::size_t channel,
                                std::size_t width) {
    if (back > row) {
        if (!c.past) return splat(0.0f);
        return load_up_to(c.past + (c.n_taps - 1 + row - back) * c.kernel_stride + channel, width);
    }
    const std::size_t at = (row - back) * c.x_stride + channel;
    const F32x16 x = load_up_to(c.x + at, width);
    return c.factor ? x * load_up_to(c.factor + at, width) : x;
}

/// Sixteen channels at a time, so that a row's inputs are read from the nearest cache by the rows after it.
[[gnu::flatten]] void convolve(const Convolve& c) noexcept {
    for_lanes(c.n_channels, [&](std::size_t channel, std::size_t width) {
        for (std::uint32_t row = 0; row < c.n_rows; ++row) {
            F32x16 sum = c.bias ? load_up_to(c.bias + channel, width) : splat(0.0f);
            for (std::uint32_t tap = 0; tap < c.n_taps; ++tap)
                sum = fma(load_up_to(c.kernel + tap * c.kernel_stride + channel, width),
                          input_before(c, row, c.n_taps - 1 - tap, channel, width), sum);
            const F32x16 y =
                c.output_factor ? sum * load_up_to(c.output_factor + row * c.x_stride + channel, width) : silu(sum);
            store_up_to(canonical(y), c.out + row * c.out_stride + channel, width);
        }
        for (std::uint32_t i = 0; i + 1 < c.n_taps; ++i)
            store_up_to(input_before(c, c.n_rows, c.n_taps - 1 - i, channel, width),
                        c.kept + i * c.kernel_stride + channel, width);
    });
}

enum class Rule : std::uint8_t { delta, delta_by_dim, space, selective };

/// One row. `in` is the state before it, which goes to u.state.
template<Rule kRule>
FOVEA_LANES void update_row(const UpdateState& u, std::size_t row, const float* in) {
    const float *query = u.query + row * u.stride, *key = u.key + row * u.stride;
    constexpr bool kByDim = kRule == Rule::delta_by_dim, kDelta = kByDim || kRule == Rule::delta,
                   kSelective = kRule == Rule::selective;
    const float* rates = u.rate + row * u.scalar_stride;
    const F32x16 rate = kSelective ? load_up_to(rates, u.n_values) : splat(*rates);
    F32x16 of_row = rate;
    const float* decays = kSelective ? nullptr : u.decay + row * u.scalar_stride;
    if constexpr (!kSelective && !kByDim) of_row = splat(*decays);
    const auto decay = [&](std::uint32_t i) {
        if constexpr (kSelective) return exp(load_up_to(u.exponent + i * u.exponent_stride, u.n_values) * rate);
        if constexpr (kByDim) return splat(decays[i]);
        return of_row;
    };
    const F32x16 value = load_up_to(u.value + row * u.stride, u.n_values);
    const std::uint32_t whole = u.key_dim / 4 * 4;
    const auto join = [](const F32x16(&chain)[4]) { return (chain[0] + chain[2]) + (chain[1] + chain[3]); };
    F32x16 d = value * rate;
    if constexpr (kDelta) {
        F32x16 known[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
        const auto add = [&](std::uint32_t i, F32x16& chain) {
            chain = fma(key[i], load(in + std::size_t{i} * kLanes) * decay(i), chain);
        };
        for (std::uint32_t i = 0; i < whole; i += 4)
            add(i, known[0]), add(i + 1, known[1]), add(i + 2, known[2]), add(i + 3, known[3]);
        if (whole < u.key_dim) add(whole, known[0]);
        if (whole + 1 < u.key_dim) add(whole + 1, known[1]);
        if (whole + 2 < u.key_dim) add(whole + 2, known[2]);
        d = (value - join(known)) * rate;
    }
    F32x16 sums[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
    const auto step = [&](std::uint32_t i, F32x16& chain) {
        const F32x16 s = fma(key[i], d, load(in + std::size_t{i} * kLanes) * decay(i));
        store(s, u.state + std::size_t{i} * kLanes);
        chain = fma(query[i], s, chain);
    };
    for (std::uint32_t i = 0; i < whole; i += 4)
        step(i, sums[0]), step(i + 1, sums[1]), step(i + 2, sums[2]), step(i + 3, sums[3]);
    if (whole < u.key_dim) step(whole, sums[0]);
    if (whole + 1 < u.key_dim) step(whole + 1, sums[1]);
    if (whole + 2 < u.key_dim) step(whole + 2, sums[2]);
    const F32x16 y = join(sums);
    F32x16 out = y;
    if constexpr (!kDelta) out = fma(kSelective ? load_up_to(u.skip, u.n_values) : splat(*u.skip), value, y);
    store_up_to(canonical(out), u.out + row * u.out_stride, u.n_values);
}

/// The columns behind n_values are zero before, and what is added there is zero times a finite number or NaN: so they are cleared.
template<Rule kRule>
FOVEA_LANES void update_rows(const UpdateState& u) {
    const float* in = u.from;
    if (!in) {
        for (std::uint32_t i = 0; i < u.key_dim; ++i) store(splat(0.0f), u.state + std::size_t{i} * kLanes);
        in = u.state;
    }
    for (std::size_t row = 0; row < u.n_rows; ++row, in = u.state) update_row<kRule>(u, row, in);
    if (u.n_values == kLanes) return;
    const Mask16 real = lanes_between(0, static_cast<int>(u.n_values));
    for (std::uint32_t i = 0; i < u.key_dim; ++i) {
        float* state = u.state + std::size_t{i} * kLanes;
        store(select(real, load(state), splat(0.0f)), state);
    }
}
[[gnu::flatten]] void update_by_delta(const UpdateState& u) noexcept { update_rows<Rule::delta>(u); }
[[gnu::flatten]] void update_by_dim(const UpdateState& u) noexcept { update_rows<Rule::delta_by_dim>(u); }
[[gnu::flatten]] void update_by_space(const UpdateState& u) noexcept { update_rows<Rule::space>(u); }
[[gnu::flatten]] void update_by_selection(const UpdateState& u) noexcept { update_rows<Rule::selective>(u); }

void update_state(const UpdateState& u) noexcept {
    u.exponent      ? update_by_selection(u)
    : u.skip        ? update_by_space(u)
    : u.decays_dims ? update_by_dim(u)
                    : update_by_delta(u);
}

}  // namespace
}  // namespace fovea
