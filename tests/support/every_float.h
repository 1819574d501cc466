// The engine's functions of one float, reached through the table of kernels: to compare instruction sets with scalar
// over many floats (every_float_test.cpp) or all of them (tests/programs/exhaustive.cpp).
#pragma once
#include <cstring>
#include <vector>

#include "engine/kernels/kernels.h"
#include "host/base/aligned_bytes.h"

namespace fovea::testing {

inline constexpr std::size_t kBlockFloats = 4096;  // that one call of an operation takes

/// run writes at most out_bytes, the same ones on every instruction set; x and out are 64-byte aligned.
struct FloatOperation {
    const char* name;
    std::size_t out_bytes;
    void (*run)(const Kernels& kernels, const float* x, std::byte* out);
};

namespace every_float {

inline float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

template<Unary f>
void unary(const Kernels& kernels, const float* x, std::byte* out) {
    kernels.floats.unary[static_cast<int>(f)](x, kBlockFloats, floats(out));
}

inline void softcap(const Kernels& kernels, const float* x, std::byte* out) {
    std::memcpy(out, x, kBlockFloats * sizeof(float));
    kernels.floats.softcap(floats(out), kBlockFloats, 30.0f);
}

/// The floats are a matrix of one column, in panels as they lie there, times 1: x goes through a matmul's epilogue.
template<Activation activation>
void activate(const Kernels& kernels, const float* x, std::byte* out) {
    constexpr float kOne = 1.0f;
    kernels.of(Type::f32).matmul({.panels = reinterpret_cast<const std::byte*>(x),
                                  .panel_stride = kLanes * sizeof(float),
                                  .n_rows = kBlockFloats,
                                  .n_cols = 1,
                                  .panel_begin = 0,
                                  .panel_end = kBlockFloats / kLanes,
                                  .operand = &kOne,
                                  .seq_len = 1,
                                  .bias = nullptr,
                                  .out = floats(out),
                                  .out_stride = kBlockFloats,
                                  .epilogue = Epilogue::store,
                                  .activation = activation,
                                  .canonical = true});
}

/// Sines and cosines of x, by way of position 1.
inline void rope(const Kernels& kernels, const float* x, std::byte* out) {
    kernels.floats.rope_table(1, x, kBlockFloats, 1.0f, floats(out), floats(out) + 2 * kBlockFloats);
}

template<Type type>
void write_values(const Kernels& kernels, const float* x, std::byte* out) {
    kernels.floats.write_value[static_cast<int>(type)](x, kBlockFloats, 0, out);
}

inline constexpr std::uint32_t kKeyDims = kBlockFloats / kLanes;
template<Type type>
void write_keys(const Kernels& kernels, const float* x, std::byte* out) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
        kernels.floats.write_key[static_cast<int>(type)](x + lane * kKeyDims, kKeyDims, lane, out);
}

template<Type type>
void quantize(const Kernels& kernels, const float* x, std::byte* out) {
    kernels.pack(type, x, kBlockFloats, nullptr, {0, 1, 1}, kBlockFloats, out);
}

/// Groups of 1 and sixteen of the floats: those up to 1 are rounded as 127·x, the others decide the scale.
inline void quantize_beside_one(const Kernels& kernels, const float* x, std::byte* out) {
    alignas(64) static thread_local float groups[2 * kBlockFloats] = {};
    for (std::size_t i = 0; i < kBlockFloats; i += kLanes) {
        groups[2 * i] = 1.0f;
        std::memcpy(groups + 2 * i + 1, x + i, kLanes * sizeof(float));
    }
    kernels.floats.pack_q8(groups, 2 * kBlockFloats, nullptr, 1, 2 * kBlockFloats, out);
}

inline constexpr std::size_t kFloatBytes = kBlockFloats * sizeof(float);
inline constexpr std::size_t kQuantBytes = operand_bytes(Type::q8, 1, kBlockFloats);

inline constexpr FloatOperation kOperations[] = {
    {"exp", kFloatBytes, unary<Unary::exp>},
    {"tanh", kFloatBytes, unary<Unary::tanh>},
    {"erf", kFloatBytes, unary<Unary::erf>},
    {"sin", kFloatBytes, unary<Unary::sin>},
    {"cos", kFloatBytes, unary<Unary::cos>},
    {"gelu", kFloatBytes, unary<unary_of(Activation::gelu)>},
    {"gelu_tanh", kFloatBytes, unary<unary_of(Activation::gelu_tanh)>},
    {"silu", kFloatBytes, unary<unary_of(Activation::silu)>},
    {"silu_clamped", kFloatBytes, unary<unary_of(Activation::silu_clamped)>},
    {"relu2", kFloatBytes, unary<unary_of(Activation::relu2)>},
    {"quick_gelu", kFloatBytes, unary<unary_of(Activation::quick_gelu)>},
    {"sigmoid", kFloatBytes, unary<unary_of(Activation::sigmoid)>},
    {"softplus", kFloatBytes, unary<unary_of(Activation::softplus)>},
    {"softcap", kFloatBytes, softcap},
    {"matmul_relu", kFloatBytes, activate<Activation::relu>},
    {"matmul_gelu", kFloatBytes, activate<Activation::gelu>},
    {"matmul_gelu_tanh", kFloatBytes, activate<Activation::gelu_tanh>},
    {"matmul_silu", kFloatBytes, activate<Activation::silu>},
    {"matmul_tanh", kFloatBytes, activate<Activation::tanh>},
    {"matmul_relu2", kFloatBytes, activate<Activation::relu2>},
    {"matmul_quick_gelu", kFloatBytes, activate<Activation::quick_gelu>},
    {"rope_table", 4 * kFloatBytes, rope},
    {"write_value_f32", kFloatBytes, write_values<Type::f32>},
    {"write_value_f16", kFloatBytes / 2, write_values<Type::f16>},
    {"write_value_q8", value_panel_bytes(Type::q8, kBlockFloats), write_values<Type::q8>},
    {"write_value_q4", value_panel_bytes(Type::q4, kBlockFloats), write_values<Type::q4>},
    {"write_key_f32", panel_bytes(Type::f32, kKeyDims), write_keys<Type::f32>},
    {"write_key_f16", panel_bytes(Type::f16, kKeyDims), write_keys<Type::f16>},
    {"write_key_q8", panel_bytes(Type::q8, kKeyDims), write_keys<Type::q8>},
    {"write_key_q4", key_panel_bytes(Type::q4, kKeyDims), write_keys<Type::q4>},
    {"pack_q8", kQuantBytes, quantize<Type::q8>},
    {"pack_broad", kQuantBytes, quantize<Type::q8_128>},
    {"pack_q8 beside 1", 2 * kQuantBytes, quantize_beside_one},
};

}  // namespace every_float

/// Compares every instruction set with scalar over one block of floats after another. One for each thread.
class FloatComparison {
public:
    explicit FloatComparison(const FloatOperation& operation)
        : operation_(operation), want_(operation.out_bytes), got_(operation.out_bytes) {
        tables_ = usable_kernels(n_tables_);
    }
    /// The first instruction set whose bytes are not scalar's; null if there is none.
    const char* first_difference(const float* x) {
        operation_.run(kernels_scalar, x, want_.data());
        for (std::size_t i = 0; i < n_tables_; ++i) {
            if (tables_[i] == &kernels_scalar) continue;
            operation_.run(*tables_[i], x, got_.data());
            if (std::memcmp(want_.data(), got_.data(), want_.size()) != 0) return tables_[i]->isa;
        }
        return nullptr;
    }
    /// Instruction sets beside scalar.
    [[nodiscard]] std::size_t n_others() const { return n_tables_ - 1; }

private:
    const FloatOperation& operation_;
    AlignedBytes want_, got_;
    const Kernels* const* tables_ = nullptr;
    std::size_t n_tables_ = 0;
};

}  // namespace fovea::testing
