// Generators: their memory, and how a text begins.
#include <cstring>
#include <new>

#include "engine/cache/kv_cache.h"
#include "engine/format/parts.h"
#include "engine/model/arena.h"
#include "engine/pass/workspace.h"
#include "engine/text/generator_state.h"
#include "engine/text/samplers.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostProposed = 256, kMostStopBytes = 65535;

[[nodiscard]] Status not_made() noexcept { return {Code::bad_argument, "generator: not made", 0, 0}; }

[[nodiscard]] Status lay_out_generator(const Model& model, const Tokenizer& tokenizer, const GeneratorLimits& asked,
                                       GeneratorMap& map, GeneratorPlan& plan) noexcept {
    const Stack& stack = model.config().decoder;
    if (kind_of(model.config()) != Kind::decode && !steps_with_memory(model.config()))
        return {Code::unsupported, "logits of this model", 0, 0};
    GeneratorLimits limits = asked;
    const bool unbounded = has(Part::vectors) && !stack.max_positions;
    const std::uint32_t most = unbounded ? kMaxPositions : stack.max_positions;
    if (limits.max_tokens == 0) limits.max_tokens = unbounded ? 512 : most;
    if (limits.max_tokens > most) return {Code::bad_limits, "tokens of a text at most", most, limits.max_tokens};
    if (!has(Part::speculation) && limits.max_proposed)
        return {Code::unsupported, "speculation: left out of this build", 0, 0};
    if (limits.max_proposed > kMostProposed)
        return {Code::bad_limits, "proposed tokens at most", kMostProposed, limits.max_proposed};
    if (limits.max_stop_bytes > kMostStopBytes)
        return {Code::bad_limits, "bytes of stop strings at most", kMostStopBytes, limits.max_stop_bytes};
    plan = {.limits = limits};
    const auto take = [&](const char* name, std::uint64_t bytes) {
        const std::uint64_t at = plan.arena_bytes;
        if (bytes) plan.parts[plan.n_parts++] = {name, at, bytes};
        plan.arena_bytes += round_up(bytes, kArenaAlignment);
        return at;
    };
    const std::uint64_t vocab_size = stack.vocab_size, n_rows = std::uint64_t{1} + limits.max_proposed;
    // Room for the text held back, for each token of a pass, and for the end of an unfinished character.
    map.text_bytes = limits.max_stop_bytes + (n_rows + 1) * max_piece_bytes(tokenizer);
    (void)take("generator", kGeneratorStateBytes);
    map.tokens = take("tokens", limits.max_tokens * sizeof(Token));
    map.logits = take("logits", n_rows * vocab_size * sizeof(float));
    map.candidates = take("candidates", vocab_size * sizeof(Candidate));
    map.mask = take("mask", (vocab_size + 31) / 32 * sizeof(std::uint32_t));
    map.text = take("text", map.text_bytes);
    map.stop = take("stop strings", limits.max_stop_bytes * sizeof(StopByte));
    return {};
}

[[nodiscard]] std::uint32_t n_same(std::span<const Token> a, std::span<const Token> b) noexcept {
    std::uint32_t n = 0;
    while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
    return n;
}

[[nodiscard]] bool same_cache(const Cache& a, const Cache& b) noexcept {
    return a.valid() && b.valid() && CacheAccess::pool(a) == CacheAccess::pool(b) &&
           CacheAccess::slot(a) == CacheAccess::slot(b);
}

/// How much of a prompt is the text that was, and how much of that the cache keeps.
struct Kept {
    std::uint32_t n_same = 0, n = 0;
};
[[nodiscard]] Kept kept_of(const GeneratorState& s, std::span<const Token> prompt, const Cache& memory) noexcept {
    const bool same_memory = !has(Part::vectors) || same_cache(s.memory, memory) || !memory.valid();
    const std::uint32_t same = same_memory ? n_same(s.tokens(), prompt) : 0;
    std::uint32_t n = same < s.n_cached ? same : s.n_cached;
    if (n > s.cache.kv_len()) n = s.cache.kv_len();
    if (n == prompt.size()) --n;  // logits follow a token that is computed
    return {same, s.cache.reach(n)};
}

/// Tokens are in the vocabulary, and rows, by their keys, in the cache.
[[nodiscard]] Status check_tokens(const GeneratorState& s, std::span<const Token> prompt,
                                  const GenerateOptions& options) noexcept {
    for (std::size_t i = 0; i < prompt.size(); ++i) {
        if (prompt[i] < s.vocab_size) continue;
        if (!has(Part::rows) || prompt[i] < kFirstRowKey || i >= kept_of(s, prompt, options.memory).n)
            return {Code::token_out_of_range, "token at most", s.vocab_size - std::uint64_t{1}, prompt[i]};
    }
    return {};
}

[[nodiscard]] Status check_speculation(const GeneratorState& s, std::span<const Token> text,
                                       const Speculation& speculation) noexcept {
    if (speculation.n_proposed > s.limits.max_proposed)
        return {Code::bad_argument, "proposed tokens at most", s.limits.max_proposed, speculation.n_proposed};
    if (!has(Part::speculation)) return {};
    if (!(speculation.row_cost >= 0 && speculation.row_cost <= 100))  // NaN fails too
        return {Code::bad_argument, "row_cost: expected 0 to 100", 0, 0};
    if (has(Part::rows) && speculation.draft.workspace.valid())
        for (const Token token : text)
            if (token >= s.vocab_size) return {Code::unsupported, "a draft of a text with rows", 0, 0};
    return check_draft(s, speculation);
}

/// What the same draft has read of the text's first n_same tokens stays.
void set_speculation(GeneratorState& s, const Speculation& speculation, std::uint32_t n_same) noexcept {
    if (!same_cache(speculation.draft.cache, s.speculation.draft.cache)) n_same = 0;
    s.speculation = speculation;
    s.economy.start(speculation, draft_cost(s, speculation.draft));
    DraftModel& draft = s.speculation.draft;
    if (!draft.workspace.valid() || !WorkspaceAccess::state(draft.workspace)->model.config().decoder.joins_rows)
        draft.vectors = {};
    if (s.has_head()) return start_head(s, n_same);
    if (s.n_drafted > n_same) s.n_drafted = n_same;
}

/// The checks of start.
[[nodiscard]] Status check_start(const GeneratorState& s, std::span<const Token> prompt,
                                 const GenerateOptions& options) noexcept {
    const std::uint32_t room = s.cache.max_kv_len() < s.limits.max_tokens ? s.cache.max_kv_len() : s.limits.max_tokens;
    if (!s.cache.valid()) return {Code::bad_argument, "cache: not made, or ended", 0, 0};
    if (prompt.empty()) return {Code::bad_shape, "tokens of a prompt at least", 1, 0};
    if (prompt.size() > room) return {Code::context_full, "room for positions at least", prompt.size(), room};
    if (Status status = check_tokens(s, prompt, options); !status.ok()) return status;
    if (!options.stop.empty() && !s.tokenizer.valid()) return {Code::section_missing, "tokenizer", 1, 0};
    if (Status status = StopText::check(options.stop, s.limits.max_stop_bytes); !status.ok()) return status;
    return check_speculation(s, prompt, options.speculation);
}

}  // namespace

Status make_generator_plan(const Model& model, const Tokenizer& tokenizer, const GeneratorLimits& limits,
                           GeneratorPlan& plan) noexcept {
    GeneratorMap map;
    return lay_out_generator(model, tokenizer, limits, map, plan);
}

Status make_generator(const Model& model, const Tokenizer& tokenizer, const Cache& cache, const GeneratorLimits& limits,
                      std::span<std::byte> arena, Generator& generator) noexcept {
    GeneratorMap map;
    GeneratorPlan plan;
    if (Status status = lay_out_generator(model, tokenizer, limits, map, plan); !status.ok()) return status;
    if (!cache.valid()) return {Code::bad_argument, "cache: not made, or ended", 0, 0};
    if (CacheAccess::pool(cache)->model->bytes().data() != model.bytes().data())
        return {Code::session_mismatch, "a cache of the generator's model", 0, 0};
    if (Status status = check_arena(arena, plan.arena_bytes); !status.ok()) return status;
    const Tokenizer own_tokenizer = tokenizer;  // these may lie in the arena
    const Cache own_cache = cache;
    const std::size_t vocab_size = model.config().decoder.vocab_size;
    std::byte* const base = arena.data();
    auto* s = new (base) GeneratorState;
    s->tokenizer = own_tokenizer;
    s->cache = own_cache;
    s->limits = plan.limits;
    s->vocab_size = static_cast<std::uint32_t>(vocab_size);
    s->d_model = model.config().decoder.d_model;
    s->text = reinterpret_cast<Token*>(base + map.tokens);
    s->logits = {reinterpret_cast<float*>(base + map.logits), (std::size_t{1} + plan.limits.max_proposed) * vocab_size};
    s->candidates = {reinterpret_cast<Candidate*>(base + map.candidates), vocab_size};
    s->mask = {reinterpret_cast<std::uint32_t*>(base + map.mask), (vocab_size + 31) / 32};
    s->bytes = {reinterpret_cast<char*>(base + map.text), static_cast<std::size_t>(map.text_bytes)};
    s->stop = StopText({reinterpret_cast<StopByte*>(base + map.stop), plan.limits.max_stop_bytes});
    GeneratorAccess::set(generator, s);
    return {};
}

Status resume(Generator& generator, std::span<const Token> tokens) noexcept {
    if (!generator.valid()) return not_made();
    GeneratorState& s = *GeneratorAccess::state(generator);
    if (!s.cache.valid()) return {Code::bad_argument, "cache: not made, or ended", 0, 0};
    if (tokens.size() != s.cache.kv_len()) return {Code::bad_shape, "tokens", s.cache.kv_len(), tokens.size()};
    if (tokens.size() > s.limits.max_tokens)
        return {Code::context_full, "room for positions at least", tokens.size(), s.limits.max_tokens};
    if (!tokens.empty()) std::memmove(s.text, tokens.data(), tokens.size_bytes());
    s.n_text = s.n_cached = static_cast<std::uint32_t>(tokens.size());
    s.n_drafted = 0;
    s.vectors = {};
    s.figures = {};
    s.finish = FinishReason::none;
    s.running = s.stepped = false;
    return {};
}

Status start(Generator& generator, std::span<const Token> prompt, const GenerateOptions& options) noexcept {
    if (!generator.valid()) return not_made();
    GeneratorState& s = *GeneratorAccess::state(generator);
    if (Status status = check_start(s, prompt, options); !status.ok()) return status;
    Sampler sampler;
    if (Status status = make_sampler(options.sampler, sampler); !status.ok()) return status;

    const auto n_prompt = static_cast<std::uint32_t>(prompt.size());
    if (has(Part::speculation)) forget_mark(s);
    const Kept kept = kept_of(s, prompt, options.memory);
    (void)rewind(s.cache, kept.n);
    std::memmove(s.text, prompt.data(), prompt.size_bytes());
    s.n_text = n_prompt;
    s.n_cached = kept.n;
    s.n_proposed = 0;
    s.figures = {.n_prompt = n_prompt, .n_kept = kept.n};

    const std::uint32_t room =
        (s.cache.max_kv_len() < s.limits.max_tokens ? s.cache.max_kv_len() : s.limits.max_tokens) - n_prompt;
    s.ends_by_length = options.n_new <= room;
    s.n_left = s.ends_by_length ? options.n_new : room;
    s.sampler = sampler;
    if (has(Part::samplers)) s.mirostat_mu = 2 * settled(sampler.options.more).mirostat_tau;
    s.filter = options.filter;
    if (has(Part::speculation)) set_speculation(s, options.speculation, kept.n_same);
    if (has(Part::vectors)) s.memory = options.memory;
    s.n_recent = options.n_recent;
    if (has(Part::penalties)) {
        s.n_counted = options.n_counted;
        s.counts_from = options.counts_prompt ? 0 : n_prompt;
    }
    s.show_special = options.show_special;
    s.stop.set(options.stop);
    s.end_tokens = options.end_tokens;
    s.shown = options.shown;
    s.n_bytes = s.n_shown = 0;
    if (has(Part::samplers)) s.n_stopped = 0;
    // Over the prompt too: whether a space is dropped depends on what came before.
    s.decoder = {};
    if (s.tokenizer.valid())
        for (const Token token : s.tokens()) decode_next(s, token);
    s.finish = FinishReason::none;
    s.running = true;
    s.stepped = false;
    return {};
}

Status speculate(Generator& generator, const Speculation& speculation) noexcept {
    if (!generator.valid()) return not_made();
    GeneratorState& s = *GeneratorAccess::state(generator);
    if (!s.running || s.stepped) return {Code::bad_argument, "generator: no text that goes on, before its step", 0, 0};
    if (Status status = check_speculation(s, s.tokens(), speculation); !status.ok()) return status;
    if (has(Part::speculation)) set_speculation(s, speculation, s.n_text);
    return {};
}

Status generate(Generator& generator, Workspace& workspace, Piece& piece) noexcept {
    Step step;
    if (Status status = next_step(generator, step); !status.ok()) return status;
    if (Status status = forward(workspace, {&step, 1}); !status.ok()) return status;
    return take(generator, piece);
}

std::span<const Token> Generator::tokens() const noexcept {
    return state_ ? state_->tokens() : std::span<const Token>{};
}
GenerateFigures Generator::figures() const noexcept { return state_ ? state_->figures : GenerateFigures{}; }
FinishReason Generator::finish() const noexcept { return state_ ? state_->finish : FinishReason::none; }

}  // namespace fovea
