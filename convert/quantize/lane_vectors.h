// Vectors for code over n of sixteen lanes at a time: each n is compiled for the CPUs that have registers of n doubles.
// No function contracts a·b + c, so all widths give the same bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/format/format.h"

#define FOVEA_INLINE inline __attribute__((always_inline))  // into a function that may use the CPU's instructions

namespace fovea {

/// The compiler's own vectors of n.
template<std::uint32_t n>
struct Vector {
    // typedef, for GCC ignores the attribute of an alias that depends on n.
    typedef double Doubles __attribute__((vector_size(n * sizeof(double))));
    typedef std::int32_t Integers __attribute__((vector_size(n * sizeof(std::int32_t))));
    typedef float Floats __attribute__((vector_size(n * sizeof(float))));
};

/// One number for each lane.
using Row = double[kLanes];

template<class Vector, class Number>
FOVEA_INLINE Vector load(const Number* row, std::uint32_t first) noexcept {
    Vector vector;
    std::memcpy(&vector, row + first, sizeof vector);
    return vector;
}

template<class Vector, class Number>
FOVEA_INLINE void store(Number* row, std::uint32_t first, const Vector& vector) noexcept {
    std::memcpy(row + first, &vector, sizeof vector);
}

/// How many of a table's first entries this CPU can't run. On x86 a table starts with AVX-512's and AVX2's functions.
[[nodiscard]] inline std::size_t n_too_wide() noexcept {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx512f")) return __builtin_cpu_supports("avx2") ? 1 : 2;
#endif
    return 0;
}

}  // namespace fovea
