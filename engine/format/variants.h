// Which blocks compute what a part has that a build may leave out.
#pragma once
#include "fovea/config.h"

namespace fovea {

/// Part::layer_inputs.
[[nodiscard]] constexpr bool has_layer_inputs(const Block& b) noexcept {
    return b.attention.shared_keys || b.attention.value_norm || b.inputs.layer_scale || b.inputs.width != 0 ||
           b.inputs.joins_embedding;
}

/// Part::block_variants.
[[nodiscard]] constexpr bool is_variant(const Block& b) noexcept {
    return b.norm_place > NormPlace::post || b.attention.head_norm != HeadNorm::shared ||
           b.attention.position == Position::alibi || b.residual_scale != 0.0f || b.attention.projection_clip != 0.0f ||
           b.attention.score_softcap != 0.0f || b.feed.parallel || b.attention.attention_sinks ||
           b.feed.activation >= Activation::relu2;
}

/// Part::states: what the last fields of a block's record say.
[[nodiscard]] constexpr bool has_last_fields(const Block& b) noexcept {
    const AttentionShape& a = b.attention;
    return b.recurrent || a.output_gate != OutputGate::none || a.norm_turned || a.chunked || a.query_growth != 0.0f ||
           b.latent.norm_epsilon != 0.0f || b.experts.weigh_inputs || b.experts.own_norms || b.feed.xielu ||
           b.experts.router_score == RouterScore::sparse_mixer;
}

}  // namespace fovea
