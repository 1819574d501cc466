// What of a model's file the products of a rank read, by the shares that engine/pass/ranks.cpp and engine/blocks give it.
#include "engine/model/kind.h"
#include "engine/model/model.h"
#include "engine/model/ranks.h"
#include "engine/pass/pass.h"

namespace fovea {
namespace {

/// Panels that hold rows [begin, end).
[[nodiscard]] UnitShare panels_of(std::uint32_t begin, std::uint32_t end) noexcept {
    return {begin / kLanes, begin == end ? begin / kLanes : (end + kLanes - 1) / kLanes};
}

/// Panels of the experts that are a rank's. The shared one comes last, in matrices of its own.
struct RankExperts {
    UnitShare own;
    bool shared;
    RankExperts(const ExpertShape& e, RankOf rank) noexcept : own(rank.of(e.n + (e.shared_d_ff ? 1u : 0u))) {
        shared = own.end > e.n && own.begin < own.end;
        own = {own.begin < e.n ? own.begin : e.n, own.end < e.n ? own.end : e.n};
    }
};

/// `each` panels for each unit.
[[nodiscard]] UnitShare times(UnitShare units, std::uint32_t each) noexcept {
    return {units.begin * each, units.end * each};
}

/// Panels that a rank's products read. A tied table's are those of the head alone.
[[nodiscard]] UnitShare panels_of(const Stack& s, const TensorRecord& t, RankOf rank, UnitShare layers) noexcept {
    const std::uint32_t n_panels = (t.n_rows + kLanes - 1) / kLanes;
    UnitShare of_pairs = times(rank.of((n_panels + kPair - 1) / kPair), kPair);
    of_pairs = {of_pairs.begin < n_panels ? of_pairs.begin : n_panels,
                of_pairs.end < n_panels ? of_pairs.end : n_panels};
    const Role role = static_cast<Role>(t.role);
    if (role == Role::token_embedding) return s.tied_output ? of_pairs : UnitShare{0, 0};
    if (role < Role::query || !s.n_layers || t.layer >= s.n_layers) return of_pairs;
    const bool of_all_layers = role == Role::layer_embedding || role == Role::layer_input_map;
    if (!of_all_layers && !layers.contains(t.layer)) return {0, 0};
    const Block& b = s.block(t.layer);
    const AttentionShape& a = b.attention;
    const RankHeads heads(a, rank);
    const bool by_heads = a.head_norm != HeadNorm::together && !b.latent.query_rank && !b.latent.query_dim;
    const auto of_heads = [&](std::uint32_t first, std::uint32_t n, std::uint32_t width) {
        return panels_of(first * width, (first + n) * width);
    };
    const RankExperts experts(b.experts, rank);
    switch (role) {
        case Role::query:
            if (!by_heads) return of_pairs;
            [[fallthrough]];
        case Role::cross_query: return of_heads(heads.first, heads.n(), a.head_dim);
        case Role::key:
            if (!by_heads) return of_pairs;
            [[fallthrough]];
        case Role::cross_key: return of_heads(heads.first_kv, heads.n_kv, a.head_dim);
        case Role::value:
            if (!by_heads) return of_pairs;
            [[fallthrough]];
        case Role::cross_value: return of_heads(heads.first_kv, heads.n_kv, a.value_head_dim);
        case Role::latent_query:
        case Role::latent_value: return times({heads.first, heads.end()}, n_panels / a.n_heads);
        case Role::distance_keys:
        case Role::distance_queries: return {0, n_panels};
        case Role::expert_up:
        case Role::expert_down: return times(experts.own, n_panels / b.experts.n);
        case Role::shared_up:
        case Role::shared_down: return {0, experts.shared ? n_panels : 0};
        default: return of_pairs;
    }
}

/// Bytes [begin, end) of a tensor that a rank's products read.
[[nodiscard]] FileRange products_range(const Model& model, const TensorRecord& t, const Limits& limits) noexcept {
    const Stack& s = stack_of(model.config(), static_cast<StackIndex>(t.stack));
    const UnitShare panels = panels_of(s, t, rank_of(limits), layers_of(limits, s.n_layers));
    return {panels.begin * t.panel_stride, panels.end * t.panel_stride};
}

[[nodiscard]] bool in_panels(const TensorRecord& t) noexcept {
    return t.layout == static_cast<std::uint8_t>(Layout::panels);
}

}  // namespace

std::uint64_t rank_bytes(const Model& model, const Limits& limits) noexcept {
    std::uint64_t bytes = 0;
    for (const TensorRecord& t : ModelAccess::tensors(model)) {
        if (!in_panels(t)) continue;
        const FileRange range = products_range(model, t, limits);
        bytes += range.end - range.begin;
    }
    return bytes;
}

FileRange rank_range(const Model& model, std::uint32_t tensor, const Limits& limits) noexcept {
    const TensorRecord& t = ModelAccess::tensors(model)[tensor];
    const Role role = static_cast<Role>(t.role);
    const bool looked_up = role == Role::token_embedding || role == Role::layer_embedding;
    const bool of_first_layer = role >= Role::query && t.layer == 0;  // ranks compare what it gives
    const bool whole = !in_panels(t) || looked_up || of_first_layer;
    const FileRange range = whole ? FileRange{0, t.bytes} : products_range(model, t, limits);
    const std::uint64_t offset = ModelAccess::offset(model, t);
    return {offset + range.begin, offset + range.end};
}

}  // namespace fovea
