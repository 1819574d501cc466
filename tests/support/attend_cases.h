// Attention over heads as they are: inputs with every kind of mask, made from a seed.
#pragma once
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "fovea/encode.h"

namespace fovea::testing {

inline constexpr float kHidden = -HUGE_VALF;

/// Heads, masks and sizes of one call, made from a seed. Heads are [sequence, head, row, dim].
struct Case {
    std::uint32_t n_sequences = 3, n_heads = 4, n_kv_heads = 2, n_queries = 29, n_keys = 75, n_past = 0;
    std::uint32_t head_dim = 20, value_head_dim = 24;
    bool causal = false, hides = false, adds = false, pads = false, lengths = false;
    float softcap = 0;
    std::uint32_t window = 0;  ///< keys so near to a query's own place; with `causal`, up to it
    bool zero_attn = false;    ///< a key and a value of zeros, which every query sees
};

struct Arrays {
    Case c;
    std::vector<float> query, key, value, past_key, past_value, added;
    std::vector<std::uint8_t> hidden, padding;
    std::vector<std::uint32_t> lengths;

    explicit Arrays(const Case& made, std::uint32_t seed = 1) : c(made) {
        std::mt19937 random(seed);
        const auto floats = [&](std::vector<float>& out, std::size_t n) {
            out.resize(n);
            for (float& x : out) x = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-30f;
        };
        const std::size_t n = c.n_sequences, keys = c.n_keys + c.n_past;
        floats(query, n * c.n_heads * c.n_queries * c.head_dim);
        floats(key, n * c.n_kv_heads * c.n_keys * c.head_dim);
        floats(value, n * c.n_kv_heads * c.n_keys * c.value_head_dim);
        floats(past_key, n * c.n_kv_heads * c.n_past * c.head_dim);
        floats(past_value, n * c.n_kv_heads * c.n_past * c.value_head_dim);
        if (c.adds) floats(added, n * c.n_heads * c.n_queries * keys);
        for (float& x : added)
            if (random() % 6 == 0) x = kHidden;
        if (c.hides) hidden.resize(c.n_queries * keys);
        for (auto& x : hidden) x = random() % 3 == 0;
        for (std::size_t i = 0; c.hides && i < keys; ++i) hidden[2 * keys + i] = 1;  // one query sees nothing
        if (c.pads) padding.resize(n * keys);
        for (auto& x : padding) x = random() % 4 == 0;
        for (std::size_t i = 0; c.lengths && i < n; ++i)
            lengths.push_back(static_cast<std::uint32_t>(random() % keys) + 1);
    }

    [[nodiscard]] AttendInput input() const {
        const auto heads = [](const std::vector<float>& data, std::uint64_t n_heads, std::uint64_t rows,
                              std::uint64_t dim) {
            return Heads{data, {n_heads * rows * dim, dim, rows * dim}};
        };
        const std::uint32_t keys = c.n_keys + c.n_past;
        AttendInput in;
        in.query = heads(query, c.n_heads, c.n_queries, c.head_dim);
        in.key = heads(key, c.n_kv_heads, c.n_keys, c.head_dim);
        in.value = heads(value, c.n_kv_heads, c.n_keys, c.value_head_dim);
        in.past_key = heads(past_key, c.n_kv_heads, c.n_past, c.head_dim);
        in.past_value = heads(past_value, c.n_kv_heads, c.n_past, c.value_head_dim);
        in.n_sequences = c.n_sequences;
        in.n_queries = c.n_queries;
        in.n_keys = c.n_keys;
        in.n_past = c.n_past;
        in.masks.causal = c.causal;
        const std::uint64_t matrix = std::uint64_t{c.n_queries} * keys;
        if (c.hides) in.masks.attention = {.hidden = hidden.data(), .query_stride = keys, .n_keys = keys};
        if (c.adds)
            in.masks.attention = {.added = added.data(),
                                  .sequence_stride = c.n_heads * matrix,
                                  .head_stride = matrix,
                                  .query_stride = keys,
                                  .n_keys = keys};
        if (c.pads) in.masks.padding = {.hidden = padding.data(), .sequence_stride = keys, .n_keys = keys};
        in.kv_lengths = lengths;
        in.out_strides = heads(query, c.n_heads, c.n_queries, c.value_head_dim).strides;
        return in;
    }
    [[nodiscard]] std::size_t n_out() const {
        return std::size_t{c.n_sequences} * c.n_heads * c.n_queries * c.value_head_dim;
    }
    [[nodiscard]] std::size_t n_weights() const {
        return std::size_t{c.n_sequences} * c.n_heads * c.n_queries * n_columns();
    }
    [[nodiscard]] std::uint32_t n_columns() const { return c.n_keys + c.n_past + (c.zero_attn ? 1 : 0); }
    [[nodiscard]] bool sees(std::size_t s, std::size_t head, std::size_t q, std::size_t k) const {
        const std::size_t keys = c.n_keys + c.n_past;
        const std::size_t length = c.lengths ? lengths[s] : keys;
        const std::ptrdiff_t diagonal =
            c.lengths ? static_cast<std::ptrdiff_t>(length) - c.n_queries : static_cast<std::ptrdiff_t>(c.n_past);
        const std::ptrdiff_t own = diagonal + static_cast<std::ptrdiff_t>(q), key = static_cast<std::ptrdiff_t>(k);
        if (k >= length || (c.causal && key > own)) return false;
        if (c.window && std::abs(key - own) >= static_cast<std::ptrdiff_t>(c.window)) return false;
        if (c.pads && padding[s * keys + k]) return false;
        if (c.hides && hidden[q * keys + k]) return false;
        return !c.adds || added[((s * c.n_heads + head) * c.n_queries + q) * keys + k] != kHidden;
    }
};

inline bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline std::vector<Case> cases() {
    return {{},
            {.causal = true},
            {.hides = true},
            {.adds = true},
            {.pads = true},
            {.causal = true, .adds = true, .pads = true},
            {.lengths = true},
            {.causal = true, .lengths = true},
            {.n_past = 41, .causal = true, .hides = true},
            {.n_sequences = 1, .n_heads = 6, .n_kv_heads = 2, .n_queries = 1, .n_keys = 1100, .pads = true},
            {.n_sequences = 1, .n_heads = 3, .n_kv_heads = 1, .n_queries = 600, .n_keys = 600, .causal = true},
            {.n_sequences = 2,
             .n_heads = 1,
             .n_kv_heads = 1,
             .n_queries = 15,
             .n_keys = 530,
             .hides = true,
             .pads = true,
             .softcap = 3.0f}};
}

}  // namespace fovea::testing
