#include "convert/packed/integers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "host/base/elements.h"

namespace fovea {
namespace {

/// The f16 that equals the scale exactly, if there is one.
std::optional<std::uint16_t> exact_half(float scale) {
    const std::uint16_t half = to_f16(scale);
    if (!std::isfinite(scale) || from_f16(half) != scale) return std::nullopt;
    return half;
}

/// A type of ours that holds the weights exactly, if there is one. Scales, zeros and order decide it; no weight is
/// read.
std::optional<Type> exact_type(const IntegerMatrix& m) {
    if (m.n_cols % kGroup) return std::nullopt;
    for (std::uint64_t col = 0; col < m.n_cols; ++col)
        if (m.group_of[col] != m.group_of[col / kGroup * kGroup]) return std::nullopt;
    std::int32_t least = 0, most = 0;
    const std::int32_t end = (1 << m.quants.bits) - 1;
    for (std::uint64_t row = 0; row < m.n_rows; ++row)
        for (std::uint64_t group = 0; group < m.n_groups; ++group) {
            if (!exact_half(m.scales.at(row, group))) return std::nullopt;
            const std::int32_t zero = m.zero(row, group);
            least = std::min(least, -zero);
            most = std::max(most, end - zero);
        }
    if (least >= -8 && most <= 7) return Type::q4;
    if (least >= -128 && most <= 127) return Type::q8;
    return std::nullopt;
}

void dequantize(const IntegerMatrix& m, std::uint64_t row, float* out) {
    std::vector<float> scales(m.n_groups);
    std::vector<std::int32_t> zeros(m.n_groups);
    for (std::uint64_t group = 0; group < m.n_groups; ++group) {
        scales[group] = m.scales.at(row, group);
        zeros[group] = m.zero(row, group);
    }
    for (std::uint64_t col = 0; col < m.n_cols; ++col) {
        const std::uint32_t group = m.group_of[col];
        const auto quant = static_cast<std::int32_t>(m.quants.at(row, col)) - zeros[group];
        out[col] = scales[group] * static_cast<float>(quant);
    }
}

void take_apart(const IntegerMatrix& m, std::uint64_t row, QuantizedGroup* out) {
    for (std::uint64_t col = 0; col < m.n_cols; ++col) {
        QuantizedGroup& group = out[col / kGroup];
        const std::uint32_t of_source = m.group_of[col];
        if (col % kGroup == 0) group.scale = to_f16(m.scales.at(row, of_source));
        const auto quant = static_cast<std::int32_t>(m.quants.at(row, col)) - m.zero(row, of_source);
        group.quants[col % kGroup] = static_cast<std::int8_t>(quant);
    }
}

}  // namespace

std::uint32_t PackedNumbers::at(std::uint64_t row, std::uint64_t other) const noexcept {
    const std::byte* words = data + row * row_bytes + other * other_bytes;
    if (along_rows) other = row;
    if (is_signed) return std::to_integer<std::uint32_t>(words[other]) ^ 0x80u;
    if (interleaved) other = other / 8 * 8 + other % 8 / 2 + other % 2 * 4;
    const std::uint64_t bit = other * bits, word = bit / 32, shift = bit % 32;
    std::uint32_t low, high = 0;
    std::memcpy(&low, words + word * step, sizeof low);
    if (shift + bits > 32) std::memcpy(&high, words + (word + 1) * step, sizeof high);
    const std::uint64_t both = low | std::uint64_t{high} << 32;
    return static_cast<std::uint32_t>(both >> shift) & ((1u << bits) - 1);
}

std::int32_t IntegerMatrix::zero(std::uint64_t row, std::uint64_t group) const noexcept {
    if (!has_zeros) return 1 << (quants.bits - 1);
    const std::uint32_t stored = zeros.at(row, group);
    if (zeros.is_signed) return static_cast<std::int32_t>(stored) - 128 + (1 << (quants.bits - 1));
    return static_cast<std::int32_t>(zeros_less_one ? (stored + 1) & ((1u << quants.bits) - 1) : stored);
}

std::vector<std::uint32_t> groups_in_order(std::uint64_t n_cols, std::uint64_t size) {
    std::vector<std::uint32_t> group_of(n_cols);
    for (std::uint64_t col = 0; col < n_cols; ++col) group_of[col] = static_cast<std::uint32_t>(col / size);
    return group_of;
}

std::vector<std::uint32_t> read_group_of(PackedModule& module, const char* part, std::uint64_t n_cols,
                                         std::uint64_t n_groups) {
    const SourceTensor& tensor = module.find(part, {"I32"}, 1);
    module.need_shape(part, tensor, {n_cols});
    std::vector<std::uint32_t> group_of(n_cols);
    std::memcpy(group_of.data(), tensor.data, n_cols * sizeof group_of[0]);
    for (const std::uint32_t group : group_of)
        if (group >= n_groups)
            module.refuse(part, "expected groups below " + std::to_string(n_groups) + ", got " +
                                    std::to_string(static_cast<std::int32_t>(group)));
    return group_of;
}

PackedMatrix integer_matrix(IntegerMatrix matrix) {
    const auto kept = std::make_shared<const IntegerMatrix>(std::move(matrix));
    PackedMatrix result;
    result.dequantize = [kept](std::uint64_t row, float* out) { dequantize(*kept, row, out); };
    if (const std::optional<Type> type = exact_type(*kept)) {
        result.type = *type;
        result.groups = [kept](std::uint64_t row, QuantizedGroup* out) { take_apart(*kept, row, out); };
    }
    return result;
}

}  // namespace fovea
