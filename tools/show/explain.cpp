#include "tools/show/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "engine/kernels/outliers.h"
#include "host/base/aligned_bytes.h"
#include "host/base/arrays.h"
#include "host/base/elements.h"
#include "host/model/listing.h"
#include "host/model/stacks.h"
#include "tools/show/arrays.h"

namespace fovea {
namespace {

/// Columns of some rows, as a matrix that kernels multiply with.
struct PanelMatrix {
    const std::byte* data = nullptr;
    std::uint64_t stride = 0;
    Type type = Type::f32;
    std::uint32_t n_rows = 0, n_cols = 0;
    const float* columns = nullptr;  ///< what is multiplied has column scales; may be null
};

/// [n, matrix.n_rows] = x · matrixᵀ + bias
std::vector<float> multiply(const Kernels& kernels, const PanelMatrix& matrix, const float* x, std::uint64_t n,
                            const float* bias, bool canonical = false) {
    const std::uint32_t n_cols = matrix.n_cols;
    std::vector<float> out(n * matrix.n_rows);
    const std::uint32_t n_outliers = n_zeros(matrix.columns, n_cols);
    const std::uint64_t packed_bytes = operand_bytes(matrix.type, n, n_cols);
    AlignedBytes operand(packed_bytes + n * n_outliers * sizeof(float));
    take_outliers(matrix.columns, x, n_cols, static_cast<std::uint32_t>(n), n_cols, n_outliers,
                  reinterpret_cast<float*>(operand.data() + packed_bytes));
    const auto n_all = static_cast<std::uint32_t>(n);
    const std::uint32_t block = row_block(n_all);
    for (std::uint64_t first = 0; first < n; first += block) {
        const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(block, n - first));
        kernels.pack(matrix.type, x + first * n_cols, n_cols, matrix.columns,
                     {static_cast<std::uint32_t>(first), rows, n_all}, n_cols, operand.data());
    }
    const Matmul product{.panels = matrix.data,
                         .panel_stride = static_cast<std::size_t>(matrix.stride),
                         .n_rows = matrix.n_rows,
                         .n_cols = n_cols,
                         .panel_begin = 0,
                         .panel_end = static_cast<std::uint32_t>(round_up(matrix.n_rows, kLanes) / kLanes),
                         .operand = operand.data(),
                         .seq_len = n_all,
                         .bias = bias,
                         .out = out.data(),
                         .out_stride = matrix.n_rows,
                         .epilogue = Epilogue::store,
                         .activation = Activation::none,
                         .canonical = canonical,
                         .n_outliers = n_outliers,
                         .outliers_at = static_cast<std::size_t>(outliers_at(matrix.type, n_cols))};
    kernels.matmul(matrix.type, product);
    return out;
}

/// The sum of [kLanes] numbers, folded as the kernels add; changes them.
float folded(float* lanes) {
    for (std::uint32_t n = kLanes / 2; n; n /= 2)
        for (std::uint32_t lane = 0; lane < n; ++lane) lanes[lane] = lanes[lane] + lanes[lane + n];
    return lanes[0];
}

/// Values as the cache holds them: numbers [n_keys, dim], and what multiplies every 32 of a row.
struct CachedValues {
    std::uint32_t dim = 0;
    std::vector<float> numbers, scales;
};

/// One head's keys and values as a cache of some type holds them, and what kernels make of those.
class HeadCache {
public:
    HeadCache(const Kernels& kernels, Type type, std::uint32_t n_keys)
        : kernels_(kernels), type_(type), n_keys_(n_keys) {}

    /// [n_queries, n_keys]: queries [n_queries, dim] times keys [n_keys, dim].
    [[nodiscard]] std::vector<float> scores(const float* queries, std::uint32_t n_queries, const float* keys,
                                            std::uint32_t dim) const {
        const std::uint64_t stride = round_up(key_panel_bytes(type_, dim), 64);
        AlignedBytes panels(round_up(n_keys_, kLanes) / kLanes * stride);
        for (std::uint32_t key = 0; key < n_keys_; ++key)
            kernels_.floats.write_key[static_cast<int>(type_)](keys + std::uint64_t{key} * dim, dim, key % kLanes,
                                                               panels.data() + key / kLanes * stride);
        const Type type = type_ == Type::q4 ? kKeyTypeOfQ4 : type_;
        std::vector<float> scores =
            multiply(kernels_, {panels.data(), stride, type, n_keys_, dim}, queries, n_queries, nullptr);
        for (std::uint32_t i = 0; type_ == Type::q4 && i < n_queries; ++i)
            for (std::uint32_t key = 0; key < n_keys_; ++key)
                if (const std::byte* panel = panels.data() + key / kLanes * stride;
                    (panel[key % kLanes * 2] & std::byte{1}) != std::byte{0})
                    scores[std::size_t{i} * n_keys_ + key] +=
                        times_reference(queries + std::size_t{i} * dim, panel, dim);
        return scores;
    }

    /// Out of [n_keys, dim].
    [[nodiscard]] CachedValues values(const float* given, std::uint32_t dim) const {
        const std::uint64_t row_stride = round_up(dim, kLanes);
        CachedValues cached{dim, {}, {}};
        AlignedBytes panel(value_panel_bytes(type_, dim));
        const auto half = [&](std::uint64_t at) {
            std::uint16_t bits = 0;
            std::memcpy(&bits, panel.data() + at, sizeof bits);
            return from_f16(bits);
        };
        for (std::uint32_t key = 0; key < n_keys_; ++key) {
            const std::uint32_t lane = key % kLanes;
            kernels_.floats.write_value[static_cast<int>(type_)](given + std::uint64_t{key} * dim, dim, lane,
                                                                 panel.data());
            for (std::uint32_t i = 0; i < dim; ++i) {
                const std::uint64_t group = i / kGroup * value_group_bytes(type_), at = lane * row_stride + i;
                const bool quantized = is_quantized(type_);
                float number = 0;
                if (type_ == Type::f32) std::memcpy(&number, panel.data() + 4 * at, sizeof number);
                if (type_ == Type::f16) number = half(2 * at);
                const std::byte* row = panel.data() + group + kLanes * 2 + lane * value_row_bytes(type_);
                if (type_ == Type::q8) number = static_cast<float>(static_cast<std::int8_t>(row[i % kGroup]));
                if (type_ == Type::q4)
                    number =
                        kNonlinear4[std::to_integer<unsigned>(row[i % kLanes]) >> (i % kGroup < kLanes ? 0 : 4) & 15];
                cached.numbers.push_back(number);
                if (i % kGroup == 0) cached.scales.push_back(quantized ? half(group + 2 * lane) : 1.0f);
            }
        }
        return cached;
    }

    /// p · values [dim] for one query, over the keys that it sees: others' values may be anything.
    [[nodiscard]] std::vector<float> weighed(const float* p, const CachedValues& values) const {
        const std::uint32_t dim = values.dim, n_groups = (dim + kGroup - 1) / kGroup;
        const auto n_seen = static_cast<std::uint32_t>(n_keys_ - std::count(p, p + n_keys_, 0.0f));
        std::vector<float> sums;
        for (std::uint32_t group = 0; group < n_groups; ++group) {
            const std::uint32_t first = group * kGroup, n = std::min(kGroup, dim - first);
            const std::uint64_t stride = panel_bytes(Type::f32, n_seen);
            AlignedBytes panels(round_up(n, kLanes) / kLanes * stride);
            std::vector<float> seen;
            for (std::uint32_t key = 0; key < n_keys_; ++key) {
                if (p[key] == 0.0f) continue;
                for (std::uint32_t i = 0; i < n; ++i)
                    std::memcpy(
                        panels.data() + i / kLanes * stride + (seen.size() * kLanes + i % kLanes) * sizeof(float),
                        &values.numbers[std::uint64_t{key} * dim + first + i], sizeof(float));
                seen.push_back(p[key] * values.scales[std::uint64_t{key} * n_groups + group]);
            }
            const std::vector<float> part =
                n_seen ? multiply(kernels_, {panels.data(), stride, Type::f32, n, n_seen}, seen.data(), 1, nullptr)
                       : std::vector<float>(n);
            sums.insert(sums.end(), part.begin(), part.end());
        }
        return sums;
    }

private:
    /// A query times the reference of a q4 cache's panel.
    [[nodiscard]] float times_reference(const float* query, const std::byte* panel, std::uint32_t dim) const {
        const std::byte* reference = panel + panel_bytes(kKeyTypeOfQ4, dim);
        AlignedBytes packed(operand_bytes(Type::q8, 1, dim));
        kernels_.floats.pack_q8(query, 0, nullptr, 1, dim, packed.data());
        float lanes[kLanes] = {};
        for (std::uint32_t i = 0; i < round_up(dim, kGroup); ++i) {
            const std::byte* group = packed.data() + i / kGroup * kQuantGroupBytes;
            float scale = 0;
            std::memcpy(&scale, group + kGroup, sizeof scale);
            const float x = static_cast<float>(static_cast<std::int8_t>(group[i % kGroup])) * scale;
            const auto upper = static_cast<std::uint16_t>(std::to_integer<unsigned>(reference[i]) << 8);
            lanes[i % kLanes] = std::fma(x, from_f16(upper), lanes[i % kLanes]);
        }
        return folded(lanes);
    }

    const Kernels& kernels_;
    const Type type_;
    const std::uint32_t n_keys_;
};

constexpr float kUnseen = -__builtin_inff();

/// Which keys each query sees, and what masks add to the scores.
class ScoreMask {
public:
    ScoreMask(const Block& block, const AttendInput& input)
        : input_(input),
          n_heads_(block.attention.n_heads),
          n_given_(input.n_past + input.n_keys),
          causal_(block.attention.causal || input.masks.causal) {}

    [[nodiscard]] bool adds() const { return input_.masks.attention.added || input_.masks.padding.added; }
    [[nodiscard]] bool any() const {
        return causal_ || adds() || input_.masks.attention.hidden || input_.masks.padding.hidden ||
               !input_.kv_lengths.empty();
    }
    /// Scores of each query with n_keys keys, appended ones last, which all see.
    void apply(std::vector<float>& scores, std::uint32_t n_keys) const {
        for (std::uint64_t s = 0; s < input_.n_sequences; ++s)
            for (std::uint64_t head = 0; head < n_heads_; ++head)
                for (std::uint64_t query = 0; query < input_.n_queries; ++query)
                    for (std::uint64_t key = 0; key < n_given_; ++key) {
                        float& score = scores[((s * n_heads_ + head) * input_.n_queries + query) * n_keys + key];
                        const std::uint64_t length = input_.kv_lengths.empty() ? n_given_ : input_.kv_lengths[s];
                        // Query i of n sees the real keys up to length − n + i.
                        const std::uint64_t past =
                            input_.kv_lengths.empty() ? input_.n_past + input_.n_queries : length;
                        float sum = 0;
                        const bool hidden = (causal_ && key + input_.n_queries > past + query) || key >= length ||
                                            hides(input_.masks.attention, s, head, query, key, sum) ||
                                            hides(input_.masks.padding, s, head, query, key, sum);
                        score = hidden ? kUnseen : adds() ? score + sum : score;
                    }
    }

private:
    /// Whether a mask hides the pair; adds the mask's number to `sum`.
    static bool hides(const Mask& mask, std::uint64_t s, std::uint64_t head, std::uint64_t query, std::uint64_t key,
                      float& sum) {
        if (!mask.hidden && !mask.added) return false;
        if (key >= mask.n_keys) return true;
        const std::uint64_t at = s * mask.sequence_stride + head * mask.head_stride + query * mask.query_stride + key;
        if (mask.hidden) return mask.hidden[at] != 0;
        sum = sum + mask.added[at];
        return mask.added[at] == kUnseen;
    }

    const AttendInput& input_;
    const std::uint32_t n_heads_, n_given_;  // keys but for appended ones
    const bool causal_;
};

class Explainer {
public:
    Explainer(const Model& model, const AttendInput& input, Type kv_type, const char* isa)
        : model_(model),
          stack_(output_stack(model.config())),
          b_(stack_.blocks[0]),
          in_(input),
          kernels_(*find_kernels(isa)),
          n_keys_(input.n_past + input.n_keys + b_.attention.bias_kv + b_.attention.zero_attn),
          cache_(kernels_, kv_type, n_keys_),
          mask_(b_, input) {}

    std::vector<ExplainedStep> run(std::vector<float>& out) {
        project();
        attend();
        merge(out);
        return std::move(steps_);
    }

private:
    [[nodiscard]] std::uint64_t kv_head_of(std::uint64_t s, std::uint64_t head) const {
        return s * b_.attention.n_kv_heads + head / (b_.attention.n_heads / b_.attention.n_kv_heads);
    }

    void add(std::string name, std::string formula, std::vector<std::uint64_t> shape,
             const std::vector<float>& values) {
        steps_.push_back({std::move(name), std::move(formula), std::move(shape), values});
    }

    [[nodiscard]] TensorInfo tensor(std::string_view role) const {
        for (const TensorInfo& t : tensors(model_))
            if (role == t.role) return t;
        return {};
    }
    [[nodiscard]] const float* vector(std::string_view role) const {
        const TensorInfo t = tensor(role);
        return t.bytes ? reinterpret_cast<const float*>(model_.bytes().data() + t.offset) : nullptr;
    }
    [[nodiscard]] std::vector<float> mapped(const std::string& role, const float* x, std::uint64_t n,
                                            bool canonical = false) const {
        const TensorInfo t = tensor(role);
        const std::uint64_t n_panels = round_up(t.n_rows, kLanes) / kLanes;
        const bool is_output = role == "attention_output";
        const PanelMatrix matrix{model_.bytes().data() + t.offset,
                                 t.bytes / n_panels,
                                 t.type,
                                 t.n_rows,
                                 t.n_cols,
                                 vector(is_output ? "attention_output_columns" : "projections_columns")};
        return multiply(kernels_, matrix, x, n, vector(role + "_bias"), canonical);
    }

    /// Heads [n_sequences, n_heads, n, dim] out of `heads` at their strides.
    [[nodiscard]] std::vector<float> split(const float* from, const Strides& at, std::uint32_t n_heads, std::uint32_t n,
                                           std::uint32_t dim) const {
        std::vector<float> heads;
        heads.reserve(std::uint64_t{in_.n_sequences} * n_heads * n * dim);
        for (std::uint64_t s = 0; s < in_.n_sequences; ++s)
            for (std::uint64_t head = 0; head < n_heads; ++head)
                for (std::uint64_t row = 0; row < n; ++row) {
                    const float* x = from + s * at.sequence + head * at.head + row * at.row;
                    heads.insert(heads.end(), x, x + dim);
                }
        return heads;
    }

    /// Keys or values of all positions, past ones first and appended ones last: [n_sequences, n_kv_heads, n_keys, dim].
    [[nodiscard]] std::vector<float> with_others(const std::vector<float>& given, const Heads& past,
                                                 const float* appended, std::uint32_t dim) const {
        const std::vector<float> before =
            split(past.data.data(), past.strides, b_.attention.n_kv_heads, in_.n_past, dim);
        std::vector<float> all;
        for (std::uint64_t i = 0; i < std::uint64_t{in_.n_sequences} * b_.attention.n_kv_heads; ++i) {
            const auto append = [&](const float* from, std::uint64_t n) {
                all.insert(all.end(), from, from + n * dim);
            };
            append(before.data() + i * in_.n_past * dim, in_.n_past);
            append(given.data() + i * in_.n_keys * dim, in_.n_keys);
            if (b_.attention.bias_kv) append(appended + i % b_.attention.n_kv_heads * dim, 1);
            if (b_.attention.zero_attn) all.insert(all.end(), dim, 0.0f);
        }
        return all;
    }

    void project() {
        struct Side {
            const char *name, *letter, *role;
            const Heads &rows, &past;
            std::uint32_t n, n_heads, dim;
            std::vector<float>& heads;
        };
        const Heads none;
        const Side sides[] = {{"queries", "Q", "query", in_.query, none, in_.n_queries, b_.attention.n_heads,
                               b_.attention.head_dim, query_},
                              {"keys", "K", "key", in_.key, in_.past_key, in_.n_keys, b_.attention.n_kv_heads,
                               b_.attention.head_dim, key_},
                              {"values", "V", "value", in_.value, in_.past_value, in_.n_keys, b_.attention.n_kv_heads,
                               b_.attention.value_head_dim, value_}};
        for (const Side& side : sides) {
            const std::string letter = side.letter, role = side.role;
            std::string formula = letter + ", its heads as they are given";
            const std::uint64_t width = std::uint64_t{side.n_heads} * side.dim;
            if (b_.attention.no_projections) {
                side.heads = split(side.rows.data.data(), side.rows.strides, side.n_heads, side.n, side.dim);
            } else {
                const std::vector<float> rows =
                    mapped(role, side.rows.data.data(), std::uint64_t{in_.n_sequences} * side.n);
                add("project " + std::string(side.name),
                    letter + " = " + role + " \u00b7 W" + role[0] + "\u1d40" +
                        (vector(role + "_bias") ? " + b" + role.substr(0, 1) : ""),
                    {in_.n_sequences, side.n, width}, rows);
                side.heads = split(rows.data(), {side.n * width, width, side.dim}, side.n_heads, side.n, side.dim);
                formula = letter + "\u2095 = columns " + std::to_string(side.dim) + "\u00b7h to " +
                          std::to_string(side.dim) + "\u00b7h + " + std::to_string(side.dim - 1) + " of " + letter;
            }
            const bool is_query = letter == "Q";
            if (!is_query) {
                side.heads = with_others(side.heads, side.past, vector("appended_" + role), side.dim);
                if (in_.n_past) formula += ", past ones first";
                if (b_.attention.bias_kv || b_.attention.zero_attn) formula += ", appended ones last";
            }
            add("split " + std::string(side.name) + " into heads", formula,
                {in_.n_sequences, side.n_heads, is_query ? in_.n_queries : n_keys_, side.dim}, side.heads);
        }
    }

    /// exp(score − maximum) in place of scores, and each row's sum: lane by lane, then folded, as the kernels add.
    void exponentials(std::vector<float>& scores, std::vector<float>& sums) const {
        for (std::size_t row = 0; row < sums.size(); ++row) {
            float* x = &scores[row * n_keys_];
            const float most = *std::max_element(x, x + n_keys_);
            float lanes[kLanes] = {};
            for (std::uint32_t key = 0; key < n_keys_; ++key) x[key] = most == kUnseen ? kUnseen : x[key] - most;
            kernels_.floats.unary[static_cast<int>(Unary::exp)](x, n_keys_, x);
            for (std::uint32_t key = 0; key < n_keys_; ++key) lanes[key % kLanes] = lanes[key % kLanes] + x[key];
            sums[row] = folded(lanes);
        }
    }

    void attend() {
        const std::vector<std::uint64_t> shape = {in_.n_sequences, b_.attention.n_heads, in_.n_queries, n_keys_};
        std::vector<float> scores;
        for (std::uint64_t s = 0; s < in_.n_sequences; ++s)
            for (std::uint64_t head = 0; head < b_.attention.n_heads; ++head) {
                const std::vector<float> one = cache_.scores(
                    &query_[(s * b_.attention.n_heads + head) * in_.n_queries * b_.attention.head_dim], in_.n_queries,
                    &key_[kv_head_of(s, head) * n_keys_ * b_.attention.head_dim], b_.attention.head_dim);
                scores.insert(scores.end(), one.begin(), one.end());
            }
        add("scores", "S = Q\u2095 \u00b7 K\u2095\u1d40", shape, scores);
        const float scale = b_.attention.softmax_scale != 0.0f
                                ? b_.attention.softmax_scale
                                : 1.0f / std::sqrt(static_cast<float>(b_.attention.head_dim));
        for (float& score : scores) score = score * scale;
        char factor[32];
        std::snprintf(factor, sizeof factor, "%.6g", static_cast<double>(scale));
        add("scale",
            std::string("S = S \u00b7 ") + factor + (b_.attention.softmax_scale == 0.0f ? ", 1/\u221ahead_dim" : ""),
            shape, scores);
        if (b_.attention.score_softcap != 0.0f) {
            kernels_.floats.softcap(scores.data(), scores.size(), b_.attention.score_softcap);
            add("soft cap", "S = c \u00b7 tanh(S / c)", shape, scores);
        }
        if (mask_.any()) {
            mask_.apply(scores, n_keys_);
            add("mask", mask_.adds() ? "S = S + mask, \u2212\u221e where hidden" : "S = \u2212\u221e where hidden",
                shape, scores);
        }
        std::vector<float> sums(scores.size() / n_keys_), weights(scores.size());
        exponentials(scores, sums);
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = sums[i / n_keys_] == 0.0f ? 0.0f : scores[i] / sums[i / n_keys_];
        add("softmax", "A = E / sum(E), E = exp(S \u2212 max(S)), along the keys", shape, weights);
        std::vector<CachedValues> cached;
        for (std::uint64_t i = 0; i < std::uint64_t{in_.n_sequences} * b_.attention.n_kv_heads; ++i)
            cached.push_back(
                cache_.values(&value_[i * n_keys_ * b_.attention.value_head_dim], b_.attention.value_head_dim));
        for (std::size_t row = 0; row < sums.size(); ++row) {
            const std::uint64_t s = row / in_.n_queries / b_.attention.n_heads,
                                head = row / in_.n_queries % b_.attention.n_heads;
            for (const float x : cache_.weighed(&scores[row * n_keys_], cached[kv_head_of(s, head)]))
                heads_.push_back(sums[row] == 0.0f ? 0.0f : x / sums[row] + 0.0f);
        }
        add("weighted sum", "H\u2095 = A \u00b7 V\u2095, divided last: (E \u00b7 V\u2095) / sum(E)",
            {in_.n_sequences, b_.attention.n_heads, in_.n_queries, b_.attention.value_head_dim}, heads_);
    }

    void merge(std::vector<float>& out) {
        const std::uint64_t width = std::uint64_t{b_.attention.n_heads} * b_.attention.value_head_dim;
        const std::uint64_t n = std::uint64_t{in_.n_sequences} * in_.n_queries;
        const Strides rows{in_.n_queries * width, width, b_.attention.value_head_dim};
        const Strides at = b_.attention.no_projections ? in_.out_strides : rows;
        std::vector<float> merged(n * width);
        for (std::uint64_t i = 0; i < heads_.size(); ++i) {
            const std::uint64_t element = i % b_.attention.value_head_dim,
                                query = i / b_.attention.value_head_dim % in_.n_queries;
            const std::uint64_t head = i / b_.attention.value_head_dim / in_.n_queries;
            merged[head / b_.attention.n_heads * at.sequence + head % b_.attention.n_heads * at.head + query * at.row +
                   element] = heads_[i];
        }
        if (b_.attention.no_projections && at.head != b_.attention.value_head_dim) {  // heads stay apart
            out = merged;
            return;
        }
        add("merge heads", "H = H\u2080 to H" + subscript(b_.attention.n_heads - 1) + " side by side",
            at.sequence < at.row ? std::vector<std::uint64_t>{in_.n_queries, in_.n_sequences, width}
                                 : std::vector<std::uint64_t>{in_.n_sequences, in_.n_queries, width},
            merged);
        out = merged;
        if (b_.attention.no_projections || !b_.attention.has_output_map) return;
        out = mapped("attention_output", merged.data(), n, true);
        add("output map", std::string("out = H \u00b7 Wo\u1d40") + (vector("attention_output_bias") ? " + bo" : ""),
            {in_.n_sequences, in_.n_queries, out.size() / n}, out);
    }

    static std::string subscript(std::uint32_t number) {
        std::string digits;
        for (const char digit : std::to_string(number))
            digits += std::string("\xe2\x82") + static_cast<char>(0x80 + digit - '0');
        return digits;
    }

    const Model& model_;
    const Stack& stack_;
    const Block& b_;
    const AttendInput& in_;
    const Kernels& kernels_;
    const std::uint32_t n_keys_;  // past, given and appended
    const HeadCache cache_;
    const ScoreMask mask_;
    std::vector<float> query_, key_, value_, heads_;
    std::vector<ExplainedStep> steps_;
};

}  // namespace

std::vector<ExplainedStep> explain(const Model& model, const AttendInput& input, Type kv_type, const char* isa,
                                   std::vector<float>& out) {
    return Explainer(model, input, kv_type, isa).run(out);
}

std::string in_words(const std::vector<ExplainedStep>& steps) {
    constexpr std::uint64_t kRows = 3, kColumns = 6;
    std::string words;
    int number = 0;
    for (const ExplainedStep& step : steps) {
        words += std::to_string(++number) + ". " + step.name + "  " + in_words(step.shape) + "  " + step.formula + "\n";
        const std::uint64_t n_cols = step.shape.back(), n_rows = step.shape[step.shape.size() - 2];
        for (std::uint64_t row = 0; row < std::min(n_rows, kRows); ++row) {
            for (std::uint64_t col = 0; col < std::min(n_cols, kColumns); ++col) {
                const double value = static_cast<double>(step.values[row * n_cols + col]);
                char text[32];
                std::snprintf(text, sizeof text, std::abs(value) < 1e9 ? " %10.6f" : " %10.6g", value);
                words += text;
            }
            words += n_cols > kColumns ? "  \u2026\n" : "\n";
        }
        if (n_rows > kRows) words += "          \u22ee\n";
    }
    return words;
}

}  // namespace fovea
