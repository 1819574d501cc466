// Vectors instead of logits: encoders, decoders that read a memory, and attention alone. Plans, sessions and threads are
// those of fovea/session.h.
//
//     const std::uint32_t lengths[] = {12, 7};       // two sequences, 19 rows, no padding between them
//     encode(session, {.source = {.ids = ids, .lengths = lengths}}, vectors);
//
//     Model heads;                                   // scaled dot-product attention needs no file
//     attention_model({.n_heads = 8, .n_kv_heads = 8, .head_dim = 64, .value_head_dim = 64, .no_projections = true}, heads);
//     ... make_plan(heads.config(), limits, plan); make_session(heads, limits, arena, session);
//     attend(session, inputs, out);
#pragma once
#include <cstdint>
#include <span>

#include "fovea/session.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// Hides keys from a query, or adds to its scores. At most one of the two pointers is set; neither: no
/// mask. The element for (sequence, head, query, key) is at their strides' sum plus key; a stride of 0 repeats a mask
/// for all sequences, heads or queries. A row of which every key is hidden gives zeros, not NaN.
struct Mask {
    const std::uint8_t* hidden = nullptr;  ///< not 0: the key is hidden
    const float* added = nullptr;          ///< added to the score; −inf: the key is hidden, whatever it holds
    std::uint64_t sequence_stride = 0, head_stride = 0, query_stride = 0;  ///< in elements
    std::uint32_t n_keys = 0;  ///< elements of a row; keys beyond are hidden
};

/// Hides keys from one attention: by both masks, and with `causal` query i sees the keys up to past + i. A mask must
/// have elements for every sequence, head and query that its strides tell apart: lengths are the caller's promise.
struct Masks {
    Mask attention = {};  ///< [query, key], [sequence, head, query, key] or between
    Mask padding = {};    ///< [sequence, key]
    bool causal = false;
};

/// The rows of several sequences, one after the other: lengths[0] rows, then lengths[1], …
struct Sequences {
    std::span<const Token> ids = {};      ///< [n_rows], if the stack has a vocabulary; else
    std::span<const float> vectors = {};  ///< [n_rows, d_model]; if the stack hears [n_frames, n_mels]
    std::span<const Token> types = {};    ///< [n_rows] token types, if the stack has them; empty: all 0
    /// [n_sequences], each at least 1. If the stack hears (see Sound) they count frames, and n frames are n/2 rows,
    /// rounded up, everywhere else: in limits, results, masks and memories.
    std::span<const std::uint32_t> lengths = {};
    Masks masks = {};  ///< of the rows' attention to one another
};

/// An encoder reads `source`, a decoder `target` and, if it has cross-attention, a memory: the encoder's vectors if
/// the model has both, else `memory`. Each side has the same number of sequences.
struct EncodeInput {
    Sequences source = {}, target = {};
    std::span<const float> memory = {};                  ///< [n_memory_rows, d_model]
    std::span<const std::uint32_t> memory_lengths = {};  ///< [n_sequences]
    Masks memory_masks = {};                             ///< of the target's attention to the memory
    /// If the last stack does not pool: the numbers of the rows whose results are wanted, at most max_batch; empty: all.
    std::span<const std::uint32_t> rows = {};
    bool before_head = false;  ///< give the input of the last stack's head, d_model wide, instead of its output
    const Pooling* pooling =
        nullptr;  ///< how the last stack pools in this call: none gives all rows; null: its own way
    /// [n_sequences] first rows of each, fewer than it has, that pooling leaves out, as those of a prompt; where it ends: none.
    std::span<const std::uint32_t> n_unpooled = {};
};

/// Runs every layer once. The memory's keys and values are made once per layer; nothing is computed for padding, since
/// there is none.
///
///   out  [n_rows, width]        what the last stack leaves, its final norm applied, or, if it pools,
///        [n_sequences, width]   a vector for each sequence; rows are not normalised; float32, NaN only as 0x7fc00000. width is the last
///                               stack's result_width(), or with before_head its d_model
///
/// A sequence's result depends on no other, nor, in any bit, on threads and instruction set. Allocates nothing.
/// Errors, `out` unchanged: bad_argument (not made), unsupported (a model for forward or attend), bad_shape,
/// token_out_of_range; `out` of no use: cancelled.
/// Source: Vaswani et al. 2017, section 3; Devlin et al. 2019 (encoders alone).
[[nodiscard]] Status encode(Workspace& workspace, const EncodeInput& input, std::span<float> out) noexcept;
[[nodiscard]] Status encode(Session& session, const EncodeInput& input, std::span<float> out) noexcept;

/// Computes a memory once for all later steps. Runs the encoder on `source`, or takes `memory`, and writes each layer's keys
/// and values of sequence i to memories[i], which grows from 0 to the sequence's length. `target` must be empty; masks
/// of the memory, rows and before_head are not used.
///
///     make_workspace_plan(config, {.max_kv_len = 448, .max_batch = 1500}, plan);   // max_kv_len: it computes steps
///     make_pool_plan(config, {.max_kv_len = 1500, .memory = true}, memory_plan);   // a pool for memories
///     make_pool_plan(config, {.max_sequences = 4}, pool_plan);                     // and one for texts
///     cache_memory(workspace, {.source = {.ids = ids, .lengths = lengths}}, {&memory, 1});
///     const Step step{text, tokens, logits, memory};
///     forward(workspace, {&step, 1});
///
/// From there forward computes the same bits as encode does of all rows at once, with a causal mask.
/// Errors, nothing changed: unsupported (a decoder that gives no logits token by token, or reads no memory),
/// bad_argument (a cache that is not valid, not of a pool for memories, not empty, or comes twice), session_mismatch,
/// bad_shape, token_out_of_range, context_full, pool_full, cancelled (the caches are as they were).
[[nodiscard]] Status cache_memory(Workspace& workspace, const EncodeInput& input,
                                  std::span<const Cache> memories) noexcept;

/// Where heads are: element (sequence, row, head, i) is at the sum of index times stride, plus i. In elements.
struct Strides {
    std::uint64_t sequence = 0, row = 0, head = 0;
};
struct Heads {
    std::span<const float> data = {};
    Strides strides = {};  ///< used only without projections
};

/// One attention over n_sequences sequences of the same lengths. A module with projections takes rows, packed: query
/// [n_sequences, n_queries, query_width], key and value [n_sequences, n_keys, their widths]. Without projections it takes heads in
/// any layout: query of n_heads and head_dim, key and value of n_kv_heads.
struct AttendInput {
    Heads query = {}, key = {}, value = {};
    Heads past_key = {}, past_value = {};  ///< without projections: n_past keys and values that come before the others
    std::uint32_t n_sequences = 1, n_queries = 0, n_keys = 0, n_past = 0;
    Masks masks = {};  ///< keys are counted from the first past one
    /// [n_sequences] real keys of each, past ones too; those beyond are hidden, and with `causal` query i of n sees keys
    /// up to length − n + i. Empty: all are real.
    std::span<const std::uint32_t> kv_lengths = {};
    Strides out_strides =
        {};  ///< without projections: where `out` has its heads, as in an array with axes in any order; rows must not overlap
};

/// softmax(Q·Kᵀ·scale + mask)·V per head, with the module's projections around it if it has them.
///
///   out  a module: [n_sequences, n_queries, output_width], or merged heads if it has no output map;
///        without projections: n_heads of value_head_dim, as out_strides say. float32, NaN only as 0x7fc00000
///
/// Its memory holds keys and values, but no scores. Allocates nothing. Errors, `out` unchanged: unsupported (not a
/// lone attention), bad_shape; `out` of no use: cancelled.
/// Source: Vaswani et al. 2017, eq. 1 and section 3.2.2; computed as Milakov and Gimelshein 2018, Dao et al. 2022.
[[nodiscard]] Status attend(Workspace& workspace, const AttendInput& input, std::span<float> out) noexcept;
[[nodiscard]] Status attend(Session& session, const AttendInput& input, std::span<float> out) noexcept;

/// A model that is attention alone, without weights or a file: no_projections, and of the other fields heads, head widths,
/// scale, soft cap, causal, window and zero_attn. Errors, `model` unchanged: config_invalid.
[[nodiscard]] Status attention_model(const AttentionShape& attention, Model& model) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
