// How a q4 cache is written by any table: plain loops. Every sum has sixteen parts, so that compilers may use vectors and
// all give the same bits.
#pragma once
#include "engine/kernels/kernels.h"
#include "engine/kernels/scalar/math.h"

namespace fovea {
namespace {

/// kNonlinear4, internal to each file that includes this: an instruction set's file must not have a copy that others
/// could use.
struct Codes {
    std::int8_t of[16];
};
constexpr Codes kCodes = [] {
    Codes codes{};
    for (std::size_t i = 0; i < 16; ++i) codes.of[i] = kNonlinear4[i];
    return codes;
}();

/// 32 numbers as entries of kCodes, and the scale that multiplies these.
struct CodedGroup {
    std::uint8_t indices[kGroup];
    std::uint16_t scale;  // float16
};

/// from_f16, for the same reason.
inline float widened(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16, size = half & 0x7fffu;
    if (size >= 0x7c00u) return float_of(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    return float_of(sign | bits(float_of(size << 13) * 0x1p112f));
}

/// The upper half's lanes onto the lower half's, until one is left.
inline float folded(float (&lanes)[kLanes]) {
    for (std::uint32_t half = kLanes / 2; half > 0; half /= 2)
        for (std::uint32_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
    return lanes[0];
}

/// The nearest entries to x·inverse, of two the lower; the scale with which they have the least squared error, rounded
/// to float16; and that error.
inline float code_group(const float (&x)[kGroup], float inverse, CodedGroup& coded) {
    float quants[kGroup], products[kLanes] = {}, errors[kLanes] = {};
    std::int32_t indices[kGroup] = {}, squares = 0;
    for (std::uint32_t i = 0; i < kGroup; ++i) quants[i] = kCodes.of[0];
    for (std::uint32_t entry = 1; entry < 16; ++entry) {
        const float step = static_cast<float>(kCodes.of[entry] - kCodes.of[entry - 1]);
        const float middle = 0.5f * static_cast<float>(kCodes.of[entry] + kCodes.of[entry - 1]);
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            const bool above = x[i] * inverse > middle;
            quants[i] = quants[i] + (above ? step : 0.0f);
            indices[i] += above ? 1 : 0;
        }
    }
    for (std::uint32_t i = 0; i < kGroup; ++i) {
        products[i % kLanes] = products[i % kLanes] + x[i] * quants[i];
        squares += kCodes.of[indices[i]] * kCodes.of[indices[i]];
        coded.indices[i] = static_cast<std::uint8_t>(indices[i]);
    }
    coded.scale = to_f16(folded(products) / static_cast<float>(squares));
    const float scale = widened(coded.scale);
    for (std::uint32_t i = 0; i < kGroup; ++i) {
        const float error = x[i] - scale * quants[i];
        errors[i % kLanes] = errors[i % kLanes] + error * error;
    }
    return folded(errors);
}

/// Makes the number of largest magnitude the codebook's one end, then the other, and keeps the coding with the lesser
/// error, the first if they are equal. Numbers that are not finite give the scale NaN, magnitudes below 2^-100 the
/// scale 0.
inline CodedGroup code_group(const float (&x)[kGroup]) {
    std::uint32_t largest = 0;
    for (const float number : x) largest = bits(magnitude(number)) > largest ? bits(magnitude(number)) : largest;
    bool positive = false;
    for (const float number : x) positive |= bits(number) == largest;
    const float top = positive ? float_of(largest) : -float_of(largest);
    if (largest >= 0x7f800000u || float_of(largest) < kQuantMin) {
        CodedGroup none{.indices = {}, .scale = static_cast<std::uint16_t>(largest >= 0x7f800000u ? 0x7e00 : 0)};
        __builtin_memset(none.indices, 8, sizeof none.indices);  // the entry nearest to 0
        return none;
    }
    CodedGroup low, high;
    const float low_error = code_group(x, static_cast<float>(kCodes.of[0]) / top, low);
    const float high_error = code_group(x, static_cast<float>(kCodes.of[15]) / top, high);
    return high_error < low_error ? high : low;
}

/// The reference of a panel's keys: the upper byte of each element of its first key as float16, rounded to nearest; 0
/// if that is not finite.
inline void write_reference(const float* key, std::uint32_t head_dim, std::byte* reference) {
    for (std::uint32_t i = 0; i < head_dim; ++i) {
        const std::uint32_t half = to_f16(key[i]);
        const std::uint32_t upper = (half + 0x7fu + (half >> 8 & 1u)) >> 8;
        reference[i] = static_cast<std::byte>((upper & 0x7cu) == 0x7cu ? 0 : upper);
    }
}

/// 1 if the panel's key of that lane lacks the reference, else 0: the lowest bit of its scales says so.
inline float lacks_reference(const std::byte* panel, std::uint32_t lane) {
    return (panel[lane * 2] & std::byte{1}) != std::byte{0} ? 1.0f : 0.0f;
}

/// An element of a reference.
inline float reference_at(const std::byte* reference, std::uint32_t i) {
    return widened(static_cast<std::uint16_t>(static_cast<std::uint16_t>(reference[i]) << 8));
}

/// Whether a key is nearer to the reference than to 0.
inline bool is_near(const float* key, std::uint32_t head_dim, const std::byte* reference) {
    float near[kLanes] = {}, far[kLanes] = {};
    for (std::uint32_t i = 0; i < head_dim; ++i) {
        const float d = key[i] - reference_at(reference, i);
        near[i % kLanes] = near[i % kLanes] + d * d;
        far[i % kLanes] = far[i % kLanes] + key[i] * key[i];
    }
    return folded(near) < folded(far);
}

inline void write_key_q4(const float* key, std::uint32_t head_dim, std::uint32_t lane, std::byte* panel) noexcept {
    constexpr QuantFormat kFormat = format_of(kKeyTypeOfQ4);
    std::byte* const reference = panel + panel_bytes(kKeyTypeOfQ4, head_dim);
    if (lane == 0) {
        __builtin_memset(panel, 0, static_cast<std::size_t>(key_panel_bytes(Type::q4, head_dim)));
        write_reference(key, head_dim, reference);
    }
    const bool near = is_near(key, head_dim, reference);
    for (std::uint32_t begin = 0; begin < head_dim; begin += kGroup) {
        float x[kGroup] = {};
        for (std::uint32_t i = 0; i < kGroup && begin + i < head_dim; ++i)
            x[i] = near ? key[begin + i] - reference_at(reference, begin + i) : key[begin + i];
        const CodedGroup coded = code_group(x);
        const auto scale = static_cast<std::uint16_t>((coded.scale & ~1u) | (near ? 1u : 0u));
        std::byte* const unit = panel + begin / kSuperblock * kFormat.unit_bytes();
        const std::uint32_t group = begin % kSuperblock / kGroup;
        __builtin_memcpy(unit + (group * kLanes + lane) * 2, &scale, 2);
        std::byte* const nibbles = unit + kFormat.quants_at() + group * kFormat.group_bytes() + lane * 4;
        for (std::size_t i = 0; i < kGroup; i += 8)
            for (std::size_t j = 0; j < 4; ++j)
                nibbles[i / 8 * 64 + j] = static_cast<std::byte>(coded.indices[i + j] | coded.indices[i + 4 + j] << 4);
    }
}

inline void write_value_q4(const float* value, std::uint32_t value_head_dim, std::uint32_t lane,
                           std::byte* panel) noexcept {
    for (std::uint32_t begin = 0; begin < value_head_dim; begin += kGroup, panel += value_group_bytes(Type::q4)) {
        float x[kGroup] = {};
        for (std::uint32_t i = 0; i < kGroup && begin + i < value_head_dim; ++i) x[i] = value[begin + i];
        const CodedGroup coded = code_group(x);
        if (lane == 0) __builtin_memset(panel, 0, 2 * kLanes);
        __builtin_memcpy(panel + lane * 2, &coded.scale, 2);
        std::byte* const nibbles = panel + 2 * kLanes + lane * kGroup / 2;
        for (std::size_t i = 0; i < kGroup / 2; ++i)
            nibbles[i] = static_cast<std::byte>(coded.indices[i] | coded.indices[kGroup / 2 + i] << 4);
    }
}

}  // namespace
}  // namespace fovea
