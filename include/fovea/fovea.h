// The C interface: what most programs need of the C++ headers, with the same bits, for C, Python, WebAssembly and others.
// For C++ alone: frames of sound (sound.h), texts in pairs, other metadata (find_info), chosen rows and vectors before
// a head (EncodeInput), set_trace, crc32c and map_file.
//
//     struct fovea_model* model;                                    // 1. a view of a file's bytes
//     fovea_open_model(file, file_bytes, 0, memory, sizeof memory, &model);
//     fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 256, .max_text_bytes = 512};
//     fovea_plan plan = {.struct_size = sizeof plan};
//     fovea_plan_session(model, &limits, &plan);                    // 2. the size, before any memory is taken
//     fovea_session* s;                                             // 3. your bytes, at least plan.arena_bytes of them
//     fovea_make_session_of(model, &limits, arena, arena_bytes, &s);
//     fovea_tokenize(s, text, n_bytes, 0, tokens, capacity, &n);    // 4. as often as there is text
//     fovea_forward(s, tokens, n);
//     fovea_sample(s, NULL, 0, &token);
//
// examples/complete.c is a whole program. A session is one sequence of a model that gives logits, in one arena with all
// that it needs. This header includes four others: fovea_workspace.h, for many sequences, encoders and attention alone,
// fovea_generator.h, for whole texts, fovea_constraint.h, for answers of a form, and fovea_adapter.h, for adapters.
//
// Each function mirrors its C++ namesake, errors included: see model.h, session.h, workspace.h, cache.h, encode.h,
// tokenizer.h, sampler.h, generator.h and adapter.h. There is no global state and no heap; nothing has a destructor:
// release the memory.
//
// Threads: a session, a workspace, or a pool with its caches is used by one thread at a time; fovea_cancel alone may be
// called by any. Models never change: any number of threads, sessions and workspaces share one.
//
// Pointers must point to valid memory, unless a comment allows NULL; a handle or a struct that is NULL gives
// FOVEA_BAD_ARGUMENT if a status is returned. An array of no elements may be NULL. A call that fails changes nothing
// but what its comment names.
//
// Structs start with their size as the caller knows it, 4 to 1024. A smaller one than the library's lacks fields, which
// count as zero or are not written. A larger one's further bytes must be zero (else FOVEA_BAD_ARGUMENT), or are written
// as zero. Zeroed fields mean what is in [brackets]. Structs without struct_size never grow.
#ifndef FOVEA_FOVEA_H
#define FOVEA_FOVEA_H
#include <stddef.h>
#include <stdint.h>

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// Raised when callers must be compiled again; fovea_api_version() is the library's own. Version 2: models are handles,
/// fovea_encode runs an encoder, and what it did before is fovea_tokenize.
#define FOVEA_API_VERSION 2u
uint32_t fovea_api_version(void);
/// FOVEA_VERSION of fovea/version.h that the library was built with.
const char* fovea_version(void);
/// Raised whenever any bit of any result changes.
uint32_t fovea_numerics_version(void);

// ---- status --------------------------------------------------------------------------------------------------------

/// Error codes: FOVEA_OK is 0, then FOVEA_TRUNCATED, FOVEA_BAD_MAGIC and so on, with the numbers of fovea::Code.
/// codes.inc lists them with their meaning. Others may be added.
enum {
#define FOVEA_CODE(name, NAME, words) FOVEA_##NAME,
#include "fovea/codes.inc"
#undef FOVEA_CODE
    FOVEA_N_CODES  ///< how many this header knows
};

/// The result of a call: code is FOVEA_OK or an error. wanted and had are in the unit that `what` names; never NULL.
typedef struct {
    uint32_t code;
    const char* what;
    uint64_t wanted, had;
} fovea_status;

/// Writes a line and a closing zero, cut off at `capacity` >= 1 bytes; 160 hold any. Returns its length.
size_t fovea_describe(fovea_status status, char* line, size_t capacity);
/// A code in words, "pool full"; "unknown code" for any other number.
const char* fovea_code_name(uint32_t code);

// ---- models --------------------------------------------------------------------------------------------------------

/// A checked view of one file, in the caller's memory. It never changes. Objects made with it keep a copy, so the
/// handle's memory may be released; the file's may not. It has no typedef, for `fovea embed` calls a file's first byte
/// fovea_model.
struct fovea_model;

/// Bytes of memory for a model's handle, the same on every machine.
#define FOVEA_MODEL_BYTES 4096
/// A flag of fovea_open_model: also compute every section's checksum, which reads all of the file.
#define FOVEA_VERIFY 1

/// Opens a whole Fovea file, 64-byte aligned, which may hold any bytes at all and must stay as it is. `memory` is of at
/// least FOVEA_MODEL_BYTES and 8-byte aligned. Time: O(number of tensors), not O(bytes).
/// Errors, `memory` and *model unchanged: those of open_model and open_tokenizer; FOVEA_ARENA_TOO_SMALL,
/// FOVEA_MISALIGNED (memory), FOVEA_BAD_ARGUMENT (another flag).
fovea_status fovea_open_model(const void* file, size_t file_bytes, uint32_t flags, void* memory, size_t memory_bytes,
                              struct fovea_model** model);
/// Recomputes every section's checksum. Errors: FOVEA_CHECKSUM_MISMATCH.
fovea_status fovea_verify_model(const struct fovea_model* model);
/// The same of a file that is not open. Errors: those of fovea_open_model.
fovea_status fovea_verify(const void* file, size_t file_bytes);

/// Scaled dot-product attention over heads as they are: a model without a file.
typedef struct {
    uint32_t struct_size;     ///< sizeof(fovea_attention_shape)
    uint32_t n_heads;         ///< query heads, at least 1
    uint32_t n_kv_heads;      ///< key and value heads; divides n_heads [n_heads]
    uint32_t head_dim;        ///< floats of a query or key head, at least 1
    uint32_t value_head_dim;  ///< floats of a value head [head_dim]
    uint32_t window;          ///< a query sees this many positions, itself included; not causal: as many after it [all]
    uint32_t causal;          ///< not 0: a query sees no later position
    uint32_t zero_attn;       ///< not 0: a key and a value of zeros follow the others
    float softmax_scale;      ///< multiplies scores [1/sqrt(head_dim)]
    float score_softcap;      ///< scores become c·tanh(score/c) [unused]
} fovea_attention_shape;
/// `memory` as in fovea_open_model. Errors, nothing changed: FOVEA_CONFIG_INVALID, and those of `memory`.
fovea_status fovea_attention_model(const fovea_attention_shape* shape, void* memory, size_t memory_bytes,
                                   struct fovea_model** model);

/// Kinds of models, by their results: logits of a text's next token (sessions, fovea_forward_steps), vectors
/// (fovea_encode), or one attention alone (fovea_attend).
enum { FOVEA_LOGITS = 0, FOVEA_VECTORS = 1, FOVEA_ATTENTION = 2 };

/// Bytes that no zero ends; those of a model are in its file.
typedef struct {
    const char* bytes;
    size_t n_bytes;
} fovea_text;

#define FOVEA_NO_TOKEN 0xffffffffu

/// A model's facts. If it has an encoder and a decoder, counts are the decoder's, and those named source_ the
/// encoder's.
typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_info)
    uint32_t kind;         ///< FOVEA_LOGITS, FOVEA_VECTORS or FOVEA_ATTENTION
    uint32_t fingerprint;  ///< one number per file content; it is in saved caches too
    uint32_t n_layers;
    uint32_t d_model;        ///< floats of a row
    uint32_t vocab_size;     ///< logits, and tokens are below it; 0: the model reads vectors
    uint32_t max_positions;  ///< the longest text the model was made for; 0: any
    uint32_t n_heads;        ///< of the first layer, as the next three; see fovea_model_layer
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t value_head_dim;
    uint32_t n_token_types;     ///< token types are below it; 0: there are none
    uint32_t pools;             ///< 1: fovea_encode gives a vector for each sequence, else one for each row
    uint32_t reads_memory;      ///< 1: the decoder attends to an encoder's vectors
    uint32_t source_n_layers;   ///< 0: there is no encoder before a decoder
    uint32_t source_d_model;    ///< as d_model
    uint32_t source_vocab;      ///< as vocab_size
    uint32_t source_positions;  ///< as max_positions
    uint32_t source_types;      ///< as n_token_types
    uint32_t bos;               ///< the token that starts a text, or FOVEA_NO_TOKEN
    uint32_t adds_bos;          ///< 1: tokenizing puts bos first
    uint32_t has_tokenizer;     ///< 1: fovea_model_tokenize and its like work
    uint64_t file_bytes;
    uint64_t max_piece_bytes;  ///< the most that a token adds to a text
    fovea_text name;           ///< the model's name in its source, else its architecture
    fovea_text architecture;   ///< the source's own word: "llama", "gpt2", …
    fovea_text prompt_suffix;  ///< closes a prompt before the model answers; often empty
    fovea_text chat_template;  ///< the source's own (Jinja); the library does not run it
    uint32_t result_width;  ///< floats of each result of fovea_encode: d_model, or what the model's head makes of them
} fovea_info;
fovea_status fovea_model_info(const struct fovea_model* model, fovea_info* info);

/// One layer; widths are in floats.
typedef struct {
    uint32_t struct_size;                                        ///< sizeof(fovea_layer)
    uint32_t n_heads;                                            ///< 0: the layer has no attention
    uint32_t n_kv_heads;                                         ///< divides n_heads
    uint32_t head_dim;                                           ///< of a query or key head
    uint32_t value_head_dim;                                     ///< of a value head
    uint32_t d_ff;                                               ///< 0: there is no feed-forward part
    uint32_t window;                                             ///< positions that a query sees; 0: all
    uint32_t causal;                                             ///< 1: a query sees no later position
    uint32_t cross_attention;                                    ///< 1: it also attends to the encoder's vectors
    uint32_t n_appended;                                         ///< keys that the layer adds to the caller's, 0 to 2
    uint32_t no_projections;                                     ///< 1: heads as they are, without projections
    uint32_t query_width, key_width, value_width, output_width;  ///< of the rows that a module takes and gives
} fovea_layer;
/// Errors: FOVEA_BAD_ARGUMENT (no such layer). in_encoder matters only if the model has both stacks.
fovea_status fovea_model_layer(const struct fovea_model* model, int in_encoder, uint32_t layer, fovea_layer* out);

// ---- text ----------------------------------------------------------------------------------------------------------

/// How a text is tokenized: a sum of these, or 0.
enum {
    /// A "<|name|>" in it is that special token.
    FOVEA_READ_SPECIAL = 1,
    /// Leaves out the tokens the model wants around a text, for a text that continues another. The space that
    /// SentencePiece puts before a text is no such token, and stays.
    FOVEA_NO_SPECIAL = 2
};

/// The most that a text of text_bytes bytes needs: bytes of scratch (tokenizer.h says how many) and tokens. 2^64 − 1 if
/// no number holds it; 0 if there is no tokenizer.
uint64_t fovea_scratch_bytes(const struct fovea_model* model, uint64_t text_bytes);
uint64_t fovea_max_tokens(const struct fovea_model* model, uint64_t text_bytes);

/// Writes the ids of `text`, any bytes, and their number. scratch: fovea_scratch_bytes, 4-byte aligned.
/// Errors, *n_tokens 0: those of tokenizer.h's tokenize; FOVEA_BAD_ARGUMENT for any other `how`. If capacity is too
/// small, `wanted` is how many tokens the text gives.
fovea_status fovea_model_tokenize(const struct fovea_model* model, const char* text, size_t text_bytes, int how,
                                  void* scratch, size_t scratch_bytes, uint32_t* tokens, size_t capacity,
                                  size_t* n_tokens);

/// A text's unfinished character. Zeros are the start of a text, where models with SentencePiece (Llama 2, Mistral) lose
/// the space before the first word. A continuation loses it too unless the prompt went through the decoder: give it the
/// prompt's tokens first and drop what they add; then "How are" goes on with " you", not with "you".
typedef struct {
    uint8_t held[4], n_held, started;
} fovea_decoder;

/// Writes what `token` adds to the text, whole UTF-8 characters and no closing zero, to out [max_piece_bytes], and
/// returns how many bytes that is; FOVEA_NO_TOKEN gives what is left at a text's end. Special tokens give nothing.
size_t fovea_model_decode(const struct fovea_model* model, fovea_decoder* decoder, uint32_t token, char* out,
                          size_t capacity);

/// The bytes `token` stands for; empty for an id out of range.
fovea_text fovea_token_bytes(const struct fovea_model* model, uint32_t token);
/// A sum of these, or 0: the token is no text, as <|end|>; the model ends its text with it.
enum { FOVEA_SPECIAL_TOKEN = 1, FOVEA_END_TOKEN = 2 };
uint32_t fovea_token_flags(const struct fovea_model* model, uint32_t token);

/// Added to a token's logit, whatever the text: within ±1e30, or -INFINITY, which forbids the token.
typedef struct {
    uint32_t token;
    float bias;
} fovea_logit_bias;

/// Further samplers, see MoreSamplers of sampler.h. Zeros choose what is in brackets.
typedef struct {
    float dry_multiplier;  ///< above 0: what goes on with a repetition of `recent` loses logits, see sampler.h [0]
    float dry_base;        ///< [1.75]
    uint32_t dry_allowed_length;  ///< [2]
    float top_n_sigma;            ///< keep logits within so many standard deviations of the highest [all]
    float typical_p;              ///< keep the fewest of nearly average surprise that reach p [1]
    float xtc_probability;        ///< how often all but the last of those at least xtc_threshold probable go [0]
    float xtc_threshold;          ///< [0.1]
    uint32_t mirostat;            ///< 2: Mirostat 2.0; a generator alone follows a text with it [0]
    float mirostat_tau;           ///< [5]
    float mirostat_eta;           ///< [0.1]
    uint32_t min_tokens;          ///< a generator ends no text before so many new tokens [0]
} fovea_more_samplers;

/// How a token is chosen; zeros choose what is in brackets.
typedef struct {
    uint32_t struct_size;          ///< sizeof(fovea_sampler)
    uint32_t top_k;                ///< keep the k most likely [all]
    float temperature;             ///< [the most likely token]
    float top_p;                   ///< then the fewest whose probabilities reach p [1]
    float min_p;                   ///< then those at least min_p times as likely as the first [0]
    float repeat_penalty;          ///< divides positive, multiplies negative logits of recent tokens [1]
    uint64_t seed;                 ///< one seed gives one text, on every machine
    float frequency_penalty;       ///< taken from a token's logit for each time it came, -1000 to 1000 [0]
    float presence_penalty;        ///< taken once, if it came at all [0]
    const fovea_logit_bias* bias;  ///< [n_bias]; must stay while the sampler is in use [NULL]
    size_t n_bias;
    const fovea_more_samplers* more;  ///< must stay while the sampler is in use [NULL]
} fovea_sampler;

/// Chooses a token from the caller's logits [n_logits]. pos: the token's position in its text, for a seed has a random
/// number for each. recent [n_recent]: what penalties apply to. allowed [(n_logits + 31) / 32]: bit id % 32 of
/// word id / 32 says whether a token may be chosen; NULL: all may. scratch: 8 · n_logits bytes, 4-byte aligned.
/// Errors, *token unchanged: those of make_sampler and sample; FOVEA_MISALIGNED (scratch).
fovea_status fovea_sample_logits(const fovea_sampler* sampler, uint32_t pos, const float* logits, size_t n_logits,
                                 const uint32_t* recent, size_t n_recent, const uint32_t* allowed, void* scratch,
                                 size_t scratch_bytes, uint32_t* token);

// ---- plans ---------------------------------------------------------------------------------------------------------

enum { FOVEA_F32 = 0, FOVEA_F16 = 1, FOVEA_Q8 = 3, FOVEA_Q4 = 4 };

/// A host's own threads: calls work(argument, member) once for each member below n_members, all at the same time, each
/// on a thread of its own, and returns when all have returned. See Executor in workspace.h.
typedef void (*fovea_run)(void* context, uint32_t n_members, void (*work)(void* argument, uint32_t member),
                          void* argument);
/// OpenMP's team, for fovea_limits.run; NULL in builds without it, which means the engine's own threads. See
/// openmp_executor in executors.h.
fovea_run fovea_openmp(void);

/// Capacities of a session or a workspace, and how it is run; zeros choose what is in brackets.
typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_limits)
    /// Tokens of a text and its continuation together [all the model was made for]. Each costs a session its keys and
    /// values, a workspace little. 0 if the model gives no logits.
    uint32_t max_positions;
    /// Rows computed together; longer prompts go in pieces [a session: the smaller of 192 and max_positions; a workspace:
    /// 192; encode, attend, which need all rows of a call: the model's positions, or 512]. Each costs a row of activations.
    uint32_t max_batch;
    uint32_t max_text_bytes;  ///< a session's longest text for fovea_tokenize; each byte costs up to 640 [none]
    uint32_t n_threads;       ///< each costs some KB of scratch [1]
    uint32_t kv_type;         ///< keys and values are cached as FOVEA_F32, FOVEA_F16, FOVEA_Q8 or FOVEA_Q4 [FOVEA_F32]
    const char* isa;          ///< an instruction set's name, which changes no result [the best for the model]
    uint32_t max_sequences;   ///< steps of a pass [a session 1, a workspace max_batch]; encode, attend: sequences [1]
    uint32_t max_key_rows;    ///< encode, attend: the memory's rows, or keys, of all sequences [max_batch]
    uint32_t cancellable;     ///< not 0: fovea_cancel works [no]
    uint32_t max_marks;       ///< of a session with recurrent layers, see fovea_mark_cache; each costs a state [2]
    fovea_run run;            ///< the host's threads, in place of the engine's own [NULL]
    void* run_context;        ///< given to `run`; must outlive the session or workspace
    uint32_t max_adapters;    ///< in use at a time, see fovea_adapter.h; each costs a table of its tensors [none]
    uint32_t max_adapter_rank;  ///< the largest of their ranks [none]; costs rows between an adapter's two matrices
} fovea_limits;

/// The exact memory for a model and limits, the same on every machine, and what a caller's own arrays must hold.
typedef struct {
    uint32_t struct_size;    ///< sizeof(fovea_plan)
    uint32_t vocab_size;     ///< logits; tokens are below it
    uint32_t max_positions;  ///< as in the limits, its zero replaced
    uint32_t max_batch;
    uint64_t arena_bytes;        ///< exactly what the session or workspace needs
    uint64_t max_tokens;         ///< the most that a text of max_text_bytes can give
    uint64_t max_piece_bytes;    ///< the most that a token adds to a text
    const char* prompt_suffix;   ///< closes a prompt before the model answers; in the file, not ended by a zero
    size_t prompt_suffix_bytes;  ///< often 0
    uint32_t max_sequences;      ///< as in the limits
    uint32_t max_key_rows;
} fovea_plan;

/// Errors, *plan unchanged: those of make_plan; FOVEA_UNSUPPORTED for a session if the model gives no logits.
fovea_status fovea_plan_session(const struct fovea_model* model, const fovea_limits* limits, fovea_plan* plan);
fovea_status fovea_plan_workspace(const struct fovea_model* model, const fovea_limits* limits, fovea_plan* plan);
/// A session's, of a file that is not open. Errors: those of fovea_open_model too.
fovea_status fovea_make_plan(const void* file, size_t file_bytes, const fovea_limits* limits, fovea_plan* plan);

// ---- sessions ------------------------------------------------------------------------------------------------------

/// One sequence: a workspace, a cache, logits, a sampler and scratch. Lives in the caller's arena.
typedef struct fovea_session fovea_session;

/// Makes a session at `arena`, 64-byte aligned, with all the memory it will ever use, and starts its threads. The file
/// and the arena must outlive it. Errors, the arena unchanged: those of fovea_plan_session and make_session.
fovea_status fovea_make_session_of(const struct fovea_model* model, const fovea_limits* limits, void* arena,
                                   size_t arena_bytes, fovea_session** session);
/// The same, from a file. Errors: those of fovea_open_model too.
fovea_status fovea_make_session(const void* file, size_t file_bytes, const fovea_limits* limits, void* arena,
                                size_t arena_bytes, fovea_session** session);

/// fovea_model_tokenize with the session's scratch. A text above max_text_bytes may be FOVEA_BUFFER_TOO_SMALL.
fovea_status fovea_tokenize(fovea_session* session, const char* text, size_t text_bytes, int how, uint32_t* tokens,
                            size_t capacity, size_t* n_tokens);

/// Appends tokens [n_tokens] and computes the logits that follow the last.
fovea_status fovea_forward(fovea_session* session, const uint32_t* tokens, size_t n_tokens);
/// The same with the logits in the caller's memory: n_logits is vocab_size, for those after the last token, n_tokens ·
/// vocab_size, for those after each, or 0, for none, which saves their time. fovea_logits stay as they are.
fovea_status fovea_forward_into(fovea_session* session, const uint32_t* tokens, size_t n_tokens, float* logits,
                                size_t n_logits);

/// [vocab_size] float32, unnormalised, of the last fovea_forward; zeros before the first.
const float* fovea_logits(const fovea_session* session);

/// How many positions are cached; going back to fewer of them. *reached, unless reached is NULL, becomes how many there are
/// then: kv_len or, where the model has recurrent layers, those of the latest mark at or below it, see fovea_mark_cache.
/// Errors, nothing changed: FOVEA_BAD_ARGUMENT (fewer positions).
uint32_t fovea_kv_len(const fovea_session* session);
fovea_status fovea_rewind(fovea_session* session, uint32_t kv_len, uint32_t* reached);

/// The session's sampler from here on; until the first call, the most likely token.
fovea_status fovea_set_sampler(fovea_session* session, const fovea_sampler* sampler);
/// Chooses the next token from fovea_logits; recent [n_recent] is what penalties apply to, NULL for none. The random
/// number belongs to the position, fovea_kv_len: asked twice there, it gives the same token.
fovea_status fovea_sample(fovea_session* session, const uint32_t* recent, size_t n_recent, uint32_t* token);
/// Whether the model ends its text with this token.
int fovea_ends_text(const fovea_session* session, uint32_t token);
/// As fovea_model_decode, whose comment says what becomes of the first space after a prompt.
size_t fovea_decode(const fovea_session* session, fovea_decoder* decoder, uint32_t token, char* out, size_t capacity);

#ifdef __cplusplus
}
#endif
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif

#include "fovea/fovea_workspace.h"
#endif
