// The C interface beyond one sequence: workspaces, which compute; pools of caches, which hold keys and values;
// encoders; attention alone. Included by fovea.h, whose rules hold here too.
//
//     fovea_make_workspace(model, &limits, arena, arena_bytes, &workspace);     // sizes: fovea_plan_workspace and
//     fovea_make_pool(model, &pool_limits, memory, memory_bytes, &pool);        // fovea_plan_pool
//     fovea_make_cache(pool, &a);
//     fovea_step steps[2] = {{.struct_size = sizeof *steps, .cache = a, .tokens = prompt, .n_tokens = n}, ...};
//     fovea_forward_steps(workspace, steps, 2);                                 // one pass for both
//     fovea_fork_cache(&a, &b);                                                 // shares every page
#ifndef FOVEA_FOVEA_WORKSPACE_H
#define FOVEA_FOVEA_WORKSPACE_H
#include "fovea/fovea.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

// ---- workspaces ----------------------------------------------------------------------------------------------------

/// Threads and the rows of one pass, in the caller's arena: for caches of any pool of its model, encode and attend.
typedef struct fovea_workspace fovea_workspace;

/// `arena` as in fovea_make_session_of. Errors, the arena unchanged: those of make_workspace.
fovea_status fovea_make_workspace(const struct fovea_model* model, const fovea_limits* limits, void* arena,
                                  size_t arena_bytes, fovea_workspace** workspace);

/// Not 0: ends the call that is running, and later calls, with FOVEA_CANCELLED, within a layer's time. 0: calls run
/// again. Caches are as before the call. May be called by any thread.
/// Errors: FOVEA_BAD_ARGUMENT if limits.cancellable was 0.
fovea_status fovea_cancel(fovea_workspace* workspace, int cancelled);

/// The instruction set that runs it, one of fovea_isa_name; "" for NULL.
const char* fovea_isa(const fovea_workspace* workspace);
/// The instruction sets that are built in and that this CPU has, best first; the last is "scalar", then NULL.
const char* fovea_isa_name(size_t i);
/// A good number of threads: the fast cores that this thread may run on; 1 in a build without threads.
uint32_t fovea_default_threads(void);
/// Ends the threads that the engine has made for the calling thread, as end_threads of workspace.h: before a library is unloaded.
void fovea_end_threads(void);

/// Receives one layer's attention weights in every call to come. Slows that layer and changes no result.
typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_attention)
    uint32_t layer;
    uint32_t in_encoder;  ///< not 0: the encoder's layer, if the model has both stacks
    uint32_t cross;       ///< not 0: its attention to the memory
    uint32_t per_head;    ///< not 0: every head's; else their mean
    uint32_t n_queries;  ///< rows of a matrix: at least a call's; of a text at least its positions, row i is position i
    uint32_t n_keys;     ///< columns, at least a call's keys, appended ones too; the rest is 0
    uint32_t reserved;   ///< 0
    float* out;          ///< [n_sequences][n_heads, if per_head][n_queries][n_keys]; must stay
    size_t n_out;        ///< floats of `out`
} fovea_attention;
/// NULL: no longer. Calls refuse, with FOVEA_BAD_SHAPE, what has no room. Errors: FOVEA_BAD_ARGUMENT (no such layer).
fovea_status fovea_capture_attention(fovea_workspace* workspace, const fovea_attention* attention);

// ---- caches --------------------------------------------------------------------------------------------------------

/// The caller's bytes, cut into pages of keys and values that sequences can share.
typedef struct fovea_pool fovea_pool;

/// Capacities of a pool; zeros choose what is in brackets.
typedef struct {
    uint32_t struct_size;    ///< sizeof(fovea_pool_limits)
    uint32_t max_positions;  ///< of one sequence [all the model was made for]
    uint32_t max_sequences;  ///< caches at a time; each costs a table of 4 bytes a page [1]
    uint32_t page_len;       ///< positions of a page: a multiple of 64. Each cache wastes half a page [64]
    uint32_t n_pages;        ///< of all caches [what max_sequences of max_positions take]; most of the pool's memory
    uint32_t kv_type;        ///< FOVEA_F32, FOVEA_F16, FOVEA_Q8 or FOVEA_Q4 [FOVEA_F32]
    uint32_t memory;         ///< not 0: caches of what attention to a memory reads, see fovea_cache_memory
    /// Of models with recurrent layers; others have none whatever these say. Marks that a cache has at a time [2], and states of
    /// all caches [2 + max_marks for each of max_sequences], see PoolLimits in plan.h.
    uint32_t max_marks, n_states;
} fovea_pool_limits;

typedef struct {
    uint32_t struct_size;    ///< sizeof(fovea_pool_plan)
    uint32_t max_positions;  ///< as in the limits, zeros replaced
    uint32_t max_sequences;
    uint32_t page_len;
    uint32_t n_pages;
    uint32_t n_states;     ///< 0 where the model has no recurrent layers, as max_marks
    uint64_t arena_bytes;  ///< exactly what fovea_make_pool needs
    uint32_t max_marks;
    uint32_t reserved;
} fovea_pool_plan;

/// Errors, *plan unchanged: those of make_pool_plan.
fovea_status fovea_plan_pool(const struct fovea_model* model, const fovea_pool_limits* limits, fovea_pool_plan* plan);
/// `arena` as in fovea_make_session_of. Errors, the arena unchanged: those of make_pool.
fovea_status fovea_make_pool(const struct fovea_model* model, const fovea_pool_limits* limits, void* arena,
                             size_t arena_bytes, fovea_pool** pool);
/// Pages, states and caches that can still be had; 0 for NULL.
uint32_t fovea_free_pages(const fovea_pool* pool);
uint32_t fovea_free_states(const fovea_pool* pool);
uint32_t fovea_free_sequences(const fovea_pool* pool);

/// One sequence's cache: a small value to copy and to pass by address. Zeros are no cache. All copies are refused, with
/// FOVEA_BAD_ARGUMENT, once one was given to fovea_end_cache.
typedef struct {
    void* pool;
    uint32_t slot, generation;
} fovea_cache;

/// As make_cache, fork_cache, end_cache and rewind of cache.h, errors included. A fork costs a table and no page.
fovea_status fovea_make_cache(fovea_pool* pool, fovea_cache* cache);
fovea_status fovea_fork_cache(const fovea_cache* from, fovea_cache* to);
fovea_status fovea_end_cache(const fovea_cache* cache);
/// *reached, unless reached is NULL, becomes the positions there are now: kv_len or, where the model has recurrent layers,
/// those of the latest mark at or below it. Compute the rest again.
fovea_status fovea_rewind_cache(const fovea_cache* cache, uint32_t kv_len, uint32_t* reached);
/// As mark, unmark and Cache::reach of cache.h: keeps the recurrent state of the present length for fovea_rewind_cache, gives
/// one back, says where rewinding would arrive. With keys and values alone every length is reached and nothing is kept.
fovea_status fovea_mark_cache(const fovea_cache* cache);
fovea_status fovea_unmark_cache(const fovea_cache* cache, uint32_t kv_len);
uint32_t fovea_cache_reach(const fovea_cache* cache, uint32_t kv_len);
/// Positions so far, their most, and pages held; 0 for what is no cache.
uint32_t fovea_cache_kv_len(const fovea_cache* cache);
uint32_t fovea_cache_max_kv_len(const fovea_cache* cache);
uint32_t fovea_cache_pages(const fovea_cache* cache);

/// Exact bytes that fovea_save_cache writes now; 0 for what is no cache.
uint64_t fovea_cache_bytes(const fovea_cache* cache);
/// Errors, *written unchanged: those of save_cache. The bytes fit every machine.
fovea_status fovea_save_cache(const fovea_cache* cache, void* out, size_t capacity, size_t* written);
/// `saved` may be anything at all. Errors, the cache unchanged: those of restore_cache.
fovea_status fovea_restore_cache(const fovea_cache* cache, const void* saved, size_t saved_bytes);
/// `to`, maybe of another pool, becomes what `from` is. Errors, `to` unchanged: those of copy_cache.
fovea_status fovea_copy_cache(const fovea_cache* from, const fovea_cache* to);

/// The parts of a session, for functions that take these; NULL or no cache for NULL. The model's handle ends with the
/// session; the cache is not to be ended.
const struct fovea_model* fovea_session_model(const fovea_session* session);
fovea_workspace* fovea_session_workspace(fovea_session* session);
fovea_cache fovea_session_cache(const fovea_session* session);

/// Rows [first, end) of a step that see each other.
typedef struct {
    uint32_t first, end;
} fovea_span;

/// Tokens, or rows in their place, for one cache, and where its logits go: the caller's n_logits floats. See Step of workspace.h.
typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_step), the same in every element of an array
    uint32_t reserved;     ///< 0
    fovea_cache cache;
    const uint32_t* tokens;  ///< [n_tokens], below vocab_size; or none, and there are rows
    size_t n_tokens;
    float* logits;       ///< float32, unnormalised
    size_t n_logits;     ///< vocab_size: after the last; n · vocab_size: after each of n tokens or rows; 0: none
    fovea_cache memory;  ///< of a model that reads a memory: what fovea_cache_memory filled. Steps may share it
    const float* rows;   ///< [n_row_elements]: d_model for each row
    size_t n_row_elements;
    const uint32_t*
        positions;  ///< [n_positions]: time, height and width for each, if the model's have three dimensions
    size_t n_positions;
    const fovea_span* spans;  ///< [n_spans] ascending, apart
    size_t n_spans;
    float* vectors;  ///< [n_vectors], d_model for each of the last tokens: what a next-token head reads of them
    size_t n_vectors;
} fovea_step;

/// Appends each step's tokens to its cache and computes its logits, all steps in one pass: the weights are read once. A
/// sequence's logits are those it has alone, in every bit. Errors, nothing changed: those of workspace.h's forward.
fovea_status fovea_forward_steps(fovea_workspace* workspace, const fovea_step* steps, size_t n_steps);

/// Keys of a step's rows, which stand for them where a text is kept as tokens: as row_keys of workspace.h. `keys`: [n_keys], one for
/// each row. Errors: FOVEA_BAD_ARGUMENT (struct_size).
fovea_status fovea_row_keys(const fovea_step* step, uint32_t* keys, size_t n_keys);

// ---- encoders and attention alone ----------------------------------------------------------------------------------

/// Hides keys from a query, or adds to its scores: at most one of hidden and added is set. The element for (sequence,
/// head, query, key) is at the sum of index times stride, plus key; a stride of 0 repeats the mask. It must have
/// elements for all that the strides tell apart. A row of which every key is hidden gives zeros.
typedef struct {
    uint32_t struct_size;                                 ///< sizeof(fovea_mask)
    uint32_t n_keys;                                      ///< elements of a row; keys beyond are hidden
    const uint8_t* hidden;                                ///< not 0: the key is hidden
    const float* added;                                   ///< added to the score; -inf hides the key
    uint64_t sequence_stride, head_stride, query_stride;  ///< in elements
} fovea_mask;

/// The rows of several sequences, one after the other, without padding between them.
typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_sequences)
    uint32_t causal;       ///< not 0: a query sees no later row
    const uint32_t* ids;   ///< [n_ids]: one for each row, if the model has a vocabulary; else
    size_t n_ids;
    const float* vectors;  ///< [n_vectors]: d_model for each row
    size_t n_vectors;
    const uint32_t* types;  ///< [n_types] token types, one for each row [all 0]
    size_t n_types;
    const uint32_t* lengths;  ///< [n_lengths] rows of each sequence, at least 1
    size_t n_lengths;
    const fovea_mask* mask;          ///< of attention, query by key [NULL]
    const fovea_mask* padding_mask;  ///< by key [NULL]
} fovea_sequences;

/// An encoder reads `source`, a decoder `target` and a memory: the encoder's vectors or, if there is none, `memory`.
typedef struct {
    uint32_t struct_size;           ///< sizeof(fovea_encode_input)
    uint32_t memory_causal;         ///< not 0: row i of the target sees the memory's rows up to i
    const fovea_sequences* source;  ///< NULL if the model has no encoder
    const fovea_sequences* target;  ///< NULL if it has no decoder
    const float* memory;            ///< [n_memory]: d_model for each row
    size_t n_memory;
    const uint32_t* memory_lengths;  ///< [n_memory_lengths] rows of each sequence's memory
    size_t n_memory_lengths;
    const fovea_mask* memory_mask;          ///< of attention to the memory [NULL]
    const fovea_mask* memory_padding_mask;  ///< [NULL]
} fovea_encode_input;

/// Runs every layer once. out: n_out floats, info.result_width for each row of the last stack or, if info.pools, for
/// each sequence.
/// Errors, `out` unchanged unless cancelled: those of encode.h's encode.
fovea_status fovea_encode(fovea_workspace* workspace, const fovea_encode_input* input, float* out, size_t n_out);

/// Runs the encoder on `source`, or takes `memory`, and writes every decoder layer's keys and values of it to the caches,
/// sequence i to memories[i]; steps read them from there. `target` must be NULL; masks of the memory are not used. Set
/// max_positions in the workspace's limits and `memory` in those of the caches' pool. Errors, nothing changed: those of
/// encode.h's cache_memory.
fovea_status fovea_cache_memory(fovea_workspace* workspace, const fovea_encode_input* input,
                                const fovea_cache* memories, size_t n_memories);

/// Where heads are: element (sequence, row, head, i) is at the sum of index times stride, plus i. Strides, in floats,
/// are for heads as they are; a module's rows are packed.
typedef struct {
    const float* data;
    size_t n;  ///< floats of `data`
    uint64_t sequence_stride, row_stride, head_stride;
} fovea_heads;

/// One attention over n_sequences sequences of the same lengths. A module with projections takes rows, packed;
/// attention over heads as they are takes heads in any layout.
typedef struct {
    uint32_t struct_size;  ///< sizeof(fovea_attend_input)
    uint32_t n_sequences;  ///< [1]
    uint32_t n_queries;    ///< of each sequence, as the next two
    uint32_t n_keys;
    uint32_t n_past;  ///< keys and values in past_key and past_value; heads as they are alone
    uint32_t causal;  ///< not 0: query i sees keys up to n_past + i or, with kv_lengths, length − n_queries + i
    fovea_heads query, key, value, past_key, past_value;
    const fovea_mask* mask;          ///< keys are counted from the first past one [NULL]
    const fovea_mask* padding_mask;  ///< [NULL]
    const uint32_t* kv_lengths;      ///< [n_kv_lengths] real keys of each sequence, past ones too [all]
    size_t n_kv_lengths;             ///< 0 or n_sequences
    uint64_t out_sequence_stride, out_row_stride, out_head_stride;  ///< heads as they are: where `out` has them
} fovea_attend_input;

/// softmax(Q·K^T·scale + mask)·V per head, with the module's projections around it if it has them.
/// Errors, `out` unchanged unless cancelled: those of encode.h's attend.
fovea_status fovea_attend(fovea_workspace* workspace, const fovea_attend_input* input, float* out, size_t n_out);

#ifdef __cplusplus
}
#endif
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif

#include "fovea/fovea_adapter.h"
#include "fovea/fovea_generator.h"
#endif
