// Inputs for the kernels' tests: random numbers that are the same everywhere, and buffers as the contracts want them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/format/half.h"
#include "engine/kernels/kernels.h"
#include "tests/support/guarded.h"

namespace fovea::testing {

inline constexpr float kNanFloat = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Contents of a buffer: numbers of ordinary size; also zeros, subnormals and large ones; also NaN and infinities.
enum class Fill { plain, wide, hostile };

class Random {
public:
    explicit Random(std::uint32_t seed) : engine_(seed) {}

    std::uint32_t below(std::uint32_t n) { return engine_() % n; }

    /// A float whose bits are chosen here, not by a library's distribution: plain ones are ±[1/16, 4).
    float number(Fill fill) {
        const std::uint32_t word = engine_();
        const std::uint32_t sign_and_fraction = word & 0x807fffffu;
        if (fill != Fill::plain && (word >> 23) % 8 == 0) {
            constexpr std::uint32_t kOddNan = 0xffd23456;  // no machine makes this one itself
            constexpr float odd[] = {0.0f,      -0.0f,      1e-40f,
                                     -3e-39f,   0x1p-149f,  7e9f,
                                     -2e12f,    0x1p-100f,  std::bit_cast<float>(kOddNan),
                                     kInfinity, -kInfinity, 3.4e38f};
            return odd[below(fill == Fill::wide ? 8 : 12)];
        }
        return std::bit_cast<float>(sign_and_fraction | (123 + (word >> 23) % 6) << 23);
    }

    void fill(Guarded<float>& x, Fill kind) {
        for (float& v : x) v = number(kind);
    }

    /// Elements of a weight matrix or of a cache, in storage of the type.
    void fill(std::byte* at, std::size_t n, Type type, Fill kind) {
        for (std::size_t i = 0; i < n; ++i) {
            const float x = number(kind);
            const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
            if (type == Type::f32) {
                std::memcpy(at + 4 * i, &x, 4);
                continue;
            }
            std::uint16_t half = static_cast<std::uint16_t>(bits >> 16);
            // A half from the same bits: plain exponents 123 to 128 become 11 to 16; what is odd stays odd.
            if (type == Type::f16) {
                const std::uint32_t exponent = bits >> 23 & 0xff;
                const std::uint32_t moved = exponent == 0     ? 0
                                            : exponent == 255 ? 31
                                            : exponent > 142  ? 30
                                            : exponent < 113  ? 0
                                                              : exponent - 112;
                half = static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | moved << 10 | (bits >> 13 & 0x3ffu));
            }
            std::memcpy(at + 2 * i, &half, 2);
        }
    }

    /// A quantized panel: quants and multiples of any bits, scales and factors of the kind.
    void fill_quants(std::byte* at, std::uint32_t n_cols, Type type, Fill kind) {
        const QuantFormat& format = format_of(type);
        const auto n_bytes = static_cast<std::size_t>(panel_bytes(type, n_cols));
        for (std::size_t i = 0; i < n_bytes; ++i) at[i] = static_cast<std::byte>(engine_() >> 13);
        for (std::uint32_t col = 0; col < n_cols; col += kSuperblock) {
            const std::uint32_t unit = col / kSuperblock;
            const Type scale = format.scale == QuantScale::bf16 ? Type::bf16 : Type::f16;
            fill(at + (format.factors() ? format.head_at(unit) : format.unit_at(unit)), 2 * kLanes, scale, kind);
        }
    }

private:
    std::mt19937 engine_;
};

/// The value of an element, by the definition of its format.
inline double value_of(const std::byte* at, std::size_t i, Type type) {
    if (type == Type::f32) {
        float x;
        std::memcpy(&x, at + 4 * i, 4);
        return x;
    }
    std::uint16_t half;
    std::memcpy(&half, at + 2 * i, 2);
    const int exponent_bits = type == Type::f16 ? 5 : 8, fraction_bits = 15 - exponent_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1, largest = (1 << exponent_bits) - 1;
    const int exponent = half >> fraction_bits & largest, fraction = half & ((1 << fraction_bits) - 1);
    const double sign = half & 0x8000 ? -1 : 1;
    if (exponent == largest) return fraction ? std::nan("") : sign * HUGE_VAL;
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

inline std::size_t element_bytes(Type type) { return type == Type::f32 ? 4 : 2; }

inline constexpr Type kCacheTypes[] = {Type::f32, Type::f16, Type::q8, Type::q4};
inline constexpr std::size_t kCacheAlignment = 32;  // that every type's panels have

// ---- attention -----------------------------------------------------------------------------------------------------

struct Window {
    std::uint32_t first, last;
};

struct AttendCase {
    std::vector<Window> rows;  // of query rows, 1 to kRowBlock; an empty window sees nothing
    std::uint32_t head_dim, value_head_dim;
    float softcap = 0.0f;
    Fill fill = Fill::plain;
    float score_size = 1.0f;                                    // multiplies 1/sqrt(head_dim)
    std::vector<std::uint32_t> nan_keys = {}, nan_values = {};  // positions
    bool masked = false;  // by bytes and by numbers, and what lies beyond a mask; hidden keys and values hold NaN
    bool sloped = false;  // scores fall with the distance, ahead of some queries too
};

/// State after one or more chunks.
struct AttendState {
    Guarded<float> m, l, o;
    AttendState(std::size_t n_rows, std::size_t value_stride, Flush flush)
        : m(n_rows, flush), l(n_rows, flush), o(n_rows * value_stride, flush) {}
};

/// A case's caches, which end with the last position that any row sees and hold NaN at positions that no row sees.
class AttendRun {
public:
    AttendRun(const AttendCase& c, Type type, std::uint32_t seed = 1)
        : c_(c),
          type_(type),
          n_rows_(static_cast<std::uint32_t>(c.rows.size())),
          kv_len_(longest(c)),
          query_(operand_bytes(type, n_rows_, c.head_dim) / sizeof(float)),
          keys_(n_panels() * key_bytes(), Flush::end, kCacheAlignment),
          // Rows end with the last position that is seen, and groups of quants with their panel.
          values_(is_quantized(type) ? n_panels() * value_bytes() : kv_len_ * value_bytes() / kLanes, Flush::end,
                  kCacheAlignment),
          hidden_(c.masked ? std::size_t{n_rows_} * mask_end() : 0),
          added_(c.masked ? std::size_t{n_rows_} * mask_width() : 0) {
        Random random(seed);
        Guarded<float> rows(std::size_t{n_rows_} * c.head_dim);
        random.fill(rows, c.fill == Fill::hostile ? Fill::wide : c.fill);
        if (is_quantized(type))
            kernels_scalar.floats.pack_q8(rows.data(), c.head_dim, nullptr, n_rows_, c.head_dim,
                                          reinterpret_cast<std::byte*>(query_.data()));
        else
            kernels_scalar.floats.pack(rows.data(), c.head_dim, n_rows_, c.head_dim, query_.data());
        Guarded<float> key(c.head_dim), value(c.value_head_dim);
        for (std::uint32_t pos = 0; pos < n_panels() * kLanes; ++pos) {
            random.fill(key, c.fill);
            random.fill(value, c.fill);
            const auto t = static_cast<int>(type);
            const std::size_t panel = pos / kLanes;
            kernels_scalar.floats.write_key[t](key.data(), c.head_dim, pos % kLanes,
                                               keys_.data() + panel * key_bytes());
            if (is_quantized(type) || pos < kv_len_)
                kernels_scalar.floats.write_value[t](value.data(), c.value_head_dim, pos % kLanes,
                                                     values_.data() + panel * value_bytes());
            if (!seen(pos)) spoil(pos, true, pos < kv_len_);
        }
        for (const std::uint32_t pos : c.nan_keys) spoil(pos, true, false);
        for (const std::uint32_t pos : c.nan_values) spoil(pos, false, true);
        for (const Window w : c.rows) first_.push_back(w.first), last_.push_back(w.last);
        for (std::uint32_t row = 0; c.sloped && row < n_rows_; ++row) {
            slopes_.push_back(0.3f / static_cast<float>(1u << row % 8));
            const std::uint32_t end = last_[row] > 0 ? last_[row] - 1 : 0;
            positions_.push_back(static_cast<float>(row % 3 == 2 ? (first_[row] + end) / 2 : end));
        }
        if (c.masked) make_masks(random);
    }

    [[nodiscard]] std::uint32_t value_stride() const {
        return static_cast<std::uint32_t>(round_up(c_.value_head_dim, kLanes));
    }
    [[nodiscard]] std::uint32_t n_chunks() const { return (kv_len_ + kChunk - 1) / kChunk; }
    [[nodiscard]] float scale() const { return c_.score_size / std::sqrt(static_cast<float>(c_.head_dim)); }
    [[nodiscard]] std::size_t n_panels() const { return (kv_len_ + kLanes - 1) / kLanes; }
    [[nodiscard]] std::size_t key_bytes() const { return key_panel_bytes(type_, c_.head_dim); }
    [[nodiscard]] std::size_t value_bytes() const { return value_panel_bytes(type_, c_.value_head_dim); }
    [[nodiscard]] double query(std::size_t row, std::size_t i) const {
        if (!is_quantized(type_)) return query_[i * n_rows_ + row];
        const auto* group = reinterpret_cast<const std::byte*>(query_.data()) + i / kGroup * kQuantGroupBytes * n_rows_;
        const auto quant = static_cast<std::int8_t>(group[(i % kGroup / 4 * n_rows_ + row) * 4 + i % 4]);
        return value_of(group + kGroup * n_rows_, row, Type::f32) * quant;
    }
    [[nodiscard]] double key(std::size_t pos, std::size_t i) const {
        const std::byte* panel = keys_.data() + pos / kLanes * key_bytes();
        if (!is_quantized(type_)) return value_of(panel, i * kLanes + pos % kLanes, type_);
        const QuantPanel quants{panel, type_ == Type::q4 ? kKeyTypeOfQ4 : type_};
        const double coded = static_cast<double>(quants.scale(i, pos % kLanes)) * quants.quant(i, pos % kLanes);
        const bool near = type_ == Type::q4 && (panel[pos % kLanes * 2] & std::byte{1}) != std::byte{0};
        if (!near) return coded;
        const auto reference = panel[panel_bytes(kKeyTypeOfQ4, c_.head_dim) + i];
        return coded + from_f16(static_cast<std::uint16_t>(std::to_integer<unsigned>(reference) << 8));
    }
    [[nodiscard]] double value(std::size_t pos, std::size_t i) const {
        const std::byte* panel = values_.data() + pos / kLanes * value_bytes();
        if (!is_quantized(type_)) return value_of(panel, pos % kLanes * value_stride() + i, type_);
        const std::byte* group = panel + i / kGroup * value_group_bytes(type_);
        const std::byte* row = group + 2 * kLanes + pos % kLanes * value_row_bytes(type_);
        const int quant = type_ == Type::q8
                              ? static_cast<std::int8_t>(row[i % kGroup])
                              : kNonlinear4[std::to_integer<int>(row[i % 16]) >> (i % 32 < 16 ? 0 : 4) & 15];
        return value_of(group, pos % kLanes, Type::f16) * quant;
    }

    [[nodiscard]] AttendState chunk(const Kernels& k, std::uint32_t index, Flush flush = Flush::end) const {
        AttendState s(n_rows_, value_stride(), flush);
        Attend call{.query = query_.data(),
                    .n_rows = n_rows_,
                    .head_dim = c_.head_dim,
                    .value_head_dim = c_.value_head_dim,
                    .keys = {},
                    .values = {},
                    .value_stride = value_stride(),
                    .first = first_.data(),
                    .last = last_.data(),
                    .masks = masks_.empty() ? nullptr : masks_.data(),
                    .scale = scale(),
                    .softcap = c_.softcap,
                    .chunk = index,
                    .second_level = n_rows_ % 2 != 0,
                    .m = s.m.data(),
                    .l = s.l.data(),
                    .o = s.o.data()};
        point(call);
        k.of(type_).attend(call);
        return s;
    }

    /// Weights of every tile of rows that ended in `s`, [tile][row][kTile].
    [[nodiscard]] Guarded<float> weights(const Kernels& k, AttendState& s, Flush flush = Flush::end) const {
        const std::uint32_t n_tiles = (kv_len_ + kTile - 1) / kTile;
        Guarded<float> out(std::size_t{n_tiles} * n_rows_ * kTile, flush, kLanes * sizeof(float));
        Attend call{.query = query_.data(),
                    .n_rows = n_rows_,
                    .head_dim = c_.head_dim,
                    .value_head_dim = c_.value_head_dim,
                    .keys = {},
                    .values = {},
                    .value_stride = value_stride(),
                    .first = first_.data(),
                    .last = last_.data(),
                    .masks = masks_.empty() ? nullptr : masks_.data(),
                    .scale = scale(),
                    .softcap = c_.softcap,
                    .chunk = 0,
                    .m = s.m.data(),
                    .l = s.l.data(),
                    .o = nullptr};
        for (std::uint32_t tile = 0; tile < n_tiles; ++tile) {
            call.chunk = tile / kChunkTiles;
            point(call);
            k.of(type_).attend_weights(call, tile, out.data() + std::size_t{tile} * n_rows_ * kTile);
        }
        return out;
    }
    /// Tiles of the call's chunk; there are none beyond the cache.
    void point(Attend& call) const {
        call.slopes = c_.sloped ? slopes_.data() : nullptr;
        call.positions = c_.sloped ? positions_.data() : nullptr;
        for (std::uint32_t tile = 0; tile < kChunkTiles; ++tile) {
            const std::size_t panel = (std::size_t{call.chunk} * kChunk + tile * kTile) / kLanes;
            call.keys[tile] = panel < n_panels() ? keys_.data() + panel * key_bytes() : nullptr;
            call.values[tile] = panel < n_panels() ? values_.data() + panel * value_bytes() : nullptr;
        }
    }
    /// The penalty of a score for distance.
    [[nodiscard]] double slope(std::uint32_t row, std::uint32_t pos) const {
        return c_.sloped ? static_cast<double>(slopes_[row]) * std::abs(pos - static_cast<double>(positions_[row])) : 0;
    }
    /// The masks' sum, added to a score; −inf: hidden.
    [[nodiscard]] double bias(std::uint32_t row, std::uint32_t pos) const {
        double sum = 0;
        for (std::size_t i = row * kMasks; !masks_.empty() && i < (row + 1) * kMasks; ++i) {
            const MaskRow& m = masks_[i];
            if (pos >= m.end) continue;
            if (pos >= m.n_keys || (m.hidden && m.hidden[pos])) return -HUGE_VAL;
            if (m.added) sum += m.added[pos];
        }
        return sum;
    }

    /// Every chunk from `begin` on, merged from left to right.
    [[nodiscard]] AttendState merged(const Kernels& k, std::uint32_t begin = 0) const {
        AttendState s = chunk(k, begin);
        for (std::uint32_t i = begin + 1; i < n_chunks(); ++i) {
            const AttendState next = chunk(k, i);
            k.floats.attend_merge(AttendMerge{.n_rows = n_rows_,
                                              .value_stride = value_stride(),
                                              .m = s.m.data(),
                                              .l = s.l.data(),
                                              .o = s.o.data(),
                                              .chunk_m = next.m.data(),
                                              .chunk_l = next.l.data(),
                                              .chunk_o = next.o.data()});
        }
        return s;
    }

    [[nodiscard]] Guarded<float> finished(const Kernels& k, const AttendState& s, std::size_t extra_stride = 0) const {
        const std::size_t out_stride = c_.value_head_dim + extra_stride;
        Guarded<float> out((n_rows_ - 1) * out_stride + c_.value_head_dim);
        k.floats.attend_finish(s.l.data(), s.o.data(), n_rows_, c_.value_head_dim, value_stride(), out.data(),
                               out_stride);
        return out;
    }

private:
    static std::uint32_t longest(const AttendCase& c) {
        std::uint32_t n = 1;
        for (const Window w : c.rows)
            if (w.first < w.last && w.last > n) n = w.last;
        return n;
    }
    [[nodiscard]] bool seen(std::uint32_t pos) const {
        for (const Window w : c_.rows)
            if (w.first <= pos && pos < w.last) return true;
        return false;
    }
    /// A third of the pairs hidden by bytes, a fifth by numbers; the last row sees nothing; of five positions the last
    /// ones lie beyond the masks' end. Values that no row sees are NaN.
    void make_masks(Random& random) {
        const std::uint32_t end = mask_end(), n = mask_width();
        for (std::size_t i = 0; i < hidden_.size(); ++i)
            hidden_[i] = random.below(3) == 0 || (n_rows_ > 1 && i / end == n_rows_ - 1);
        for (float& x : added_) x = random.below(5) == 0 ? -kInfinity : random.number(Fill::plain);
        for (std::uint32_t row = 0; row < n_rows_; ++row) {
            masks_.push_back({hidden_.data() + std::size_t{row} * end, nullptr, end, end});
            masks_.push_back({nullptr, row % 4 == 3 ? nullptr : added_.data() + std::size_t{row} * n, n, end});
            masks_.push_back({nullptr, nullptr, row % 2 ? end : end / 2, end});
        }
        for (std::uint32_t pos = 0; pos < kv_len_; ++pos) {
            bool shown = false;
            for (std::uint32_t row = 0; row < n_rows_; ++row) shown = shown || bias(row, pos) != -HUGE_VAL;
            if (!shown) spoil(pos, true, true);
        }
    }
    [[nodiscard]] std::uint32_t mask_end() const { return kv_len_ - kv_len_ / 5; }
    [[nodiscard]] std::uint32_t mask_width() const { return mask_end() - mask_end() / 7; }
    /// Makes every element NaN, of a quantized cache by its scales.
    void spoil(std::uint32_t pos, bool key, bool value) {
        const std::size_t lane = pos % kLanes, element = element_bytes(type_);
        std::byte* const keys = keys_.data() + pos / kLanes * key_bytes();
        std::byte* const values = values_.data() + pos / kLanes * value_bytes();
        if (is_quantized(type_)) {
            const std::uint64_t unit = panel_bytes(type_ == Type::q4 ? kKeyTypeOfQ4 : type_, kSuperblock);
            for (std::uint32_t i = 0; key && i < c_.head_dim; i += kGroup)
                std::memset(keys + i / kSuperblock * unit + (i / kGroup % 2 * kLanes + lane) * 2, 0xff, 2);
            for (std::uint32_t i = 0; value && i < c_.value_head_dim; i += kGroup)
                std::memset(values + i / kGroup * value_group_bytes(type_) + lane * 2, 0xff, 2);
            return;
        }
        for (std::uint32_t i = 0; key && i < c_.head_dim; ++i)
            std::memset(keys + (i * kLanes + lane) * element, 0xff, element);
        if (value) std::memset(values + lane * value_stride() * element, 0xff, c_.value_head_dim * element);
    }

    AttendCase c_;
    Type type_;
    std::uint32_t n_rows_, kv_len_;
    Guarded<float> query_;
    Guarded<std::byte> keys_, values_;
    std::vector<std::uint32_t> first_, last_;
    std::vector<float> slopes_, positions_;
    Guarded<std::uint8_t> hidden_;
    Guarded<float> added_;
    std::vector<MaskRow> masks_;  // [n_rows][kMasks]
};

}  // namespace fovea::testing
