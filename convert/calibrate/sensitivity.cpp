#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "convert/calibrate/matrix_loss.h"
#include "convert/calibrate/text_reader.h"
#include "convert/quantize/error_feedback.h"
#include "engine/format/half.h"
#include "host/base/exact_math.h"
#include "host/base/ordered_work.h"

namespace fovea {
namespace {

constexpr Type kProbe = Type::q3_k;          // loses enough to be seen, and little enough to be in proportion
constexpr std::uint32_t kMostTokens = 4096;  // that are read for every matrix
constexpr std::uint64_t kMostWork = std::uint64_t{1} << 38;  // tokens times weights, of one matrix's turn
constexpr std::uint64_t kMostResults = 1u << 25;             // that are kept of the model as it is

/// How many tokens to read: fewer of large models, and where results are wide.
[[nodiscard]] std::uint64_t n_probe_tokens(const FileHead& head, std::uint32_t width) {
    std::uint64_t n_weights = 0;
    for (const TensorSpec& spec : head.specs) n_weights += std::uint64_t{spec.n_rows} * spec.n_cols;
    const std::uint64_t n = std::clamp<std::uint64_t>(kMostWork / (n_weights + 1), 512, kMostTokens);
    return std::min(n, kMostResults / width + 2);
}

/// log(softmax(x)), in doubles and in order.
void log_softmax(std::span<float> x) {
    const double most = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float value : x) sum += quick_exp(std::max(-700.0, value - most));  // NaN counts as nothing
    const double log_sum = most + exact_log(sum);
    for (float& value : x) value = static_cast<float>(value - log_sum);
}

/// A vector as one of length 1.
void normalize(std::span<float> x) {
    double squares = 0;
    for (const float value : x) squares += double{value} * value;
    const double inverse = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (float& value : x) value = static_cast<float>(value * inverse);
}

/// What the model makes of texts: rows of log probabilities after each token, or of an encoder vectors of length 1.
class Prober {
public:
    Prober(const ModelSource& source, const Calibration& calibration, const Texts& texts, std::uint32_t n_threads)
        : source_(source),
          calibration_(calibration),
          n_threads_(n_threads),
          reader_(source, source.type_of || is_quantized(source.type) ? Type::bf16 : source.type, n_threads),
          predicts_(calibrated_stack(source) == StackIndex::decoder),
          width_(reader_.result_width(true)),
          texts_(texts.first(n_probe_tokens(reader_.in_memory().head, reader_.result_width(true)))) {
        read([](std::uint64_t, std::span<const float>) {},
             [&](std::span<const float> rows) { reference_.insert(reference_.end(), rows.begin(), rows.end()); });
    }

    /// The change of a row, on average, that rounding this matrix makes, over its squared relative error.
    [[nodiscard]] double sensitivity(const TensorSpec& wanted) {
        ModelInMemory& model = reader_.in_memory();
        const auto& specs = model.head.specs;
        const auto at = static_cast<std::size_t>(
            std::find_if(specs.begin(), specs.end(),
                         [&](const TensorSpec& spec) { return key_of(spec) == key_of(wanted); }) -
            specs.begin());
        const TensorRecord& record = model.head.records[at];
        const std::vector<std::byte> kept(model.tensor(at), model.tensor(at) + record.bytes);
        const QuantLoss loss = round_matrix(specs[at], record, model.tensor(at));
        std::vector<double> changes(reference_.size() / width_);
        if (loss.error > 0)
            read([&](std::uint64_t row,
                     std::span<const float> q) { changes[row] = change_of(reference_.data() + row * width_, q); },
                 [](std::span<const float>) {});
        std::copy(kept.begin(), kept.end(), model.tensor(at));
        const double relative = loss.total > 0 ? loss.error / loss.total : 0;
        const double change =
            std::accumulate(changes.begin(), changes.end(), 0.0) / static_cast<double>(changes.size());
        return relative > 0 ? std::max(change, 0.0) / relative : 0;
    }

private:
    /// Reads the texts, calling `each` with a row's number and what it came to, on any thread, and `after` with the rows
    /// of a pass.
    template<class Each, class After>
    void read(Each&& each, After&& after) {
        std::uint64_t done = 0;
        reader_.read(
            texts_, true, [](std::uint32_t) {},
            [&](const ReadPass& pass) {
                OrderedWork work;
                work.n_pieces = pass.results.size() / width_;
                work.make = [&](std::uint64_t row, std::size_t, std::size_t) {
                    const std::span<float> values = pass.results.subspan(row * width_, width_);
                    predicts_ ? log_softmax(values) : normalize(values);
                    each(done + row, std::span<const float>(values));
                };
                work.take = [](std::uint64_t, std::size_t) {};
                work_in_order(work, n_threads_);
                after(std::span<const float>(pass.results));
                done += work.n_pieces;
            });
    }

    /// How far a row q is from p. Probabilities: Σ p·(log p − log q). Vectors: 1 − cosine, which is half the square of
    /// their difference.
    [[nodiscard]] double change_of(const float* p, std::span<const float> q) const {
        double sum = 0;
        if (predicts_) {
            for (std::size_t i = 0; i < q.size(); ++i)
                if (p[i] > -40) sum += quick_exp(p[i]) * (static_cast<double>(p[i]) - q[i]);
            return sum;
        }
        for (std::size_t i = 0; i < q.size(); ++i) sum += (double{p[i]} - q[i]) * (double{p[i]} - q[i]);
        return sum / 2;
    }

    QuantLoss round_matrix(const TensorSpec& spec, const TensorRecord& record, std::byte* bytes) const {
        TensorSpec in_panels = spec;
        in_panels.layout = Layout::panels;
        const std::uint32_t n_panels = static_cast<std::uint32_t>(round_up(spec.n_rows, kLanes) / kLanes);
        std::vector<QuantLoss> made(n_slots(n_threads_));
        QuantLoss sum;
        OrderedWork work;
        work.n_pieces = n_panels;
        work.make = [&](std::uint64_t i, std::size_t slot, std::size_t) {
            const auto row = static_cast<std::uint32_t>(i * kLanes);
            std::vector<float> rows(std::size_t{kLanes} * spec.n_cols);
            std::vector<std::byte> panel(panel_bytes(kProbe, spec.n_cols));
            const std::uint32_t n_rows = std::min(kLanes, spec.n_rows - row);
            source_.read_rows(in_panels, row, n_rows, rows.data());
            divide_columns(&calibration_, in_panels, n_rows, rows.data());
            made[slot] = round_panel(in_panels, rows, panel);
            if (!made[slot].overflow) put_rounded(spec, record, row, panel, bytes);
        };
        work.take = [&](std::uint64_t, std::size_t slot) {
            if (made[slot].overflow) return;
            sum.error += made[slot].error;
            sum.total += made[slot].total;
        };
        work_in_order(work, n_threads_);
        return sum;
    }

    [[nodiscard]] QuantLoss round_panel(const TensorSpec& spec, const std::vector<float>& rows,
                                        std::vector<std::byte>& panel) const {
        const InputMoments* inputs = calibration_.of(spec);
        return inputs ? quantize_panel(kProbe, rows.data(), spec.n_cols, *inputs, panel.data())
                      : quantize_panel(kProbe, rows.data(), spec.n_cols, panel.data());
    }

    /// The model that is read has no column scales.
    void put_rounded(const TensorSpec& spec, const TensorRecord& record, std::uint32_t row,
                     const std::vector<std::byte>& panel, std::byte* bytes) const {
        const float* columns = calibration_.columns_of(spec);
        const auto type = static_cast<Type>(record.type);
        const std::uint64_t n_bytes = type == Type::f32 ? 4 : 2;
        const QuantPanel rounded(panel.data(), kProbe);
        for (std::uint32_t lane = 0; lane < std::min(kLanes, spec.n_rows - row); ++lane)
            for (std::uint32_t col = 0; col < spec.n_cols; ++col) {
                const std::uint64_t at =
                    spec.layout == Layout::rows
                        ? ((row + lane) * std::uint64_t{spec.n_cols} + col) * n_bytes
                        : row / kLanes * record.panel_stride + (std::uint64_t{col} * kLanes + lane) * n_bytes;
                const float stored = rounded.weight(col, lane);
                store_weight(type, columns ? stored * columns[col] : stored, bytes + at);
            }
    }

    const ModelSource& source_;
    const Calibration& calibration_;
    std::uint32_t n_threads_;
    TextReader reader_;
    bool predicts_;
    std::size_t width_;
    Texts texts_;
    std::vector<float> reference_;  // [rows][width_] of the model as it is
};

}  // namespace

std::vector<double> sensitivities(const ModelSource& source, const Calibration& calibration,
                                  const std::vector<TensorSpec>& matrices, const Texts& texts, std::uint32_t n_threads,
                                  const Progress& progress) {
    Prober prober(source, calibration, texts, n_threads);
    std::vector<double> costs;
    for (const TensorSpec& spec : matrices) {
        costs.push_back(prober.sensitivity(spec));
        if (progress) progress(costs.size(), matrices.size());
    }
    return costs;
}

}  // namespace fovea
