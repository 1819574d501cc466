// Which blocks compute what a part has that a build may leave out.
#pragma once
#include "fovea/config.h"

namespace fovea {

/// Part::layer_inputs.
[[nodiscard]] constexpr bool has_layer_inputs(const Block& b) noexcept {
    return b.attention.shared_keys || b.attention.value_norm || b.inputs.layer_scale || b.inputs.width != 0;
}

/// Part::block_variants.
[[nodiscard]] constexpr bool is_variant(const Block& b) noexcept {
    return b.norm_place > NormPlace::post || b.attention.head_norm != HeadNorm::shared ||
           b.attention.position == Position::alibi || b.residual_scale != 0.0f || b.attention.projection_clip != 0.0f ||
           b.attention.score_softcap != 0.0f || b.feed.parallel || b.attention.attention_sinks ||
           b.feed.activation >= Activation::relu2;
}

}  // namespace fovea
