// How the sequences of an encode, or of an attention alone, become the rows of a pass, with keys and values of its own.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// What a workspace keeps of keys and values itself: one layer's at a time, in one page.
struct OwnPage {
    std::uint32_t table = 0;
    LayerPlace place;
    KvPages pages;

    explicit OwnPage(const WorkspaceState& w) noexcept : place{0, w.map.values - w.map.keys} {
        pages = {.pages = w.arena + w.map.keys,
                 .table = &table,
                 .places = &place,
                 .page_len = static_cast<std::uint32_t>(w.map.capacity),
                 .one_place = true,
                 .type = w.limits.kv_type,
                 .rank = rank_of(w.limits)};
    }
    OwnPage(const OwnPage&) = delete;
    OwnPage& operator=(const OwnPage&) = delete;
};

/// Rows of each sequence of a side: as many as there are ids or vectors, or one of every two frames.
struct Lengths {
    std::span<const std::uint32_t> given;
    bool frames = false;

    Lengths(std::span<const std::uint32_t> lengths, bool hears = false) noexcept : given(lengths), frames(hears) {}
    [[nodiscard]] std::size_t size() const noexcept { return given.size(); }
    [[nodiscard]] std::uint32_t operator[](std::size_t i) const noexcept {
        return frames ? given[i] / 2 + given[i] % 2 : given[i];
    }
};

/// Rows of each sequence's memory: the encoder's, or those that the caller gives.
[[nodiscard]] Lengths lengths_of_memory(const Config& config, const EncodeInput& in) noexcept;

/// Lays sequences out one after the other. `cross`: the memory's, which follow the stack's own in the arena.
[[nodiscard]] std::span<const Sequence> place(WorkspaceState& w, bool cross, const Lengths& lengths,
                                              const Lengths& sources) noexcept;

/// Products of queries with keys and of weights with values, of every head: what masks save is not counted.
[[nodiscard]] std::uint64_t attention_macs(const Block& b, std::span<const Sequence> sequences) noexcept;

/// A stack, for the sequences of its side.
[[nodiscard]] Status run_stack(WorkspaceState& w, PassInput& input, const Sequences& side) noexcept;

/// The encoder alone, or on behalf of a decoder, whose memory its rows are.
[[nodiscard]] Status run_encoder(WorkspaceState& w, PassInput& pass, const Sequences& source) noexcept;

/// The decoder's memory: the encoder's vectors or the caller's; only a matmul's operand is made of them.
void take_memory(const WorkspaceState& w, PassInput& pass, const EncodeInput& in, std::uint64_t n_rows) noexcept;

/// Sequences and pages of a pass that fills the memories' caches. `one`: for a workspace of a single sequence.
void place_memories(WorkspaceState& w, PassInput& pass, const Lengths& lengths, std::span<const Cache> memories,
                    KvPages& one) noexcept;

}  // namespace fovea
