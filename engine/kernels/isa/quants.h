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

template<Isa kIsa, Type kType>
void QuantsOf<kIsa, kType>::finish([[maybe_unused]] const Matmul& m, [[maybe_unused]] const Totals& t) noexcept {
#if !defined(FOVEA_NEON_INTEGERS)
    if constexpr (kType == Type::q8) finish_quants(m, t);
#endif
}

template<Isa kIsa, Type kType>
void QuantsOf<kIsa, kType>::two_panels([[maybe_unused]] const Matmul& m, [[maybe_unused]] const void* pair,
                                       [[maybe_unused]] std::uint32_t row, [[maybe_unused]] std::uint32_t row_end,
                                       [[maybe_unused]] float* total) noexcept {
#if !defined(FOVEA_NEON_INTEGERS)
    using Wide = typename ColumnGroup<Quants<kType>>::Wide;
    if constexpr (ColumnGroup<Wide>::Unit::kType == kType)
        fovea::two_panels(m, *static_cast<const Pair<Wide>*>(pair), row, row_end, total);
#endif
}

// Those that other types take.
extern template struct QuantsOf<Isa::FOVEA_ISA, Type::q8>;
extern template struct QuantsOf<Isa::FOVEA_ISA, Type::q5_k>;
extern template struct QuantsOf<Isa::FOVEA_ISA, Type::q6_k>;

}  // namespace fovea
