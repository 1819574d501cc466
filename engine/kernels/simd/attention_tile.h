// Shared by the passes over a tile of 64 positions: the types of caches, the tile's scores, and which positions are
// seen.
#pragma once
#include "engine/kernels/scalar/cache_q4.h"
#include "engine/kernels/simd/matmul_q.h"

namespace fovea {
namespace {

/// A q8 cache's keys; its values are std::int8_t, see value_panel_bytes.
using CacheQ8 = Quants<Type::q8>;

/// A q4 cache's keys, as differences from their panels' references. No other cache has that type.
using CacheQ4 = Quants<kKeyTypeOfQ4>;
template<class W>
inline constexpr bool kHasReferences = __is_same(W, CacheQ4);

inline constexpr std::uint32_t kTilePanels = kTile / kLanes;
inline constexpr std::uint32_t kMinusInfinity = 0xff800000u;

/// The type of a cache whose keys are panels of W.
template<class W>
inline constexpr Type kCacheType = Type::q8;
template<>
inline constexpr Type kCacheType<CacheQ4> = Type::q4;
template<>
inline constexpr Type kCacheType<Half> = Type::f16;
template<>
inline constexpr Type kCacheType<float> = Type::f32;

// Few rows, as in a decoding step, wait for memory: keys are fetched kAheadBytes ahead, values so many positions. With
// fetches into the second-level cache, a pass over a tile fetches for the next pass: scores fetch the tile's values,
// and sums of values the next tile's keys. Whole blocks of rows, as in a prompt, find their tiles in the cache.
inline constexpr std::size_t kAheadRows = 16;

/// A tile's scores, then weights, and the running state that is not kept in Attend.
struct Tile {
    alignas(64) float score[kRowBlock * kTile];  // [row][position]; weights after weigh
    alignas(64) float bias[kRowBlock * kTile];   // [row][position]: the masks' sum, if there are masks
    alignas(64) float l[kRowBlock * kLanes];     // [row]: sums of weights by lane
    alignas(64) float m[kLanes];                 // [row]: largest score so far
    alignas(64) float decay[kLanes];             // exp(largest before this tile − m)
    std::uint32_t base;                          // first position
    std::uint32_t begin, end;                    // positions that any row sees,
    std::uint32_t panel, panel_end;              // and the panels these lie in, counted from base

    /// To the positions from `first` to `last`, some of which lie in the tile.
    void narrow(std::uint32_t first, std::uint32_t last) {
        begin = first < base ? base : first;
        end = smaller(last, base + kTile);
        panel = (begin - base) / kLanes;
        panel_end = (end - base + kLanes - 1) / kLanes;
    }
};

/// The first position of [from, from + n) that any row sees, and the one after the last; begin >= end: none.
struct Hull {
    std::uint32_t begin, end;
};
inline Hull hull(const Attend& a, std::uint32_t from, std::uint32_t n) {
    Hull h{from + n, from};
    for (std::uint32_t r = 0; r < a.n_rows; ++r) {
        if (a.first[r] >= a.last[r]) continue;
        h.begin = smaller(h.begin, a.first[r]);
        h.end = h.end < a.last[r] ? a.last[r] : h.end;
    }
    return {h.begin < from ? from : h.begin, smaller(h.end, from + n)};
}

/// Positions of the tile that starts at `base` which row r sees, as lanes [begin, end) of it; begin >= end: none.
struct Seen {
    int begin, end;
};
FOVEA_LANES Seen seen(const Attend& a, std::uint32_t r, std::uint32_t base) {
    const std::uint32_t end = smaller(a.last[r], base + kTile);
    const std::uint32_t begin = a.first[r] < base ? base : a.first[r];
    return begin < end ? Seen{static_cast<int>(begin - base), static_cast<int>(end - base)} : Seen{0, 0};
}

}  // namespace
}  // namespace fovea
