// Ranks that follow the first: it alone knows what comes next, as a server or a chat does, and hands each of its passes to the others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/encode.h"
#include "fovea/ranks.h"
#include "fovea/session.h"
#include "fovea/workspace.h"

namespace fovea::host {

/// The first rank while it leads: a workspace or session made with its ranks() hands calls of forward, encode and cache_memory to the
/// others.
/// There is one at a time. When this ends, so do the others' calls of follow.
class Leading {
public:
    /// Ranks that carry what is said; they must outlive this.
    explicit Leading(const Ranks& through);
    ~Leading();
    Leading(const Leading&) = delete;
    Leading& operator=(const Leading&) = delete;

    [[nodiscard]] const Ranks& ranks() const noexcept { return ranks_; }

    /// save_cache and restore_cache on all ranks.
    [[nodiscard]] Status save(const Cache& cache, std::span<std::byte> out, std::size_t& written) noexcept;
    [[nodiscard]] Status restore(Cache& cache, std::span<const std::byte> saved) noexcept;

private:
    [[nodiscard]] bool hand_over(std::span<const Step> steps) noexcept;
    [[nodiscard]] bool hand_over(const EncodeInput& input, std::size_t n_out) noexcept;
    [[nodiscard]] bool hand_over(const EncodeInput& input, std::span<const Cache> memories) noexcept;
    [[nodiscard]] bool hand_over_memories(std::size_t n, const auto& memory_of) noexcept;

    const Ranks& through_;
    Ranks ranks_;
    std::vector<std::byte> call_;  // grows to the largest
    std::vector<Step> memories_;
};

/// save_session and restore_session, on all ranks where this one leads.
[[nodiscard]] Status save(const Session& session, std::span<std::byte> out, std::size_t& written) noexcept;
[[nodiscard]] Status restore(Session& session, std::span<const std::byte> saved) noexcept;

/// On the other ranks: makes the calls that the first makes, until it ends.
///
///   workspace, pool, memories  what the first rank has as well, planned alike; no pool for a model that gives vectors, and none of
///                              memories for one that reads none
///
/// Throws host::Error where the ranks differ, or the first cannot be reached.
void follow(const Ranks& through, Workspace workspace, CachePool pool, CachePool memories = {});

}  // namespace fovea::host
