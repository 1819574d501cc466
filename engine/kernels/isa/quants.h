// The kernels of quantized types: files beside this one name the types that they make.
#pragma once
#include "engine/kernels/isa/set.h"

namespace fovea {

template<Isa kIsa, Type kType>
void QuantsOf<kIsa, kType>::matmul(const Matmul& m) noexcept {
    quant_kernels<kType>().matmul(m);
}

template<Isa kIsa, Type kType>
void QuantsOf<kIsa, kType>::attend([[maybe_unused]] const Attend& a) noexcept {
    if constexpr (has_caches(kType)) quant_kernels<kType>().attend(a);
}

template<Isa kIsa, Type kType>
void QuantsOf<kIsa, kType>::attend_weights([[maybe_unused]] const Attend& a, [[maybe_unused]] std::uint32_t tile,
                                           [[maybe_unused]] float* weights) noexcept {
    if constexpr (has_caches(kType)) quant_kernels<kType>().attend_weights(a, tile, weights);
}

}  // namespace fovea
