#include "convert/quantize/error_feedback.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "convert/quantize/factor_formats.h"
#include "convert/quantize/format_lanes.h"
#include "convert/quantize/moments.h"
#include "host/base/elements.h"

namespace fovea {
namespace {

/// Groups of sixteen rows, of columns that share factors or of one group. x [n][16]; each column's weight is how much its
/// error counts.
void choose_scales(Type type, const float (*x)[kLanes], const float* weight, std::uint32_t n, FormatLanes& lanes) {
    const QuantFormat& format = format_of(type);
    if (type == Type::q8 || type == Type::q4) {
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            float padded[kGroup] = {};
            for (std::uint32_t i = 0; i < n; ++i) padded[i] = x[i][lane];
            lanes.groups[0][lane] = type == Type::q8 ? quantize_q8(padded) : quantize_q4(padded);
        }
    } else {
        format_quantizers().front().quantize(type, x, n, lanes);
    }
    if (format.factors() || format.scale != QuantScale::f16 || type == Type::q8) return;
    // The same search by weighted errors, near the best scale without weights.
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const float scale = from_f16(lanes.groups[0][lane].scale);
        if (!std::isfinite(scale)) continue;
        double best = std::numeric_limits<double>::infinity();
        for (int step = -12; step <= 12; ++step) {
            QuantizedGroup group = lanes.groups[0][lane];
            group.scale = to_f16(scale * (1.0f + 0.0125f * static_cast<float>(step)));
            double error = 0;
            for (std::uint32_t i = 0; i < n; ++i) {
                group.quants[i] = nearest_quant(type, group, i, x[i][lane]);
                const double d = x[i][lane] - element_of(type, group, i);
                error += weight[i] * d * d;
            }
            if (error >= best) continue;
            best = error;
            lanes.groups[0][lane].scale = group.scale;
        }
    }
}

/// Improves on rounding one column after the other: each column in turn, and each scale, takes the best value while all
/// others stay as they are. No step makes the loss larger.
class Descent {
public:
    /// `missed` [n_cols][16] is Lᵀ·(w − q), `groups` [groups of a row][16] hold q; both follow the steps.
    Descent(Type type, const InputMoments& factor, std::vector<float>& missed, std::vector<QuantizedGroup>& groups)
        : type_(type), factor_(factor), missed_(missed), groups_(groups), change_(missed.size()) {
        for (std::uint32_t k = 0; k < factor.n; ++k) {
            double square = 0;
            for (std::uint32_t j = 0; j <= k; ++j) square += double{factor.row(k)[j]} * factor.row(k)[j];
            squares_.push_back(square);
        }
        for (std::size_t i = 0; i < missed.size(); ++i) finite_[i % kLanes] &= std::isfinite(missed[i]);
    }

    /// Whether anything changed.
    bool improve() {
        changed_ = false;
        const QuantFormat& format = format_of(type_);
        if (format.scale == QuantScale::f16 && type_ != Type::q8) {
            const std::uint32_t step = format.factors() ? kFactorColumns : kGroup;
            for (std::uint32_t begin = 0; begin < factor_.n; begin += step)
                fit_scales(begin, std::min(factor_.n, begin + step));
        }
        for (std::uint32_t k = factor_.n; k-- > 0;) round_column(k);
        return changed_;
    }

private:
    [[nodiscard]] QuantizedGroup& group_of(std::uint32_t col, std::uint32_t lane) {
        return groups_[col / kGroup * std::size_t{kLanes} + lane];
    }

    /// Fits the scale of columns that share one float16 scale, while quants stay: by the product of the error with the
    /// change that the scale makes.
    void fit_scales(std::uint32_t begin, std::uint32_t end) {
        float direction[kFactorColumns * kLanes] = {};
        for (std::uint32_t col = begin; col < end; ++col)
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                QuantizedGroup group = group_of(col, lane);
                group.scale = 0x3c00;  // 1
                group.minimum_factor = 0;
                const double value = element_of(type_, group, col % kGroup);
                direction[(col - begin) * kLanes + lane] = static_cast<float>(value);
            }
        std::fill_n(change_.begin(), std::size_t{end} * kLanes, 0.0f);
        functions_.add_errors(factor_.lower.data(), begin, end, direction, change_.data());
        for (std::uint32_t k = begin; k < end; ++k)
            for (std::uint32_t j = begin; j <= k; ++j)
                for (std::uint32_t lane = 0; lane < kLanes; ++lane)
                    change_[j * kLanes + lane] += factor_.row(k)[j] * direction[(k - begin) * kLanes + lane];
        double product[kLanes] = {}, square[kLanes] = {};
        for (std::size_t i = 0; i < std::size_t{end} * kLanes; ++i) {
            product[i % kLanes] += double{change_[i]} * missed_[i];
            square[i % kLanes] += double{change_[i]} * change_[i];
        }
        float step[kLanes] = {};
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            const std::uint16_t had = group_of(begin, lane).scale;
            const double best = from_f16(had) + product[lane] / square[lane];
            const std::uint16_t scale = to_f16(static_cast<float>(best));
            if (!finite_[lane] || !(square[lane] > 0) || !std::isfinite(from_f16(scale)) || scale == had) continue;
            step[lane] = from_f16(scale) - from_f16(had);
            for (std::uint32_t col = begin; col < end; col += kGroup) group_of(col, lane).scale = scale;
            changed_ = true;
        }
        for (std::size_t i = 0; i < std::size_t{end} * kLanes; ++i) missed_[i] -= step[i % kLanes] * change_[i];
    }

    void round_column(std::uint32_t k) {
        float slope[kLanes], step[kLanes] = {};
        functions_.dot_row(factor_.lower.data(), k, missed_.data(), slope);
        bool moved = false;
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            if (!finite_[lane]) continue;
            QuantizedGroup& group = group_of(k, lane);
            std::int8_t& quant = group.quants[k % kGroup];
            const double value = element_of(type_, group, k % kGroup);
            const std::int8_t better = nearest_quant(type_, group, k % kGroup, value + slope[lane] / squares_[k]);
            if (better == quant) continue;
            quant = better;
            step[lane] = static_cast<float>(value - element_of(type_, group, k % kGroup));
            moved = true;
        }
        if (!moved) return;
        changed_ = true;
        functions_.add_errors(factor_.lower.data(), k, k + 1, step, missed_.data());
        for (std::uint32_t lane = 0; lane < kLanes; ++lane)
            missed_[k * std::size_t{kLanes} + lane] += factor_.row(k)[k] * step[lane];
    }

    const MomentFunctions& functions_ = moment_functions().front();
    Type type_;
    const InputMoments& factor_;
    std::vector<float>& missed_;
    std::vector<QuantizedGroup>& groups_;
    std::vector<float> change_;    // [n_cols][16]: of what is missed, for a scale larger by 1
    std::vector<double> squares_;  // [n_cols]: of rows of L
    std::array<bool, kLanes> finite_ = [] {
        std::array<bool, kLanes> all;
        all.fill(true);
        return all;
    }();
    bool changed_ = false;
};

/// The work on one panel, from its last column to its first.
class WeightPanel {
public:
    WeightPanel(Type type, const float* rows, std::uint32_t n_cols, const InputMoments& factor)
        : type_(type),
          rows_(rows),
          n_cols_(n_cols),
          factor_(factor),
          sums_(std::size_t{n_cols} * kLanes),
          totals_(sums_.size()),
          error_(std::size_t{kFactorColumns} * kLanes),
          kept_(error_.size()),
          missed_(sums_.size()),
          groups_(std::size_t{(n_cols + kGroup - 1) / kGroup} * kLanes) {}

    QuantLoss quantize(std::byte* panel, std::uint32_t n_rounds) {
        const std::uint32_t step = format_of(type_).factors() ? kFactorColumns : kGroup;
        for (std::uint32_t end = n_cols_; end > 0;) {
            const std::uint32_t begin = (end - 1) / step * step;
            quantize_block(begin, end);
            const auto add_errors = moment_functions().front().add_errors;
            add_errors(factor_.lower.data(), begin, end, error_.data(), sums_.data());
            add_errors(factor_.lower.data(), begin, end, kept_.data(), totals_.data());
            end = begin;
        }
        Descent descent(type_, factor_, missed_, groups_);
        while (n_rounds > 0 && descent.improve()) --n_rounds;
        for (const float missed : missed_) loss_.error += double{missed} * missed;
        for (std::size_t i = 0; i < groups_.size(); ++i)
            put_group(type_, groups_[i], static_cast<std::uint32_t>(i % kLanes), static_cast<std::uint32_t>(i / kLanes),
                      panel);
        return loss_;
    }

private:
    [[nodiscard]] float weight_at(std::uint32_t lane, std::uint32_t col) const {
        return rows_[std::size_t{lane} * n_cols_ + col];
    }

    void quantize_block(std::uint32_t begin, std::uint32_t end) {
        const std::uint32_t n = end - begin;
        float weight[kFactorColumns];
        for (std::uint32_t i = 0; i < n; ++i) {
            const float diagonal = factor_.row(begin + i)[begin + i];
            weight[i] = diagonal * diagonal;
        }
        float centre[kFactorColumns][kLanes];
        for (std::uint32_t i = 0; i < n; ++i)
            for (std::uint32_t lane = 0; lane < kLanes; ++lane)
                centre[i][lane] = weight_at(lane, begin + i) +
                                  sums_[(begin + i) * std::size_t{kLanes} + lane] / factor_.row(begin + i)[begin + i];
        choose_scales(type_, centre, weight, n, lanes_);
        round_columns(begin, n);
        for (std::uint32_t i = 0; i < n; i += kGroup)
            std::copy_n(lanes_.groups[i / kGroup], kLanes, &groups_[(begin + i) / kGroup * std::size_t{kLanes}]);
    }

    /// A block's columns, from the last on; each also takes the errors of the columns behind it in the block.
    void round_columns(std::uint32_t begin, std::uint32_t n) {
        const auto add_column = moment_functions().front().add_column;
        float column[kFactorColumns];
        for (std::uint32_t i = n; i-- > 0;) {
            const std::uint32_t col = begin + i, next = (i + 1) * kLanes;
            const double diagonal = factor_.row(col)[col];
            double sums[kLanes], totals[kLanes];
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                sums[lane] = sums_[col * std::size_t{kLanes} + lane];
                totals[lane] = weight_at(lane, col) * diagonal + totals_[col * std::size_t{kLanes} + lane];
            }
            for (std::uint32_t k = i + 1; k < n; ++k) column[k] = factor_.row(begin + k)[col];
            add_column(column + i + 1, n - i - 1, error_.data() + next, sums);
            add_column(column + i + 1, n - i - 1, kept_.data() + next, totals);
            for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                const double w = weight_at(lane, col), centre = w + sums[lane] / diagonal;
                QuantizedGroup& group = lanes_.groups[i / kGroup][lane];
                group.quants[i % kGroup] = nearest_quant(type_, group, i % kGroup, centre);
                const double value = element_of(type_, group, i % kGroup), missed = (centre - value) * diagonal;
                loss_.overflow |= !std::isfinite(value) && std::isfinite(w);
                missed_[col * std::size_t{kLanes} + lane] = static_cast<float>(missed);
                loss_.total += totals[lane] * totals[lane];
                error_[i * kLanes + lane] = static_cast<float>(w - value);
                kept_[i * kLanes + lane] = static_cast<float>(w);
            }
        }
    }

    Type type_;
    const float* rows_;
    std::uint32_t n_cols_;
    const InputMoments& factor_;
    std::vector<float> sums_, totals_;    // [n_cols][16]: Σ L_kj·(w_k − q_k) and Σ L_kj·w_k over blocks behind
    std::vector<float> error_, kept_;     // [columns of a block][16]: w − q, and w
    std::vector<float> missed_;           // [n_cols][16]: Lᵀ·(w − q), whose squares are the loss
    std::vector<QuantizedGroup> groups_;  // [groups of a row][16]
    FormatLanes lanes_;
    QuantLoss loss_;
};

}  // namespace

QuantLoss quantize_panel(Type type, const float* rows, std::uint32_t n_cols, const InputMoments& factor,
                         std::byte* panel, std::uint32_t n_rounds) {
    return WeightPanel(type, rows, n_cols, factor).quantize(panel, n_rounds);
}

}  // namespace fovea
