// Proposals of a next-token head (DeepSeek-AI 2024, section 2.2): it reads each token with the model's vector of the token before, and
// says what comes behind it. The model's passes leave those vectors in DraftModel::vectors.
#include <cstring>

#include "engine/cache/kv_cache.h"
#include "engine/pass/workspace.h"
#include "engine/text/generator_state.h"

namespace fovea {
namespace {

/// Positions whose vectors the head has not read, as far as they are there: the last of them is the cache's last.
struct UnreadVectors {
    std::uint32_t first = 0, n = 0;

    explicit UnreadVectors(const GeneratorState& s) noexcept {
        const KeptVectors& kept = s.vectors;
        first = s.n_drafted > kept.first ? s.n_drafted : kept.first;
        const std::uint32_t end = kept.first + kept.n;
        if (end == s.n_cached && first < end) n = end - first;
    }
};

[[nodiscard]] std::span<float> vectors_at(const GeneratorState& s, std::uint32_t position, std::uint32_t n) noexcept {
    const std::size_t d_model = s.d_model;
    return s.speculation.draft.vectors.subspan((position - s.vectors.first) * d_model, n * d_model);
}

[[nodiscard]] std::uint32_t free_positions(const Cache& cache) noexcept { return cache.max_kv_len() - cache.kv_len(); }

/// The head reads what it has not, with logits behind the last row. Its own vector for that row takes the place of the first one read.
[[nodiscard]] Status read_vectors(GeneratorState& s, const UnreadVectors& unread, std::span<float> logits) noexcept {
    DraftModel& draft = s.speculation.draft;
    const std::span<float> rows = vectors_at(s, unread.first, unread.n);
    Step step{draft.cache, {s.text + unread.first + 1, unread.n}, logits};
    step.rows = rows;
    if (!logits.empty()) step.vectors = rows.first(s.d_model);
    const Status status = forward(draft.workspace, {&step, 1});
    s.figures.n_draft_passes += status.ok();
    s.n_drafted = unread.first + unread.n;  // whatever it was that went wrong, a proposal is only a guess
    return status;
}

}  // namespace

void start_head(GeneratorState& s, std::uint32_t n_same) noexcept {
    const std::uint32_t n_before = s.n_drafted, n_known = n_same ? n_same - 1 : 0;
    if (s.n_drafted > n_known) s.n_drafted = n_known;  // a row is of a token, and of the one before
    KeptVectors& kept = s.vectors;
    const std::uint32_t n_kept = n_same > kept.first ? n_same - kept.first : 0;
    if (kept.n > n_kept) kept.n = n_kept;
    Cache& cache = s.speculation.draft.cache;
    const std::uint32_t n_forgotten = n_before - s.n_drafted, kv_len = cache.kv_len();
    (void)rewind(cache, s.n_drafted == 0 || n_forgotten > kv_len ? 0 : kv_len - n_forgotten);
}

void place_vectors(GeneratorState& s) noexcept {
    KeptVectors& kept = s.vectors;
    const std::uint32_t n = s.n_text + s.n_proposed - s.n_cached;
    const auto room = static_cast<std::uint32_t>(s.speculation.draft.vectors.size() / s.d_model);
    const bool follows = kept.first <= s.n_cached && s.n_cached <= kept.first + kept.n;
    if (follows && s.n_cached - kept.first + n <= room) return;
    if (const UnreadVectors unread(s); follows && unread.n) {
        if (unread.n + n > room && s.speculation.n_proposed && unread.n <= free_positions(s.speculation.draft.cache))
            (void)read_vectors(s, unread, {});
        else if (unread.n + n <= room) {
            const std::span<float> rows = vectors_at(s, unread.first, unread.n);
            std::memmove(s.speculation.draft.vectors.data(), rows.data(), rows.size_bytes());
            kept = {unread.first, unread.n};
            return;
        }
    }
    kept = {n > room ? s.n_cached + n - room : s.n_cached, 0};
}

std::span<float> step_vectors(const GeneratorState& s, std::uint32_t n) noexcept {
    const auto room = static_cast<std::uint32_t>(s.speculation.draft.vectors.size() / s.d_model);
    const std::uint32_t k = n < room ? n : room;
    return vectors_at(s, s.n_cached + n - k, k);
}

void keep_vectors(GeneratorState& s) noexcept {
    KeptVectors& kept = s.vectors;
    kept.n = s.n_cached > kept.first ? s.n_cached - kept.first : 0;
}

Status propose_by_head(GeneratorState& s, std::uint32_t most) noexcept {
    DraftModel& draft = s.speculation.draft;
    const UnreadVectors unread(s);
    if (!draft.cache.valid() || unread.n == 0 || unread.n > free_positions(draft.cache)) return {};
    // The prompt is read once in any case; what counts is new tokens.
    const std::uint32_t n_new = s.n_text - s.figures.n_prompt, n_missed = unread.n < n_new ? unread.n : n_new;
    const std::uint32_t room = free_positions(draft.cache) - unread.n + 1;
    const std::uint32_t n = s.economy.worth_drafting(n_missed, most < room ? most : room);
    if (n == 0) return {};
    const std::span<float> logits = s.logits.first(s.vocab_size), vector = vectors_at(s, unread.first, 1);
    Status status = read_vectors(s, unread, logits);
    const std::uint32_t kv_len = draft.cache.kv_len();
    while (status.ok()) {
        const Token token = likeliest(logits);
        if (token >= s.vocab_size) break;
        s.text[s.n_text + s.n_proposed++] = token;
        if (s.n_proposed == n) break;
        Step step{draft.cache, {s.text + s.n_text + s.n_proposed - 1, 1}, logits};
        step.rows = step.vectors = vector;
        status = forward(draft.workspace, {&step, 1});
        s.figures.n_draft_passes += status.ok();
    }
    s.vectors = {s.n_cached, 0};
    (void)rewind(draft.cache, kv_len);  // the model's own vectors of what is right come with its pass
    if (status.code != Code::cancelled) return {};
    s.n_proposed = 0;
    return status;
}

}  // namespace fovea
