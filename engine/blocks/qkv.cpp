// Queries, keys and values: their maps, norms and rotations, and the caches' writing.
#include <cstring>

#include "engine/blocks/attention.h"
#include "engine/blocks/block.h"
#include "engine/blocks/latent.h"
#include "engine/kernels/scalar/math.h"
#include "engine/stream/adapters.h"

#include "engine/kernels/math.h"

namespace fovea {
namespace {

/// Whether `b` lies right behind `a` in the file, as more rows of one matrix.
[[nodiscard]] bool continues(const Matrix& a, const Matrix& b) noexcept {
    return a.n_rows % kLanes == 0 && b.offset == a.offset + a.n_panels() * a.panel_stride &&
           b.panel_stride == a.panel_stride && b.n_cols == a.n_cols && b.type == a.type;
}

[[nodiscard]] bool same_operand(const Input& a, const Input& b) noexcept {
    return a.rows.data == b.rows.data && a.n_rows == b.n_rows && a.width == b.width;
}

/// The norm of queries or keys, with the weights of that head.
[[nodiscard]] NormWeights head_norm(const Attention& a, bool is_key, std::uint32_t number) noexcept {
    const AttentionShape& b = a.shape();
    const AttentionTensors& t = a.tensors;
    const VectorOffset weight = is_key ? t.key_norm : t.query_norm, bias = is_key ? t.key_norm_bias : t.query_norm_bias;
    const std::uint64_t own = b.head_norm == HeadNorm::each ? std::uint64_t{number} * b.head_dim * sizeof(float) : 0;
    return {b.query_key_norm, weight + own, bias ? bias + own : 0, a.block.norm_epsilon};
}

/// log(1 + n), of 1 + n = 2^e·(1 + u).
[[nodiscard]] float log_of_next(std::uint32_t n) noexcept {
    constexpr float kLn2 = 0.693147181f;
    const auto e = 31 - static_cast<std::uint32_t>(__builtin_clz(n + 1));
    const float u = static_cast<float>(n + 1) / static_cast<float>(1u << e) - 1.0f;
    return static_cast<float>(e) * kLn2 + u * polynomial(u, kLog1p);
}

/// What a row's queries are multiplied with.
[[nodiscard]] float growth(const Attention& a, std::uint32_t row) noexcept {
    const Sequence* s = a.sequences.data();
    while (row >= s->row + s->n_rows) ++s;
    const std::uint32_t pos = s->pos + row - s->row;
    return 1.0f + a.shape().query_growth * log_of_next((pos + 1) / a.shape().growth_period);
}

/// A query or key head's norm and rotation, in place. A latent query's dims that turn come from elsewhere.
void norm_and_rotate(const Attention& a, bool is_key, std::uint32_t row, std::uint32_t number, float* head) noexcept {
    const AttentionShape& b = a.shape();
    const bool turned_first = has(Part::states) && b.norm_turned;
    if (turned_first) rotate_head(a.pass, a.layer, row, head);
    if (b.head_norm != HeadNorm::together) a.pass.norm(head_norm(a, is_key, number), head, b.head_dim, head);
    if (a.is_latent()) is_key ? Latent::norm(a, head) : Latent::take_turning(a, row, number, head);
    if (!turned_first) rotate_head(a.pass, a.layer, row, head);
    if (!has(Part::states) || is_key || b.query_growth == 0.0f) return;
    const float factor = growth(a, row);
    for (std::uint32_t i = 0; i < b.head_dim; ++i) head[i] = head[i] * factor;
}

/// A value head's norm, in place.
void norm_value(const Attention& a, std::uint32_t row, std::uint32_t kv_head) noexcept {
    const AttentionShape& b = a.shape();
    const InputTensors& t = a.pass.of_layer(a.pass.workspace.inputs());
    float* head = a.pass.projected()[row] + a.value_at + std::uint64_t{kv_head} * b.value_head_dim;
    a.pass.norm({Norm::rms, t.value_norm, 0, a.block.norm_epsilon}, head, b.value_head_dim, head);
}

/// What is done to all heads of a row together: the norm, then the clip. In place, after the products.
void norm_and_clip(const Attention& a) noexcept {
    const AttentionShape& b = a.shape();
    const Pass& pass = a.pass;
    const float clip = b.projection_clip;
    const bool normed = b.head_norm == HeadNorm::together;
    if (a.reads != Reads::self || (!normed && clip == 0.0f)) return;
    const auto finish = [&](float* x, std::uint32_t n, bool has_norm, bool is_key) {
        if (normed && has_norm) pass.norm(head_norm(a, is_key, 0), x, n, x);
        if (clip != 0.0f)
            for (std::uint32_t i = 0; i < n; ++i) x[i] = x[i] > clip ? clip : x[i] < -clip ? -clip : x[i];
    };
    std::uint32_t n_kv_rows = 0;
    for (const Sequence& s : a.sequences) n_kv_rows = s.kv_row + s.n_new > n_kv_rows ? s.kv_row + s.n_new : n_kv_rows;
    const std::uint32_t n_rows = pass.seq_len > n_kv_rows ? pass.seq_len : n_kv_rows;
    a.pass.phase("projected", {}, in_parts(n_rows), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row) {
            float* x = pass.projected()[row];
            if (row < pass.seq_len) finish(x, b.n_heads * b.head_dim, true, false);
            if (row >= n_kv_rows) continue;
            finish(x + a.key_at, b.n_kv_heads * b.head_dim, true, true);
            finish(x + a.value_at, b.n_kv_heads * b.value_head_dim, false, false);
        }
    });
}

/// The key or value of one position of a sequence and head; `zeros` where it is the appended zero.
[[nodiscard]] const float* source(const Attention& a, const Sequence& s, bool is_key, std::uint32_t pos,
                                  std::uint32_t kv_head, const float* zeros) noexcept {
    const std::size_t number = a.number(s);
    if (has(Part::vectors) && pos < s.pos) return (is_key ? a.past_key : a.past_value).at(number, 0, pos, kv_head);
    if (!has(Part::vectors) || pos < s.n_given())
        return (is_key ? a.key : a.value).at(number, s.kv_row, pos - s.pos, kv_head);
    if (!a.shape().bias_kv || pos > s.n_given()) return zeros;
    const float* vector = a.pass.workspace.vector(is_key ? a.tensors.appended_key : a.tensors.appended_value);
    return vector + std::uint64_t{kv_head} * (is_key ? a.shape().head_dim : a.shape().value_head_dim);
}

/// The positions of a sequence whose keys and values are written, as pieces of work: one key-value head and the positions
/// of one key panel each, because a panel's first position clears the others.
struct Writes {
    std::uint32_t begin, end, first_panel, n_pieces;

    Writes(const Attention& a, const Sequence& s) noexcept
        : begin(has(Part::vectors) && a.past_key.data ? 0 : s.pos),
          end(a.n_cached(s)),
          first_panel(begin / kLanes),
          n_pieces(begin == end || !a.makes_keys() ? 0 : ((end - 1) / kLanes - first_panel + 1) * a.n_kv_heads()) {}
};

/// Asks for the lines of the head behind x, which the next piece reads: rows lie too far apart for a CPU to foresee them.
/// Nothing is read, so there need be no such head.
void fetch_next_head(const float* x, std::uint32_t head_dim) noexcept {
    for (std::uint32_t i = 0; i < head_dim; i += kLanes) __builtin_prefetch(x + head_dim + i);
}

void write_piece(const Attention& a, const Sequence& s, const Writes& writes, std::uint32_t piece, bool positions,
                 const float* zeros) noexcept {
    const AttentionShape& b = a.shape();
    const Pass& pass = a.pass;
    const KvPages& pages = a.pages(s);
    const FloatKernels& k = pass.workspace.kernels->floats;
    const auto type = static_cast<int>(pages.type);
    const std::uint32_t n_heads = a.n_kv_heads(), panel = writes.first_panel + piece / n_heads;
    const std::uint32_t kv_head = a.first_kv_head() + piece % n_heads;
    const std::uint32_t from = panel * kLanes > writes.begin ? panel * kLanes : writes.begin;
    const std::uint32_t to = (panel + 1) * kLanes < writes.end ? (panel + 1) * kLanes : writes.end;
    std::byte* keys = pages.panel(pages.keys(a.block, pass.layer, kv_head), s.cache_start + panel * kLanes);
    std::byte* values = pages.panel(pages.values(a.block, pass.layer, kv_head), s.cache_start + panel * kLanes);
    for (std::uint32_t pos = from; pos < to; ++pos) {
        if (positions && pos < s.n_given()) {  // appended keys have no row
            const std::uint32_t row = s.kv_row + pos - s.pos;
            float* head = pass.projected()[row] + a.key_at + std::uint64_t{kv_head} * b.head_dim;
            norm_and_rotate(a, true, row, kv_head, head);
            if (has(Part::layer_inputs) && b.value_norm) norm_value(a, row, kv_head);
        }
        const float* key = source(a, s, true, pos, kv_head, zeros);
        const float* value = source(a, s, false, pos, kv_head, zeros);
        if (has(Part::teams)) {  // which boards are without, and so are their caches
            fetch_next_head(key, b.head_dim);
            fetch_next_head(value, b.value_head_dim);
        }
        k.write_key[type](key, b.head_dim, pos % kLanes, keys);
        k.write_value[type](value, b.value_head_dim, pos % kLanes, values);
    }
}

/// The panels of a map that make this rank's heads: of queries, keys or values (kind 0, 1, 2).
[[nodiscard]] Linear own_rows(const Attention& a, Linear map, std::size_t kind) noexcept {
    const std::uint32_t width = kind == 2 ? a.shape().value_head_dim : a.shape().head_dim;
    const std::uint32_t first = (kind ? a.first_kv_head() : a.first_head()) * width,
                        end = first + (kind ? a.n_kv_heads() : a.n_heads()) * width;
    const std::uint32_t panel = first / kLanes, row = panel * kLanes;
    const std::uint32_t n_rows = end == first ? 0 : static_cast<std::uint32_t>(round_up(end, kLanes)) - row;
    map.matrix.offset += panel * map.matrix.panel_stride;
    map.matrix.n_rows = n_rows < map.matrix.n_rows - row ? n_rows : map.matrix.n_rows - row;
    map.n_stored = map.matrix.n_rows;
    map.bias += map.bias ? row * sizeof(float) : 0;
    map.out.data += row;
    return map;
}

void adapt_projections(const Attention& a, const Input (&inputs)[3]) noexcept {
    const Rows out = a.pass.projected();
    const AttentionTensors& t = a.tensors;
    const AdaptedProduct products[] = {{Adapted::query, out, t.query.n_rows},
                                       {Adapted::key, {out.data + a.key_at, out.stride}, t.key.n_rows},
                                       {Adapted::value, {out.data + a.value_at, out.stride}, t.value.n_rows}};
    // In a stack all read the same rows.
    add_adapters(a.pass, std::span(products).first(a.makes_keys() ? 3 : 1), inputs[0].rows, inputs[0].n_rows,
                 inputs[0].width, inputs[0].norm);
}

}  // namespace

/// Without biases between them the three maps are side by side in the file too: one product then, with longer streams
/// and no short ends.
void project(const Attention& a, const Input (&inputs)[3]) noexcept {
    if (has(Part::latent) && a.reads == Reads::self && (a.is_latent() || a.block.latent.query_rank)) {
        Latent::project(a, inputs[0]);
        return has(Part::block_variants) ? norm_and_clip(a) : void();
    }
    Pass& pass = a.pass;
    const AttentionTensors& t = a.tensors;
    const Rows out = pass.projected();
    const auto part = [&](const Matrix& matrix, VectorOffset bias, std::uint64_t at) {
        return Linear{.matrix = matrix, .bias = bias, .out = {out.data + at, out.stride}, .n_stored = matrix.n_rows};
    };
    const Linear parts[] = {part(t.query, t.query_bias, 0), part(t.key, t.key_bias, a.key_at),
                            part(t.value, t.value_bias, a.value_at)};
    const bool one_matrix =
        continues(t.query, t.key) && continues(t.key, t.value) && !t.query_bias && !t.key_bias && !t.value_bias;
    for (std::size_t first = 0, end = 1; first < 3; first = end++) {
        const Input& in = inputs[first];
        if ((has(Part::vectors) || has(Part::layer_inputs)) && in.n_rows == 0) continue;
        const Type type = parts[first].matrix.type;
        while (end < 3 && same_operand(inputs[end], in) && operand_kind(parts[end].matrix.type) == operand_kind(type))
            ++end;
        const auto input = a.reads == Reads::self ? &ColumnTensors::projections
                           : first == 0           ? &ColumnTensors::cross_query
                                                  : &ColumnTensors::memory;
        const void* operand =
            pass.operand(type, in.rows, in.n_rows, in.width, in.norm.with(pass.columns(input), parts[first].matrix));
        if (pass.by_ranks() && a.shape().head_norm != HeadNorm::together) {
            Linear own[3];
            for (std::size_t i = first; i < end; ++i) own[i] = own_rows(a, parts[i], i);
            pass.multiply_here("projections", std::span(own).subspan(first, end - first), operand, in.n_rows);
        } else if (first == 0 && end == 3 && one_matrix) {
            Matrix all = t.query;
            all.n_rows += t.key.n_rows + t.value.n_rows;
            const Linear linear = part(all, 0, 0);
            pass.multiply("projections", {}, {&linear, 1}, operand, in.n_rows);
        } else {
            pass.multiply("projections", {}, std::span(parts).subspan(first, end - first), operand, in.n_rows);
        }
    }
    if (a.reads == Reads::self) adapt_projections(a, inputs);
    if (has(Part::block_variants)) norm_and_clip(a);
}

void rotate_and_cache(const Attention& a) noexcept {
    const AttentionShape& b = a.shape();
    Pass& pass = a.pass;
    const bool normed = b.query_key_norm != Norm::none && b.head_norm != HeadNorm::together;
    const bool norms_values = has(Part::layer_inputs) && b.value_norm;
    const bool grows = has(Part::states) && b.query_growth != 0.0f;
    const bool positions = a.reads == Reads::self && (normed || norms_values || grows || b.position == Position::rope);
    float* zeros = pass.scratch();
    if (has(Part::vectors) && b.zero_attn)
        std::memset(zeros, 0, (b.head_dim > b.value_head_dim ? b.head_dim : b.value_head_dim) * 4u);
    std::uint32_t n_pieces = 0;
    for (const Sequence& s : a.sequences) n_pieces += Writes(a, s).n_pieces;
    const auto write_panels = [&](Pass::Share mine) {
        std::uint32_t first = 0;
        for (const Sequence& s : a.sequences) {
            const Writes writes(a, s);
            const Pass::Share its = mine.within(first, writes.n_pieces);
            for (std::uint32_t i = its.begin; i < its.end; ++i) write_piece(a, s, writes, i, positions, zeros);
            first += writes.n_pieces;
        }
    };
    const auto rotate_queries = [&](Pass::Share mine) {
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
            const std::uint32_t row = i / a.n_heads(), head = a.first_head() + i % a.n_heads();
            norm_and_rotate(a, false, row, head, pass.projected()[row] + std::uint64_t{head} * b.head_dim);
        }
    };
    Output projected;
    if (a.reads == Reads::self && pass.self.size() == 1 && !b.no_projections && !pass.by_ranks())
        projected = pass.all(pass.projected(), a.projected_width());
    pass.phase("projected", positions ? Output{} : projected, in_parts(n_pieces), write_panels,
               positions ? Then::go_on : Then::meet);
    if (positions) pass.phase("projected", projected, in_parts(pass.seq_len * a.n_heads()), rotate_queries);
}

}  // namespace fovea
