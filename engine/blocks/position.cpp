// From ids or vectors to the residual stream: a row of the embedding table, scaled, plus a learned position and a token
// type, normed where the stack asks for it (Devlin et al. 2019), and widened (Lan et al. 2020). Two frames become a row
// first (convolution.cpp). Beside it the pass's tables, shared by all layers of a block shape: rotations (Su et al.
// 2021), one row per position; and what relative positions add to scores (Raffel et al. 2020), one row per head, by the
// distance of key and query.
#include <cstring>

#include "engine/blocks/block.h"
#include "engine/model/model.h"
#include "engine/model/table.h"

namespace fovea {
namespace {

/// The block's part of `distances`, a head's row: [distance_reach + max_batch].
[[nodiscard]] float* distances(const Pass& pass, std::uint32_t block, std::uint32_t head) noexcept {
    const ArenaMap& map = pass.workspace.map;
    const std::uint64_t row = std::uint64_t{block} * map.distance_heads + head;
    return pass.workspace.floats(map.distances) +
           row * (std::uint64_t{map.distance_reach} + pass.workspace.limits.max_batch);
}

/// Calls put(i, x) with each element of one row of a table.
void read_row(const WorkspaceState& w, const TensorRecord& t, std::uint32_t row, auto&& put) noexcept {
    read_table_row({w.weights(ModelAccess::offset(w.model, t)), static_cast<Type>(t.type),
                    t.layout == static_cast<std::uint8_t>(Layout::panels) ? t.panel_stride : 0, t.n_cols},
                   row, 0, t.n_cols, put);
}

/// Fills the block's rows of `distances` as far as this pass's queries read them: element distance_reach − 1 + d of a head's
/// row is for a key d positions after the query.
void fill_distances(const Pass& pass, std::uint32_t block) noexcept {
    std::uint32_t n_before = 0, n_after = 0;  // keys, the query's own among both
    for (const Sequence& s : pass.self) {
        n_before = n_before < s.n_given() ? s.n_given() : n_before;
        n_after = n_after < s.n_rows ? s.n_rows : n_after;
    }
    const WorkspaceState& w = pass.workspace;
    const std::uint32_t centre = w.map.distance_reach - 1,
                        most = pass.stack().blocks[block].attention.relative_max_distance;
    for (std::uint32_t at = centre + 1 - n_before; at < centre + n_after; ++at) {
        const bool behind = at >= centre;
        const std::uint32_t far = behind ? at - centre : centre - at, d = far < most ? far : most;
        read_row(w, *pass.tensors().relative_bias[block], behind ? most + d : most - d,
                 [&](std::uint32_t head, float x) { distances(pass, block, head)[at] = x; });
    }
}

/// Which of time, height and width a frequency turns by.
[[nodiscard]] std::uint32_t dimension(const AttentionShape& a, std::uint32_t frequency) noexcept {
    if (a.rope_interleaved) return frequency < 3u * a.rope_plane ? frequency % 3 : 0;
    const std::uint32_t n_time = a.rotary_dim / 2 - 2u * a.rope_plane;
    return frequency < n_time ? 0 : frequency < n_time + a.rope_plane ? 1 : 2;
}

/// The rows of what `embed` makes are embedding_cols wide there, and become d_model wide here.
void map_embeddings(Pass& pass) noexcept {
    const Stack& stack = pass.stack();
    const Matrix& matrix = pass.tensors().embedding_map;
    const Linear linear{matrix, pass.tensors().embedding_map_bias, pass.hidden(), stack.d_model};
    const void* operand = pass.operand(matrix.type, pass.inner(), pass.seq_len, matrix.n_cols);
    pass.multiply("embedding map", pass.all(pass.hidden(), stack.d_model), {&linear, 1}, operand, pass.seq_len);
}

/// The pages of a sequence's cache, or those of all.
const KvPages& pages_of(const Pass& pass, const Sequence& s) noexcept {
    return pass.kv[pass.kv.size() == 1 ? 0 : static_cast<std::size_t>(&s - pass.self.data())];
}

/// What a block's pairs turn by: one list for all sequences, or one of two by what the cache, or a text without one, has room for.
const float* frequencies(const Pass& pass, const Sequence& s, std::uint32_t block) noexcept {
    const Stack& stack = pass.stack();
    const float* first = pass.workspace.vector(pass.tensors().rope_frequencies[block]);
    if (!has(Part::block_variants) || !stack.rope_original_positions) return first;
    const bool is_long = takes_long_rope(stack, or_else(pages_of(pass, s).max_kv_len, s.n_rows));
    return first + (is_long ? stack.blocks[block].attention.rotary_dim / 2 : 0);
}

/// Where a row of a sequence is in time, height and width.
struct RowPlace {
    std::uint32_t of[3];

    RowPlace(const Pass& pass, const Sequence& s, const StepRows& its, std::uint32_t row) noexcept {
        const std::size_t at = its.first + row;  // of the step
        if (!its.step.positions.empty()) {
            std::memcpy(of, &its.step.positions[3 * at], sizeof of);
            return;
        }
        // A text goes on behind what is cached.
        const KvPages& pages = pages_of(pass, s);
        const std::uint32_t kv_len = s.pos - static_cast<std::uint32_t>(its.first);
        of[0] = of[1] = of[2] = (kv_len ? pages.next_position(kv_len - 1) : 0) + static_cast<std::uint32_t>(at);
    }
};

/// Replaces the cosines and sines for a row's time, where its height or width is another, by those for that.
void turn_plane(const Pass& pass, std::uint32_t block, const RowPlace& place, float* cosines) noexcept {
    const WorkspaceState& w = pass.workspace;
    const AttentionShape& a = pass.stack().blocks[block].attention;
    const std::uint32_t stride = w.map.rotation_stride;
    float* other = pass.scratch();  // of which a member has more than two strides
    for (std::uint32_t d = 1; d < 3; ++d) {
        if (place.of[d] == place.of[0]) continue;
        w.kernels->floats.rope_table(place.of[d], w.vector(pass.tensors().rope_frequencies[block]), a.rotary_dim / 2,
                                     a.rope_scale, other, other + stride);
        for (std::uint32_t i = 0; i < a.rotary_dim; ++i)
            if (dimension(a, i / 2) == d) cosines[i] = other[i], cosines[stride + i] = other[stride + i];
    }
}

}  // namespace

const float* relative_scores(const Pass& pass, std::uint32_t block, std::uint32_t head, std::uint32_t pos) noexcept {
    if (pass.stack().blocks[block].attention.position != Position::relative) return nullptr;
    return distances(pass, block, head) + pass.workspace.map.distance_reach - 1 - pos;
}

void embed(Pass& pass) noexcept {
    const WorkspaceState& w = pass.workspace;
    const Stack& stack = pass.stack();
    const StackTensors& t = pass.tensors();
    const NormWeights norm{stack.embedding_norm, t.embedding_norm, t.embedding_norm_bias, stack.final_norm_epsilon};
    const bool mapped = has(Part::vectors) && embedding_cols(stack), joins = has(Part::rows) && stack.joins_rows;
    const Rows rows_made = mapped ? pass.inner() : pass.hidden();
    const std::uint32_t width = mapped && !joins ? stack.embedding_width : stack.d_model;
    const auto make_row = [&](std::uint32_t row, const Sequence& s) {
        const std::uint32_t in_sequence = row - s.row, pos = s.pos + in_sequence;
        const StepRows of = pass.step_of(s);
        float* x = rows_made[row];
        const auto scaled = [&](std::uint32_t i, float value) { x[i] = value * stack.embedding_scale; };
        const auto added = [&](std::uint32_t i, float value) { x[i] = x[i] + value; };
        if (has(Part::rows) && !joins && !of.step.rows.empty())
            std::memcpy(x, &of.step.rows[(of.first + in_sequence) * width], width * sizeof(float));
        else if (!has(Part::vectors) || t.token_embedding)
            read_row(w, *t.token_embedding, pass.tokens[row], scaled);
        else {
            const float* from = stack.sound.is_speech() ? x : pass.vectors + std::size_t{row} * stack.d_model;
            for (std::uint32_t i = 0; i < stack.d_model; ++i) scaled(i, from[i]);
        }
        if (t.position_embedding) read_row(w, *t.position_embedding, pos, added);
        if (has(Part::vectors) && t.type_embedding)
            read_row(w, *t.type_embedding, pass.types.empty() ? 0 : pass.types[row], added);
        if (norm.kind != Norm::none) pass.norm(norm, x, width, x);
        if (has(Part::rows) && joins) {
            const NormWeights of_rows{norm.kind, norm.weight + width * sizeof(float), 0, norm.epsilon};
            pass.norm(of_rows, &of.step.rows[(of.first + in_sequence) * width], width, x + width);
        }
        for (std::uint32_t i = 0; i < stack.n_blocks; ++i) {
            const AttentionShape& b = stack.blocks[i].attention;
            if (b.position != Position::rope) continue;
            const bool placed = has(Part::rows) && b.rope_plane && PassSteps(pass.steps).list;
            const std::uint32_t time = placed ? RowPlace(pass, s, of, in_sequence).of[0] : pos;
            float* cosines = pass.rotation(i, row);
            w.kernels->floats.rope_table(time, frequencies(pass, s, i), b.rotary_dim / 2, b.rope_scale, cosines,
                                         cosines + w.map.rotation_stride);
            if (placed) turn_plane(pass, i, RowPlace(pass, s, of, in_sequence), cosines);
        }
    };
    if (has(Part::vectors) && stack.sound.is_speech()) Hearing::convolve(pass);
    const std::uint32_t made = has(Part::rows) && joins ? 2 * width : width;
    pass.phase("embedding", pass.all(rows_made, made), in_parts(pass.seq_len), [&](Pass::Share rows) {
        const bool is_first = rows.begin == 0 && rows.end != 0;  // of more members than rows some have none
        if (has(Part::vectors) && is_first)
            for (std::uint32_t i = 0; i < stack.n_blocks; ++i)
                if (stack.blocks[i].attention.position == Position::relative) fill_distances(pass, i);
        const Sequence* sequence = pass.self.data();
        for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
            while (row >= sequence->row + sequence->n_rows) ++sequence;
            make_row(row, *sequence);
        }
    });
    if (mapped) map_embeddings(pass);
}

void rotate_head(const Pass& pass, const Layer& layer, std::uint32_t row, float* head) noexcept {
    const Block& b = pass.stack().blocks[layer.block];
    if (b.attention.position != Position::rope) return;
    const float* cosines = pass.rotation(layer.block, row);
    pass.workspace.kernels->floats.rotate(head, cosines, cosines + pass.workspace.map.rotation_stride,
                                          b.attention.rotary_dim);
}

}  // namespace fovea
