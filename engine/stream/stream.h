// What the parts of a block do to the residual stream: norms before and behind them, and the sum.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// The norms of one part of a block: of what it reads, of what its last matrix reads, of the stream it was added to, of what it
/// adds.
struct PartNorms {
    NormWeights before = {}, within = {}, after = {}, output = {};
};
/// `t` is AttentionTensors or FeedForwardTensors.
[[nodiscard]] PartNorms part_norms(const Block& b, const auto& t) noexcept {
    const NormWeights norm{b.norm, t.norm, t.norm_bias, b.norm_epsilon};
    if (!has(Part::block_variants)) {
        const bool pre = b.norm_place == NormPlace::pre;
        return {.before = pre ? norm : NormWeights{}, .after = pre ? NormWeights{} : norm};
    }
    const NormWeights second{b.norm, t.post_norm, t.post_norm_bias, b.norm_epsilon};
    switch (b.norm_place) {
        case NormPlace::pre: return {.before = norm};
        case NormPlace::post: return {.after = norm};
        case NormPlace::output: return {.output = norm};
        case NormPlace::both: return {.before = norm, .output = second};
        case NormPlace::within: break;
    }
    return {.before = norm, .within = second};
}
/// Whether what a part adds to the stream is made elsewhere first, for it is normed or scaled.
[[nodiscard]] constexpr bool adds_by_rows(const Block& b) noexcept {
    const bool normed = b.norm_place == NormPlace::both || b.norm_place == NormPlace::output;
    return (normed && b.norm != Norm::none) || b.residual_scale != 0.0f;
}

/// A phase: rows = norm(rows), of `width` elements each. None where there is no norm.
void norm_rows(Pass& pass, const char* name, const Output& output, const NormWeights& weights, const Rows& rows,
               std::uint32_t width) noexcept;

/// How a part of a block ends: the residual stream x becomes x + scale·norm(product), then its norm, with the norms and
/// the scale that there are. Where there are any before the sum, the product goes by way of `projected`.
void add_to_stream(Pass& pass, const char* name, const Linear& product, const void* operand, const Block& block,
                   const PartNorms& norms) noexcept;

/// x = x + scale·norm(y) for some rows y, which are normed in place, where a block adds by rows.
void add_rows(const Pass& pass, const Block& block, const PartNorms& norms, const Rows& y, Pass::Share rows) noexcept;

}  // namespace fovea
