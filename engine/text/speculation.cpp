// Where proposals come from: the text itself, or a draft model.
#include <bit>

#include "engine/cache/kv_cache.h"
#include "engine/pass/workspace.h"
#include "engine/text/generator_state.h"

namespace fovea {
namespace {

[[nodiscard]] std::uint32_t smaller(std::uint32_t a, std::uint32_t b) noexcept { return a < b ? a : b; }

/// How many of `asked` proposals there is room for.
[[nodiscard]] std::uint32_t most_proposals(const GeneratorState& s, std::uint32_t asked) noexcept {
    if (s.n_left < 2) return 0;
    // The pass gives a token beyond those proposed.
    std::uint32_t most = smaller(smaller(asked, s.n_left - 1), s.cache.max_kv_len() - s.n_text);
    const PoolState& pool = *CacheAccess::pool(s.cache);
    // Proposals take no page that another sequence's next token may need.
    const std::uint64_t pages_each = std::uint64_t{2} + s.limits.max_proposed / pool.limits.page_len;
    if (pool.n_free >= pool.limits.max_sequences * pages_each) return most;
    const std::uint64_t n_held = std::uint64_t{s.cache.n_pages()} * pool.limits.page_len;
    const std::uint64_t n_free = n_held > s.n_text ? n_held - s.n_text : 0;
    return n_free < most ? static_cast<std::uint32_t>(n_free) : most;
}

/// A forced token is worth its row in any case: it saves a pass.
[[nodiscard]] bool propose_forced(GeneratorState& s) noexcept {
    if (!s.filter.forced) return false;
    const std::uint32_t most = most_proposals(s, s.limits.max_proposed);
    if (most == 0) return false;
    const std::size_t n = s.filter.forced(s.filter.context, {s.text + s.n_text, most});
    while (s.n_forced < n && s.n_forced < most && s.text[s.n_text + s.n_forced] < s.vocab_size) ++s.n_forced;
    s.n_proposed = s.n_forced;
    return s.n_forced != 0;
}

void propose_match(GeneratorState& s, std::uint32_t most) noexcept {
    s.match = find_match(s.tokens());
    s.n_proposed = s.economy.worth(s.match, most);
    // Reads may overlap writes: a text that repeats itself goes on doing so.
    for (std::uint32_t i = 0; i < s.n_proposed; ++i) {
        s.text[s.n_text + i] = s.text[s.match.next + i];
        if (has(Part::rows) && s.text[s.n_text + i] >= s.vocab_size) s.n_proposed = i;  // a row's key
    }
}

[[nodiscard]] Status propose_drafted(GeneratorState& s, std::uint32_t most) noexcept {
    DraftModel& draft = s.speculation.draft;
    const std::uint32_t room = draft.cache.max_kv_len();
    if (room < s.n_text || !draft.cache.valid()) return {};
    s.n_drafted = draft.cache.reach(s.n_drafted);
    // The prompt is read once in any case; what counts is new tokens that were left out.
    const std::uint32_t n_read = s.n_drafted > s.figures.n_prompt ? s.n_drafted : s.figures.n_prompt;
    most = smaller(most, room - s.n_text + 1);
    const std::uint32_t n = s.economy.worth_drafting(s.n_text > n_read ? s.n_text - n_read : 0, most);
    if (n == 0) return {};
    Status status = rewind(draft.cache, s.n_drafted);
    (void)unmark(draft.cache, s.n_drafted);
    const std::span<float> logits = s.logits.first(s.vocab_size);
    while (status.ok() && s.n_proposed < n) {
        const std::uint32_t n_unread = s.n_text + s.n_proposed - s.n_drafted;
        const Step step{draft.cache, {s.text + s.n_drafted, n_unread}, logits};
        status = forward(draft.workspace, {&step, 1});
        if (!status.ok()) break;
        ++s.figures.n_draft_passes;
        s.n_drafted += n_unread;
        if (s.n_proposed == 0) (void)mark(draft.cache);  // the text, to which it returns where proposals are refused
        const Token token = likeliest(logits);
        if (token >= s.vocab_size) break;
        s.text[s.n_text + s.n_proposed++] = token;
    }
    if (status.code != Code::cancelled) return {};  // whatever else it is, the text goes on without proposals
    s.n_drafted = smaller(s.n_drafted, s.n_text);
    s.n_proposed = 0;
    return status;
}

/// Where the cache has a state it is marked, for the case that proposals are refused. False: there is no room for that.
[[nodiscard]] bool keep_state(GeneratorState& s) noexcept {
    const PoolState& pool = *CacheAccess::pool(s.cache);
    if (!has_states(pool) || pool.states->is_marked(CacheAccess::slot(s.cache), s.n_cached)) return true;
    if (!mark(s.cache).ok()) return false;
    s.marked = s.n_cached;
    return true;
}

/// A next-token head reads this model's vectors, and there is room for those of a step.
[[nodiscard]] Status check_head(const GeneratorState& s, const Model& head, const Speculation& options) noexcept {
    const std::uint32_t d_model = head.config().decoder.d_model;
    if (d_model != s.d_model) return {Code::bad_argument, "a next-token head of the model's width", s.d_model, d_model};
    const std::uint64_t least = (std::uint64_t{2} + options.n_proposed) * d_model;
    const std::size_t n = options.draft.vectors.size();
    if (n < least || n % d_model) return {Code::bad_shape, "elements of a draft's vectors at least", least, n};
    return {};
}

constexpr std::size_t kBlock = 16;

/// Which of n <= kBlock tokens are this one, as bits. Whole blocks take a few instructions.
[[nodiscard]] std::uint32_t equal_bits(const Token* tokens, std::size_t n, Token token) noexcept {
    std::uint32_t found = 0;
    if (n == kBlock)
        for (std::uint32_t i = 0; i < kBlock; ++i) found |= std::uint32_t{tokens[i] == token} << i;
    else
        for (std::uint32_t i = 0; i < n; ++i) found |= std::uint32_t{tokens[i] == token} << i;
    return found;
}

}  // namespace

Token likeliest(std::span<const float> logits) noexcept {
    std::size_t best = logits.size();
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (best == logits.size() ? logits[i] == logits[i] : logits[i] > logits[best]) best = i;
    return static_cast<Token>(best);
}

Match find_match(std::span<const Token> text) noexcept {
    constexpr std::size_t kLongest = 16, kFarthest = 8192;
    Match match;
    if (text.size() < 2) return match;
    const std::size_t last = text.size() - 1, first = last > kFarthest ? last - kFarthest : 0;
    for (std::size_t end = last; end > first && match.length < kLongest;) {
        const std::size_t begin = end - first > kBlock ? end - kBlock : first;
        for (std::uint32_t bits = equal_bits(text.data() + begin, end - begin, text[last]); bits;) {
            const auto bit = static_cast<std::uint32_t>(std::bit_width(bits)) - 1;
            bits ^= 1u << bit;
            const std::size_t at = begin + bit;
            // To be longer than the match found, it must be the same so much further back.
            if (match.length > at || text[at - match.length] != text[last - match.length]) continue;
            std::uint32_t length = 1;
            while (length < kLongest && length <= at && text[at - length] == text[last - length]) ++length;
            if (length > match.length) match = {static_cast<std::uint32_t>(at) + 1, length};
        }
        end = begin;
    }
    return match;
}

Status check_draft(const GeneratorState& s, const Speculation& options) noexcept {
    const DraftModel& draft = options.draft;
    if (!draft.workspace.valid()) return {};
    if (!draft.cache.valid()) return {Code::bad_argument, "the draft's cache: not made, or ended", 0, 0};
    if (CacheAccess::pool(draft.cache) == CacheAccess::pool(s.cache) &&
        CacheAccess::slot(draft.cache) == CacheAccess::slot(s.cache))
        return {Code::bad_argument, "a cache of its own for the draft", 0, 0};
    const Model& model = WorkspaceAccess::state(draft.workspace)->model;
    const std::uint32_t vocab_size = model.config().decoder.vocab_size;
    if (kind_of(model.config()) != Kind::decode || vocab_size != s.vocab_size)
        return {Code::bad_argument, "tokens in the draft's vocabulary", s.vocab_size, vocab_size};
    if (CacheAccess::pool(draft.cache)->model->bytes().data() != model.bytes().data())
        return {Code::session_mismatch, "a cache of the draft's model", 0, 0};
    return has(Part::rows) && model.config().decoder.joins_rows ? check_head(s, model, options) : Status{};
}

float draft_cost(const GeneratorState& s, const DraftModel& draft) noexcept {
    if (!draft.workspace.valid()) return 0;
    const auto bytes = [](const Model& model) { return static_cast<float>(model.bytes().size()); };
    return bytes(WorkspaceAccess::state(draft.workspace)->model) / bytes(*CacheAccess::pool(s.cache)->model);
}

void forget_mark(GeneratorState& s) noexcept {
    if (s.marked) (void)unmark(s.cache, s.marked);
    s.marked = 0;
}

Status propose(GeneratorState& s) noexcept {
    s.n_proposed = s.n_forced = 0;
    s.match = {};
    // Not with the prompt, nor with what is computed again: such a pass is for its last row's logits alone.
    if (s.n_text == s.figures.n_prompt || s.n_text - s.n_cached > 1) return {};
    if (!keep_state(s) || propose_forced(s)) return {};
    const std::uint32_t most = most_proposals(s, s.speculation.n_proposed);
    if (most == 0) return {};
    if (s.has_head()) return propose_by_head(s, most);
    if (s.speculation.draft.workspace.valid()) return propose_drafted(s, most);
    propose_match(s, most);
    return {};
}

}  // namespace fovea
