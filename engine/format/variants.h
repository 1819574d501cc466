// Which blocks compute what a part has that a build may leave out.
#pragma once
#include "fovea/config.h"

namespace fovea {

/// Part::layer_inputs.
[[nodiscard]] constexpr bool has_layer_inputs(const Block& b) noexcept {
    return b.shared_keys || b.value_norm || b.layer_scale || b.layer_input_width != 0;
}

/// Part::block_variants.
[[nodiscard]] constexpr bool is_variant(const Block& b) noexcept {
    return b.norm_place > NormPlace::post || b.head_norm != HeadNorm::shared || b.position == Position::alibi ||
           b.residual_scale != 0.0f || b.projection_clip != 0.0f || b.score_softcap != 0.0f || b.parallel ||
           b.attention_sinks || b.activation >= Activation::relu2;
}

}  // namespace fovea
