// Which blocks compute what Part::block_variants has.
#pragma once
#include "fovea/config.h"

namespace fovea {

[[nodiscard]] constexpr bool is_variant(const Block& b) noexcept {
    return b.norm_place > NormPlace::post || b.head_norm != HeadNorm::shared || b.position == Position::alibi ||
           b.residual_scale != 0.0f || b.projection_clip != 0.0f || b.score_softcap != 0.0f || b.parallel ||
           b.attention_sinks || b.activation >= Activation::relu2;
}

}  // namespace fovea
