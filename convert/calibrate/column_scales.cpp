#include "convert/calibrate/column_scales.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "convert/quantize/error_feedback.h"
#include "convert/quantize/moments.h"
#include "host/base/exact_math.h"

namespace fovea {
namespace {

constexpr std::uint32_t kSampledPanels = 8;  // of a matrix, whose rounding is tried
constexpr std::uint32_t kReadRows = 4 * kLanes;
// Shares of the rounding's error that outlier columns take, for each share of bytes they add; by measurement.
constexpr double kLeastGain = 22;

/// Whether the source has quants of that matrix, which may be stored as they are: scales would round them again.
[[nodiscard]] bool has_quants(const ModelSource& source, const TensorSpec& spec) {
    if (!source.read_groups) return false;
    std::vector<QuantizedGroup> groups(spec.n_cols / kGroup);
    return std::any_of(std::begin(kTypes), std::end(kTypes), [&](Type type) {
        return is_quantized(type) && source.read_groups(spec, type, 0, 1, groups.data());
    });
}

/// What the columns of the matrices that read an input are like, over all their rows.
struct ScaledColumns {
    struct Panel {
        std::vector<float> rows;  ///< [16][n]
        double n_like_it;         ///< how many panels it stands for
    };
    std::vector<float> largest;  ///< magnitude
    std::vector<double> energy;  ///< Σ w²
    std::vector<Panel> panels;   ///< some of theirs
};

[[nodiscard]] ScaledColumns read_columns(const ModelSource& source, std::span<const TensorSpec> matrices,
                                         std::uint32_t n) {
    ScaledColumns columns{std::vector<float>(n), std::vector<double>(n), {}};
    std::vector<float> rows(std::size_t{kReadRows} * n);
    for (const TensorSpec& spec : matrices) {
        const std::uint32_t n_panels = (spec.n_rows + kLanes - 1) / kLanes, taken = std::min(n_panels, kSampledPanels);
        for (std::uint32_t row = 0; row < spec.n_rows; row += kReadRows) {
            const std::uint32_t n_rows = std::min(kReadRows, spec.n_rows - row);
            source.read_rows(spec, row, n_rows, rows.data());
            for (std::uint32_t r = 0; r < n_rows; ++r)
                for (std::uint32_t col = 0; col < n; ++col) {
                    const float w = rows[std::size_t{r} * n + col];
                    columns.largest[col] = std::max(columns.largest[col], std::fabs(w));
                    columns.energy[col] += double{w} * w;
                }
        }
        for (std::uint32_t i = 0; i < taken; ++i) {
            const auto row = static_cast<std::uint32_t>(std::uint64_t{i} * n_panels / taken * kLanes);
            ScaledColumns::Panel panel{std::vector<float>(std::size_t{kLanes} * n),
                                       static_cast<double>(n_panels) / taken};
            source.read_rows(spec, row, std::min(kLanes, spec.n_rows - row), panel.rows.data());
            columns.panels.push_back(std::move(panel));
        }
    }
    return columns;
}

/// Σ over the sampled rows of what quantizing them changes of the matrices' outputs, columns apart from each other.
[[nodiscard]] double input_error(const SeenInput& seen, const ScaledColumns& columns, const std::vector<float>& scales,
                                 std::uint32_t width) {
    const std::size_t n = scales.size();
    double error = 0;
    for (std::size_t row = 0; row < seen.sample.size(); row += n)
        for (std::size_t begin = 0; begin < n; begin += width) {
            const std::size_t end = std::min<std::size_t>(n, begin + width);
            float most = 0;
            for (std::size_t i = begin; i < end; ++i)
                most = std::max(most, std::fabs(seen.sample[row + i] * scales[i]));
            const float step = most / 127;
            for (std::size_t i = begin; i < end && step > 0; ++i) {
                const float x = seen.sample[row + i], rounded = std::nearbyint(x * scales[i] / step) * step / scales[i];
                error += (double{x} - rounded) * (double{x} - rounded) * columns.energy[i];
            }
        }
    return error;
}

/// What rounding the matrices and their input changes of their outputs, a token. `moments` are those of the input as it is,
/// and become the factor of those of the input with these scales.
[[nodiscard]] double loss_with(const SeenInput& seen, const ScaledColumns& columns, const std::vector<float>& scales,
                               Type type, std::uint64_t n_tokens, InputMoments& moments) {
    const std::uint32_t n = moments.n;
    for (std::uint32_t i = 0; i < n; ++i)
        for (std::uint32_t j = 0; j <= i; ++j) moments.row(i)[j] *= scales[i] * scales[j];
    moment_functions().front().factor(n, moments.lower.data());
    double of_weights = 0;
    std::vector<float> rows(std::size_t{kLanes} * n);
    std::vector<std::byte> panel;
    for (const ScaledColumns::Panel& sampled : columns.panels) {
        for (std::size_t at = 0; at < rows.size(); ++at) rows[at] = sampled.rows[at] / scales[at % n];
        panel.assign(panel_bytes(type, n), std::byte{0});
        const QuantLoss loss = quantize_panel(type, rows.data(), n, moments, panel.data());
        if (loss.overflow) return HUGE_VAL;
        of_weights += loss.error * sampled.n_like_it;
    }
    const double n_sampled = static_cast<double>(seen.sample.size() / n);
    return of_weights / static_cast<double>(n_tokens) +
           input_error(seen, columns, scales, format_of(type).broad() ? kBroadGroup : kGroup) / n_sampled;
}

}  // namespace

std::vector<float> column_scales(std::span<const float> input, std::span<const float> weight) {
    constexpr double kLn2 = 0.69314718055994531;
    constexpr double kLeast = 1e-9;  // of the largest
    const auto floor_of = [](std::span<const float> x) {
        return std::max(*std::max_element(x.begin(), x.end()) * kLeast, 1e-30);
    };
    const double least_input = floor_of(input), least_weight = floor_of(weight);
    std::vector<double> logs(input.size());
    double mean = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) {
        logs[i] = (exact_log(std::max<double>(weight[i], least_weight)) -
                   exact_log(std::max<double>(input[i], least_input))) *
                  (0.5 / kLn2);
        mean += logs[i];
    }
    mean /= static_cast<double>(logs.size());
    std::vector<float> scales(logs.size());
    for (std::size_t i = 0; i < logs.size(); ++i)
        scales[i] = std::ldexp(1.0f, static_cast<int>(std::clamp(std::floor(logs[i] - mean + 0.5), -8.0, 8.0)));
    return scales;
}

std::vector<float> choose_columns(const ModelSource& source, std::span<const TensorSpec> matrices,
                                  const SeenInput& seen, Type type, std::uint64_t n_tokens, InputMoments& moments) {
    const std::vector<float> ones(moments.n, 1.0f);
    const bool kept =
        std::any_of(matrices.begin(), matrices.end(), [&](const TensorSpec& spec) { return has_quants(source, spec); });
    if (kept || matrices.empty() || seen.sample.empty()) {
        moment_functions().front().factor(moments.n, moments.lower.data());
        return ones;
    }
    const ScaledColumns columns = read_columns(source, matrices, moments.n);
    const InputMoments plain = moments;
    const double least = loss_with(seen, columns, ones, type, n_tokens, moments);
    std::vector<float> scales = column_scales(seen.largest, columns.largest);
    InputMoments scaled = plain;
    if (!(loss_with(seen, columns, scales, type, n_tokens, scaled) < least)) return ones;
    moments = std::move(scaled);
    return scales;
}

namespace {

/// What the largest column of each group adds to the rounding of the sampled rows: its square less that of the next, times the
/// weights that read the group. `scales` of 0 are of columns that are chosen.
struct OutlierGains {
    std::vector<double> of;  ///< [n]
    double whole = 0;        ///< that of all columns

    OutlierGains(const SeenInput& seen, const ScaledColumns& columns, const std::vector<float>& scales)
        : of(scales.size()) {
        const std::size_t n = scales.size();
        for (std::size_t begin = 0; begin < n; begin += kGroup) {
            const std::size_t end = std::min<std::size_t>(n, begin + kGroup);
            double energy = 0;
            for (std::size_t i = begin; i < end; ++i) energy += columns.energy[i];
            for (std::size_t row = 0; row < seen.sample.size(); row += n) {
                float most = 0, next = 0;
                std::size_t largest = begin;
                for (std::size_t i = begin; i < end; ++i) {
                    const float x = std::fabs(seen.sample[row + i]) * scales[i];
                    next = std::max(next, std::min(x, most));
                    if (x > most) most = x, largest = i;
                }
                of[largest] += (double{most} * most - double{next} * next) * energy;
                whole += double{most} * most * energy;
            }
        }
    }
};

}  // namespace

// A cache line of a panel has room for two.
std::vector<float> choose_outliers(const ModelSource& source, std::span<const TensorSpec> matrices,
                                   const SeenInput& seen, Type type) {
    const std::size_t n = seen.largest.size();
    std::vector<float> scales(n, 1.0f);
    if (matrices.empty() || seen.sample.empty() || n < kSuperblock) return scales;
    const ScaledColumns columns = read_columns(source, matrices, static_cast<std::uint32_t>(n));
    const double least = kLeastGain * 2 * kOutlierBytes / static_cast<double>(panel_bytes(type, n));
    double whole = 0;
    for (std::uint32_t chosen = 0; chosen < kMaxOutliers; chosen += 2) {
        std::vector<float> with = scales;
        double gain = 0;
        for (int i = 0; i < 2; ++i) {
            const OutlierGains gains(seen, columns, with);
            if (chosen + i == 0) whole = gains.whole;
            const auto best = std::max_element(gains.of.begin(), gains.of.end());
            gain += *best;
            with[static_cast<std::size_t>(best - gains.of.begin())] = 0.0f;
        }
        if (!(gain > least * whole)) break;
        scales = std::move(with);
    }
    return scales;
}

}  // namespace fovea
