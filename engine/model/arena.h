// What every arena must be before it is used.
#pragma once
#include <cstdint>
#include <span>

#include "fovea/plan.h"

namespace fovea {

/// Errors: arena_too_small, misaligned.
[[nodiscard]] inline Status check_arena(std::span<const std::byte> arena, std::uint64_t wanted) noexcept {
    if (arena.size() < wanted) return {Code::arena_too_small, "arena bytes at least", wanted, arena.size()};
    const std::uint64_t past = reinterpret_cast<std::uintptr_t>(arena.data()) % kArenaAlignment;
    if (past) return {Code::misaligned, "the arena's address modulo 64", 0, past};
    return {};
}

}  // namespace fovea
