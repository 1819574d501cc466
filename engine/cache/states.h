// What recurrent layers remember of a sequence: states of one size, in slots beside the pages.
//
// A slot holds the state after one position. Caches, their forks and their marks share slots, whose users are counted. A call
// reads a cache's present slot and writes another, which becomes the present one when the call has succeeded, and is given
// back otherwise. A slot that was filled is never written again.
#pragma once
#include <cstddef>
#include <cstdint>

#include "fovea/status.h"

namespace fovea {

/// A state that is kept, so that rewind reaches it.
struct Mark {
    std::uint32_t kv_len = 0, state = 0;
};

/// One cache's states.
struct CacheStates {
    static constexpr std::uint32_t kNone = 0xffffffffu;
    std::uint32_t present = kNone;  // after its kv_len positions; none where that is 0
    std::uint32_t next = kNone;     // that a call writes
    std::uint32_t n_marks = 0;
    std::uint32_t reserved = 0;
};

/// What a pass does to one sequence's state: float32 [state_bytes / 4], the layers' one after the other.
struct StateStep {
    const std::byte* from = nullptr;  // before the pass's rows; null: zeros. May be `to`
    std::byte* to = nullptr;          // after them
};

/// Bytes of the tables behind States, see lay_out_states.
struct StatesMap {
    std::uint64_t caches = 0, marks = 0, n_users = 0, free_states = 0, bytes = 0;
};

/// The states of a pool. Functions take a cache by its slot in the pool.
struct States {
    std::byte* bytes = nullptr;     // [n_states][state_bytes]
    CacheStates* caches = nullptr;  // [max_sequences]
    Mark* marks = nullptr;  // [max_sequences][max_marks], of which a cache's first n_marks are in use, ascending
    std::uint32_t* n_users = nullptr;      // [n_states]
    std::uint32_t* free_states = nullptr;  // [n_states], of which the first n_free are free
    std::uint64_t state_bytes = 0;         // a multiple of 64
    std::uint32_t max_marks = 0;           // of a cache
    std::uint32_t n_free = 0;
    std::uint32_t n_wanted = 0;  // that a call is about to take

    [[nodiscard]] std::byte* at(std::uint32_t state) const noexcept { return bytes + state * state_bytes; }
    [[nodiscard]] Mark* marks_of(std::uint32_t slot) const noexcept { return marks + std::uint64_t{slot} * max_marks; }

    /// A slot for a call to write. There is a free one.
    void take(std::uint32_t slot) noexcept;
    /// The states of one pass. The first pass of a call reads the present state, later ones what the pass before has written.
    [[nodiscard]] StateStep step(std::uint32_t slot, bool is_first) const noexcept;
    /// Ends the call: what it wrote becomes the present state or, where it failed, is given back.
    void settle(std::uint32_t slot, bool succeeded) noexcept;

    [[nodiscard]] bool is_marked(std::uint32_t slot, std::uint32_t kv_len) const noexcept;
    /// Keeps the present state, that of kv_len. Errors, nothing changed: pool_full.
    [[nodiscard]] Status mark(std::uint32_t slot, std::uint32_t kv_len) noexcept;
    void unmark(std::uint32_t slot, std::uint32_t kv_len) noexcept;

    /// The latest mark at or below kv_len, or 0.
    [[nodiscard]] std::uint32_t reach(std::uint32_t slot, std::uint32_t kv_len) const noexcept;
    /// The state of a mark at kv_len becomes the present one, and later marks go; with 0 all go.
    void rewind(std::uint32_t slot, std::uint32_t kv_len) noexcept;
    /// `to`, which holds none, shares all of `from`'s.
    void share(std::uint32_t from, std::uint32_t to) noexcept;
    /// Free slots there would be if the cache held none.
    [[nodiscard]] std::uint32_t n_free_without(std::uint32_t slot) const noexcept;

    /// Fills a cache that holds none: a slot for each mark, and one for the present state where that is not marked.
    void add_mark(std::uint32_t slot, std::uint32_t kv_len) noexcept;
    void add_present(std::uint32_t slot, std::uint32_t kv_len) noexcept;
    /// The states of a cache, each once: those of its marks, ascending, then the present one where that is another.
    [[nodiscard]] std::uint32_t n_kept(std::uint32_t slot) const noexcept;
    [[nodiscard]] std::uint32_t kept(std::uint32_t slot, std::uint32_t i) const noexcept {
        return i < caches[slot].n_marks ? marks_of(slot)[i].state : caches[slot].present;
    }

private:
    [[nodiscard]] std::uint32_t take() noexcept;
    void release(std::uint32_t state) noexcept;
};

inline constexpr std::uint64_t kStatesBytes = 128;
static_assert(sizeof(States) <= kStatesBytes);

/// Where the tables lie, from the start of States; each a multiple of 64.
[[nodiscard]] StatesMap lay_out_states(std::uint64_t n_caches, std::uint64_t max_marks,
                                       std::uint64_t n_states) noexcept;
/// Makes States at `tables`, with all slots free at `bytes`.
[[nodiscard]] States* start_states(std::byte* tables, std::byte* bytes, std::uint32_t n_caches, std::uint32_t max_marks,
                                   std::uint32_t n_states, std::uint64_t state_bytes) noexcept;

}  // namespace fovea
