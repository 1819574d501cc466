#include "tools/show/head_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/base/aligned_bytes.h"
#include "host/base/elements.h"

namespace fovea {

std::vector<float> multiply(const Kernels& kernels, const PanelMatrix& matrix, const float* x, std::uint64_t n,
                            const float* bias, bool canonical) {
    const std::uint32_t n_cols = matrix.n_cols;
    std::vector<float> out(n * matrix.n_rows);
    AlignedBytes operand(operand_bytes(matrix.type, n, n_cols));
    const auto n_all = static_cast<std::uint32_t>(n);
    const std::uint32_t block = row_block(n_all);
    for (std::uint64_t first = 0; first < n; first += block) {
        const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(block, n - first));
        kernels.pack(matrix.type, x + first * n_cols, n_cols, matrix.columns,
                     {static_cast<std::uint32_t>(first), rows, n_all}, n_cols, operand.data());
    }
    const Matmul product{.panels = matrix.data,
                         .panel_stride = static_cast<std::size_t>(matrix.stride),
                         .n_rows = matrix.n_rows,
                         .n_cols = n_cols,
                         .panel_begin = 0,
                         .panel_end = static_cast<std::uint32_t>(round_up(matrix.n_rows, kLanes) / kLanes),
                         .operand = operand.data(),
                         .seq_len = n_all,
                         .bias = bias,
                         .out = out.data(),
                         .out_stride = matrix.n_rows,
                         .epilogue = Epilogue::store,
                         .activation = Activation::none,
                         .canonical = canonical};
    kernels.matmul(matrix.type, product);
    return out;
}

float folded(float* lanes) {
    for (std::uint32_t n = kLanes / 2; n; n /= 2)
        for (std::uint32_t lane = 0; lane < n; ++lane) lanes[lane] = lanes[lane] + lanes[lane + n];
    return lanes[0];
}

std::vector<float> HeadCache::scores(const float* queries, std::uint32_t n_queries, const float* keys,
                                     std::uint32_t dim) const {
    const std::uint64_t stride = round_up(key_panel_bytes(type_, dim), 64);
    AlignedBytes panels(round_up(n_keys_, kLanes) / kLanes * stride);
    for (std::uint32_t key = 0; key < n_keys_; ++key)
        kernels_.floats.write_key[static_cast<int>(type_)](keys + std::uint64_t{key} * dim, dim, key % kLanes,
                                                           panels.data() + key / kLanes * stride);
    const Type type = type_ == Type::q4 ? kKeyTypeOfQ4 : type_;
    std::vector<float> scores =
        multiply(kernels_, {panels.data(), stride, type, n_keys_, dim}, queries, n_queries, nullptr);
    for (std::uint32_t i = 0; type_ == Type::q4 && i < n_queries; ++i)
        for (std::uint32_t key = 0; key < n_keys_; ++key)
            if (const std::byte* panel = panels.data() + key / kLanes * stride;
                (panel[key % kLanes * 2] & std::byte{1}) != std::byte{0})
                scores[std::size_t{i} * n_keys_ + key] += times_reference(queries + std::size_t{i} * dim, panel, dim);
    return scores;
}

/// A query times the reference of a q4 cache's panel.
float HeadCache::times_reference(const float* query, const std::byte* panel, std::uint32_t dim) const {
    const std::byte* reference = panel + panel_bytes(kKeyTypeOfQ4, dim);
    AlignedBytes packed(operand_bytes(Type::q8, 1, dim));
    kernels_.floats.pack_q8(query, 0, nullptr, 1, dim, packed.data());
    float lanes[kLanes] = {};
    for (std::uint32_t i = 0; i < round_up(dim, kGroup); ++i) {
        const std::byte* group = packed.data() + i / kGroup * kQuantGroupBytes;
        float scale = 0;
        std::memcpy(&scale, group + kGroup, sizeof scale);
        const float x = static_cast<float>(static_cast<std::int8_t>(group[i % kGroup])) * scale;
        const auto upper = static_cast<std::uint16_t>(std::to_integer<unsigned>(reference[i]) << 8);
        lanes[i % kLanes] = std::fma(x, from_f16(upper), lanes[i % kLanes]);
    }
    return folded(lanes);
}

CachedValues HeadCache::values(const float* given, std::uint32_t dim) const {
    const std::uint64_t row_stride = round_up(dim, kLanes);
    CachedValues cached{dim, {}, {}};
    AlignedBytes panel(value_panel_bytes(type_, dim));
    const auto half = [&](std::uint64_t at) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, panel.data() + at, sizeof bits);
        return from_f16(bits);
    };
    for (std::uint32_t key = 0; key < n_keys_; ++key) {
        const std::uint32_t lane = key % kLanes;
        kernels_.floats.write_value[static_cast<int>(type_)](given + std::uint64_t{key} * dim, dim, lane, panel.data());
        for (std::uint32_t i = 0; i < dim; ++i) {
            const std::uint64_t group = i / kGroup * value_group_bytes(type_), at = lane * row_stride + i;
            const bool quantized = is_quantized(type_);
            float number = 0;
            if (type_ == Type::f32) std::memcpy(&number, panel.data() + 4 * at, sizeof number);
            if (type_ == Type::f16) number = half(2 * at);
            const std::byte* row = panel.data() + group + kLanes * 2 + lane * value_row_bytes(type_);
            if (type_ == Type::q8) number = static_cast<float>(static_cast<std::int8_t>(row[i % kGroup]));
            if (type_ == Type::q4)
                number = kNonlinear4[std::to_integer<unsigned>(row[i % kLanes]) >> (i % kGroup < kLanes ? 0 : 4) & 15];
            cached.numbers.push_back(number);
            if (i % kGroup == 0) cached.scales.push_back(quantized ? half(group + 2 * lane) : 1.0f);
        }
    }
    return cached;
}

std::vector<float> HeadCache::weighed(const float* p, const CachedValues& values) const {
    const std::uint32_t dim = values.dim, n_groups = (dim + kGroup - 1) / kGroup;
    const auto n_seen = static_cast<std::uint32_t>(n_keys_ - std::count(p, p + n_keys_, 0.0f));
    std::vector<float> sums;
    for (std::uint32_t group = 0; group < n_groups; ++group) {
        const std::uint32_t first = group * kGroup, n = std::min(kGroup, dim - first);
        const std::uint64_t stride = panel_bytes(Type::f32, n_seen);
        AlignedBytes panels(round_up(n, kLanes) / kLanes * stride);
        std::vector<float> seen;
        for (std::uint32_t key = 0; key < n_keys_; ++key) {
            if (p[key] == 0.0f) continue;
            for (std::uint32_t i = 0; i < n; ++i)
                std::memcpy(panels.data() + i / kLanes * stride + (seen.size() * kLanes + i % kLanes) * sizeof(float),
                            &values.numbers[std::uint64_t{key} * dim + first + i], sizeof(float));
            seen.push_back(p[key] * values.scales[std::uint64_t{key} * n_groups + group]);
        }
        const std::vector<float> part =
            n_seen ? multiply(kernels_, {panels.data(), stride, Type::f32, n, n_seen}, seen.data(), 1, nullptr)
                   : std::vector<float>(n);
        sums.insert(sums.end(), part.begin(), part.end());
    }
    return sums;
}

}  // namespace fovea
