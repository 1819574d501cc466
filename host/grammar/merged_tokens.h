// Tokens that some states of an automaton do not tell apart, merged: constraint_format.h has them in a form.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/format/constraint_format.h"
#include "host/grammar/automaton.h"
#include "host/grammar/masks.h"

namespace fovea::grammar {

/// The tree of the tokens that `starts` lead on by, whatever calls they are in. Nothing if it would be large.
[[nodiscard]] std::optional<MergedTokens> merge_tokens(const Automaton& automaton,
                                                       const std::vector<std::uint32_t>& starts,
                                                       const IndexView& index);

/// A bit for each node: whether a mask has all tokens from there on.
[[nodiscard]] std::vector<std::uint32_t> skips_of(const MergedTokens& merged, const std::vector<std::uint32_t>& mask);

}  // namespace fovea::grammar
