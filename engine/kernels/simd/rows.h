// Kernels over single rows: norms, rotary positions, packing, cache writes, merging attention's chunks, activations.
#pragma once
#include "engine/kernels/kernels.h"
#include "engine/kernels/lanes/math.h"

namespace fovea {
namespace {

/// Calls body(i, width) for i = 0, 16, ... below n; width is 16 but for the last. Its users are flattened: lanes that
/// are passed to a function which is not inlined go through memory.
template<class Body>
FOVEA_LANES void for_lanes(std::size_t n, Body&& body) {
    for (std::size_t i = 0; i < n; i += kLanes) body(i, n - i < kLanes ? n - i : std::size_t{kLanes});
}
FOVEA_LANES F32x16 load_up_to(const float* p, std::size_t n) { return n == kLanes ? load(p) : load_part(p, n); }
FOVEA_LANES void store_up_to(F32x16 x, float* p, std::size_t n) { n == kLanes ? store(x, p) : store_part(x, p, n); }

/// y = f(x) element by element; y may be x.
template<class F>
FOVEA_LANES void map(const float* x, std::size_t n, float* y, F&& f) {
    for_lanes(n, [&](std::size_t i, std::size_t width) {
        store_up_to(canonical(f(load_up_to(x + i, width))), y + i, width);
    });
}

[[gnu::flatten]] void rms_norm(const float* x, std::uint32_t n, const float* weight, float epsilon, float* y) noexcept {
    F32x16 squares = splat(0.0f);
    for_lanes(n, [&](std::size_t i, std::size_t width) {
        const F32x16 v = load_up_to(x + i, width);
        squares = fma(v, v, squares);
    });
    const float mean = fold_sum(squares) * (1.0f / static_cast<float>(n));
    const F32x16 inverse = splat(1.0f) / sqrt(splat(mean + epsilon));
    for_lanes(n, [&](std::size_t i, std::size_t width) {
        store_up_to(load_up_to(x + i, width) * inverse * load_up_to(weight + i, width), y + i, width);
    });
}

[[gnu::flatten]] void layer_norm(const float* x, std::uint32_t n, const float* weight, const float* bias, float epsilon,
                                 float* y) noexcept {
    const float inverse_n = 1.0f / static_cast<float>(n);
    F32x16 sum = splat(0.0f), squares = splat(0.0f);
    for_lanes(n, [&](std::size_t i, std::size_t width) { sum = sum + load_up_to(x + i, width); });
    const F32x16 mean = splat(fold_sum(sum) * inverse_n);
    for_lanes(n, [&](std::size_t i, std::size_t width) {
        // Lanes past the end must add nothing: there x − mean is −mean.
        const F32x16 d =
            select(lanes_between(0, static_cast<int>(width)), load_up_to(x + i, width) - mean, splat(0.0f));
        squares = fma(d, d, squares);
    });
    const F32x16 inverse = splat(1.0f) / sqrt(splat(fold_sum(squares) * inverse_n + epsilon));
    for_lanes(n, [&](std::size_t i, std::size_t width) {
        const F32x16 d = (load_up_to(x + i, width) - mean) * inverse, w = load_up_to(weight + i, width);
        store_up_to(bias ? fma(d, w, load_up_to(bias + i, width)) : d * w, y + i, width);
    });
}

[[gnu::flatten]] void rope_table(std::uint32_t pos, const float* frequency, std::uint32_t n_pairs, float scale,
                                 float* cos_out, float* sin_out) noexcept {
    const F32x16 position = splat(static_cast<float>(pos));
    for_lanes(n_pairs, [&](std::size_t i, std::size_t width) {
        const F32x16 angle = position * load_up_to(frequency + i, width);
        alignas(64) float c[kLanes], s[kLanes];
        store(cos(angle) * splat(scale), c);
        store(sin(angle) * splat(scale), s);
        for (std::size_t j = 0; j < width; ++j) {
            cos_out[2 * (i + j)] = cos_out[2 * (i + j) + 1] = c[j];
            sin_out[2 * (i + j)] = sin_out[2 * (i + j) + 1] = s[j];
        }
    });
}

/// Lanes 2i and 2i + 1 are x0 and x1 of a pair: x0·cos − x1·sin beside x1·cos + x0·sin is one fma of x with the
/// neighbours' products, whose sign alternates.
[[gnu::flatten]] void rotate(float* x, const float* cos_in, const float* sin_in, std::uint32_t n) noexcept {
    const U32x16 even = even_signs();
    for_lanes(n, [&](std::size_t i, std::size_t width) {
        const F32x16 v = load_up_to(x + i, width);
        const F32x16 crossed = swap_neighbours(v) * load_up_to(sin_in + i, width);
        store_up_to(fma(v, load_up_to(cos_in + i, width), floats(bits(crossed) ^ even)), x + i, width);
    });
}

constexpr std::uint32_t kPackAhead = 8 * kLanes;  // columns that are asked for before they are packed

[[gnu::flatten]] void pack(const float* x, std::size_t x_stride, std::uint32_t n_rows, std::uint32_t n_cols,
                           float* packed) noexcept {
    if (n_rows == 1) {
        for_lanes(n_cols,
                  [&](std::size_t i, std::size_t width) { store_up_to(load_up_to(x + i, width), packed + i, width); });
        return;
    }
    // Sixteen columns at a time, four rows at a time; what is left over, one by one.
    const std::uint32_t whole_cols = n_cols / kLanes * kLanes, whole_rows = n_rows / 4 * 4;
    const auto copy = [&](std::uint32_t row, std::uint32_t col) {
        packed[std::size_t{col} * n_rows + row] = x[row * x_stride + col];
    };
    for (std::uint32_t col = 0; col < whole_cols; col += kLanes) {
        for (std::uint32_t row = 0; row < whole_rows; row += 4) {
            const float* from = x + row * x_stride + col;
            for (std::uint32_t i = 0; i < 4; ++i) __builtin_prefetch(from + i * x_stride + kPackAhead);
            F32x16 a = load(from), b = load(from + x_stride), c = load(from + 2 * x_stride),
                   d = load(from + 3 * x_stride);
            transpose4(a, b, c, d);
            float* to = packed + std::size_t{col} * n_rows + row;
            store_quarters(a, to, 4 * n_rows);
            store_quarters(b, to + n_rows, 4 * n_rows);
            store_quarters(c, to + 2 * n_rows, 4 * n_rows);
            store_quarters(d, to + 3 * n_rows, 4 * n_rows);
        }
        for (std::uint32_t i = col; i < col + kLanes; ++i)
            for (std::uint32_t row = whole_rows; row < n_rows; ++row) copy(row, i);
    }
    for (std::uint32_t col = whole_cols; col < n_cols; ++col)
        for (std::uint32_t row = 0; row < n_rows; ++row) copy(row, col);
}

/// Sixteen elements, canonical, in the type of a cache. Finite ones stay finite, as to_f16 says.
FOVEA_LANES void store_canonical(F32x16 x, float* out) { store(canonical(x), out); }
FOVEA_LANES void store_canonical(F32x16 x, Half* out) {
    const F32x16 size = magnitude(x), most = splat(65504.0f), signed_most = floats(bits(most) | (bits(x) ^ bits(size)));
    const F32x16 finite = select(size < floats(splat_bits(0x7f800000u)), signed_most, x);
    store(canonical(select(size > most, finite, x)), out);
}

template<class W>
[[gnu::flatten]] void write_key(const float* key, std::uint32_t head_dim, std::uint32_t lane,
                                std::byte* panel) noexcept {
    W* out = reinterpret_cast<W*>(panel);
    if (lane == 0)
        for (std::uint32_t i = 0; i < head_dim; ++i) store(splat(0.0f), out + i * kLanes);
    for_lanes(head_dim, [&](std::size_t i, std::size_t width) {
        W element[kLanes];
        store_canonical(load_up_to(key + i, width), element);
        for (std::size_t j = 0; j < width; ++j) out[(i + j) * kLanes + lane] = element[j];
    });
}

template<class W>
void write_value(const float* value, std::uint32_t value_head_dim, std::uint32_t lane, std::byte* panel) noexcept {
    W* out = reinterpret_cast<W*>(panel) + lane * static_cast<std::size_t>(round_up(value_head_dim, kLanes));
    for (std::uint32_t i = 0; i < value_head_dim; i += kLanes) {
        const std::uint32_t left = value_head_dim - i;
        store_canonical(load_part(value + i, left < kLanes ? left : kLanes), out + i);
    }
}

void attend_merge(const AttendMerge& a) noexcept {
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        float* o = a.o + std::size_t{r} * a.value_stride;
        const float* chunk_o = a.chunk_o + std::size_t{r} * a.value_stride;
        if (a.chunk_l[r] == 0.0f) continue;
        if (a.l[r] == 0.0f) {
            a.m[r] = a.chunk_m[r];
            a.l[r] = a.chunk_l[r];
            for (std::uint32_t i = 0; i < a.value_stride; i += kLanes) store(load(chunk_o + i), o + i);
            continue;
        }
        const F32x16 m = splat(a.m[r]), chunk_m = splat(a.chunk_m[r]), m_new = max(m, chunk_m);
        const F32x16 decay = exp(m - m_new), chunk_decay = exp(chunk_m - m_new);
        store_part(m_new, a.m + r, 1);
        store_part(fma(splat(a.chunk_l[r]), chunk_decay, splat(a.l[r]) * decay), a.l + r, 1);
        for (std::uint32_t i = 0; i < a.value_stride; i += kLanes)
            store(fma(load(chunk_o + i), chunk_decay, load(o + i) * decay), o + i);
    }
}

[[gnu::flatten]] void attend_finish(const float* l, const float* o, std::uint32_t n_rows, std::uint32_t value_head_dim,
                                    std::uint32_t value_stride, float* out, std::size_t out_stride) noexcept {
    for (std::uint32_t r = 0; r < n_rows; ++r)
        for_lanes(value_head_dim, [&](std::size_t i, std::size_t width) {
            const F32x16 y = load(o + std::size_t{r} * value_stride + i) / splat(l[r]) + splat(0.0f);
            store_up_to(l[r] == 0.0f ? splat(0.0f) : canonical(y), out + r * out_stride + i, width);
        });
}

template<Unary kUnary>
[[gnu::flatten]] void unary(const float* x, std::size_t n, float* y) noexcept {
    map(x, n, y, [](F32x16 v) { return apply(kUnary, v); });
}

[[gnu::flatten]] void softcap_row(float* x, std::size_t n, float cap) noexcept {
    map(x, n, x, [&](F32x16 v) { return softcap(v, splat(cap)); });
}

}  // namespace
}  // namespace fovea
