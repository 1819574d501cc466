// One model on several machines or processes, its ranks. Every rank runs the same program with the same calls and has a
// share of the work and of the memory: of each matrix some panels, of each attention some heads with their caches, some
// experts. What a phase made is gathered where the next wants all of it. No sum is split, so the bits are those of one
// process.
//
// Ranks in stages (RankSplit) have a run of layers each, and hand their rows to the next stage; the last hands those that
// results are made of to all. Within a stage ranks share as above. A stage goes on with the next pass while those behind it
// compute; once a call's first pass has begun, flags of the first stage's ranks alone end it.
//
//     Limits limits{.max_kv_len = 4096, .rank = 1, .n_ranks = 4};      // the plan is of this rank's share
//     SessionOptions options{.ranks = &ranks};                         // and these carry it to the others
//
// Where only the first rank can know what comes next, as a server does, it leads: the others follow its calls of forward, see
// Ranks::lead.
//
// The engine knows no network: a host brings these functions. The command line's are MPI's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/model.h"
#include "fovea/plan.h"
#include "fovea/workspace.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

struct EncodeInput;  // fovea/encode.h

inline constexpr std::uint32_t kMaxRanks = 64;

/// The ranks first, first + stride, and so on.
struct RankGroup {
    std::uint8_t first = 0, stride = 1;
};

/// A host's way from one rank to the others. It must outlive what is made with it. The functions are called within
/// forward, encode and cache_memory, by one thread at a time, gather in the same order on every rank of a group; they do not
/// throw.
struct Ranks {
    void* context = nullptr;  ///< handed to each function
    std::uint32_t rank = 0, n_ranks = 1;
    /// Every rank of a group has a part of `data`; on return all of them have all of it.
    ///   ends  [n]  bytes from data's start where the part of each of the group's n ranks ends; it begins where the part
    ///              before ends
    /// False: the others cannot be reached, and the call ends with io_error.
    bool (*gather)(void* context, RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) = nullptr;
    /// On the first rank, where the others follow it: called in each forward before caches take pages. It hands write_call's
    /// bytes of these steps to the others, which call read_call and forward. Then caches are forked, marked, rewound and ended
    /// by the first rank alone; steps have tokens alone, and what else makes a pass is refused as unsupported. False: as gather.
    /// Null: every rank makes every call.
    bool (*lead)(void* context, std::span<const Step> steps) = nullptr;
    /// The same in each encode of sequences of tokens, with at most a mask of padding, for n_out results. Null on a rank that
    /// leads: encode is refused as unsupported.
    bool (*lead_encode)(void* context, const EncodeInput& input, std::size_t n_out) = nullptr;
    /// The same in each cache_memory of tokens. Null on a rank that leads: it and steps that read a memory are refused.
    bool (*lead_memory)(void* context, const EncodeInput& input, std::span<const Cache> memories) = nullptr;
};

/// Bytes of the model's matrices that the products of the limits' rank read; tables that rows are looked up in come beside
/// them. Needs limits that a plan is made for.
[[nodiscard]] std::uint64_t rank_bytes(const Model& model, const Limits& limits) noexcept;

/// Bytes [begin, end) of a file.
struct FileRange {
    std::uint64_t begin = 0, end = 0;
};
/// What the limits' rank reads of a tensor, which has this number in the file's list: of the first layer all, for ranks compare
/// what that gives.
[[nodiscard]] FileRange rank_range(const Model& model, std::uint32_t tensor, const Limits& limits) noexcept;

/// save_cache by all ranks, each of which gets all of it; restore_cache takes what is a rank's of it. Errors: as save_cache,
/// io_error (the others cannot be reached).
[[nodiscard]] Status save_cache(const Ranks& ranks, const Cache& cache, std::span<std::byte> out,
                                std::size_t& written) noexcept;

/// A call of forward as bytes: the steps' tokens and how many logits each has, and which pages and states every cache of
/// their pool holds. Steps of tokens alone, at least one, with caches of one pool.
[[nodiscard]] std::uint64_t call_bytes(std::span<const Step> steps) noexcept;
///   out  [call_bytes]
void write_call(std::span<const Step> steps, std::span<std::byte> out) noexcept;

/// How many steps a call has, and logits of all of them.
struct CallSize {
    std::uint32_t n_steps = 0;
    std::uint64_t n_logits = 0;
};
/// Errors: truncated.
[[nodiscard]] Status call_size(std::span<const std::byte> call, CallSize& size) noexcept;
/// The caches of a pool become what they are on the rank that wrote the call, and `steps` the steps to go on with.
///
///   call    what write_call wrote, aligned to 8 bytes; it must stay as it is while the steps are used
///   pool    of the same limits as the one that the call is of
///   logits  [n_logits] where the steps' logits go
///   steps   [n_steps]
///
/// Errors, nothing changed: bad_argument (no pool, no such cache), truncated, bad_shape, session_mismatch (a pool of other limits).
[[nodiscard]] Status read_call(std::span<const std::byte> call, CachePool& pool, std::span<float> logits,
                               std::span<Step> steps) noexcept;
/// The pool that a cache is of, a session's too. Not valid if the cache is not.
[[nodiscard]] CachePool pool_of(const Cache& cache) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
