// The C interface: text or tokens in, logits and text out, over the same engine as the C++ headers, with the same bits.
//
//     fovea_limits limits = {.struct_size = sizeof limits, .max_positions = 256, .max_text_bytes = 512};
//     fovea_plan plan = {.struct_size = sizeof plan};
//     fovea_make_plan(file, file_bytes, &limits, &plan);           // 1. the size, before any memory is taken
//     fovea_session* s;                                            // 2. your bytes, at least plan.arena_bytes of them
//     fovea_make_session(file, file_bytes, &limits, arena, sizeof arena, &s);
//     fovea_encode(s, text, n_bytes, 0, tokens, capacity, &n);     // 3. as often as there is text
//     fovea_forward(s, tokens, n);
//     fovea_sample(s, NULL, 0, &token);
//
// For models that give logits. A function does what the C++ one of its name does and refuses what that refuses, with
// the same code: see model.h, session.h, tokenizer.h and sampler.h. There is no global state and no heap. Threads: one
// session is used by one thread at a time, best by the one that made it, to which its threads belong; functions
// without a session may be called by any thread at any time; any number of sessions share a file. Pointers are to valid
// memory unless NULL is said to do; a call that fails changes nothing but what its comment names. Structs start with
// their size as the caller knows it, 4 to 1024. A smaller one than the library's lacks fields, which count as zero or are
// not written. A larger one's further bytes must be zero (else FOVEA_BAD_ARGUMENT), or are written as zero.
#ifndef FOVEA_FOVEA_H
#define FOVEA_FOVEA_H
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// Raised where a caller has to be compiled anew; fovea_api_version() is the library's own.
#define FOVEA_API_VERSION 1u
uint32_t fovea_api_version(void);

/// What went wrong: the numbers of fovea::Code (fovea/status.h), which says when. Others may be added.
// clang-format off
enum {
    FOVEA_OK, FOVEA_TRUNCATED, FOVEA_BAD_MAGIC, FOVEA_VERSION_UNSUPPORTED, FOVEA_MISALIGNED, FOVEA_CHECKSUM_MISMATCH,
    FOVEA_SECTION_MISSING, FOVEA_SECTION_INVALID, FOVEA_CONFIG_INVALID, FOVEA_TENSOR_MISSING, FOVEA_TENSOR_INVALID,
    FOVEA_UNSUPPORTED, FOVEA_BAD_LIMITS, FOVEA_ARENA_TOO_SMALL, FOVEA_BAD_SHAPE, FOVEA_TOKEN_OUT_OF_RANGE,
    FOVEA_CONTEXT_FULL, FOVEA_BUFFER_TOO_SMALL, FOVEA_BAD_ARGUMENT, FOVEA_ISA_UNAVAILABLE, FOVEA_IO_ERROR,
    FOVEA_THREADS_UNAVAILABLE, FOVEA_SESSION_MISMATCH, FOVEA_CANCELLED,
    FOVEA_POOL_FULL
};
// clang-format on

/// What a call came to: code is FOVEA_OK or another. wanted and had are in the unit that `what` names.
typedef struct {
    uint32_t code;
    const char* what;
    uint64_t wanted, had;
} fovea_status;

/// Writes a line and a closing zero, cut off at `capacity` >= 1 bytes; 160 hold any. Returns its length.
size_t fovea_describe(fovea_status status, char* line, size_t capacity);

enum { FOVEA_F32 = 0, FOVEA_F16 = 1, FOVEA_Q8 = 3 };

/// What a session must be able to hold; zeros choose what is in brackets.
typedef struct {
    uint32_t struct_size;     ///< sizeof(fovea_limits)
    uint32_t max_positions;   ///< tokens of a text and its continuation together [all the model was made for]
    uint32_t max_batch;       ///< tokens computed together; longer prompts go in pieces [192, or max_positions]
    uint32_t max_text_bytes;  ///< the longest text fovea_encode is given [none]
    uint32_t n_threads;       ///< [1]
    uint32_t kv_type;         ///< how keys and values are cached: FOVEA_F32, FOVEA_F16 or FOVEA_Q8 [FOVEA_F32]
    const char* isa;          ///< the instruction set's name, or NULL for the best; it changes no result
} fovea_limits;

/// The exact memory for a file and limits, the same on every machine, and what a caller's own arrays must hold.
typedef struct {
    uint32_t struct_size;    ///< sizeof(fovea_plan)
    uint32_t vocab_size;     ///< logits; tokens are below it
    uint32_t max_positions;  ///< as in the limits, its zero replaced
    uint32_t max_batch;
    uint64_t arena_bytes;        ///< exactly what fovea_make_session needs
    uint64_t max_tokens;         ///< the most that a text of max_text_bytes can give
    uint64_t max_piece_bytes;    ///< the most that a token adds to a text
    const char* prompt_suffix;   ///< closes a prompt before the model answers; in the file, not ended by a zero
    size_t prompt_suffix_bytes;  ///< often 0
} fovea_plan;

/// `file` is a whole Fovea file, 64-byte aligned, in any memory; it may hold any bytes at all. Errors: those of
/// open_model, open_tokenizer and make_plan; FOVEA_UNSUPPORTED where the model gives no logits.
fovea_status fovea_make_plan(const void* file, size_t file_bytes, const fovea_limits* limits, fovea_plan* plan);

/// As open_model with verify_checksums: reads all of the file.
fovea_status fovea_verify(const void* file, size_t file_bytes);

/// Lives in the caller's arena; to end it, forget it.
typedef struct fovea_session fovea_session;

/// Makes a session at `arena`, 64-byte aligned, with all the memory it will ever use, and starts its threads. The file
/// and the arena must outlive it. Errors: those of fovea_make_plan and make_session.
fovea_status fovea_make_session(const void* file, size_t file_bytes, const fovea_limits* limits, void* arena,
                                size_t arena_bytes, fovea_session** session);

/// How fovea_encode reads a text: a sum of these, or 0.
enum {
    /// A "<|name|>" in it is that special token.
    FOVEA_READ_SPECIAL = 1,
    /// Without the tokens the model wants around a text, as where it goes on from one before it. The space that
    /// SentencePiece puts before a text is no such token, and stays.
    FOVEA_NO_SPECIAL = 2
};

/// Writes the ids of `text`, any bytes, and their number; `how` it is read, see above.
/// Errors, *n_tokens 0: those of encode; FOVEA_BAD_ARGUMENT for any other `how`; a text above max_text_bytes may be
/// FOVEA_BUFFER_TOO_SMALL.
fovea_status fovea_encode(fovea_session* session, const char* text, size_t text_bytes, int how, uint32_t* tokens,
                          size_t capacity, size_t* n_tokens);

/// Appends tokens [n_tokens] and computes the logits that follow the last.
fovea_status fovea_forward(fovea_session* session, const uint32_t* tokens, size_t n_tokens);

/// [vocab_size] float32, unnormalised, of the last fovea_forward; zeros before the first.
const float* fovea_logits(const fovea_session* session);

/// How many positions there are; back to an earlier number of them.
uint32_t fovea_kv_len(const fovea_session* session);
fovea_status fovea_rewind(fovea_session* session, uint32_t kv_len);

/// How fovea_sample chooses; zeros choose what is in brackets.
typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_sampler)
    uint32_t top_k;        ///< [all]
    float temperature;     ///< [the most likely token]
    float top_p;           ///< [1]
    float min_p;           ///< [0]
    float repeat_penalty;  ///< [1]
    uint64_t seed;         ///< one seed gives one text, on every machine
} fovea_sampler;

/// The session's sampler from here on; until the first call, the most likely token.
fovea_status fovea_set_sampler(fovea_session* session, const fovea_sampler* sampler);

/// Chooses the next token from the logits; recent [n_recent] is what repeat_penalty applies to, NULL for none.
fovea_status fovea_sample(fovea_session* session, const uint32_t* recent, size_t n_recent, uint32_t* token);

/// Whether the model ends its text with this token.
int fovea_ends_text(const fovea_session* session, uint32_t token);

/// A text's unfinished character; zeros before its first token. It may be given the prompt's tokens too.
typedef struct {
    uint8_t held[4], n_held, started;
} fovea_decoder;
#define FOVEA_NO_TOKEN 0xffffffffu

/// Writes what `token` adds to the text, whole UTF-8 characters and no closing zero, to out [plan.max_piece_bytes], and
/// returns how many bytes that is; FOVEA_NO_TOKEN gives what is left at a text's end. Special tokens give nothing.
size_t fovea_decode(const fovea_session* session, fovea_decoder* decoder, uint32_t token, char* out, size_t capacity);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
