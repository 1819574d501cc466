// The memory of a ConstraintState: the places of a text in its form, and room to look ahead.
#pragma once
#include <span>
#include <string_view>

#include "engine/format/constraint_format.h"
#include "engine/format/parts.h"
#include "engine/text/list_items.h"
#include "fovea/constraint.h"

namespace fovea {

/// The parts of a form and of its index; all checked.
struct Form {
    const ConstraintHeader* header = nullptr;
    std::span<const StateRecord> states;
    std::span<const CallRecord> calls;
    std::span<const RangeRecord> ranges;
    std::span<const std::uint16_t> rows;  // [n_rows * 256]
    std::span<const WideRecord> wide;
    std::span<const std::uint32_t> words;
    std::span<const IndexNode> nodes;
    std::span<const std::uint32_t> ends;
    std::uint32_t max_token_bytes = 0;

    /// Where `byte` leads, or kNoState.
    [[nodiscard]] std::uint16_t next(std::uint16_t state, std::uint8_t byte) const noexcept {
        const StateRecord& s = states[state];
        if (s.n_ranges == kRowOfBytes) return rows[std::size_t{s.first} * 256 + byte];
        for (std::uint32_t i = s.first, end = s.first + s.n_ranges; i < end; ++i)
            if (byte <= ranges[i].high) return byte >= ranges[i].low ? ranges[i].target : kNoState;
        return kNoState;
    }
    [[nodiscard]] std::span<const IndexNode> merged() const noexcept {  // behind the WideRecords
        return {reinterpret_cast<const IndexNode*>(wide.data() + wide.size()), header->n_merged};
    }
    [[nodiscard]] std::span<const GroupRecord> groups() const noexcept {
        return {reinterpret_cast<const GroupRecord*>(merged().data() + header->n_merged), header->n_groups};
    }
    /// Whether the tree of merged tokens has what may follow, or what a mask leaves.
    [[nodiscard]] bool is_merged(std::uint16_t state) const noexcept {
        const std::uint32_t w = states[state].wide;
        return has(Part::known_sets) && (w == kMergedTokens || (w != kNoPlace && wide[w].n_entries == kNoPlace));
    }
    /// Whether only bytes lead out of it.
    [[nodiscard]] bool simple(std::uint16_t state) const noexcept {
        return !states[state].accepts && states[state].n_calls == 0;
    }
    /// Nothing of the caller is left to do after the call: it needs no frame.
    [[nodiscard]] bool is_tail(const CallRecord& call) const noexcept {
        const StateRecord& target = states[call.target];
        return call.max == 1 && target.accepts && target.n_ranges == 0 && target.n_calls == 0;
    }
};

/// A call that has not ended. Frame 0 is the form itself.
struct Frame {
    std::uint16_t call = 0;    // CallRecord
    std::uint16_t count = 0;   // repetitions that have ended
    std::uint16_t parent = 0;  // frame
    std::uint16_t depth = 0;
};

/// One way to read the text: a state of the innermost call's rule, and that call.
struct Place {
    std::uint16_t state = 0, frame = 0;
};

/// All ways to read a text, as places in the pool.
struct Places {
    std::uint32_t first = 0, n = 0;
};

inline constexpr std::uint8_t kNoSet = 0xff;

/// The places and frames at a node on the path to the present one.
struct Level {
    Places places;
    std::uint16_t n_frames = 0;
    std::uint8_t set = kNoSet;  // of KnownSets
    bool is_kept = false;       // its frames are those of known sets: more may be made known from here
};

inline constexpr std::uint32_t kMostPlaces = 64;  // ways to read a text; further ones are not followed
// What a mask may cost, some 3 ms: beyond it one way of each set is followed, so that fewer tokens than could be are allowed.
inline constexpr std::uint32_t kMostCompared = 500'000;
// Calls that a mask may enter and ways it may compare at most. Only hostile forms come to so many: further tokens are not allowed.
inline constexpr std::uint32_t kMostWork = 64 * kMostCompared;

/// Sets of places that a walk over a large vocabulary has met, and where bytes lead from each. A text that can be read in many ways
/// is in the same few sets for most tokens, so each step between them is worked out once (as automata are made deterministic while
/// they run: Thompson 1968).
struct KnownSets {
    static constexpr std::uint32_t kLeastTokens = 4096;  // of a vocabulary; smaller ones are walked as quickly without
    static constexpr std::uint32_t kSets = 250, kPlaces = 4096, kFrames = 2048;
    static constexpr std::uint8_t kUnknown = 0xfe, kNowhere = 0xfd;

    std::uint8_t class_of[256];     // of bytes: no state tells two of a class apart
    std::uint8_t next[kSets][256];  // by class: a set, kUnknown or kNowhere
    Places of[kSets];
    std::uint32_t key[kSets];  // of equal sets the same
    std::uint32_t n = 0;
    std::uint32_t n_places = 0,
                  max_places = 0;  // the pool's, up to which they lie; other places of the walk lie behind
    std::uint32_t free_at[kMostTokenBytes + 1];  // where places of nodes below each level of the path may lie
    std::uint32_t n_frames = 0, max_frames = 0;
    std::uint16_t frame_at[4096] = {};  // by hash: where a frame may be, so that none is there twice
};

struct ConstraintRun {
    Form form;
    Tokenizer tokenizer;
    std::span<Frame> frames;
    std::span<std::uint16_t> moved;  // [frames] the new index of each when finished ones are removed
    std::span<Place> pool;
    std::span<Level> levels;  // [max_token_bytes + 1]
    std::span<std::uint32_t> mask;
    KnownSets* sets = nullptr;   // null: the vocabulary is small
    ListItems* items = nullptr;  // null: the form has no lists whose items differ
    std::uint32_t n_places = 0;  // of the text: the pool's first
    std::uint32_t n_frames = 1;  // of those places
    bool mask_made = false;
    std::uint32_t n_compared = 0;  // ways that were held against one another for a mask
    std::uint32_t n_entered = 0;   // and calls that were entered
};

[[nodiscard]] inline KnownSets* sets_of(const ConstraintRun& run) noexcept {
    return has(Part::known_sets) ? run.sets : nullptr;
}

[[nodiscard]] inline ListItems* items_of(const ConstraintRun& run) noexcept {
    return has(Part::known_sets) ? run.items : nullptr;
}

struct ConstraintAccess {
    [[nodiscard]] static ConstraintRun* run(const ConstraintState& state) noexcept { return state.run_; }
    static void set(ConstraintState& state, ConstraintRun* run) noexcept { state.run_ = run; }
    [[nodiscard]] static const Tokenizer& tokenizer(const Constraint& constraint) noexcept {
        return constraint.tokenizer_;
    }
    /// The form of an open constraint.
    [[nodiscard]] static Form form(const Constraint& constraint) noexcept;
    static void set(Constraint& constraint, const ConstraintHeader* form, const std::byte* index,
                    const Tokenizer& tokenizer) noexcept {
        constraint.form_ = form;
        constraint.index_ = index;
        constraint.tokenizer_ = tokenizer;
    }
};

/// The first place of a text.
void start_run(ConstraintRun& run) noexcept;
/// Goes on by bytes. False, and nothing changes, if they do not fit.
[[nodiscard]] bool advance_bytes(ConstraintRun& run, std::string_view bytes) noexcept;
/// Writes the tokens that may come next to run.mask; without `forcing`, others beside a forced one, too.
void make_mask(ConstraintRun& run, bool forcing) noexcept;
[[nodiscard]] bool ends_here(const ConstraintRun& run) noexcept;
/// A token's bytes in a text.
[[nodiscard]] std::string_view token_text(const Tokenizer& tokenizer, Token token) noexcept;

}  // namespace fovea
