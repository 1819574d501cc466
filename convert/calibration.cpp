#include "convert/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "convert/moments.h"
#include "convert/ordered_work.h"
#include "convert/refusal.h"
#include "convert/text_reader.h"

namespace fovea {
namespace {

constexpr std::uint32_t kBatch = TextReader::kBatch;  // rows whose inputs are kept until they are added up

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
    return b.norm_place == NormPlace::pre || b.norm_place == NormPlace::both;
}

/// The norms before attention and before the feed-forward part, [n_layers][2].
[[nodiscard]] std::vector<NormOf> read_norms(const ModelSource& source) {
    const Stack& stack = source.config.decoder;
    std::vector<NormOf> norms(std::size_t{stack.n_layers} * 2);
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer) {
        const Block& b = stack.block(layer);
        if (!normed_before(b)) continue;
        for (int part = 0; part < 2; ++part) {
            norms[layer * 2 + part].kind = b.norm;
            norms[layer * 2 + part].epsilon = b.norm_epsilon;
        }
    }
    for_each_tensor(stack, StackIndex::decoder, [&](const TensorSpec& spec) {
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
        if (stack.block(layer).shared_norm) norms[layer * 2 + 1] = norms[layer * 2];
    return norms;
}

/// The inputs of a batch's rows, as the tap shows what they are made of.
class Inputs {
public:
    Inputs(const ModelSource& source, Calibration& result)
        : stack_(source.config.decoder), norms_(read_norms(source)), result_(result) {
        result.moments.resize(std::size_t{stack_.n_layers} * kInputCount);
        rows_.resize(result.moments.size());
        for (std::uint32_t layer = 0; layer < stack_.n_layers; ++layer) {
            const Block& b = stack_.block(layer);
            const std::uint32_t widths[kInputCount] = {b.n_heads ? stack_.d_model : 0, b.n_heads * b.value_head_dim,
                                                       b.d_ff ? stack_.d_model : 0, b.d_ff};
            for (std::uint32_t of = 0; of < kInputCount; ++of) {
                InputMoments& m = moments(layer, static_cast<InputOf>(of));
                m.n = widths[of];
                m.lower.assign(std::size_t{m.n} * (m.n + 1) / 2, 0.0f);
                rows_[layer * kInputCount + of].resize(std::size_t{kBatch} * m.n);
            }
        }
    }

    void begin(std::uint32_t pos) { first_ = pos; }

    static void show(void* context, std::uint32_t pos, std::uint32_t layer, const char* operation,
                     std::span<const float> row) {
        static_cast<Inputs*>(context)->take(pos, layer, operation, row);
    }

    /// Adds up what n_rows rows left, every matrix's inputs by one thread.
    void add(std::uint32_t n_rows, std::uint32_t n_threads) {
        OrderedWork work;
        work.n_pieces = rows_.size();
        work.make = [&](std::uint64_t i, std::size_t, std::size_t) {
            InputMoments& m = result_.moments[i];
            moment_functions().front().add_moments(rows_[i].data(), n_rows, m.n, m.lower.data());
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

    void take(std::uint32_t pos, std::uint32_t layer, std::string_view operation, std::span<const float> row) {
        const std::uint32_t d_model = stack_.d_model, n_layers = stack_.n_layers;
        const auto norm = [&](std::uint32_t of_layer, int part, InputOf of) {
            norms_[of_layer * 2 + part].apply(row.data(), d_model, input(of_layer, of, pos));
        };
        const auto begin_layer = [&](std::uint32_t next) {
            if (next >= n_layers) return;
            norm(next, 0, InputOf::projections);
            if (stack_.block(next).parallel) norm(next, 1, InputOf::up);
        };
        const auto copy = [&](InputOf of) { std::memcpy(input(layer, of, pos), row.data(), row.size_bytes()); };
        if (operation == "embedding") begin_layer(0);
        if (operation == "attended") copy(InputOf::attention_output);
        if (operation == "attention" && !stack_.block(layer).parallel) norm(layer, 1, InputOf::up);
        if (operation == "inner") copy(InputOf::down);
        if (operation == "block") begin_layer(layer + 1);
    }

    const Stack& stack_;
    const std::vector<NormOf> norms_;
    Calibration& result_;
    std::vector<std::vector<float>> rows_;  // [n_layers·kInputCount][kBatch][n]
    std::uint32_t first_ = 0;               // position of the batch's first row
};

/// What the tap shows stands for a block's inputs where attention comes first and the feed-forward part reads its sum.
void check_blocks(const ModelSource& source) {
    const Stack& stack = source.config.decoder;
    if (source.config.encoder.n_layers || !stack.n_layers || !stack.has_output_head)
        throw Refusal("--calibrate: expected a decoder that gives logits, got another kind of model");
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i)
        if (!stack.blocks[i].n_heads || !stack.blocks[i].d_ff || stack.blocks[i].n_experts ||
            stack.blocks[i].query_rank || stack.blocks[i].latent_query_dim)
            throw Refusal("--calibrate: expected blocks of usual attention and one feed-forward part for all rows");
}

void factor_all(Calibration& result, std::uint32_t n_threads) {
    OrderedWork work;
    work.n_pieces = result.moments.size();
    work.make = [&](std::uint64_t i, std::size_t, std::size_t) {
        InputMoments& m = result.moments[i];
        moment_functions().front().factor(m.n, m.lower.data());
    };
    work.take = [](std::uint64_t, std::size_t) {};
    work_in_order(work, n_threads);
}

}  // namespace

const InputMoments* Calibration::of(const TensorSpec& spec) const noexcept {
    const auto input = [&](InputOf of) -> const InputMoments* {
        const std::size_t i = std::size_t{spec.layer} * kInputCount + static_cast<std::uint32_t>(of);
        if (spec.stack != StackIndex::decoder || i >= moments.size() || moments[i].n != spec.n_cols) return nullptr;
        return &moments[i];
    };
    switch (spec.role) {
        case Role::query:
        case Role::key:
        case Role::value: return input(InputOf::projections);
        case Role::attention_output: return input(InputOf::attention_output);
        case Role::up: return input(InputOf::up);
        case Role::down: return input(InputOf::down);
        default: return nullptr;
    }
}

Calibration calibrate(const ModelSource& source, std::string_view text, const CalibrationOptions& options) {
    check_blocks(source);
    const std::vector<Token> tokens = text_tokens(source, text, options.max_tokens);
    TextReader reader(source, {}, options.n_threads);
    Calibration result;
    Inputs inputs(source, result);
    set_trace(reader.session, {Inputs::show, &inputs});
    for (std::size_t at = 0; at < tokens.size(); at += reader.window) {
        const std::size_t end = std::min<std::size_t>(tokens.size(), at + reader.window);
        need_calibration(rewind(reader.session, 0), "window");
        for (std::size_t first = at; first < end; first += kBatch) {
            const std::size_t n = std::min<std::size_t>(kBatch, end - first);
            inputs.begin(static_cast<std::uint32_t>(first - at));
            need_calibration(forward(reader.session, std::span(tokens).subspan(first, n), {}), "pass");
            inputs.add(static_cast<std::uint32_t>(n), options.n_threads);
            if (options.progress) options.progress(first + n, tokens.size());
        }
    }
    result.n_tokens = tokens.size();
    factor_all(result, options.n_threads);
    return result;
}

}  // namespace fovea
