#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "convert/column_scales.h"
#include "convert/error_feedback.h"
#include "convert/matrix_loss.h"
#include "convert/ordered_work.h"
#include "convert/text_reader.h"

namespace fovea {
namespace {

constexpr Type kProbe = Type::q3_k;          // loses enough to be seen, and little enough to be in proportion
constexpr std::uint32_t kMostTokens = 4096;  // that are predicted for every matrix
constexpr std::uint64_t kMostWork = std::uint64_t{1} << 38;  // tokens times weights, of one matrix's turn
constexpr std::uint64_t kMostLogits = 1u << 25;              // that are kept of the model as it is

/// How many tokens to predict: fewer of large models, and of large vocabularies.
[[nodiscard]] std::uint32_t n_probe_tokens(const FileHead& head, std::uint32_t vocab_size) {
    std::uint64_t n_weights = 0;
    for (const TensorSpec& spec : head.specs) n_weights += std::uint64_t{spec.n_rows} * spec.n_cols;
    std::uint64_t n = std::clamp<std::uint64_t>(kMostWork / (n_weights + 1), 512, kMostTokens);
    return static_cast<std::uint32_t>(std::min(n, kMostLogits / vocab_size + 2));
}

/// log(softmax(x)), in doubles and in order.
void log_softmax(std::span<float> x) {
    const double most = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float value : x) sum += std::exp(value - most);
    const double log_sum = most + std::log(sum);
    for (float& value : x) value = static_cast<float>(value - log_sum);
}

class Prober {
public:
    Prober(const ModelSource& source, const Calibration& calibration, std::string_view text, std::uint32_t n_threads)
        : source_(source),
          calibration_(calibration),
          n_threads_(n_threads),
          reader_(source, source.type_of || is_quantized(source.type) ? Type::bf16 : source.type, n_threads),
          vocab_size_(source.config.decoder.vocab_size),
          tokens_(text_tokens(source, text, n_probe_tokens(reader_.head, vocab_size_))) {
        reference_.resize(tokens_.size() * vocab_size_);
        logits_.resize(std::size_t{TextReader::kBatch} * vocab_size_);
        read([&](std::size_t first, std::size_t n) {
            std::memcpy(reference_.data() + first * vocab_size_, logits_.data(), n * vocab_size_ * sizeof(float));
        });
    }

    /// The divergence that rounding this matrix makes, over its squared relative error.
    [[nodiscard]] double sensitivity(const TensorSpec& wanted) {
        const auto& specs = reader_.head.specs;
        const auto at = static_cast<std::size_t>(
            std::find_if(specs.begin(), specs.end(),
                         [&](const TensorSpec& spec) { return key_of(spec) == key_of(wanted); }) -
            specs.begin());
        const TensorRecord& record = reader_.head.records[at];
        const std::vector<std::byte> kept(reader_.tensor(at), reader_.tensor(at) + record.bytes);
        const QuantLoss loss = round_matrix(specs[at], record, reader_.tensor(at));
        double divergence = 0;
        if (loss.error > 0) read([&](std::size_t first, std::size_t n) { divergence += divergence_from(first, n); });
        std::copy(kept.begin(), kept.end(), reader_.tensor(at));
        const double relative = loss.total > 0 ? loss.error / loss.total : 0;
        return relative > 0 ? std::max(divergence / static_cast<double>(tokens_.size()), 0.0) / relative : 0;
    }

private:
    /// Reads the text, calling `each` with the first of some tokens and their number, whose log probabilities logits_ has.
    template<class Each>
    void read(Each&& each) {
        for (std::size_t at = 0; at < tokens_.size(); at += reader_.window) {
            const std::size_t end = std::min<std::size_t>(tokens_.size(), at + reader_.window);
            need_calibration(rewind(reader_.session, 0), "window");
            for (std::size_t first = at; first < end; first += TextReader::kBatch) {
                const std::size_t n = std::min<std::size_t>(TextReader::kBatch, end - first);
                const std::span<float> logits = std::span(logits_).first(n * vocab_size_);
                need_calibration(forward(reader_.session, std::span(tokens_).subspan(first, n), logits), "pass");
                OrderedWork work;
                work.n_pieces = n;
                work.make = [&](std::uint64_t row, std::size_t, std::size_t) {
                    log_softmax(logits.subspan(row * vocab_size_, vocab_size_));
                };
                work.take = [](std::uint64_t, std::size_t) {};
                work_in_order(work, n_threads_);
                each(first, n);
            }
        }
    }

    /// Σ p·(log p − log q) over those tokens, p being the model's as it is.
    [[nodiscard]] double divergence_from(std::size_t first, std::size_t n) const {
        const float* p = reference_.data() + first * vocab_size_;
        double sum = 0;
        for (std::size_t i = 0; i < n * vocab_size_; ++i)
            if (p[i] > -40) sum += std::exp(static_cast<double>(p[i])) * (static_cast<double>(p[i]) - logits_[i]);
        return sum;
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
        for (std::uint32_t lane = 0; lane < std::min(kLanes, spec.n_rows - row); ++lane)
            for (std::uint32_t col = 0; col < spec.n_cols; ++col) {
                const std::uint64_t at =
                    spec.layout == Layout::rows
                        ? ((row + lane) * std::uint64_t{spec.n_cols} + col) * n_bytes
                        : row / kLanes * record.panel_stride + (std::uint64_t{col} * kLanes + lane) * n_bytes;
                const float stored = q3_k_weight(panel.data(), lane, col);
                store_weight(type, columns ? stored * columns[col] : stored, bytes + at);
            }
    }

    const ModelSource& source_;
    const Calibration& calibration_;
    std::uint32_t n_threads_;
    TextReader reader_;
    std::size_t vocab_size_;
    std::vector<Token> tokens_;
    std::vector<float> reference_, logits_;  // log probabilities [tokens][vocab_size], and those of a batch
};

}  // namespace

std::vector<double> sensitivities(const ModelSource& source, const Calibration& calibration,
                                  const std::vector<TensorSpec>& matrices, std::string_view text,
                                  std::uint32_t n_threads,
                                  const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
    Prober prober(source, calibration, text, n_threads);
    std::vector<double> costs;
    for (const TensorSpec& spec : matrices) {
        costs.push_back(prober.sensitivity(spec));
        if (progress) progress(costs.size(), matrices.size());
    }
    return costs;
}

}  // namespace fovea
