// The exact memory of a session, a workspace or a pool of caches, known before any of it is taken.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "fovea/config.h"
#include "fovea/status.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// How several ranks share a model, see fovea/ranks.h.
struct RankSplit {
    /// [n_ranks] parts of the work, each at least 1: {3, 1} gives the first rank three quarters. Null: evenly. Key-value heads
    /// are shared out evenly where they are fewer than ranks.
    const std::uint8_t* shares = nullptr;
    /// Runs of layers. As many successive ranks have each, which share its matrices and heads; the runs' sizes follow
    /// from the shares of their ranks. Divides n_ranks.
    std::uint8_t n_stages = 1;
};

/// Capacities of a session or a workspace. The defaults work for every model.
struct Limits {
    /// Positions of a sequence. 0: the model's max_positions. Raising it costs keys and values in a session, and in a
    /// workspace the partial sums of one row's attention. Only forward uses it. For a model that reads a memory, a
    /// workspace computes steps only if this is not 0, up to this many positions.
    std::uint32_t max_kv_len = 0;
    /// Tokens computed together; longer prompts go in pieces. 0: min(192, max_kv_len), in a workspace 192. Raising it
    /// costs rows of activations and makes long prompts a little faster.
    /// encode, attend: rows of all sequences of a stack. 0: max_positions, or 512.
    std::uint32_t max_batch = 0;
    std::uint32_t n_threads = 1;  ///< 1 to kMaxThreads (256), the calling thread included; fixed for its life
    /// f32, f16, q8 or q4: how keys and values are cached. A workspace's caches have a type of their own.
    Type kv_type = Type::f32;
    /// Marks that a session has at a time, see mark in fovea/cache.h; each costs a state. 0: 2 for a model with recurrent
    /// layers. Other models need none, and plan none whatever this says.
    std::uint8_t max_marks = 0;
    std::uint8_t rank = 0, n_ranks = 0;  ///< which rank's share is planned, see fovea/ranks.h. 0 of 0 or 1: all
    const RankSplit* split = nullptr;    ///< must outlive what is made with it. Null: evenly, in one stage
    /// encode, attend: sequences in one call. 0: 1. A workspace: steps in one pass. 0: max_batch.
    std::uint32_t max_sequences = 0;
    /// encode, attend: rows of the memory, or keys, past ones too, of all sequences. 0: max_batch.
    std::uint32_t max_key_rows = 0;
    /// Adapters in use at a time, at most 64, see fovea/adapter.h. Each costs a table of its tensors; if there are any, the
    /// rows between an adapter's two matrices are added. 0: none.
    std::uint32_t max_adapters = 0;
    std::uint32_t max_adapter_rank = 0;  ///< the largest of their ranks; at least 1 if there are adapters
};

/// Capacities of a pool of caches. The defaults hold one sequence of the model's length.
struct PoolLimits {
    std::uint32_t max_kv_len = 0;     ///< positions of one sequence. 0: the model's max_positions
    std::uint32_t max_sequences = 1;  ///< caches that exist at a time; each costs a table of 4 bytes a page
    /// Positions of a page: a multiple of 64. A sequence wastes half a page on average; a fork that goes on copies it.
    std::uint32_t page_len = 64;
    /// Pages of all sequences together. 0: as many as max_sequences of max_kv_len take without sharing.
    std::uint32_t n_pages = 0;
    Type kv_type = Type::f32;  ///< f32, f16, q8 or q4: how keys and values are cached
    /// Caches hold the keys and values of a memory for a decoder's cross-attention, a position for each of the memory's
    /// rows. max_kv_len 0: the encoder's max_positions, or 512.
    bool memory = false;
    std::uint8_t rank = 0, n_ranks = 0;  ///< see Limits: a rank's pages hold its layers' and heads' alone
    const RankSplit* split = nullptr;
    /// Marks that a cache has at a time, see mark in fovea/cache.h. 0: 2 for a model with recurrent layers. Other models need
    /// none, and plan none whatever this and n_states say.
    std::uint32_t max_marks = 0;
    /// States of recurrent layers, of all caches together. A cache holds one, and each of its marks; a call takes another for
    /// each of its steps, and gives back what it replaced. Forks share. 0: 2 + max_marks for each of max_sequences.
    std::uint32_t n_states = 0;
};

inline constexpr std::size_t kArenaAlignment = 64;

/// One named stretch of the arena.
struct PlanPart {
    const char* name = "";
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// Exact memory for (config, limits): the same on every machine and instruction set.
template<class L>
struct PlanOf {
    L limits{};                     ///< with the zeros replaced by what they stand for
    std::uint64_t arena_bytes = 0;  ///< exactly what is needed, aligned to kArenaAlignment
    std::array<PlanPart, 36> parts{};
    std::uint32_t n_parts = 0;
};
using Plan = PlanOf<Limits>;
using PoolPlan = PlanOf<PoolLimits>;

/// A session's plan. A pure function of its arguments. Errors, `plan` unchanged: config_invalid, bad_limits, unsupported.
[[nodiscard]] Status make_plan(const Config& config, const Limits& limits, Plan& plan) noexcept;

/// The same for a workspace: a session without its cache.
[[nodiscard]] Status make_workspace_plan(const Config& config, const Limits& limits, Plan& plan) noexcept;

/// The same for a pool of caches. Unsupported if the model gives no logits.
[[nodiscard]] Status make_pool_plan(const Config& config, const PoolLimits& limits, PoolPlan& plan) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
