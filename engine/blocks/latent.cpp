// Latent attention (DeepSeek-AI 2024, section 2.1), with the maps of keys and values taken into queries and outputs:
//
//     [r, c] = W_key · x;  c = rms_norm(c);  r turned         one head's key; c is its value too. This is what is cached
//     [q_r, q] = W_query · x, or W_query · rms_norm(W_down · x), for each head;  q_r turned
//     score = q_r · r + (U q) · c;  the head's output = V · Σ of p c
//
// In the paper's words r is k^R, U a head's rows of W^UK transposed, V those of W^UV. U q is made once a row, so that a key is
// r and c whatever the number of heads.
#include "engine/blocks/latent.h"

#include <cstring>

#include "engine/stream/adapters.h"

namespace fovea {
namespace {

[[nodiscard]] const LatentTensors& tensors_of(const Pass& pass) noexcept {
    return pass.of_layer(pass.workspace.latent());
}

/// One map for each head, whose matrices lie one below the other, each in whole panels; or one for all.
struct HeadMaps {
    Pass& pass;
    const Matrix& all;
    std::uint32_t n_heads, n_stored;  // outputs of each
    Epilogue epilogue = Epilogue::store;
    const std::byte* file = nullptr;  // an adapter's; null: the model's
    bool shared = false;
    std::uint32_t first = 0, end = n_heads;  // heads that are computed here

    [[nodiscard]] Matrix of(std::uint32_t head) const noexcept {
        Matrix one = all;
        if (shared) return one;
        one.n_rows = all.n_rows / n_heads;
        one.offset += std::uint64_t{head} * one.n_panels() * all.panel_stride;
        return one;
    }
    /// Rows' heads, from_stride apart, to heads to_stride apart.
    void multiply(const char* name, const Rows& from, std::uint32_t from_stride, const Rows& to,
                  std::uint32_t to_stride) const noexcept;
};

/// Every head's rows packed, then every head's product, panels shared out as if they were one matrix.
void HeadMaps::multiply(const char* name, const Rows& from, std::uint32_t from_stride, const Rows& to,
                        std::uint32_t to_stride) const noexcept {
    const std::uint32_t n_rows = pass.seq_len, n_cols = all.n_cols, n_of_head = n_pairs(of(0));
    const RowBlocks blocks(n_rows);
    std::byte* operand = pass.workspace.arena + pass.workspace.map.operand;
    const std::uint64_t of_head = operand_bytes(all.type, n_rows, n_cols);
    pass.phase("operand", {}, in_parts((end - first) * blocks.n), [&](Pass::Share mine) {
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
            const std::uint32_t head = first + i / blocks.n;
            const RowBlocks::Block block = blocks[i % blocks.n];
            pass.pack({all.type, n_rows, n_cols}, from[block.first] + std::uint64_t{head} * from_stride, from.stride,
                      block, operand + head * of_head);
        }
    });
    pass.phase(name, {}, pass.pairs((end - first) * n_of_head, n_rows), [&](Pass::Share own) {
        const Pass::Share mine{own.begin + first * n_of_head, own.end + first * n_of_head};
        for (std::uint32_t head = mine.begin / n_of_head; head * n_of_head < mine.end; ++head) {
            const Linear linear{.matrix = of(head),
                                .out = {to.data + std::uint64_t{head} * to_stride, to.stride},
                                .n_stored = n_stored,
                                .epilogue = epilogue,
                                .file = file};
            pass.multiply({&linear, 1}, operand + head * of_head, n_rows, mine.within(head * n_of_head, n_of_head));
        }
    });
}

/// The model's maps of this rank's heads.
[[nodiscard]] HeadMaps own_maps(Pass& pass, const Matrix& all, const Block& b, std::uint32_t n_stored) noexcept {
    HeadMaps maps{pass, all, b.attention.n_heads, n_stored};
    if (!pass.by_ranks()) return maps;
    const RankHeads own(b.attention, pass.rank());
    maps.first = own.first, maps.end = own.end();
    return maps;
}

/// What each adapter adds to the heads' maps: queries' where `queries`, else values'. Rows' heads as HeadMaps::multiply has them.
void adapt_heads(Pass& pass, const Block& b, bool queries, const Rows& from, std::uint32_t from_stride, const Rows& to,
                 std::uint32_t to_stride) noexcept {
    if (!has(Part::adapters)) return;
    const WorkspaceState& w = pass.workspace;
    const Rows low = pass.rows(w.map.low, w.map.low_stride);
    for (std::uint32_t i = 0; i < w.n_adapters; ++i) {
        const AdapterUse& use = adapter_use(pass, i);
        const AdapterTensors& t = adapter_tensors(pass, i);
        const Matrix &in = queries ? t.latent_query_in : t.latent_value_in,
                     &out = queries ? t.latent_query_out : t.latent_value_out;
        if (!in.offset) continue;
        const std::uint32_t rank = out.n_cols, stride = (rank + kLanes - 1) / kLanes * kLanes;
        const HeadMaps first{pass, in, b.attention.n_heads, rank, Epilogue::store, use.file, !queries};
        first.multiply("adapter", from, from_stride, low, stride);
        if (use.scale != 1.0f)
            pass.phase("adapter", {}, in_parts(pass.seq_len), [&](Pass::Share mine) {
                for (std::uint32_t row = mine.begin; row < mine.end; ++row)
                    for (std::uint32_t j = 0; j < b.attention.n_heads * stride; ++j)
                        if (j % stride < rank) low[row][j] = low[row][j] * use.scale;
            });
        const std::uint32_t width = queries ? b.attention.value_head_dim : b.latent.value_dim;
        const HeadMaps second{pass, out, b.attention.n_heads, width, Epilogue::add, use.file, queries};
        second.multiply("adapter", low, stride, to, to_stride);
    }
}

[[nodiscard]] float norm_epsilon(const Block& b) noexcept {
    return has(Part::states) && b.latent.norm_epsilon != 0.0f ? b.latent.norm_epsilon : b.norm_epsilon;
}

[[nodiscard]] Linear to(const Matrix& matrix, const Rows& rows, VectorOffset bias = 0) noexcept {
    return {.matrix = matrix, .bias = bias, .out = rows, .n_stored = matrix.n_rows};
}

}  // namespace

/// Raw queries in `attended`; what they are made of, and what heads' outputs become, in `inner`; each head's operand.
void LatentTensors::plan(const Planning& p) noexcept {
    for (const Block& b : p.stack.used_blocks()) {
        grow_to(p.map.inner_stride, pad(b.latent.query_rank));
        grow_to(p.map.hidden_stride, pad(b.latent.query_rank));  // normed in a member's scratch
        grow_to(p.widest.operand, b.latent.query_rank);
        if (!b.latent.query_dim) continue;
        const std::uint64_t made = std::uint64_t{b.attention.n_heads} * b.latent.value_dim;
        grow_to(p.map.attended_stride, pad(std::uint64_t{b.attention.n_heads} * query_head_dim(b)));
        grow_to(p.map.inner_stride, pad(made));
        if (b.attention.output_gate != OutputGate::none) grow_to(p.map.projected_stride, pad(made));
        grow_to(p.widest.operand, made, b.attention.n_heads * round_up(b.latent.query_dim, kSuperblock),
                b.attention.n_heads * round_up(b.attention.value_head_dim, kSuperblock));
    }
}

void Latent::project(const Attention& a, const Input& in) noexcept {
    Pass& pass = a.pass;
    const Block& b = a.block;
    const AttentionTensors& t = a.tensors;
    const LatentTensors& l = tensors_of(pass);
    const Rows projected = pass.projected(), raw = a.is_latent() ? pass.attended() : projected;
    const auto part = [&](std::uint64_t at) { return Rows{projected.data + at, projected.stride}; };
    const bool narrow = b.latent.query_rank != 0;
    const Linear query = to(t.query, raw, t.query_bias);
    const Linear parts[] = {narrow ? to(l.query_down, pass.inner()) : query, to(t.key, part(a.key_at), t.key_bias),
                            to(t.value, part(a.value_at), t.value_bias)};
    const std::size_t n_parts = a.is_latent() ? 2 : 3;
    for (std::size_t first = 0, end = 1; first < n_parts; first = end++) {
        const Type type = parts[first].matrix.type;
        while (end < n_parts && operand_kind(parts[end].matrix.type) == operand_kind(type)) ++end;
        const void* operand = pass.operand(type, in.rows, in.n_rows, in.width, in.norm);
        pass.multiply("projections", {}, std::span(parts).subspan(first, end - first), operand, in.n_rows);
    }
    const AdaptedProduct adapted[] = {{Adapted::query, raw, t.query.n_rows},
                                      {Adapted::query_down, pass.inner(), b.latent.query_rank},
                                      {Adapted::key, part(a.key_at), t.key.n_rows},
                                      {Adapted::value, part(a.value_at), t.value.n_rows}};
    const AdaptedProduct first_adapted[] = {adapted[narrow ? 1 : 0], adapted[2], adapted[3]};
    add_adapters(pass, std::span(first_adapted).first(n_parts), in.rows, in.n_rows, in.width, in.norm);
    if (narrow) {
        const NormWeights norm{Norm::rms, l.query_down_norm, 0, norm_epsilon(b)};
        const void* operand = pass.operand(query.matrix.type, pass.inner(), in.n_rows, b.latent.query_rank, norm);
        pass.multiply("projections", {}, {&query, 1}, operand, in.n_rows);
        add_adapters(pass, {adapted, 1}, pass.inner(), in.n_rows, b.latent.query_rank, norm);
    }
    if (!a.is_latent()) return;
    const HeadMaps maps = own_maps(pass, l.query, b, b.attention.value_head_dim);
    const Rows from{raw.data + b.attention.rotary_dim, raw.stride};
    maps.multiply("latent queries", from, query_head_dim(b), part(b.attention.rotary_dim), b.attention.head_dim);
    adapt_heads(pass, b, true, from, query_head_dim(b), part(b.attention.rotary_dim), b.attention.head_dim);
}

void Latent::take_turning(const Attention& a, std::uint32_t row, std::uint32_t number, float* head) noexcept {
    const float* raw = a.pass.attended()[row] + std::uint64_t{number} * query_head_dim(a.block);
    std::memcpy(head, raw, a.shape().rotary_dim * sizeof(float));
}

void Latent::norm(const Attention& a, float* head) noexcept {
    const NormWeights norm{Norm::rms, tensors_of(a.pass).norm, 0, norm_epsilon(a.block)};
    float* latent = head + a.shape().rotary_dim;
    a.pass.norm(norm, latent, a.shape().value_head_dim, latent);
}

Rows Latent::map_values(Pass& pass, const Block& b) noexcept {
    const HeadMaps maps = own_maps(pass, tensors_of(pass).value, b, b.latent.value_dim);
    maps.multiply("latent values", pass.attended(), b.attention.value_head_dim, pass.inner(), b.latent.value_dim);
    adapt_heads(pass, b, false, pass.attended(), b.attention.value_head_dim, pass.inner(), b.latent.value_dim);
    if (pass.by_ranks()) pass.gather_heads("latent values", {}, pass.inner(), b.attention, b.latent.value_dim);
    return pass.inner();
}

}  // namespace fovea
