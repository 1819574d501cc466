// Attention as phases of a pass: project, norm and rotate, append to the cache, attend, project the output.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// Whose keys and values an attention reads: those of its own rows, or the memory's.
enum class Reads : std::uint8_t { self, memory };
[[nodiscard]] constexpr bool is_memory(Reads reads) noexcept { return has(Part::vectors) && reads == Reads::memory; }

/// Attention's first half, to the merged heads of every row.
void compute_attention(Pass& pass, const Layer& layer, const Block& block, Reads reads) noexcept;
/// A recurrent part's output map, added to the residual stream. Attention beside the part has read the stream by then, and attends
/// afterwards to where the part's result was.
void add_recurrent(Pass& pass, const Block& block) noexcept;  // block.cpp
/// Keys and values of pass.memory alone, to their caches.
void cache_memory(Pass& pass, const Layer& layer, const Block& block) noexcept;
/// Its output map, added to the residual stream.
void add_attention(Pass& pass, const Layer& layer, const Block& block, Reads reads) noexcept;
/// pass.heads through one attention, to pass.out.
void lone_attention(Pass& pass, const Layer& layer, const Block& block) noexcept;

/// Rows of heads, T being float or const float. A sequence of the pass begins at its first row; a caller's sequences all have
/// as many rows.
template<class T>
struct HeadRows {
    T* data = nullptr;
    std::uint64_t row_stride = 0, head_stride = 0;
    bool callers = false;
    std::uint64_t sequence_stride = 0;  // of a caller's

    /// `first` is the sequence's first row among the pass's.
    [[nodiscard]] T* at(std::size_t sequence, std::uint32_t first, std::uint32_t row,
                        std::uint32_t head) const noexcept {
        const std::uint64_t start = callers ? sequence * sequence_stride : first * row_stride;
        return data + start + row * row_stride + head * head_stride;
    }
};

/// One attention of the pass: its operands and where they are.
struct Attention {
    Pass& pass;
    const Layer& layer;
    const AttentionTensors& tensors;
    const Block& block;
    std::span<const Sequence> sequences;
    const Masks* masks = nullptr;               // null: none
    const AttentionWeights* weights = nullptr;  // null: not asked for
    const float* slopes = nullptr;              // [n_heads], see Position::alibi; null: none
    Reads reads;
    bool causal;
    std::uint32_t n_appended;
    std::uint64_t key_at, value_at;  // elements from the start of a projected row; queries start at 0
    HeadRows<const float> query, key, value, past_key, past_value;
    HeadRows<float> out;
    std::uint32_t value_stride;
    [[no_unique_address]] std::conditional_t<kRanks, RankHeads, NoRankHeads> rank_heads;  // this rank's

    Attention(Pass& p, const Layer& l, const Block& b, Reads r) noexcept;

    [[nodiscard]] const AttentionShape& shape() const noexcept { return block.attention; }
    /// Heads that are computed here: all, or those of this rank.
    [[nodiscard]] std::uint32_t first_kv_head() const noexcept { return kRanks ? rank_heads.first_kv : 0; }
    [[nodiscard]] std::uint32_t n_kv_heads() const noexcept { return kRanks ? rank_heads.n_kv : shape().n_kv_heads; }
    [[nodiscard]] std::uint32_t first_head() const noexcept { return kRanks ? rank_heads.first : 0; }
    [[nodiscard]] std::uint32_t n_heads() const noexcept { return kRanks ? rank_heads.n() : shape().n_heads; }
    /// Query heads of each key-value head.
    [[nodiscard]] std::uint32_t group() const noexcept {
        return kRanks ? rank_heads.group : shape().n_heads / shape().n_kv_heads;
    }

    /// Whether its values are what its keys are behind the dims that turn.
    [[nodiscard]] bool is_latent() const noexcept {
        return has(Part::latent) && reads == Reads::self && block.latent.query_dim != 0;
    }
    /// Whether what queries and keys say of distances is added to its scores.
    [[nodiscard]] bool disentangled() const noexcept {
        return has(Part::vectors) && reads == Reads::self && shape().position == Position::disentangled;
    }
    /// Whether it makes keys and values, and does not read those of an earlier layer.
    [[nodiscard]] bool makes_keys() const noexcept {
        return !has(Part::layer_inputs) || reads != Reads::self || !shape().shared_keys;
    }
    /// Elements of a projected row: queries, and what it makes of keys and values.
    [[nodiscard]] std::uint32_t projected_width() const noexcept {
        if (!makes_keys()) return shape().n_heads * shape().head_dim;
        if (is_latent()) return static_cast<std::uint32_t>(key_at) + shape().head_dim;
        return static_cast<std::uint32_t>(value_at) + shape().n_kv_heads * shape().value_head_dim;
    }
    /// Whether its keys and values are a memory's that outlives the pass.
    [[nodiscard]] bool keeps_memory() const noexcept { return is_memory(reads) && !pass.memory_kv.empty(); }
    [[nodiscard]] std::size_t number(const Sequence& s) const noexcept {
        return static_cast<std::size_t>(&s - sequences.data());
    }
    [[nodiscard]] const KvPages& pages(const Sequence& s) const noexcept {
        const std::span<const KvPages> all = has(Part::vectors) && keeps_memory() ? pass.memory_kv : pass.kv;
        return all[all.size() == 1 ? 0 : number(s)];
    }
    /// A sequence's keys and values, appended ones too.
    [[nodiscard]] std::uint32_t n_cached(const Sequence& s) const noexcept {
        return s.n_given() + (has(Part::vectors) ? n_appended : 0);
    }
};

/// What a projection reads; no rows: it is not wanted.
struct Input {
    ConstRows rows = {};
    std::uint32_t n_rows = 0, width = 0;
    NormWeights norm;
};

/// Queries, keys and values of every row, side by side in `projected`, from one input or several; what is done to a whole
/// row of them is done.
void project(const Attention& a, const Input (&inputs)[3]) noexcept;  // qkv.cpp
/// Norms and rotates queries and keys, and writes keys and values to the caches.
void rotate_and_cache(const Attention& a) noexcept;  // qkv.cpp
/// From caches to merged heads in `out`.
void attend_sequences(const Attention& a) noexcept;  // attention.cpp

}  // namespace fovea
