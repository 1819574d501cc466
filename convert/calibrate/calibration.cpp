#include "convert/calibrate/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "convert/calibrate/column_scales.h"
#include "convert/calibrate/text_reader.h"
#include "convert/quantize/moments.h"
#include "host/base/error.h"
#include "host/base/ordered_work.h"

namespace fovea {
namespace {

constexpr std::uint32_t kBatch = kReadTokens;            // rows whose inputs are kept until they are added up
constexpr std::uint32_t kBatchSample = 8, kSample = 64;  // rows that are kept to quantize them: of a batch, and of all
constexpr std::uint32_t kOutlierSample = 2 * kSample;    // of all, for outlier columns, from every part of a text

/// A norm's weights, to make a matrix's input of the residual stream again.
struct NormOf {
    Norm kind = Norm::none;
    float epsilon = 0;
    std::vector<float> weight, bias;

    void apply(const float* x, std::uint32_t n, float* y) const {
        double mean = 0, squares = 0;
        if (kind == Norm::layer) {
            for (std::uint32_t i = 0; i < n; ++i) mean += x[i];
            mean /= n;
        }
        for (std::uint32_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
        const double inverse = kind == Norm::none ? 1.0 : 1.0 / std::sqrt(squares / n + epsilon);
        for (std::uint32_t i = 0; i < n; ++i) {
            const double normed = kind == Norm::none ? x[i] : (x[i] - mean) * inverse * weight[i];
            y[i] = static_cast<float>(bias.empty() ? normed : normed + bias[i]);
        }
    }
};

[[nodiscard]] std::vector<float> read_vector(const ModelSource& source, const TensorSpec& spec) {
    std::vector<float> values(spec.n_cols);
    source.read_rows(spec, 0, 1, values.data());
    return values;
}

/// Whether a block's norms come before its parts.
[[nodiscard]] bool normed_before(const Block& b) {
    return b.norm_place != NormPlace::post && b.norm_place != NormPlace::output;
}

/// The norms before attention and before the feed-forward part, [n_layers][2], then the final one.
[[nodiscard]] std::vector<NormOf> read_norms(const ModelSource& source) {
    const StackIndex index = calibrated_stack(source);
    const Stack& stack = calibrated_stack_of(source);
    std::vector<NormOf> norms(std::size_t{stack.n_layers} * 2 + 1);
    norms.back().kind = stack.final_norm;
    norms.back().epsilon = stack.final_norm_epsilon;
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
        const Block& b = stack.block(layer);
        if (!normed_before(b)) continue;
        for (int part = 0; part < 2; ++part) {
            norms[layer * 2 + part].kind = b.norm;
            norms[layer * 2 + part].epsilon = b.norm_epsilon;
        }
    }
    for_each_tensor(stack, index, [&](const TensorSpec& spec) {
        if (spec.role == Role::final_norm) norms.back().weight = read_vector(source, spec);
        if (spec.role == Role::final_norm_bias) norms.back().bias = read_vector(source, spec);
        if (spec.layer >= stack.n_layers || !normed_before(stack.block(spec.layer))) return;
        NormOf* norm = &norms[std::size_t{spec.layer} * 2];
        switch (spec.role) {
            case Role::attention_norm: norm[0].weight = read_vector(source, spec); break;
            case Role::attention_norm_bias: norm[0].bias = read_vector(source, spec); break;
            case Role::feed_forward_norm: norm[1].weight = read_vector(source, spec); break;
            case Role::feed_forward_norm_bias: norm[1].bias = read_vector(source, spec); break;
            default: break;
        }
    });
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer)
        if (stack.block(layer).feed.shared_norm) norms[layer * 2 + 1] = norms[layer * 2];
    return norms;
}

/// The inputs of a batch's rows, as the tap shows what they are made of.
class Inputs {
public:
    Inputs(const ModelSource& source, bool outliers, Calibration& result)
        : stack_(calibrated_stack_of(source)), norms_(read_norms(source)), outliers_(outliers), result_(result) {
        result.moments.resize(std::size_t{stack_.n_layers} * kInputCount);
        rows_.resize(result.moments.size() + (outliers ? 1 : 0));
        seen.resize(rows_.size());
        for (std::uint32_t layer = 0; layer < stack_.n_layers; ++layer) {
            const Block& b = stack_.block(layer);
            const std::uint32_t widths[kInputCount] = {b.attention.n_heads ? stack_.d_model : 0,
                                                       b.attention.n_heads * b.attention.value_head_dim,
                                                       b.feed.d_ff ? stack_.d_model : 0, b.feed.d_ff};
            for (std::uint32_t of = 0; of < kInputCount; ++of) {
                InputMoments& m = moments(layer, static_cast<InputOf>(of));
                m.n = widths[of];
                if (!outliers) m.lower.assign(std::size_t{m.n} * (m.n + 1) / 2, 0.0f);
                rows_[layer * kInputCount + of].resize(std::size_t{kBatch} * m.n);
                seen[layer * kInputCount + of].largest.assign(m.n, 0.0f);
            }
        }
        if (!outliers) return;
        rows_.back().resize(std::size_t{kBatch} * stack_.d_model);
        seen.back().largest.assign(stack_.d_model, 0.0f);
    }

    std::vector<SeenInput> seen;  ///< [n_layers·kInputCount] so far; for outlier columns the output head's behind them

    void begin(std::uint32_t pos) { first_ = pos; }

    static void show(void* context, std::uint32_t pos, std::uint32_t layer, const char* operation,
                     std::span<const float> row) {
        static_cast<Inputs*>(context)->take(pos, layer, operation, row);
    }

    /// Adds up what n_rows rows left, every matrix's inputs by one thread.
    void add(std::uint32_t n_rows, std::uint32_t n_threads) {
        OrderedWork work;
        work.n_pieces = rows_.size();
        const std::uint32_t in_batch = outliers_ ? kOutlierSample / (kCalibrationTokens / kBatch) : kBatchSample;
        work.make = [&](std::uint64_t i, std::size_t, std::size_t) {
            const std::size_t n = seen[i].largest.size();
            if (!outliers_)
                moment_functions().front().add_moments(rows_[i].data(), n_rows, result_.moments[i].n,
                                                       result_.moments[i].lower.data());
            for (std::size_t at = 0; at < n_rows * n; ++at) {
                float& most = seen[i].largest[at % n];
                most = std::max(most, std::fabs(rows_[i][at]));
            }
            std::vector<float>& sample = seen[i].sample;
            for (std::uint32_t k = 0; k < in_batch && sample.size() < (outliers_ ? kOutlierSample : kSample) * n; ++k) {
                const float* row = rows_[i].data() + std::size_t{k} * n_rows / in_batch * n;
                sample.insert(sample.end(), row, row + n);
            }
        };
        work.take = [](std::uint64_t, std::size_t) {};
        work_in_order(work, n_threads);
    }

private:
    [[nodiscard]] InputMoments& moments(std::uint32_t layer, InputOf of) {
        return result_.moments[layer * kInputCount + static_cast<std::uint32_t>(of)];
    }
    [[nodiscard]] float* input(std::uint32_t layer, InputOf of, std::uint32_t pos) {
        const std::size_t i = layer * kInputCount + static_cast<std::uint32_t>(of);
        return rows_[i].data() + std::size_t{pos - first_} * result_.moments[i].n;
    }
    [[nodiscard]] float* head_input(std::uint32_t pos) {
        return rows_.back().data() + std::size_t{pos - first_} * stack_.d_model;
    }

    void take(std::uint32_t pos, std::uint32_t layer, std::string_view operation, std::span<const float> row) {
        const std::uint32_t d_model = stack_.d_model, n_layers = stack_.n_layers;
        const auto norm = [&](std::uint32_t of_layer, int part, InputOf of) {
            norms_[of_layer * 2 + part].apply(row.data(), d_model, input(of_layer, of, pos));
        };
        const auto begin_layer = [&](std::uint32_t next) {
            if (next >= n_layers && outliers_) norms_.back().apply(row.data(), d_model, head_input(pos));
            if (next >= n_layers) return;
            const Block& b = stack_.block(next);
            if (b.attention.n_heads) norm(next, 0, InputOf::projections);
            if (b.feed.d_ff && (b.feed.parallel || !b.attention.n_heads)) norm(next, 1, InputOf::up);
        };
        const auto copy = [&](InputOf of) { std::memcpy(input(layer, of, pos), row.data(), row.size_bytes()); };
        if (operation == "embedding") begin_layer(0);
        if (operation == "attended" || operation == "attended norm") copy(InputOf::attention_output);
        if (operation == "attention" && stack_.block(layer).feed.d_ff && !stack_.block(layer).feed.parallel)
            norm(layer, 1, InputOf::up);
        if (operation == "inner" || operation == "inner norm") copy(InputOf::down);
        const Block& b = stack_.block(layer);
        if (operation == (b.inputs.width || b.inputs.layer_scale ? "layer output" : "block")) begin_layer(layer + 1);
    }

    const Stack& stack_;
    const std::vector<NormOf> norms_;
    const bool outliers_;
    Calibration& result_;
    std::vector<std::vector<float>> rows_;  // [n_layers·kInputCount][kBatch][n], as `seen`
    std::uint32_t first_ = 0;               // position of the batch's first row
};

[[nodiscard]] bool any_scale(const std::vector<float>& columns) {
    return std::any_of(columns.begin(), columns.end(), [](float scale) { return scale != 1.0f; });
}

/// The matrix of the output head, a table of embeddings if they are tied; or none.
[[nodiscard]] std::vector<TensorSpec> head_of(const ModelSource& source) {
    const Stack& stack = calibrated_stack_of(source);
    if (!stack.has_output_head || stack.n_head_maps()) return {};
    const Role role = stack.tied_output ? Role::token_embedding : Role::output;
    return {{role, calibrated_stack(source), 0, Layout::panels, stack.vocab_size, stack.d_model}};
}

/// How a matrix is stored that stays as the source has it.
[[nodiscard]] Type type_of(const ModelSource& source, const TensorSpec& spec) {
    return source.type_of ? source.type_of(spec) : stored_type(spec, source.type, source.exact_tables);
}

/// Whether the source has quants of all of them, as blocks whose inputs have column scales want.
[[nodiscard]] bool quantized(const ModelSource& source, std::span<const TensorSpec> matrices) {
    return std::all_of(matrices.begin(), matrices.end(),
                       [&](const TensorSpec& spec) { return is_quantized(type_of(source, spec)); });
}

/// Outlier columns of the inputs that `matrices` read, and of the output head's.
void find_outliers(const ModelSource& source, const std::vector<std::vector<TensorSpec>>& matrices,
                   const CalibrationOptions& options, const Inputs& inputs, Calibration& result) {
    const bool in_layers =
        std::all_of(matrices.begin(), matrices.end(), [&](const auto& its) { return quantized(source, its); });
    const std::vector<TensorSpec> head = head_of(source);
    std::vector<std::vector<float>> columns(matrices.size() + 1);
    OrderedWork work;
    work.n_pieces = columns.size();
    work.make = [&](std::uint64_t i, std::size_t, std::size_t) {
        const bool is_head = i == matrices.size();
        const std::vector<TensorSpec>& its = is_head ? head : matrices[i];
        if (!its.empty() && (is_head ? quantized(source, head) : in_layers))
            columns[i] = choose_outliers(source, its, inputs.seen[i], type_of(source, its.front()));
    };
    work.take = [](std::uint64_t, std::size_t) {};
    work_in_order(work, options.n_threads);
    if (!head.empty()) result.head = head.front().role;
    if (any_scale(columns.back())) result.head_columns = std::move(columns.back());
    columns.pop_back();
    if (std::any_of(columns.begin(), columns.end(), any_scale)) result.columns = std::move(columns);
}

/// Factors all moments, with the column scales that are best for each input if they are asked for.
void finish(const ModelSource& source, const CalibrationOptions& options, const Inputs& inputs, Calibration& result) {
    std::vector<std::vector<TensorSpec>> matrices(result.moments.size());
    for_each_tensor(calibrated_stack_of(source), result.stack, [&](const TensorSpec& spec) {
        const InputMoments* its = spec.layout == Layout::panels ? result.of(spec) : nullptr;
        if (its) matrices[static_cast<std::size_t>(its - result.moments.data())].push_back(spec);
    });
    if (options.outliers) return find_outliers(source, matrices, options, inputs, result);
    std::vector<std::vector<float>> columns(result.moments.size());
    OrderedWork work;
    work.n_pieces = result.moments.size();
    work.make = [&](std::uint64_t i, std::size_t, std::size_t) {
        InputMoments& m = result.moments[i];
        if (options.columns_for)
            columns[i] = choose_columns(source, matrices[i], inputs.seen[i], *options.columns_for, result.n_tokens, m);
        else
            moment_functions().front().factor(m.n, m.lower.data());
    };
    work.take = [](std::uint64_t, std::size_t) {};
    work_in_order(work, options.n_threads);
    if (std::any_of(columns.begin(), columns.end(), any_scale)) result.columns = std::move(columns);
}

}  // namespace

// What the tap shows stands for a block's inputs where attention comes first and the feed-forward part reads its sum.
void check_calibrated(const ModelSource& source) {
    const StackIndex index = calibrated_stack(source);
    const Stack& stack = calibrated_stack_of(source);
    const bool both = source.config.encoder.n_layers && source.config.decoder.n_layers;
    if (both || !stack.vocab_size || (index == StackIndex::decoder && !stack.has_output_head))
        throw host::Error(
            "--calibrate: expected a decoder that gives logits or an encoder of text, got another kind of model");
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i)
        if ((!stack.blocks[i].attention.n_heads && !stack.blocks[i].feed.d_ff) || stack.blocks[i].experts.n ||
            stack.blocks[i].latent.query_rank || stack.blocks[i].latent.query_dim ||
            stack.blocks[i].inputs.joins_embedding || stack.blocks[i].norm_place == NormPlace::output)
            throw host::Error(
                "--calibrate: expected blocks of usual attention, and of feed-forward parts for all rows");
}

Calibration calibrate(const ModelSource& source, const Texts& texts, const CalibrationOptions& options) {
    check_calibrated(source);
    Calibration result;
    result.stack = calibrated_stack(source);
    Inputs inputs(source, options.outliers, result);
    TextReader reader(source, {}, options.n_threads);
    set_trace(reader.session(), {Inputs::show, &inputs});
    const std::uint64_t total = texts.n_tokens();
    reader.read(
        texts, false, [&](std::uint32_t first) { inputs.begin(first); },
        [&](const ReadPass& pass) {
            inputs.add(static_cast<std::uint32_t>(pass.n_tokens), options.n_threads);
            result.n_tokens += pass.n_tokens;
            if (options.progress) options.progress(result.n_tokens, total);
        });
    finish(source, options, inputs, result);
    return result;
}

}  // namespace fovea
