// One model on several machines or processes, its ranks. Every rank runs the same program with the same calls and has a
// share of the work and of the memory: of each matrix some panels, of each attention some heads with their caches, some
// experts. What a phase made is gathered where the next wants all of it. No sum is split, so the bits are those of one
// process.
//
//     Limits limits{.max_kv_len = 4096, .rank = 1, .n_ranks = 4};      // the plan is of this rank's share
//     SessionOptions options{.ranks = &ranks};                         // and these carry it to the others
//
// The engine knows no network: a host brings these functions. The command line's are MPI's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/model.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

inline constexpr std::uint32_t kMaxRanks = 64;

/// A host's way from one rank to the others. It must outlive what is made with it. The functions are called within
/// forward, encode and cache_memory, by one thread at a time, in the same order on every rank; they do not throw.
struct Ranks {
    void* context = nullptr;  ///< handed to each function
    std::uint32_t rank = 0, n_ranks = 1;
    /// Every rank has a part of `data`; on return all ranks have all of it.
    ///   ends  [n_ranks]  bytes from data's start where each rank's part ends; it begins where the part before ends
    /// False: the others cannot be reached, and the call ends with io_error.
    bool (*gather)(void* context, std::byte* data, std::span<const std::uint64_t> ends) = nullptr;
};

/// Bytes of the model's matrices that a rank's products read; tables that rows are looked up in come beside them. Needs
/// rank < n_ranks <= kMaxRanks.
[[nodiscard]] std::uint64_t rank_bytes(const Model& model, std::uint32_t rank, std::uint32_t n_ranks) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
