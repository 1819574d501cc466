// What of a model's file the products of a rank read, by the shares that engine/pass/ranks.cpp and engine/blocks give it.
#include "engine/model/kind.h"
#include "engine/model/model.h"
#include "engine/model/ranks.h"
#include "engine/pass/pass.h"

namespace fovea {
namespace {

/// Panels that hold rows [begin, end).
[[nodiscard]] std::uint64_t panels_of(std::uint32_t begin, std::uint32_t end) noexcept {
    return begin == end ? 0 : (end + kLanes - 1) / kLanes - begin / kLanes;
}

/// Experts of a rank, and whether the shared one, which comes last, is among them.
struct RankExperts {
    std::uint32_t n;
    bool shared;
    RankExperts(const ExpertShape& e, RankOf rank) noexcept {
        const UnitShare own = rank.of(e.n + (e.shared_d_ff ? 1u : 0u));
        n = (own.end < e.n ? own.end : e.n) - (own.begin < e.n ? own.begin : e.n);
        shared = own.end > e.n && own.begin < own.end;
    }
};

[[nodiscard]] std::uint64_t panels_of(const Stack& s, const TensorRecord& t, RankOf rank, UnitShare layers) noexcept {
    const std::uint32_t n_panels = (t.n_rows + kLanes - 1) / kLanes;
    const UnitShare pairs = rank.of((n_panels + kPair - 1) / kPair);
    const std::uint32_t end = pairs.end * kPair < n_panels ? pairs.end * kPair : n_panels;
    const std::uint64_t of_pairs = end > pairs.begin * kPair ? end - pairs.begin * kPair : 0;
    const Role role = static_cast<Role>(t.role);
    if (role == Role::token_embedding) return s.tied_output ? of_pairs : 0;
    if (role < Role::query || !s.n_layers || t.layer >= s.n_layers) return of_pairs;
    const bool of_all_layers = role == Role::layer_embedding || role == Role::layer_input_map;
    if (!of_all_layers && !layers.contains(t.layer)) return 0;
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
        case Role::latent_value: return std::uint64_t{n_panels} / a.n_heads * heads.n();
        case Role::distance_keys:
        case Role::distance_queries: return n_panels;
        case Role::expert_up:
        case Role::expert_down: return std::uint64_t{n_panels} / b.experts.n * experts.n;
        case Role::shared_up:
        case Role::shared_down: return experts.shared ? n_panels : 0;
        default: return of_pairs;
    }
}

}  // namespace

std::uint64_t rank_bytes(const Model& model, const Limits& limits) noexcept {
    std::uint64_t bytes = 0;
    for (const TensorRecord& t : ModelAccess::tensors(model)) {
        if (t.layout != static_cast<std::uint8_t>(Layout::panels)) continue;
        const Stack& s = stack_of(model.config(), static_cast<StackIndex>(t.stack));
        bytes += t.panel_stride * panels_of(s, t, rank_of(limits), layers_of(limits, s.n_layers));
    }
    return bytes;
}

}  // namespace fovea
