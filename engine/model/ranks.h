// Which part of a model's work and memory each of several ranks has: see fovea/ranks.h.
#pragma once
#include "engine/format/format.h"
#include "engine/format/parts.h"
#include "fovea/ranks.h"

namespace fovea {

/// Builds without teams have no ranks either.
inline constexpr bool kRanks = has(Part::teams);

/// Units [begin, end).
struct UnitShare {
    std::uint32_t begin, end;
    [[nodiscard]] constexpr std::uint32_t size() const noexcept { return end - begin; }
    /// Builds without ranks have all.
    [[nodiscard]] constexpr bool contains(std::uint32_t unit) const noexcept {
        return !kRanks || unit - begin < size();
    }
};

/// One of several ranks that share a stage's matrices and heads. n below 2: there is one alone.
struct RankOf {
    std::uint8_t rank = 0, n = 0;
    const std::uint8_t* shares = nullptr;  // [n]; null: evenly

    [[nodiscard]] constexpr bool several() const noexcept { return kRanks && n > 1; }
    /// Another one of them.
    [[nodiscard]] constexpr RankOf other(std::uint32_t r) const noexcept {
        return {static_cast<std::uint8_t>(r), n, shares};
    }
    /// The first of n units that is not one of the first n_ranks ranks'.
    [[nodiscard]] constexpr std::uint32_t end_of(std::uint32_t n_ranks, std::uint32_t units) const noexcept {
        std::uint32_t before = 0, all = 0;
        for (std::uint32_t r = 0; r < n; ++r) {
            const std::uint32_t share = shares ? shares[r] : 1;
            all += share;
            if (r < n_ranks) before += share;
        }
        return static_cast<std::uint32_t>(std::uint64_t{units} * before / all);
    }
    /// This rank's part of n units.
    [[nodiscard]] constexpr UnitShare of(std::uint32_t units) const noexcept {
        return several() ? UnitShare{end_of(rank, units), end_of(rank + 1u, units)} : UnitShare{0, units};
    }
    /// The same where each rank has a unit at least. units: at least n.
    [[nodiscard]] constexpr UnitShare of_some(std::uint32_t units) const noexcept {
        if (!shares) return of(units);
        UnitShare own{0, 0};
        for (std::uint32_t r = 0; r <= rank; ++r) {
            const std::uint32_t least = own.end + 1, most = units - (n - 1 - r), end = end_of(r + 1, units);
            own = {own.end, end < least ? least : end > most ? most : end};
        }
        return own;
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
            const UnitShare own = of.of_some(n_kv);
            first_kv = own.begin, n_kv = own.size(), first = first_kv * group;
            return;
        }
        const std::uint32_t all = n_kv;
        first_kv = of.rank * all / of.n, n_kv = 1;
        // The ranks [begin, end) keep that head.
        const std::uint32_t begin = (first_kv * of.n + all - 1) / all, end = ((first_kv + 1) * of.n + all - 1) / all;
        const RankOf among{static_cast<std::uint8_t>(of.rank - begin), static_cast<std::uint8_t>(end - begin)};
        const UnitShare own = among.of(group);
        first = first_kv * group + own.begin, group = own.size();
    }
    [[nodiscard]] constexpr bool keeps(std::uint32_t kv_head) const noexcept { return kv_head - first_kv < n_kv; }
    [[nodiscard]] constexpr std::uint32_t n() const noexcept { return n_kv * group; }
    [[nodiscard]] constexpr std::uint32_t end() const noexcept { return first + n(); }
};

/// In its place in builds without ranks, where it takes no room and nobody asks it.
struct NoRankHeads {
    static constexpr std::uint32_t first_kv = 0, n_kv = 0, first = 0, group = 0;
    constexpr NoRankHeads(const AttentionShape&, RankOf) noexcept {}
    [[nodiscard]] static constexpr std::uint32_t n() noexcept { return 0; }
};

/// One of n stages, each of n_ranks successive ranks. `limits` are Limits or PoolLimits of a rank.
struct StageOf {
    std::uint8_t stage = 0, n = 1, n_ranks = 0;

    constexpr explicit StageOf(const auto& limits) noexcept : n_ranks(limits.n_ranks) {
        if (!kRanks || !limits.split || limits.split->n_stages < 2) return;
        n = limits.split->n_stages;
        n_ranks = static_cast<std::uint8_t>(limits.n_ranks / n);
        stage = static_cast<std::uint8_t>(limits.rank / n_ranks);
    }
    [[nodiscard]] constexpr bool several() const noexcept { return kRanks && n > 1; }
    [[nodiscard]] constexpr bool is_first() const noexcept { return !several() || stage == 0; }
    [[nodiscard]] constexpr bool is_last() const noexcept { return !several() || stage + 1 == n; }
    [[nodiscard]] constexpr std::uint8_t first_rank() const noexcept {
        return static_cast<std::uint8_t>(stage * n_ranks);
    }
};

/// A rank among those of its stage.
[[nodiscard]] constexpr RankOf rank_of(const auto& limits) noexcept {
    if (!kRanks) return {};
    const StageOf stage(limits);
    const std::uint8_t first = stage.first_rank(), *shares = limits.split ? limits.split->shares : nullptr;
    return {static_cast<std::uint8_t>(limits.rank - first), stage.n_ranks, shares ? shares + first : nullptr};
}

/// A rank's layers of a stack: those of its stage, which may have none where there are few.
[[nodiscard]] constexpr UnitShare layers_of(const auto& limits, std::uint32_t n_layers) noexcept {
    const StageOf stage(limits);
    if (!stage.several()) return {0, n_layers};
    const RankOf all{limits.rank, limits.n_ranks, limits.split->shares};
    const std::uint32_t first = stage.first_rank();
    return {all.end_of(first, n_layers), all.end_of(first + stage.n_ranks, n_layers)};
}

}  // namespace fovea
