// The C interface's encoders, lone attention, and attention weights.
#include <new>

#include "engine/c/handles.h"
#include "fovea/encode.h"

using namespace fovea;

namespace {

[[nodiscard]] fovea_status no_workspace() noexcept { return refuse_null("workspace: NULL"); }

[[nodiscard]] Status read_mask(const fovea_mask* given, Mask& out) noexcept {
    if (!given) return {};
    fovea_mask known;
    if (Status s = read_struct(given, known); !s.ok()) return s;
    out = {.hidden = known.hidden,
           .added = known.added,
           .sequence_stride = known.sequence_stride,
           .head_stride = known.head_stride,
           .query_stride = known.query_stride,
           .n_keys = known.n_keys};
    return {};
}

[[nodiscard]] Status read_masks(const fovea_mask* attention, const fovea_mask* padding, std::uint32_t causal,
                                Masks& out) noexcept {
    out.causal = causal != 0;
    if (Status s = read_mask(attention, out.attention); !s.ok()) return s;
    return read_mask(padding, out.padding);
}

[[nodiscard]] Status read_sequences(const fovea_sequences* given, Sequences& out) noexcept {
    if (!given) return {};
    fovea_sequences known;
    if (Status s = read_struct(given, known); !s.ok()) return s;
    out.ids = {known.ids, known.n_ids};
    out.vectors = {known.vectors, known.n_vectors};
    out.types = {known.types, known.n_types};
    out.lengths = {known.lengths, known.n_lengths};
    return read_masks(known.mask, known.padding_mask, known.causal, out.masks);
}

[[nodiscard]] Status read_input(const fovea_encode_input* given, EncodeInput& out) noexcept {
    fovea_encode_input known;
    if (Status s = read_struct(given, known); !s.ok()) return s;
    if (Status s = read_sequences(known.source, out.source); !s.ok()) return s;
    if (Status s = read_sequences(known.target, out.target); !s.ok()) return s;
    out.memory = {known.memory, known.n_memory};
    out.memory_lengths = {known.memory_lengths, known.n_memory_lengths};
    return read_masks(known.memory_mask, known.memory_padding_mask, known.memory_causal, out.memory_masks);
}

[[nodiscard]] Heads heads_from_c(const fovea_heads& heads) noexcept {
    return {{heads.data, heads.n}, {heads.sequence_stride, heads.row_stride, heads.head_stride}};
}

}  // namespace

fovea_status fovea_encode(fovea_workspace* workspace, const fovea_encode_input* input, float* out, size_t n_out) {
    if (!workspace) return no_workspace();
    EncodeInput own;
    if (Status s = read_input(input, own); !s.ok()) return to_c(s);
    return to_c(encode(workspace->workspace, own, {out, n_out}));
}

fovea_status fovea_cache_memory(fovea_workspace* workspace, const fovea_encode_input* input,
                                const fovea_cache* memories, size_t n_memories) {
    if (!workspace) return no_workspace();
    EncodeInput own;
    if (Status s = read_input(input, own); !s.ok()) return to_c(s);
    if (n_memories > workspace->max_steps)
        return to_c({Code::bad_shape, "sequences at most", workspace->max_steps, n_memories});
    Cache* caches = workspace->memories;
    for (std::size_t i = 0; i < n_memories; ++i) new (caches + i) Cache(from_c(memories + i));
    return to_c(cache_memory(workspace->workspace, own, {caches, n_memories}));
}

fovea_status fovea_attend(fovea_workspace* workspace, const fovea_attend_input* input, float* out, size_t n_out) {
    if (!workspace) return no_workspace();
    fovea_attend_input known;
    if (Status s = read_struct(input, known); !s.ok()) return to_c(s);
    AttendInput own{.query = heads_from_c(known.query),
                    .key = heads_from_c(known.key),
                    .value = heads_from_c(known.value),
                    .past_key = heads_from_c(known.past_key),
                    .past_value = heads_from_c(known.past_value),
                    .n_sequences = known.n_sequences ? known.n_sequences : 1,
                    .n_queries = known.n_queries,
                    .n_keys = known.n_keys,
                    .n_past = known.n_past,
                    .masks = {},
                    .kv_lengths = {known.kv_lengths, known.n_kv_lengths},
                    .out_strides = {known.out_sequence_stride, known.out_row_stride, known.out_head_stride}};
    if (Status s = read_masks(known.mask, known.padding_mask, known.causal, own.masks); !s.ok()) return to_c(s);
    return to_c(attend(workspace->workspace, own, {out, n_out}));
}

fovea_status fovea_capture_attention(fovea_workspace* workspace, const fovea_attention* attention) {
    if (!workspace) return no_workspace();
    if (!attention) return to_c(capture_attention(workspace->workspace, {}));
    fovea_attention known;
    if (Status s = read_struct(attention, known); !s.ok()) return to_c(s);
    return to_c(capture_attention(workspace->workspace, {.layer = known.layer,
                                                         .in_encoder = known.in_encoder != 0,
                                                         .cross = known.cross != 0,
                                                         .per_head = known.per_head != 0,
                                                         .n_queries = known.n_queries,
                                                         .n_keys = known.n_keys,
                                                         .out = {known.out, known.n_out}}));
}
