// The table of one instruction set's kernels. Included by the files of isa/ alone, each compiled with its own flags.
#pragma once
#include "../cache_q8.h"
#include "attention.h"
#include "matmul.h"
#include "matmul_q.h"
#include "quantize.h"
#include "rows.h"

namespace fovea {
namespace {

constexpr Kernels make_table(const char* isa, CpuFeatures needs) {
    return {.isa = isa,
            .needs = needs,
            .matmul = {matmul<float>, matmul<Half>, matmul<Bfloat>, matmul<Superblock<Type::q8>>,
                       matmul<Superblock<Type::q4>>},
            .pack = pack,
            .pack_q8 = pack_q8,
            .rms_norm = rms_norm,
            .layer_norm = layer_norm,
            .rope_table = rope_table,
            .rotate = rotate,
            .write_key = {write_key<float>, write_key<Half>, nullptr, write_key_q8<pack_q8>, nullptr},
            .write_value = {write_value<float>, write_value<Half>, nullptr, write_value_q8<pack_q8>, nullptr},
            .attend = {attend<float>, attend<Half>, nullptr, attend<CacheQ8>, nullptr},
            .attend_weights = {attend_weights<float>, attend_weights<Half>, nullptr, attend_weights<CacheQ8>, nullptr},
            .attend_merge = attend_merge,
            .attend_finish = attend_finish,
            .unary = {unary<Unary::exp>, unary<Unary::tanh>, unary<Unary::erf>, unary<Unary::sin>, unary<Unary::cos>,
                      unary<Unary::gelu>, unary<Unary::gelu_tanh>, unary<Unary::silu>},
            .softcap = softcap_row};
}

}  // namespace
}  // namespace fovea
