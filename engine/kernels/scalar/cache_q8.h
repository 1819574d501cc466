// How a q8 cache is written by any table: its own pack_q8 quantizes, the rest is moving bytes.
#pragma once
#include "engine/kernels/kernels.h"
#include "engine/kernels/scalar/math.h"

namespace fovea {
namespace {

/// Calls put(group, quants [32], scale) for every group of 32 of x [n], the scale as f16.
template<auto pack, class Put>
void for_groups(const float* x, std::uint32_t n, Put put) {
    for (std::uint32_t i = 0; i < n; i += kGroup) {
        alignas(4) std::byte packed[2 * kQuantGroupBytes];  // rows are packed by whole superblocks
        pack(x + i, 0, nullptr, 1, n - i < kGroup ? n - i : kGroup, packed);
        float scale;
        __builtin_memcpy(&scale, packed + kGroup, sizeof scale);
        put(i / kGroup, packed, to_f16(scale));
    }
}

inline void put_scale(std::uint16_t scale, std::uint32_t lane, std::byte* scales) {
    __builtin_memcpy(scales + lane * sizeof scale, &scale, sizeof scale);
}

template<auto pack>
void write_key_q8(const float* key, std::uint32_t head_dim, std::uint32_t lane, std::byte* panel) noexcept {
    constexpr std::size_t kScaleBytes = 2 * kLanes, kQuantBytes = kLanes * kGroup;  // of a group
    if (lane == 0) __builtin_memset(panel, 0, static_cast<std::size_t>(panel_bytes(Type::q8, head_dim)));
    for_groups<pack>(key, head_dim, [&](std::uint32_t group, const std::byte* quants, std::uint16_t scale) {
        std::byte* const superblock = panel + group / 2 * 2 * (kScaleBytes + kQuantBytes);
        put_scale(scale, lane, superblock + group % 2 * kScaleBytes);
        std::byte* const cells = superblock + 2 * kScaleBytes + group % 2 * kQuantBytes;
        for (std::size_t i = 0; i < kGroup; i += 4) __builtin_memcpy(cells + (i * kLanes + lane * 4), quants + i, 4);
    });
}

template<auto pack>
void write_value_q8(const float* value, std::uint32_t value_head_dim, std::uint32_t lane, std::byte* panel) noexcept {
    for_groups<pack>(value, value_head_dim, [&](std::uint32_t group, const std::byte* quants, std::uint16_t scale) {
        std::byte* const scales = panel + group * value_group_bytes(Type::q8);
        if (lane == 0) __builtin_memset(scales, 0, 2 * kLanes);
        put_scale(scale, lane, scales);
        __builtin_memcpy(scales + 2 * kLanes + lane * kGroup, quants, kGroup);
    });
}

}  // namespace
}  // namespace fovea
