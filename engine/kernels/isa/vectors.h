// The kernels of one instruction set, FOVEA_ISA. Only the files beside it include it, each compiled with the set's flags.
#pragma once
#include "engine/kernels/scalar/cache_q4.h"
#include "engine/kernels/scalar/cache_q8.h"
#include "engine/kernels/simd/attention.h"
#include "engine/kernels/simd/matmul.h"
#include "engine/kernels/simd/matmul_broad.h"
#include "engine/kernels/simd/quantize.h"
#include "engine/kernels/simd/recurrence.h"
#include "engine/kernels/simd/rows.h"

namespace fovea {
namespace {

template<int kNumber = 0>
constexpr void fill_unary(UnaryTable& table) {
    table.functions[kNumber] = unary<static_cast<Unary>(kNumber)>;
    if constexpr (kNumber + 1 < kUnaryCount) fill_unary<kNumber + 1>(table);
}
constexpr UnaryTable unary_table() {
    UnaryTable table{};
    fill_unary(table);
    return table;
}

constexpr FloatKernels make_floats() {
    return {.types = {{matmul<float>, attend<float>, attend_weights<float>},
                      {matmul<Half>, attend<Half>, attend_weights<Half>},
                      {matmul<Bfloat>, nullptr, nullptr}},
            .pack = pack,
            .pack_q8 = pack_quants<kGroup>,
            .pack_broad = pack_quants<kBroadGroup>,
            .rms_norm = rms_norm,
            .layer_norm = layer_norm,
            .rope_table = rope_table,
            .rotate = rotate,
            .write_key = {write_key<float>, write_key<Half>, nullptr, write_key_q8<pack_quants<kGroup>>,
                          kQ4Caches ? write_key_q4 : nullptr},
            .write_value = {write_value<float>, write_value<Half>, nullptr, write_value_q8<pack_quants<kGroup>>,
                            kQ4Caches ? write_value_q4 : nullptr},
            .attend_merge = attend_merge,
            .attend_finish = attend_finish,
            .unary = unary_table(),
            .softcap = softcap_row,
            .convolve = convolve,
            .update_state = update_state};
}

/// Products of a quantized type, and attention over caches of q8 and q4.
template<Type kType>
constexpr TypeKernels quant_kernels() {
    if constexpr (kType == Type::q8) return {matmul<Quants<kType>>, attend<CacheQ8>, attend_weights<CacheQ8>};
    if constexpr (kQ4Caches && kType == Type::q4)
        return {matmul<Quants<kType>>, attend<CacheQ4>, attend_weights<CacheQ4>};
    return {matmul<Quants<kType>>, nullptr, nullptr};
}

}  // namespace
}  // namespace fovea
