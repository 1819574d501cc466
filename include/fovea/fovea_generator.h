// The C interface's generators: a prompt's continuation, pass by pass, with a sampler, stop strings, forbidden tokens and
// speculation. Included by fovea.h, whose rules hold here too; generator.h says more.
//
//     fovea_make_generator(model, &cache, &limits, arena, arena_bytes, &generator);     // size: fovea_plan_generator
//     const fovea_generate_options options = {.struct_size = sizeof options, .n_new = 100};
//     fovea_start(generator, prompt, n_prompt, &options);                       // nothing allocates
//     fovea_piece piece = {.struct_size = sizeof piece};
//     do {
//         if (fovea_generate(generator, workspace, &piece).code != FOVEA_OK) return 1;
//         fwrite(piece.text.bytes, 1, piece.text.n_bytes, stdout);
//     } while (piece.finish == FOVEA_FINISH_NONE);
//
// fovea_generate is fovea_next_step, fovea_forward_steps and fovea_take. Many generators share one pass when a caller does
// the three: fovea_next_step of each, one fovea_forward_steps with all the steps, fovea_take of each.
#ifndef FOVEA_FOVEA_GENERATOR_H
#define FOVEA_FOVEA_GENERATOR_H
#include "fovea/fovea.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// Makes texts in one cache, one after the other. Lives in the caller's arena; used by its cache's thread.
typedef struct fovea_generator fovea_generator;

/// Capacities of a generator; zeros choose what is in brackets.
typedef struct {
    uint32_t struct_size;     ///< sizeof(fovea_generator_limits)
    uint32_t max_tokens;      ///< of a text with its prompt; each costs 4 bytes [all the model was made for]
    uint32_t max_stop_bytes;  ///< of all stop strings together, at most 65535; each costs 9 bytes [256]
    uint32_t max_proposed;    ///< tokens speculated in one pass, at most 256; each costs a row of logits [none]
} fovea_generator_limits;

typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_generator_plan)
    uint32_t max_tokens;   ///< as in the limits, zeros replaced
    uint32_t max_stop_bytes;
    uint32_t max_proposed;
    uint64_t arena_bytes;  ///< exactly what fovea_make_generator needs, the same on every machine
} fovea_generator_plan;

/// Errors, *plan unchanged: those of make_generator_plan.
fovea_status fovea_plan_generator(const struct fovea_model* model, const fovea_generator_limits* limits,
                                  fovea_generator_plan* plan);
/// A generator of texts in `cache`, which is its own from here on: a pool's, or fovea_session_cache. `arena` is 64-byte
/// aligned; it, the file and the cache's memory must outlive the generator. A model without a tokenizer gives tokens
/// without text. Errors, the arena unchanged: those of make_generator.
fovea_status fovea_make_generator(const struct fovea_model* model, const fovea_cache* cache,
                                  const fovea_generator_limits* limits, void* arena, size_t arena_bytes,
                                  fovea_generator** generator);

/// Forbids tokens: by a list, by a function, or both. A mask has a bit for each token, bit id % 32 of word id / 32, set
/// if it may be chosen; n_mask is (vocab_size + 31) / 32 words.
typedef struct {
    uint32_t struct_size;     ///< sizeof(fovea_token_filter)
    uint32_t reserved;        ///< 0
    const uint32_t* allowed;  ///< a mask for every token of the text; must stay [all may be chosen]
    /// Called before each token is chosen; clears bits of `mask`, which starts as `allowed`. text [n_text] is the prompt
    /// and every token since, each once and none that is refused later, with speculation too. [NULL]
    void (*allow)(void* context, const uint32_t* text, size_t n_text, uint32_t* mask, size_t n_mask);
    void (*accept)(void* context, uint32_t token);  ///< called after it: joins the text, or ends it [NULL]
    void* context;                                  ///< given to all three
    /// Writes the next tokens that are forced (allow would leave only them, one after the other), at most `capacity`,
    /// and returns how many: up to limits.max_proposed go through one pass [NULL]
    size_t (*forced)(void* context, uint32_t* tokens, size_t capacity);
} fovea_token_filter;

/// Tokens proposed in advance and verified in one pass. Text and logits are the same as without, in every bit.
typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_speculation)
    uint32_t n_proposed;   ///< tokens a pass, at most limits.max_proposed [none]
    uint32_t always;       ///< not 0: also if it does not pay
    float row_cost;        ///< what a proposal costs, as a share of a pass of one row; a first guess with a clock [0.2]
    /// The workspace of a smaller model with the same vocabulary, or of the model's next-token head, which makes proposals; used by
    /// the same thread. NULL: the tokens that followed an earlier occurrence of the text's end are proposed.
    fovea_workspace* draft;
    fovea_cache draft_cache;  ///< of the draft's model; the generator's own while a text goes on
    uint64_t (*clock)(void);  ///< ticks of any constant length: costs are measured by it [NULL]
    /// Of a draft that is the model's next-token head: room for the model's vectors, d_model for each of n_proposed + 2 tokens at
    /// least. The head reads as many of a prompt's last tokens. [NULL]
    float* draft_vectors;
    size_t n_draft_vectors;
} fovea_speculation;

/// How a text is made; zeros choose what is in brackets.
typedef struct {
    uint32_t struct_size;                  ///< sizeof(fovea_generate_options)
    uint32_t n_new;                        ///< new tokens at most [as many as there is room for]
    const fovea_sampler* sampler;          ///< [NULL: the most likely token]
    const fovea_token_filter* filter;      ///< [NULL: all tokens may be chosen]
    const fovea_speculation* speculation;  ///< [NULL: none]
    /// The text ends before the one of these that is complete first; of several, the longest. UTF-8, none empty; copied.
    const fovea_text* stop;
    size_t n_stop;              ///< at most half as many as the vocabulary has tokens [0]
    uint32_t show_special;      ///< not 0: special tokens show in the text
    uint32_t n_recent;          ///< tokens that repeat_penalty looks back, the prompt's among them [64]
    const fovea_cache* memory;  ///< of a model that reads a memory: see generator.h [NULL: none]
    uint32_t n_counted;         ///< tokens that frequency_penalty and presence_penalty look back [all]
    uint32_t counts_prompt;     ///< not 0: the prompt's among them
    /// Tokens that end the text as the model's own end tokens do; must stay until the text has ended [NULL]
    const uint32_t* end_tokens;
    size_t n_end_tokens;
} fovea_generate_options;

/// Begins a text with tokens [n_tokens], at least one. The part that the cache holds stays; at least the last is
/// computed.
/// Errors, nothing changed: those of generator.h's start.
fovea_status fovea_start(fovea_generator* generator, const uint32_t* tokens, size_t n_tokens,
                         const fovea_generate_options* options);
/// Tells the generator that its cache, filled by others or restored, holds tokens [n_tokens]: fovea_start then computes
/// only what differs. Ends the text.
/// Errors, nothing changed: those of generator.h's resume.
fovea_status fovea_resume(fovea_generator* generator, const uint32_t* tokens, size_t n_tokens);

/// Why a text ended: FinishReason of generator.h.
enum {
    FOVEA_FINISH_NONE = 0,       ///< it has not
    FOVEA_FINISH_END_TOKEN = 1,  ///< the model ended it, or one of end_tokens; that token is no part of it
    FOVEA_FINISH_STOP_TEXT = 2,  ///< a stop string, which is no part of the text; its tokens are of the tokens
    FOVEA_FINISH_LENGTH = 3,     ///< n_new tokens
    FOVEA_FINISH_CONTEXT = 4     ///< no room in the cache, or in the generator
};

/// The result of one turn, in the generator's arena: text and tokens stay until fovea_take, logits until
/// fovea_next_step.
typedef struct {
    uint32_t struct_size;    ///< sizeof(fovea_piece)
    uint32_t finish;         ///< FOVEA_FINISH_NONE while the text goes on
    fovea_text text;         ///< whole UTF-8 characters; what could begin a stop string waits for the next piece
    const uint32_t* tokens;  ///< [n_tokens] new ones, in order
    size_t n_tokens;
    const float* logits;  ///< [n_logits], vocab_size for each token: what it was chosen from
    size_t n_logits;
} fovea_piece;

/// The step to compute next: the prompt, or the last token and proposals; cache and logits included. The same until
/// fovea_take. A draft model runs here. step->struct_size is set by the caller, and covers n_logits.
/// Errors, nothing changed: those of next_step.
fovea_status fovea_next_step(fovea_generator* generator, fovea_step* step);
/// Reads the logits of a step that was computed: chooses tokens, forgets refused ones, and hands out the text.
/// Errors, nothing changed: those of take.
fovea_status fovea_take(fovea_generator* generator, fovea_piece* piece);
/// One turn of a text: all three. Errors are theirs and those of fovea_forward_steps.
fovea_status fovea_generate(fovea_generator* generator, fovea_workspace* workspace, fovea_piece* piece);

/// Counts of the text since fovea_start.
typedef struct {
    uint32_t struct_size;     ///< sizeof(fovea_generate_figures)
    uint32_t n_prompt;        ///< tokens of the prompt
    uint32_t n_kept;          ///< of those, in the cache already
    uint32_t n_tokens;        ///< new ones
    uint32_t n_passes;        ///< forward passes after the prompt's
    uint32_t n_proposed;      ///< tokens speculated
    uint32_t n_accepted;      ///< of those, right ones
    uint32_t n_draft_passes;  ///< forward passes of the draft model
    uint32_t n_forced;        ///< tokens that took no pass of their own: the filter left no other
} fovea_generate_figures;
fovea_status fovea_generator_figures(const fovea_generator* generator, fovea_generate_figures* figures);
/// Prompt and new tokens, [*n_tokens]. The cache holds them all but the last, which no token has followed yet, or fewer: see
/// Generator::tokens.
const uint32_t* fovea_generator_tokens(const fovea_generator* generator, size_t* n_tokens);
/// One of FOVEA_FINISH_NONE and those after it, of the present text; none if there is no text.
uint32_t fovea_generator_finish(const fovea_generator* generator);

#ifdef __cplusplus
}
#endif
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif

#include "fovea/fovea_constraint.h"
#endif
