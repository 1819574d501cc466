// Which part of a model's work and memory each of several ranks has: see fovea/ranks.h.
#pragma once
#include "engine/format/format.h"
#include "engine/format/parts.h"
#include "fovea/ranks.h"

namespace fovea {

/// Builds without teams have no ranks either.
inline constexpr bool kRanks = has(Part::teams);

/// Part i of n_parts of n units.
struct UnitShare {
    std::uint32_t begin, end;
    constexpr UnitShare(std::uint32_t n, std::uint32_t i, std::uint32_t n_parts) noexcept
        : begin(static_cast<std::uint32_t>(std::uint64_t{n} * i / n_parts)),
          end(static_cast<std::uint32_t>(std::uint64_t{n} * (i + 1) / n_parts)) {}
    [[nodiscard]] constexpr std::uint32_t size() const noexcept { return end - begin; }
};

/// One of several ranks. n below 2: there is one alone.
struct RankOf {
    std::uint8_t rank = 0, n = 0;

    [[nodiscard]] constexpr bool several() const noexcept { return kRanks && n > 1; }
    /// This rank's part of n units.
    [[nodiscard]] constexpr UnitShare of(std::uint32_t units) const noexcept {
        return several() ? UnitShare(units, rank, n) : UnitShare(units, 0, 1);
    }
};

/// A rank's heads of an attention: successive key-value heads, and of each `group` successive query heads. Where there are
/// more ranks than key-value heads, several keep the same one, and share out the queries that read it.
struct RankHeads {
    std::uint32_t first_kv, n_kv;
    std::uint32_t first, group;  // query heads; a group may be empty

    constexpr RankHeads(const AttentionShape& a, RankOf of) noexcept
        : first_kv(0), n_kv(a.n_kv_heads), first(0), group(a.n_heads / (a.n_kv_heads ? a.n_kv_heads : 1)) {
        if (!of.several() || !n_kv) return;
        if (n_kv >= of.n) {
            const UnitShare own = of.of(n_kv);
            first_kv = own.begin, n_kv = own.size(), first = first_kv * group;
            return;
        }
        const std::uint32_t all = n_kv;
        first_kv = of.rank * all / of.n, n_kv = 1;
        // The ranks [begin, end) keep that head.
        const std::uint32_t begin = (first_kv * of.n + all - 1) / all, end = ((first_kv + 1) * of.n + all - 1) / all;
        const UnitShare own(group, of.rank - begin, end - begin);
        first = first_kv * group + own.begin, group = own.size();
    }
    [[nodiscard]] constexpr std::uint32_t n() const noexcept { return n_kv * group; }
    [[nodiscard]] constexpr std::uint32_t end() const noexcept { return first + n(); }
};

/// In its place in builds without ranks, where it takes no room and nobody asks it.
struct NoRankHeads {
    static constexpr std::uint32_t first_kv = 0, n_kv = 0, first = 0, group = 0;
    constexpr NoRankHeads(const AttentionShape&, RankOf) noexcept {}
    [[nodiscard]] static constexpr std::uint32_t n() noexcept { return 0; }
};

[[nodiscard]] constexpr RankOf rank_of(const auto& limits) noexcept { return {limits.rank, limits.n_ranks}; }

}  // namespace fovea
