// An automaton's tokens, precomputed: masks of states with many tokens, and tokens that are forced.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/format/constraint_format.h"
#include "fovea/tokenizer.h"
#include "host/grammar/automaton.h"

namespace fovea::grammar {

/// An index's parts; a view of its bytes.
struct IndexView {
    std::uint32_t vocab_size = 0;
    std::span<const IndexNode> nodes;
    std::array<std::uint32_t, 257> roots = {};  ///< by first byte: the first node of those; siblings ascend
    ByteSet bytes;                              ///< bytes that are tokens of their own
};
/// Throws GrammarError if it is not the tokenizer's.
[[nodiscard]] IndexView view_index(const Tokenizer& tokenizer, std::span<const std::byte> index);

/// WideRecord of constraint_format.h, before it is written.
struct Wide {
    std::vector<std::uint32_t> mask;
    std::vector<std::uint8_t> counts;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;  ///< node; state or repetitions
    std::vector<std::uint32_t> skips;                              ///< in place of entries: a bit for each merged node
};

struct MergedTokens {
    std::vector<IndexNode> nodes;    ///< their ids are groups
    std::vector<std::uint32_t> ids;  ///< of all groups' tokens; of few, ascending
    std::vector<std::size_t> ends;   ///< of each group, in ids

    [[nodiscard]] std::span<const std::uint32_t> group(std::uint32_t n) const {
        const std::size_t first = n ? ends[n - 1] : 0;
        return std::span(ids).subspan(first, ends[n] - first);
    }
};

struct Masks {
    std::vector<Wide> wide;
    MergedTokens merged;
    std::vector<std::uint32_t> of_state;              ///< [n_states] into wide, kMergedTokens or kNoPlace
    std::vector<std::vector<std::uint32_t>> of_call;  ///< [n_states][n_calls] likewise
};

/// Masks of states from which many tokens lead on, within a bound of work and bytes; and those of repetitions. With `merges`, states
/// that these leave with long walks have the tree of merged tokens.
[[nodiscard]] Masks make_masks(const Automaton& automaton, const IndexView& index, bool merges);

/// [n_states] the token that must follow, or kNoPlace. If the automaton leaves no choice of several bytes they are cut
/// into tokens as the tokenizer does; the last of these stays open, for it may be part of a longer one.
[[nodiscard]] std::vector<std::uint32_t> force_tokens(const Automaton& automaton, const Tokenizer& tokenizer,
                                                      const IndexView& index);

}  // namespace fovea::grammar
