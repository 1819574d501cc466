// The kernels in plain loops: the specification of all others, and what runs if there is nothing better. Contracts:
// kernels.h. A vector table may skip or reorder an operation only if no stored bit changes.
#pragma once
#include <utility>

#include "engine/format/half.h"
#include "engine/format/parts.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/scalar/cache_q4.h"
#include "engine/kernels/scalar/cache_q8.h"
#include "engine/kernels/scalar/mask.h"
#include "engine/kernels/scalar/math.h"
#include "engine/kernels/scalar/pack.h"
#include "engine/kernels/scalar/quant_dots.h"
#include "engine/kernels/scalar/recurrence.h"
#include "engine/kernels/scalar/rows.h"
#include "engine/kernels/scalar/storage.h"

#include "engine/kernels/math.h"

namespace fovea {
namespace {

// ---- dot products --------------------------------------------------------------------------------------------------

/// f(0) to f(15), spelled out: compilers for small cores keep in registers only what no loop indexes.
template<class Function, std::uint32_t... lane>
[[gnu::always_inline]] inline void for_lanes(std::integer_sequence<std::uint32_t, lane...>, Function f) {
    (f(lane), ...);
}
using Lanes = std::make_integer_sequence<std::uint32_t, kLanes>;

/// sum[lane] = dot product of those columns of the panel's row `lane`.
template<class Storage>
void dot_columns(const Columns& c, float (&sum)[kLanes]) {
    float s[kLanes] = {};
    const auto* x = static_cast<const float*>(c.operand) + c.row;
    const auto* weights = reinterpret_cast<const typename Storage::Element*>(c.panel);
    for (std::size_t col = c.begin; col < c.end; ++col)
        for_lanes(
            Lanes{}, [&](std::uint32_t lane) __attribute__((always_inline)) {
                s[lane] = fma_f32(Storage::load(weights[col * kLanes + lane]), x[col * c.n_rows], s[lane]);
            });
    for_lanes(
        Lanes{}, [&](std::uint32_t lane) __attribute__((always_inline)) { sum[lane] = s[lane]; });
}

/// total[lane] = dot product of a panel's row `lane` with one row of an operand of n_rows <= kRowBlock; of quantized
/// ones padding counts too. One row at a time keeps the sums in registers and the stack small.
void dot_row(Type type, const std::byte* panel, const void* operand, std::uint32_t row, std::uint32_t n_rows,
             std::uint32_t n_cols, float (&total)[kLanes]) {
    constexpr decltype(&dot_columns<F32>) kBf16 = has(Part::bf16) ? dot_columns<Bf16> : nullptr;
    constexpr decltype(&dot_columns<F32>) kDot[] = {dot_columns<F32>, dot_columns<F16>, kBf16, dot_quants<Type::q8>,
                                                    dot_quants<Type::q4>};
    const auto n = static_cast<std::size_t>(is_quantized(type) ? quant_groups(n_cols) * kGroup : n_cols);
    for (std::size_t begin = 0; begin < n; begin += kColumnBlock) {
        float sum[kLanes];
        const std::size_t end = n - begin < kColumnBlock ? n : begin + kColumnBlock;
        const Columns columns{panel, operand, begin, end, row, n_rows};
        has(Part::gguf_types) && type > Type::q4 ? dot_formats(columns, type, sum)
                                                 : kDot[static_cast<int>(type)](columns, sum);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            total[lane] = begin == 0 ? sum[lane] : total[lane] + sum[lane];
    }
}

// ---- matrices ------------------------------------------------------------------------------------------------------

/// y[lane] = W·x + bias for one panel and one row of a block.
void apply_panel(const Matmul& m, Type type, std::uint32_t panel, std::uint32_t row, float (&y)[kLanes]) {
    const std::uint32_t block = row_block(m.seq_len), first = row - row % block, left = m.seq_len - first;
    const auto at = static_cast<std::size_t>(operand_bytes(type, first, m.n_cols));
    dot_row(type, m.panels + panel * m.panel_stride, static_cast<const std::byte*>(m.operand) + at, row - first,
            left < block ? left : block, m.n_cols, y);
    if (has(Part::columns) && m.n_outliers) {
        const std::byte* weights = m.panels + panel * m.panel_stride + m.outliers_at;
        for (std::uint32_t i = 0; i < m.n_outliers * kLanes; ++i) {
            std::uint16_t half;
            __builtin_memcpy(&half, weights + i * 2, 2);
            y[i % kLanes] = fma_f32(m.outliers(row)[i / kLanes], F16::load(half), y[i % kLanes]);
        }
    }
    if (!m.bias) return;
    const float* bias = m.bias + std::size_t{panel} * kLanes;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) y[lane] = y[lane] + bias[lane];
}

/// Stores the outputs of out panel `panel` for one row.
void finish_panel(const Matmul& m, std::uint32_t panel, std::uint32_t row, const float (&y)[kLanes],
                  const float (&up)[kLanes]) {
    float* out = m.row(row);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t i = std::size_t{panel} * kLanes + lane;
        if (i >= m.n_rows) break;
        float result = y[lane];
        switch (m.epilogue) {
            case Epilogue::store: result = activate(m.activation, result); break;
            case Epilogue::add: result = out[i] + result; break;
            case Epilogue::gate: result = activate(m.activation, result) * gated_factor(m.activation, up[lane]); break;
        }
        out[i] = m.canonical ? canonical(result) : result;
    }
}

void matmul(const Matmul& m, Type type) {
    const bool gate = m.epilogue == Epilogue::gate;
    const std::uint32_t step = gate ? 2 : 1;
    for (std::uint32_t panel = m.panel_begin; panel < m.panel_end; panel += step)
        for (std::uint32_t row = 0; row < m.seq_len; ++row) {
            float y[kLanes], up[kLanes] = {};
            apply_panel(m, type, panel, row, y);
            if (gate) apply_panel(m, type, panel + 1, row, up);
            finish_panel(m, panel / step, row, y, up);
        }
}

// ---- the cache -----------------------------------------------------------------------------------------------------

template<class Storage>
void write_key(const float* key, std::uint32_t head_dim, std::uint32_t lane, std::byte* panel) noexcept {
    auto* keys = reinterpret_cast<typename Storage::Element*>(panel);
    if (lane == 0)
        for (std::size_t i = 0; i < std::size_t{head_dim} * kLanes; ++i) keys[i] = 0;
    for (std::size_t i = 0; i < head_dim; ++i) keys[i * kLanes + lane] = Storage::store(key[i]);
}

template<class Storage>
void write_value(const float* value, std::uint32_t value_head_dim, std::uint32_t lane, std::byte* panel) noexcept {
    const auto stride = static_cast<std::size_t>(round_up(value_head_dim, kLanes));
    auto* values = reinterpret_cast<typename Storage::Element*>(panel) + lane * stride;
    for (std::size_t i = 0; i < stride; ++i) values[i] = i < value_head_dim ? Storage::store(value[i]) : 0;
}

// ---- attention -----------------------------------------------------------------------------------------------------

constexpr float kMinusInfinity = -__builtin_huge_valf();

/// Whether `row` sees any of the n positions from `begin` on.
bool sees(const Attend& a, std::uint32_t row, std::uint32_t begin, std::uint32_t n) {
    const std::uint32_t first = a.first[row], last = a.last[row];
    return first < last && last > begin && (first <= begin || first - begin < n);
}

/// A tile's scores of one row, and the positions it may see: those within its window that no mask hides.
struct Scores {
    float score[kTile];  // −inf if not seen
    bool seen[kTile];
};

/// Between a query and a key.
float distance(float query_position, std::uint32_t key_position) {
    const float ahead = static_cast<float>(key_position) - query_position;
    return max_of(ahead, 0.0f - ahead);
}

/// The reference of a q4 cache's panel, times the query.
float dot_reference(const Attend& a, std::uint32_t row, const std::byte* reference) {
    float lanes[kLanes] = {};
    for (std::uint32_t i = 0; i < round_up(a.head_dim, kGroup); ++i) {
        const QuantGroup x{reinterpret_cast<const std::byte*>(a.query) + i / kGroup * kQuantGroupBytes * a.n_rows,
                           a.n_rows};
        const float query = static_cast<float>(x.quant(row, i % kGroup)) * x.scale(row);
        lanes[i % kLanes] = fma_f32(query, reference_at(reference, i), lanes[i % kLanes]);
    }
    return fold(lanes);
}

/// A panel's dot products with a row.
void dot_keys(const Attend& a, Type type, std::uint32_t row, const std::byte* panel, float (&dot)[kLanes]) {
    const bool q4 = kQ4Caches && type == Type::q4;
    dot_row(q4 ? kKeyTypeOfQ4 : type, panel, a.query, row, a.n_rows, a.head_dim, dot);
    if (!q4) return;
    const float common = dot_reference(a, row, panel + panel_bytes(kKeyTypeOfQ4, a.head_dim));
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) dot[lane] = dot[lane] + common * lacks_reference(panel, lane);
}

/// Panels that the row does not see are not read.
void score_tile(const Attend& a, Type type, std::uint32_t row, std::uint32_t tile, Scores& s) {
    float bias[kTile] = {};
    if (has(Part::vectors) && a.masks) sum_masks(a.masks + row * kMasks, tile, bias);
    for (std::uint32_t offset = 0; offset < kTile; offset += kLanes) {
        const std::uint32_t pos = tile + offset;
        float dot[kLanes] = {};
        if (sees(a, row, pos, kLanes))
            dot_keys(a, type, row, a.keys_at(pos) + offset / kLanes * key_panel_bytes(type, a.head_dim), dot);
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            const std::uint32_t i = offset + lane;
            float score = dot[lane] * a.scale;
            if (has(Part::block_variants) && a.softcap != 0.0f) score = softcap(score, a.softcap);
            if (has(Part::block_variants) && a.slopes)
                score = fma_f32(-a.slopes[row], distance(a.positions[row], pos + lane), score);
            if (has(Part::vectors) && a.masks) score = score + bias[i];
            s.seen[i] = sees(a, row, tile + i, 1) && bias[i] != kMinusInfinity;
            s.score[i] = s.seen[i] ? score : kMinusInfinity;
        }
    }
}

/// max(m, largest score): by lanes over the tile's panels, then folded as sums are.
float update_running_max(float m, const float (&score)[kTile]) {
    float top[kLanes];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) top[lane] = score[lane];
    for (std::uint32_t i = kLanes; i < kTile; ++i) top[i % kLanes] = max_of(top[i % kLanes], score[i]);
    return max_of(m, fold<max_of>(top));
}

/// o[i] = fma(p, value[i], o[i]) for the value of one position.
template<class Storage>
void add_value(const Attend& a, std::uint32_t pos, float p, float* o) {
    const std::byte* panel =
        a.values_at(pos) + pos % kTile / kLanes * value_panel_bytes(Storage::kType, a.value_head_dim);
    const std::uint32_t lane = pos % kLanes;
    if constexpr (is_quantized(Storage::kType)) {
        for (std::size_t i = 0; i < a.value_stride; ++i) {
            const std::byte* group = panel + i / kGroup * value_group_bytes(Storage::kType);
            const auto scale = load<std::uint16_t>(group + lane * 2);
            const std::byte* row = group + 2 * kLanes + lane * value_row_bytes(Storage::kType);
            std::int8_t quant;
            if constexpr (Storage::kType == Type::q8)
                quant = static_cast<std::int8_t>(row[i % kGroup]);
            else
                quant = kCodes.of[std::uint32_t(row[i % kLanes]) >> (i % kGroup < kLanes ? 0 : 4) & 15u];
            o[i] = fma_f32(static_cast<float>(quant), p * from_f16(scale), o[i]);
        }
    } else {
        const auto* value = reinterpret_cast<const typename Storage::Element*>(panel) + lane * a.value_stride;
        for (std::size_t i = 0; i < a.value_stride; ++i) o[i] = fma_f32(p, Storage::load(value[i]), o[i]);
    }
}

/// Folds one tile's scores and values into a row's state.
void weigh_tile(const Attend& a, Type type, std::uint32_t tile, const Scores& s, float& m, float (&l)[kLanes],
                float* o) {
    constexpr decltype(add_value<F32>)* kQ4 = kQ4Caches ? add_value<Quants<Type::q4>> : nullptr;
    constexpr decltype(add_value<F32>)* kAddValue[] = {add_value<F32>, add_value<F16>, nullptr,
                                                       add_value<Quants<Type::q8>>, kQ4};
    const float raised = update_running_max(m, s.score);
    const float decay = m == kMinusInfinity ? 1.0f : exp(m - raised);
    m = raised;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) l[lane] = l[lane] * decay;
    for (std::size_t i = 0; i < a.value_stride; ++i) o[i] = o[i] * decay;
    for (std::uint32_t offset = 0; offset < kTile; ++offset) {
        // If m is not finite, exp(−inf − m) may not be 0, yet unseen values must never be read.
        const float p = s.seen[offset] ? exp(s.score[offset] - m) : 0.0f;
        l[offset % kLanes] = l[offset % kLanes] + p;
        if (p != 0.0f) kAddValue[static_cast<int>(type)](a, tile + offset, p, o);
    }
}

void attend(const Attend& a, Type type) {
    for (std::uint32_t row = 0; row < a.n_rows; ++row) {
        float l[kLanes] = {};
        float* o = a.o + row * std::size_t{a.value_stride};
        a.m[row] = kMinusInfinity;
        for (std::size_t i = 0; i < a.value_stride; ++i) o[i] = 0.0f;
        for (std::uint32_t tile = a.chunk * kChunk; tile < (a.chunk + 1) * kChunk; tile += kTile) {
            if (!sees(a, row, tile, kTile)) continue;
            Scores scores;
            score_tile(a, type, row, tile, scores);
            weigh_tile(a, type, tile, scores, a.m[row], l, o);
        }
        a.l[row] = fold(l);
        for (std::size_t i = 0; i < a.value_stride; ++i) o[i] = o[i] + 0.0f;
    }
}

[[maybe_unused]] void attend_weights(const Attend& a, std::uint32_t tile, float* weights, Type type) {
    for (std::uint32_t row = 0; row < a.n_rows; ++row) {
        Scores s;
        score_tile(a, type, row, tile * kTile, s);
        for (std::uint32_t i = 0; i < kTile; ++i)
            weights[row * kTile + i] =
                s.seen[i] && a.l[row] != 0.0f ? canonical(exp(s.score[i] - a.m[row]) / a.l[row]) : 0.0f;
    }
}

void attend_merge(const AttendMerge& a) noexcept {
    for (std::size_t row = 0; row < a.n_rows; ++row) {
        if (a.chunk_l[row] == 0.0f) continue;
        float* o = a.o + row * a.value_stride;
        const float* chunk_o = a.chunk_o + row * a.value_stride;
        if (a.l[row] == 0.0f) {
            a.m[row] = a.chunk_m[row];
            a.l[row] = a.chunk_l[row];
            for (std::size_t i = 0; i < a.value_stride; ++i) o[i] = chunk_o[i];
            continue;
        }
        const float m = max_of(a.m[row], a.chunk_m[row]);
        const float keep = exp(a.m[row] - m);
        const float take = exp(a.chunk_m[row] - m);
        a.m[row] = m;
        a.l[row] = fma_f32(a.chunk_l[row], take, a.l[row] * keep);
        for (std::size_t i = 0; i < a.value_stride; ++i) o[i] = fma_f32(chunk_o[i], take, o[i] * keep);
    }
}

void attend_finish(const float* l, const float* o, std::uint32_t n_rows, std::uint32_t value_head_dim,
                   std::uint32_t value_stride, float* out, std::size_t out_stride) noexcept {
    for (std::size_t row = 0; row < n_rows; ++row)
        for (std::size_t i = 0; i < value_head_dim; ++i) {
            const float mean = l[row] == 0.0f ? 0.0f : o[row * value_stride + i] / l[row] + 0.0f;
            out[row * out_stride + i] = canonical(mean);
        }
}

// ---- one value at a time -------------------------------------------------------------------------------------------

template<Unary kUnary>
void unary(const float* x, std::size_t n, float* y) noexcept {
    for (std::size_t i = 0; i < n; ++i) y[i] = canonical(apply(kUnary, x[i]));
}

void softcap_row(float* x, std::size_t n, float cap) noexcept {
    for (std::size_t i = 0; i < n; ++i) x[i] = canonical(softcap(x[i], cap));
}

// ---- the table -----------------------------------------------------------------------------------------------------

/// A kernel for operands of one type.
template<auto kernel, Type type, class... Arguments>
void of(Arguments... arguments) noexcept {
    kernel(arguments..., type);
}

/// attend_weights, if the build has it.
template<Type type>
constexpr auto weights_of() -> decltype(TypeKernels::attend_weights) {
    if constexpr (has(Part::attention_weights)) return of<attend_weights, type>;
    return nullptr;
}

/// The kernels of states, if the build has them.
template<auto kernel>
constexpr decltype(kernel) of_states() {
    if constexpr (has(Part::states)) return kernel;
    return nullptr;
}

template<int kNumber = 0>
constexpr void fill_unary(UnaryTable& table) {
    constexpr bool kClamped = kNumber == static_cast<int>(unary_of(Activation::silu_clamped));  // experts' alone
    if constexpr (has(Part::experts) || !kClamped) table.functions[kNumber] = unary<static_cast<Unary>(kNumber)>;
    if constexpr (kNumber + 1 < kUnaryCount) fill_unary<kNumber + 1>(table);
}
constexpr UnaryTable unary_table() {
    UnaryTable table{};
    fill_unary(table);
    return table;
}

constexpr FloatKernels make_floats() {
    return {.types = {{of<matmul, Type::f32>, of<attend, Type::f32>, weights_of<Type::f32>()},
                      {of<matmul, Type::f16>, of<attend, Type::f16>, weights_of<Type::f16>()},
                      {of<matmul, Type::bf16>, nullptr, nullptr}},
            .pack = pack,
            .pack_q8 = pack_quants<kGroup>,
            .pack_broad = has(Part::gguf_types) ? pack_quants<kBroadGroup> : nullptr,
            .rms_norm = rms_norm,
            .layer_norm = layer_norm,
            .rope_table = rope_table,
            .rotate = rotate,
            .write_key = {write_key<F32>, write_key<F16>, nullptr, write_key_q8<pack_quants<kGroup>>,
                          kQ4Caches ? write_key_q4 : nullptr},
            .write_value = {write_value<F32>, write_value<F16>, nullptr, write_value_q8<pack_quants<kGroup>>,
                            kQ4Caches ? write_value_q4 : nullptr},
            .attend_merge = attend_merge,
            .attend_finish = attend_finish,
            .unary = unary_table(),
            .softcap = softcap_row,
            .convolve = of_states<convolve>(),
            .update_state = of_states<update_state>()};
}

/// Products of a quantized type, and attention over caches of q8 and q4.
template<Type kType>
constexpr TypeKernels quant_kernels() {
    if constexpr (kType == Type::q8 || (kQ4Caches && kType == Type::q4))
        return {of<matmul, kType>, of<attend, kType>, weights_of<kType>()};
    return {of<matmul, kType>, nullptr, nullptr};
}

}  // namespace
}  // namespace fovea
