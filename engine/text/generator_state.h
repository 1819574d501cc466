// The state at the start of a generator's arena.
#pragma once
#include "engine/format/parts.h"
#include "engine/text/economy.h"
#include "engine/text/stop_text.h"
#include "fovea/generator.h"

namespace fovea {

/// The arena's parts, in bytes from its start.
struct GeneratorMap {
    std::uint64_t tokens = 0, logits = 0, candidates = 0, mask = 0, text = 0, stop = 0;
    std::uint64_t text_bytes = 0;
};

/// Vectors of positions [first, first + n), the first ones in DraftModel::vectors.
struct KeptVectors {
    std::uint32_t first = 0, n = 0;
};

struct GeneratorState;
/// Where the step's vectors go, behind those that a next-token head has not read.
[[nodiscard]] std::span<float> step_vectors(const GeneratorState& s, std::uint32_t n) noexcept;

struct GeneratorState {
    Tokenizer tokenizer;
    Cache cache, memory;
    GeneratorLimits limits;
    std::uint32_t vocab_size = 0, d_model = 0;

    // Parts of the arena.
    Token* text = nullptr;  // [limits.max_tokens] the text, then what is proposed
    std::span<float> logits;
    std::span<Candidate> candidates;
    std::span<std::uint32_t> mask;
    std::span<char> bytes;  // of the text: handed out, then held back

    // The present text's.
    Sampler sampler;
    TokenFilter filter;
    Speculation speculation;
    Decoder decoder;
    StopText stop;
    std::span<const Token> end_tokens, shown;
    GenerateFigures figures;
    std::uint32_t n_text = 0;       // tokens
    std::uint32_t n_left = 0;       // new ones still to come at most
    std::uint32_t n_recent = 0;     // for the repeat penalty
    std::uint32_t n_counted = 0;    // for the penalties by count,
    std::uint32_t counts_from = 0;  // of the tokens from here on
    std::uint32_t n_cached = 0;     // of the tokens, in the cache before the present step
    /// Of the tokens, and those proposed, in the draft's cache; of vectors, those that a next-token head has read.
    std::uint32_t n_drafted = 0;
    std::uint32_t n_proposed = 0;  // in the present step
    std::uint32_t n_forced = 0;    // of those: all or none
    std::uint32_t marked = 0;      // where the cache is marked for the present step's proposals; 0: it is not
    std::uint32_t n_bytes = 0;     // in `bytes`, of which the first n_shown were handed out
    std::uint32_t n_shown = 0;
    std::uint32_t n_stopped = 0;  // bytes of the stop string that ended the text, behind n_bytes
    float mirostat_mu = 0;        // Mirostat's bound, in bits
    Match match;                  // of the present step
    KeptVectors vectors;          // for a next-token head
    Economy economy;
    FinishReason finish = FinishReason::none;
    bool running = false;         // there is a text, which has not ended
    bool stepped = false;         // next_step was called since take
    bool ends_by_length = false;  // when n_left is 0
    bool show_special = false;

    [[nodiscard]] std::span<const Token> tokens() const noexcept { return {text, n_text}; }
    [[nodiscard]] Step step() const noexcept {
        const std::uint32_t n = n_text + n_proposed - n_cached;
        const std::size_t n_rows = n_left ? std::size_t{1} + n_proposed : 0;
        Step step{
            cache, {text + n_cached, n}, logits.first(n_rows * vocab_size), has(Part::vectors) ? memory : Cache{}};
        if (has_head()) step.vectors = step_vectors(*this, n);
        return step;
    }
    /// Whether the draft is a next-token head: else `start` leaves it no vectors.
    [[nodiscard]] bool has_head() const noexcept {
        return has(Part::speculation) && has(Part::rows) && !speculation.draft.vectors.empty();
    }
};
inline constexpr std::uint64_t kGeneratorStateBytes = 704;
static_assert(sizeof(GeneratorState) <= kGeneratorStateBytes);

struct GeneratorAccess {
    [[nodiscard]] static GeneratorState* state(const Generator& generator) noexcept { return generator.state_; }
    static void set(Generator& generator, GeneratorState* state) noexcept { generator.state_ = state; }
};

/// The longest match of the text's last tokens, counted up to 16, the latest of equals. Looks back 8192 positions.
[[nodiscard]] Match find_match(std::span<const Token> text) noexcept;

/// Ends a mark that propose has set.
void forget_mark(GeneratorState& s) noexcept;

/// The bytes of the token after those that there are, behind s.bytes' first n_bytes.
std::string_view decode_next(GeneratorState& s, Token token) noexcept;

/// A draft's part of start. Errors: bad_argument.
[[nodiscard]] Status check_draft(const GeneratorState& s, const Speculation& options) noexcept;
/// A draft's pass beside one of the model, by their files' bytes; 0 without a draft.
[[nodiscard]] float draft_cost(const GeneratorState& s, const DraftModel& draft) noexcept;

/// The highest logit's token, the first of equals; the vocabulary's size if there is none.
[[nodiscard]] Token likeliest(std::span<const float> logits) noexcept;

// A next-token head's part of start, of a step that is to be computed, and of one that was. The first n_same tokens of the text are
// those of the text before.
void start_head(GeneratorState& s, std::uint32_t n_same) noexcept;
void place_vectors(GeneratorState& s) noexcept;
void keep_vectors(GeneratorState& s) noexcept;
/// Its proposals, `most` at most. Errors are those of propose.
[[nodiscard]] Status propose_by_head(GeneratorState& s, std::uint32_t most) noexcept;

/// Writes n_proposed tokens behind the text. Errors: cancelled, by the draft's flag.
[[nodiscard]] Status propose(GeneratorState& s) noexcept;

}  // namespace fovea
