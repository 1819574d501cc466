// Pieces of work that several threads do at once and one takes in order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace fovea {

/// Pieces 0 to n_pieces − 1. What `make` makes of one is kept in a slot of the caller's until `take` has had it.
struct OrderedWork {
    std::uint64_t n_pieces = 0;
    /// Called on any thread, for several pieces at a time. No two calls that run together have the same slot or the same
    /// member.
    std::function<void(std::uint64_t piece, std::size_t slot, std::size_t member)> make;
    /// Called on the calling thread, piece after piece.
    std::function<void(std::uint64_t piece, std::size_t slot)> take;
};

/// How many slots n_threads members need: with more than one, each may be a few pieces ahead.
[[nodiscard]] std::size_t n_slots(std::uint32_t n_threads) noexcept;

/// Makes and takes all pieces on n_threads members: the calling thread, which is member 0, and as many threads more as the
/// system gives, which have ended when this returns or throws. What `make` throws is thrown here when all pieces before
/// that one are taken, whatever the number of threads; what `take` throws, at once. On one thread each piece is taken
/// before the next is made.
void work_in_order(const OrderedWork& work, std::uint32_t n_threads);

}  // namespace fovea
