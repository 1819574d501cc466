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

/// What a session saves of 30 tokens with a mark behind 11, and the logits of seven more by another one that restores `from`, or what
/// the first has saved. Empty where a call fails.
struct SavedText {
    std::vector<std::byte> bytes;
    std::vector<float> rest;

    SavedText() = default;
    SavedText(const Model& model, const Limits& limits, const Ranks* ranks, std::span<const std::byte> from = {}) {
        const std::uint32_t vocab_size = model.config().decoder.vocab_size;
        const auto tokens = some_tokens(37, vocab_size);
        const std::span<const Token> text(tokens);
        RankSession own(model, limits, ranks), again(model, limits, ranks);
        Session& s = own.session;
        Cache cache = s.cache();
        if (!forward(s, text.first(11), {}).ok() || !mark(cache).ok() || !forward(s, text.subspan(11, 19), {}).ok())
            return;
        bytes.resize(session_bytes(s));
        std::size_t written = 0;
        const Status status = ranks ? save_cache(*ranks, cache, bytes, written) : save_session(s, bytes, written);
        if (!status.ok()) bytes.clear();
        rest.resize(7 * std::size_t{vocab_size});
        if (!restore_session(again.session, from.empty() ? bytes : from).ok() ||
            !forward(again.session, text.subspan(30), rest).ok())
            rest.clear();
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
