// Sessions of ranks, and what they give.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "fovea/ranks.h"
#include "fovea/session.h"
#include "tests/support/small_models.h"

namespace fovea::testing {

/// A session of a rank, or without one alone.
struct RankSession {
    Plan plan;
    AlignedBytes arena;
    Session session;
    Status status;

    RankSession(const Model& model, Limits limits, const Ranks* ranks) {
        if (ranks) limits.rank = static_cast<std::uint8_t>(ranks->rank);
        if (ranks) limits.n_ranks = static_cast<std::uint8_t>(ranks->n_ranks);
        status = make_plan(model.config(), limits, plan);
        arena.resize(plan.arena_bytes, std::byte{0xee});
        if (status.ok()) status = make_session(model, limits, arena, session, {.ranks = ranks});
    }
};

/// Logits of a prompt in two pieces, then of five more tokens one by one. Empty where a call fails.
inline std::vector<float> logits_of(const Model& model, const Limits& limits, const Ranks* ranks) {
    RankSession own(model, limits, ranks);
    const std::uint32_t vocab_size = model.config().decoder.vocab_size;
    const std::uint32_t n = std::min(45u, model.config().decoder.max_positions), n_prompt = n - 5;
    const auto tokens = some_tokens(n, vocab_size);
    std::vector<float> all(n * std::size_t{vocab_size});
    const std::span<const Token> text(tokens);
    const std::span<float> out(all);
    bool ok = own.status.ok();
    for (std::size_t i = 0, n_now; ok && i < n; i += n_now) {
        n_now = i < n_prompt ? n_prompt : 1;
        ok = forward(own.session, text.subspan(i, n_now), out.subspan(i * vocab_size, n_now * vocab_size)).ok();
    }
    if (!ok) all.clear();
    return all;
}

}  // namespace fovea::testing
