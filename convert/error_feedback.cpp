#include "convert/error_feedback.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "convert/elements.h"
#include "convert/factor_formats.h"
#include "convert/moments.h"

namespace fovea {
namespace {

/// Groups of one row, of columns that share factors or of one group, each column's weight being how much its error counts.
void choose_scales(Type type, const float* x, const float* weight, std::uint32_t n, QuantizedGroup* groups) {
    const QuantFormat& format = format_of(type);
    if (type != Type::q8 && type != Type::q4) {
        quantize_format(type, x, n, groups);
    } else {
        float padded[kGroup] = {};
        std::copy_n(x, n, padded);
        groups[0] = type == Type::q8 ? quantize_q8(padded) : quantize_q4(padded);
    }
    const float scale = from_f16(groups[0].scale);
    if (format.factors() || format.scale != QuantScale::f16 || !std::isfinite(scale) || type == Type::q8) return;
    // The same search by weighted errors, near the scale that is best without weights.
    double best = std::numeric_limits<double>::infinity();
    std::uint16_t best_scale = groups[0].scale;
    for (int step = -12; step <= 12; ++step) {
        QuantizedGroup group{.scale = to_f16(scale * (1.0f + 0.0125f * static_cast<float>(step)))};
        double error = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
            group.quants[i] = nearest_quant(type, group, i, x[i]);
            const double d = x[i] - element_of(type, group, i);
            error += weight[i] * d * d;
        }
        if (error >= best) continue;
        best = error;
        best_scale = group.scale;
    }
    groups[0].scale = best_scale;
}

/// One panel on its way from its last column to its first.
class Panel {
public:
    Panel(Type type, const float* rows, std::uint32_t n_cols, const InputMoments& factor)
        : type_(type),
          rows_(rows),
          n_cols_(n_cols),
          factor_(factor),
          sums_(std::size_t{n_cols} * kLanes),
          totals_(sums_.size()),
          error_(std::size_t{kFactorColumns} * kLanes),
          kept_(error_.size()) {}

    QuantLoss quantize(std::byte* panel) {
        const std::uint32_t step = format_of(type_).factors() ? kFactorColumns : kGroup;
        for (std::uint32_t end = n_cols_; end > 0;) {
            const std::uint32_t begin = (end - 1) / step * step;
            quantize_block(begin, end, panel);
            const auto add_errors = moment_functions().front().add_errors;
            add_errors(factor_.lower.data(), begin, end, error_.data(), sums_.data());
            add_errors(factor_.lower.data(), begin, end, kept_.data(), totals_.data());
            end = begin;
        }
        return loss_;
    }

private:
    [[nodiscard]] float weight_at(std::uint32_t lane, std::uint32_t col) const {
        return rows_[std::size_t{lane} * n_cols_ + col];
    }

    void quantize_block(std::uint32_t begin, std::uint32_t end, std::byte* panel) {
        const std::uint32_t n = end - begin;
        float weight[kFactorColumns];
        for (std::uint32_t i = 0; i < n; ++i) {
            const float diagonal = factor_.row(begin + i)[begin + i];
            weight[i] = diagonal * diagonal;
        }
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            float centre[kFactorColumns];
            for (std::uint32_t i = 0; i < n; ++i)
                centre[i] = weight_at(lane, begin + i) +
                            sums_[(begin + i) * std::size_t{kLanes} + lane] / factor_.row(begin + i)[begin + i];
            QuantizedGroup groups[kFactorColumns / kGroup];
            choose_scales(type_, centre, weight, n, groups);
            round_columns(lane, begin, n, groups);
            for (std::uint32_t i = 0; i < n; i += kGroup)
                put_group(type_, groups[i / kGroup], lane, (begin + i) / kGroup, panel);
        }
    }

    /// A row's columns of a block, from the last on, each taking what is wrong behind it in the block too.
    void round_columns(std::uint32_t lane, std::uint32_t begin, std::uint32_t n, QuantizedGroup* groups) {
        for (std::uint32_t i = n; i-- > 0;) {
            const std::uint32_t col = begin + i;
            const double diagonal = factor_.row(col)[col], w = weight_at(lane, col);
            double sum = sums_[col * std::size_t{kLanes} + lane];
            double total = w * diagonal + totals_[col * std::size_t{kLanes} + lane];
            for (std::uint32_t k = i + 1; k < n; ++k) {
                const double l = factor_.row(begin + k)[col];
                sum += l * error_[k * kLanes + lane];
                total += l * kept_[k * kLanes + lane];
            }
            const double centre = w + sum / diagonal;
            QuantizedGroup& group = groups[i / kGroup];
            group.quants[i % kGroup] = nearest_quant(type_, group, i % kGroup, centre);
            const double value = element_of(type_, group, i % kGroup), missed = (centre - value) * diagonal;
            loss_.overflow |= !std::isfinite(value) && std::isfinite(w);
            loss_.error += missed * missed;
            loss_.total += total * total;
            error_[i * kLanes + lane] = static_cast<float>(w - value);
            kept_[i * kLanes + lane] = static_cast<float>(w);
        }
    }

    Type type_;
    const float* rows_;
    std::uint32_t n_cols_;
    const InputMoments& factor_;
    std::vector<float> sums_, totals_;  // [n_cols][16]: Σ L_kj·(w_k − q_k) and Σ L_kj·w_k over blocks behind
    std::vector<float> error_, kept_;   // [columns of a block][16]: w − q, and w
    QuantLoss loss_;
};

}  // namespace

QuantLoss quantize_panel(Type type, const float* rows, std::uint32_t n_cols, const InputMoments& factor,
                         std::byte* panel) {
    return Panel(type, rows, n_cols, factor).quantize(panel);
}

}  // namespace fovea
