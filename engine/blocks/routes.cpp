// A row's experts, by the formulas of experts.cpp: of the router's logits, scores; of the scores, a choice and its weights.
#include "engine/blocks/routes.h"

namespace fovea {
namespace {

constexpr float kLowest = -__builtin_inff();
constexpr float kLeastTotal = 1e-20f;  // what a sum of sigmoids is at least divided by

/// The lowest number that is not among `chosen` [n], which ascend.
[[nodiscard]] std::uint32_t lowest_left(const std::uint32_t* chosen, std::uint32_t n) noexcept {
    std::uint32_t left = 0;
    for (std::uint32_t i = 0; i < n; ++i) left += chosen[i] == left;
    return left;
}

[[nodiscard]] bool mixes(const ExpertShape& shape) noexcept {
    return has(Part::states) && shape.router_score == RouterScore::sparse_mixer;
}

}  // namespace

Routes::Routes(Pass& pass, const ExpertTensors& tensors, const ExpertShape& shape, const NormWeights& norm) noexcept
    : pass_(pass), t_(tensors), shape_(shape), norm_(norm), n_rows_(pass.seq_len) {
    const WorkspaceState& w = pass.workspace;
    const RouteLists at(w.map.routes, w.limits.max_batch, w.map.n_experts_used, w.map.n_experts);
    chosen_ = list(at.chosen);
    slots_ = list(at.slots);
    weights_ = w.floats(at.weights);
    rows_ = list(at.rows);
    first_ = list(at.first);
}

/// To `inner`, the shared expert's behind them in a panel of its own.
void Routes::make_logits() noexcept {
    const Rows logits = pass_.inner();
    const Rows beside{logits.data + round_up(shape_.n, kLanes), logits.stride};
    const Linear linears[] = {{.matrix = t_.router, .bias = t_.router_bias, .out = logits, .n_stored = shape_.n},
                              {.matrix = t_.shared_gate, .out = beside, .n_stored = 1}};
    const auto multiply_by = [&](std::span<const Linear> products, const Output& output) {
        const Type type = products[0].matrix.type;
        const void* operand = pass_.operand(type, pass_.hidden(), n_rows_, pass_.stack().d_model, norm_);
        pass_.multiply("router", output, products, operand, n_rows_);
    };
    const Output output = pass_.all(logits, shape_.n);
    const bool one_operand = operand_kind(t_.router.type) == operand_kind(t_.shared_gate.type);
    multiply_by(std::span(linears).first(shape_.shared_gate && one_operand ? 2 : 1), output);
    if (shape_.shared_gate && !one_operand) multiply_by(std::span(linears).subspan(1), {});
}

void Routes::choose() noexcept {
    make_logits();
    pass_.phase("routed", {}, in_parts(n_rows_), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row) choose(row);
        if (n_rows_ == 1 && mine.begin < mine.end) sort_by_expert();
    });
    if (n_rows_ > 1)
        pass_.phase("grouped", {}, in_parts(1), [&](Pass::Share mine) {
            if (mine.begin < mine.end) sort_by_expert();
        });
}

/// A row's logits become scores, in place: what softmax divides, or sigmoids. Returns their divisor.
float Routes::score(float* p) const noexcept {
    const std::uint32_t n = shape_.n;
    const UnaryTable& unary = pass_.workspace.kernels->floats.unary;
    const bool sigmoid = shape_.router_score == RouterScore::sigmoid;
    if (mixes(shape_)) return 1.0f;
    float largest = p[0], total = 0.0f;
    for (std::uint32_t i = 1; i < n; ++i) largest = p[i] > largest ? p[i] : largest;
    for (std::uint32_t i = 0; i < n; ++i) p[i] = sigmoid ? -p[i] : p[i] - largest;
    unary[static_cast<int>(Unary::exp)](p, n, p);
    if (sigmoid)
        for (std::uint32_t i = 0; i < n; ++i) p[i] = 1.0f / (1.0f + p[i]);
    for (std::uint32_t i = 0; i < n; ++i) total = total + p[i];
    return sigmoid ? 1.0f : total;
}

/// The share that the logit of `best`, the largest left, has among those left that are close to it.
float Routes::mixed(const float* p, std::uint32_t best) const noexcept {
    const UnaryTable& unary = pass_.workspace.kernels->floats.unary;
    const float largest = p[best];
    float total = 0.0f;
    for (std::uint32_t i = 0; i < shape_.n; ++i) {
        const float size = p[i] < 0.0f ? -p[i] : p[i];
        if ((largest - p[i]) / (size < largest ? largest : size) > shape_.margin) continue;
        float x = p[i] - largest;
        unary[static_cast<int>(Unary::exp)](&x, 1, &x);
        total = total + x;
    }
    return 1.0f / total;
}

/// What decides a row's choice: its scores themselves or, behind them, a copy to which more is added and in which experts of
/// groups that are not used are −∞.
float* Routes::compared(float* p, float total) const noexcept {
    const std::uint32_t n = shape_.n;
    if (!shape_.choice_bias && !shape_.n_groups) return p;
    float* c = p + round_up(n, kLanes) + kLanes;
    const float* bias = pass_.workspace.vector(t_.choice_bias);
    for (std::uint32_t i = 0; i < n; ++i) c[i] = bias ? p[i] / total + bias[i] : p[i];
    if (shape_.n_groups) leave_out_groups(c, c + round_up(n, kLanes));
    return c;
}

/// The score of a group whose experts start at c: the largest or, if there is a bias, the sum of the two largest.
float Routes::group_score(const float* c) const noexcept {
    float first = kLowest, second = kLowest;
    for (std::uint32_t i = 0; i < shape_.n / shape_.n_groups; ++i) {
        if (c[i] > first)
            second = first, first = c[i];
        else if (c[i] > second)
            second = c[i];
    }
    return shape_.choice_bias && second > kLowest ? first + second : first;
}

/// Those of the largest scores are used, of equal ones the lower. `scores` [n_expert_groups] is room for them.
void Routes::leave_out_groups(float* c, float* scores) const noexcept {
    const std::uint32_t n_groups = shape_.n_groups, n = shape_.n / n_groups;  // experts of each
    for (std::uint32_t g = 0; g < n_groups; ++g) scores[g] = group_score(c + n * g);
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        std::uint32_t n_before = 0;  // groups that come first
        for (std::uint32_t h = 0; h < n_groups; ++h)
            n_before += scores[h] > scores[g] || (scores[h] == scores[g] && h < g);
        if (n_before >= shape_.n_groups_used)
            for (std::uint32_t i = 0; i < n; ++i) c[n * g + i] = kLowest;
    }
}

/// One row's experts and their weights. What is chosen becomes −∞ in what is compared; where a NaN or infinities leave nothing
/// to compare, the lowest are chosen.
void Routes::choose(std::uint32_t row) noexcept {
    const std::uint32_t n = shape_.n, k = shape_.n_used;
    float* p = pass_.inner()[row];
    float total = score(p);
    float* c = compared(p, total);

    std::uint32_t* chosen = chosen_ + std::uint64_t{row} * k;
    float* weights = weights_ + std::uint64_t{row} * (k + 1);
    for (std::uint32_t n_chosen = 0; n_chosen < k; ++n_chosen) {
        std::uint32_t best = n;
        for (std::uint32_t i = 0; i < n; ++i)
            if (c[i] != kLowest && (best == n || c[i] > c[best])) best = i;
        if (best == n) best = lowest_left(chosen, n_chosen);
        std::uint32_t at = n_chosen;
        for (; at > 0 && chosen[at - 1] > best; --at) chosen[at] = chosen[at - 1], weights[at] = weights[at - 1];
        chosen[at] = best;
        weights[at] = mixes(shape_) ? mixed(p, best) : p[best];
        c[best] = kLowest;
    }
    if (shape_.normalize) {
        total = 0.0f;
        for (std::uint32_t i = 0; i < k; ++i) total = total + weights[i];
        if (shape_.router_score == RouterScore::sigmoid) total = total + kLeastTotal;
    }
    for (std::uint32_t i = 0; i < k; ++i) weights[i] = weights[i] / total;
    if (shape_.routed_scale != 0.0f)
        for (std::uint32_t i = 0; i < k; ++i) weights[i] = weights[i] * shape_.routed_scale;
    if (const float* scale = has(Part::states) ? pass_.workspace.vector(t_.scale) : nullptr)
        for (std::uint32_t i = 0; i < k; ++i) weights[i] = weights[i] * scale[chosen[i]];
    weights[k] = 1.0f;
    if (!shape_.shared_gate) return;
    float gate = -p[round_up(n, kLanes)];
    const UnaryTable& unary = pass_.workspace.kernels->floats.unary;
    unary[static_cast<int>(Unary::exp)](&gate, 1, &gate);
    weights[k] = 1.0f / (1.0f + gate);
}

/// Slots by counting: an expert's rows ascend.
void Routes::sort_by_expert() noexcept {
    const std::uint32_t n = shape_.n;
    for (std::uint32_t i = 0; i <= n; ++i) first_[i] = 0;
    for (std::uint32_t i = 0; i < n_chosen(); ++i) ++first_[chosen_[i] + 1];
    for (std::uint32_t i = 0; i < n; ++i) first_[i + 1] += first_[i];
    for (std::uint32_t i = 0; i < n_chosen(); ++i) {
        slots_[i] = first_[chosen_[i]]++;
        rows_[slots_[i]] = i / shape_.n_used;
    }
    for (std::uint32_t i = n; i > 0; --i) first_[i] = first_[i - 1];
    first_[0] = 0;
}

}  // namespace fovea
