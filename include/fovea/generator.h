// A prompt's continuation, pass by pass: what is computed, chosen, proposed and handed out as text.
//
//     GeneratorPlan plan;                                // 1. the size, before any memory is taken
//     make_generator_plan(model, tokenizer, {.max_proposed = 8}, plan);
//     Generator generator;                               // 2. the caller's bytes, at least plan.arena_bytes of them
//     make_generator(model, tokenizer, cache, plan.limits, arena, generator);
//     start(generator, prompt, {.n_new = 100});          // 3. a text; allocates nothing from here on
//     for (Piece piece; piece.finish == FinishReason::none && generate(generator, workspace, piece).ok();)
//         show(piece.text);
//
// generate is next_step, forward and take. Many generators share one pass when a caller does the three itself: next_step of
// each, one forward with all the steps, take of each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/cache.h"
#include "fovea/plan.h"
#include "fovea/sampler.h"
#include "fovea/tokenizer.h"
#include "fovea/workspace.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// Capacities of a generator. The defaults work for every model.
struct GeneratorLimits {
    std::uint32_t max_tokens = 0;        ///< of a text with its prompt. 0: the model's max_positions. 4 bytes each
    std::uint32_t max_stop_bytes = 256;  ///< of all stop strings together, at most 65535. 9 bytes each
    std::uint32_t max_proposed = 0;      ///< tokens speculated in one pass, at most 256. Each costs a row of logits
};
using GeneratorPlan = PlanOf<GeneratorLimits>;

/// Exact memory of a generator. A pure function of the model's vocabulary and length, the tokenizer and the limits.
/// Errors, `plan` unchanged: unsupported (not a model for logits), bad_limits.
[[nodiscard]] Status make_generator_plan(const Model& model, const Tokenizer& tokenizer, const GeneratorLimits& limits,
                                         GeneratorPlan& plan) noexcept;

/// Forbids tokens, by a grammar or a list: one call of `allow` before each token is chosen, one of `accept` after it. Both
/// see the text's tokens in order, each once and none that is refused later, with speculation too.
struct TokenFilter {
    /// Clears the bits of forbidden tokens in `mask`, [(vocab_size + 31) / 32], bit id % 32 of word id / 32. All are set
    /// before the call. `text` is the prompt and every token since.
    void (*allow)(void* context, std::span<const Token> text, std::span<std::uint32_t> mask) = nullptr;
    void (*accept)(void* context, Token token) = nullptr;  ///< told each token that joins or ends the text
    void* context = nullptr;
    /// Writes the next tokens that are forced (allow would leave only them, one after the other) and returns how many;
    /// nullptr: not known. Up to limits.max_proposed go through one pass together with the token before them.
    std::size_t (*forced)(void* context, std::span<Token> tokens) = nullptr;
};

/// A smaller model with the same vocabulary that proposes tokens, or the model's next-token head (Stack::joins_rows). Its cache
/// is the generator's while a text goes on, and belongs to the same calling thread as its workspace.
struct DraftModel {
    Workspace workspace;
    Cache cache;
    /// For a next-token head: room for the model's vectors, [n, d_model], n at least n_proposed + 2. The head reads a prompt's last
    /// n rows at most, and refuses nothing where it has read less than the text.
    std::span<float> vectors = {};
};

/// Tokens proposed in advance and verified in one pass, which reads the weights once for all of them. Each position's
/// token is chosen as without speculation; a proposal saves a pass if it is the chosen token. Text and logits are the
/// same as without speculation, in every bit.
/// Source: Leviathan et al. 2023 (verification); Saxena 2023 (lookup in the prompt).
struct Speculation {
    std::uint32_t n_proposed = 0;  ///< tokens a pass at most; 0: none
    /// If valid, its likeliest tokens are proposed; else the tokens that followed an earlier occurrence of the text's
    /// end.
    DraftModel draft{};
    /// Cost of a proposal: the time that one more row adds to a pass, as a share of a pass of one row. With a clock
    /// this is only the first guess. A token is proposed while its probability of being right exceeds 1.2 times this.
    float row_cost = 0.2f;
    /// Ticks of any constant length; nullptr: no clock. With it costs are measured, from next_step to take.
    std::uint64_t (*clock)() = nullptr;
    /// Proposes even if it does not pay. Else refused proposals never cost more than accepted ones saved, plus 1.5 % of
    /// the passes and half a pass.
    bool always = false;
};

struct GenerateOptions {
    SamplerOptions sampler{};
    std::uint32_t n_new = 0xffffffffu;  ///< new tokens at most
    /// The text ends before the one of these that is complete first (of several, the longest). UTF-8, none empty; copied.
    std::span<const std::string_view> stop{};
    /// Tokens that end the text as the model's own end tokens do. Not copied: they are read until the text has ended.
    std::span<const Token> end_tokens{};
    bool show_special = false;  ///< special tokens show in the text
    /// Special tokens that show even if others do not: marks that a reader of the text looks for. Not copied, as end_tokens.
    std::span<const Token> shown{};
    std::uint32_t n_recent = 64;  ///< tokens that repeat_penalty looks back, the prompt's among them
    /// Tokens that frequency_penalty and presence_penalty look back; the prompt's only if counts_prompt.
    std::uint32_t n_counted = 0xffffffffu;
    bool counts_prompt = false;
    TokenFilter filter{};
    Speculation speculation{};
    /// For a model that reads a memory: the cache that cache_memory of encode.h filled. If it is another one than before,
    /// nothing of the last text is kept. If you fill the same one again, rewind the text's cache to 0 yourself.
    Cache memory{};
};

/// Why a text ended.
enum class FinishReason : std::uint8_t {
    none,       ///< it has not
    end_token,  ///< the model ended it, or one of end_tokens; that token is no part of it
    stop_text,  ///< a stop string; the token that completed it is part of the tokens, not of the text
    length,     ///< n_new tokens
    context,    ///< no room in the cache, or in the generator
};

/// The result of one turn. Views into the generator's arena: text and tokens until take, logits until next_step.
struct Piece {
    std::string_view text;          ///< whole UTF-8 characters; what could begin a stop string waits for the next piece
    std::span<const Token> tokens;  ///< new ones, in order
    std::span<const float> logits;  ///< [tokens.size(), vocab_size]: what each was chosen from
    FinishReason finish = FinishReason::none;
    std::string_view stop_text{};  ///< the stop string that ended it
};

/// Counts of the text since start.
struct GenerateFigures {
    std::uint32_t n_prompt = 0;    ///< tokens of the prompt
    std::uint32_t n_kept = 0;      ///< of those, in the cache already
    std::uint32_t n_tokens = 0;    ///< new ones
    std::uint32_t n_passes = 0;    ///< forward passes after the prompt's
    std::uint32_t n_proposed = 0;  ///< tokens speculated
    std::uint32_t n_accepted = 0;  ///< of those, right ones
    std::uint32_t n_draft_passes = 0;
    std::uint32_t n_forced = 0;  ///< tokens that took no pass of their own: the filter left no other
};

struct GeneratorState;  // lives at the start of the arena; engine/text/generator_state.h

/// A handle to state inside the caller's arena; trivially copyable. There is no destructor: release the arena.
class Generator {
public:
    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
    /// Prompt and new tokens. The cache holds them all but the last, which no token has followed yet; where the model has
    /// recurrent layers and the last step's proposals were refused it may hold fewer, which the next step computes again.
    [[nodiscard]] std::span<const Token> tokens() const noexcept;
    [[nodiscard]] GenerateFigures figures() const noexcept;
    [[nodiscard]] FinishReason finish() const noexcept;  ///< of the present text; none if there is none

private:
    friend struct GeneratorAccess;
    GeneratorState* state_ = nullptr;
};

/// Carves `arena` (kArenaAlignment-aligned, at least plan.arena_bytes long) into a generator of texts in `cache`, which is
/// its own from here on. A tokenizer that is not valid gives tokens without text, and no end token.
/// Errors, `generator` unchanged: those of make_generator_plan, bad_argument (cache not valid), session_mismatch (a cache of
/// another model), arena_too_small, misaligned.
[[nodiscard]] Status make_generator(const Model& model, const Tokenizer& tokenizer, const Cache& cache,
                                    const GeneratorLimits& limits, std::span<std::byte> arena,
                                    Generator& generator) noexcept;

/// Tells the generator which `tokens` its cache holds, if others filled or restored it: start then computes only what
/// differs. Ends the present text. In the place of each row of vectors is its key, see row_keys in fovea/workspace.h: a program
/// computes a prompt's rows by forward, and the text up to them, tells of it here, and starts with the whole prompt.
/// Errors, nothing changed: bad_argument (not made, cache ended), bad_shape (not as many as the cache has), context_full.
[[nodiscard]] Status resume(Generator& generator, std::span<const Token> tokens) noexcept;

/// Begins a text with `prompt`, at least one token. What the cache holds of it stays, as far as rewind reaches; at least the
/// last is computed. Keys of rows may be among the tokens that stay.
/// Errors, nothing changed: bad_argument (not made, cache ended, options outside their ranges, stop strings that are
/// empty or not UTF-8, a draft of another vocabulary or with this cache), bad_shape (no token), context_full,
/// token_out_of_range (a row's key beyond what stays, too), buffer_too_small (stop strings), section_missing (stop strings
/// without a tokenizer), session_mismatch (a draft's cache of another model), unsupported (penalties left out of this
/// build; a draft of a text with rows).
[[nodiscard]] Status start(Generator& generator, std::span<const Token> prompt,
                           const GenerateOptions& options) noexcept;

/// Has the text's tokens proposed so from its coming step on. What the same draft has read of the text stays; with n_proposed 0 it
/// does not run.
/// Errors, nothing changed: bad_argument (not made, no text that goes on, a step that waits for take), those that start has for
/// its speculation.
[[nodiscard]] Status speculate(Generator& generator, const Speculation& speculation) noexcept;

/// The step to compute next: the prompt, or the last token and proposals. The same until take. A draft model runs here.
/// Errors, nothing changed: bad_argument (not made, no text, one that has ended), cancelled (by the draft's flag).
[[nodiscard]] Status next_step(Generator& generator, Step& step) noexcept;

/// Reads the logits of a step that was computed: chooses tokens, forgets refused ones, and hands out the text.
/// Errors, nothing changed: bad_argument (the step was not computed, no token is allowed, a logit is NaN).
[[nodiscard]] Status take(Generator& generator, Piece& piece) noexcept;

/// One turn: next_step, forward, take. Errors are theirs.
[[nodiscard]] Status generate(Generator& generator, Workspace& workspace, Piece& piece) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
