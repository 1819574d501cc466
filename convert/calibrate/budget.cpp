#include "convert/calibrate/budget.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "convert/calibrate/matrix_loss.h"
#include "convert/writer/file_header.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

using Choice = MatrixChoices::Choice;

/// Without those beyond the type's range, those that another matches with no more bytes, and those above a line between
/// two others.
void keep_hull(std::vector<Choice>& choices) {
    const auto overflows = [](const Choice& choice) { return !std::isfinite(choice.cost); };
    if (!std::all_of(choices.begin(), choices.end(), overflows))
        choices.erase(std::remove_if(choices.begin(), choices.end(), overflows), choices.end());
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
        return a.bytes != b.bytes ? a.bytes < b.bytes : a.cost < b.cost;
    });
    std::vector<Choice> hull;
    for (const Choice& choice : choices) {
        if (!hull.empty() && !(choice.cost < hull.back().cost)) continue;  // among them all of as many bytes
        const auto gain = [](const Choice& from, const Choice& to) {
            return (from.cost - to.cost) / static_cast<double>(to.bytes - from.bytes);
        };
        while (hull.size() >= 2 && gain(hull[hull.size() - 2], hull.back()) <= gain(hull.back(), choice))
            hull.pop_back();
        hull.push_back(choice);
    }
    choices = std::move(hull);
}

/// A move of one matrix from its choice to a larger one.
struct TypeStep {
    std::size_t matrix = 0, to = 0;
    std::uint64_t bytes = 0;
    double gain = 0;  ///< for a byte
};

[[nodiscard]] TypeStep step_of(const std::vector<MatrixChoices>& matrices, std::size_t matrix, std::size_t from,
                               std::size_t to) {
    const Choice& a = matrices[matrix].choices[from];
    const Choice& b = matrices[matrix].choices[to];
    return {matrix, to, b.bytes - a.bytes, (a.cost - b.cost) / static_cast<double>(b.bytes - a.bytes)};
}

/// The matrices that have a choice, in the file's order, and how many bytes and weights there are beside them.
struct Layouts {
    std::vector<TensorSpec> matrices;
    std::uint64_t fixed_bytes = 0;  ///< of the weights' section
    std::uint64_t head_bytes = 0;   ///< of the file before it
    std::uint64_t n_weights = 0;    ///< in all; column scales, which a calibration adds, are none
};

[[nodiscard]] Layouts find_matrices(const ModelSource& source, const WriteOptions& write) {
    WriteOptions quantized = write;
    quantized.type = Type::q8;
    const FileHead head = make_head(source, quantized);
    Layouts found;
    found.head_bytes = head.bytes.size();
    for (std::size_t i = 0; i < head.specs.size(); ++i) {
        TensorSpec spec = head.specs[i];
        if (!is_columns(spec.role)) found.n_weights += std::uint64_t{spec.n_rows} * spec.n_cols;
        const bool table = spec.layout == Layout::rows && spec.role == Role::token_embedding;
        if (table || is_quantized(static_cast<Type>(head.records[i].type))) {
            spec.layout = Layout::panels;
            found.matrices.push_back(spec);
        } else {
            found.fixed_bytes += round_up(head.records[i].bytes, kSectionAlignment);
        }
    }
    return found;
}

/// Whether it makes results of the last rows: an output head, an encoder's maps behind its pooling, a table that is both.
[[nodiscard]] bool is_head(const Stack& stack, const TensorSpec& spec) {
    return spec.role == Role::output || spec.role == Role::head_map ||
           (spec.role == Role::token_embedding && stack.tied_output);
}

/// How much a weight of a matrix is taken to matter where nothing was measured, beside one of the others. Chosen by what
/// rounding costs four models (docs/results.md, "How much matrices are presumed to matter"): a head's errors are mended by no
/// later layer, few tokens meet a row of an encoder's table, few keys and values are seen by many queries, and the first
/// and last layers have more to lose.
[[nodiscard]] double presumed_weight(const Stack& stack, const TensorSpec& spec) {
    const bool encodes = spec.stack == StackIndex::encoder;
    if (is_head(stack, spec)) return 14;
    if (spec.role == Role::token_embedding) return encodes ? 1.0 / 16 : 1;
    if (spec.role < Role::attention_norm) return 1;  // of no layer
    const double of_role = spec.role == Role::key ? 3 : spec.role == Role::value ? 2 : 1;
    return of_role * (spec.layer == 0 ? 3 : 1) * (spec.layer + 1 == stack.n_layers ? 2 : 1);
}

[[nodiscard]] const Stack& stack_of(const ModelSource& source, const TensorSpec& spec) {
    return spec.stack == StackIndex::encoder ? source.config.encoder : source.config.decoder;
}

/// What a unit of squared relative error of each matrix is taken to cost: its share of the weights times that.
[[nodiscard]] std::vector<double> presumed_sensitivities(const ModelSource& source, const Layouts& found) {
    std::vector<double> costs;
    for (const TensorSpec& spec : found.matrices) {
        const Stack& stack = stack_of(source, spec);
        const double n = static_cast<double>(spec.n_rows) * spec.n_cols;
        costs.push_back(presumed_weight(stack, spec) * n / static_cast<double>(found.n_weights));
    }
    return costs;
}

/// What a calibration measures. An encoder's vectors are taken before its heads, so they say nothing of a head, and only half
/// of a table that is a head too. Those cost at least what is presumed, in proportion to the others.
[[nodiscard]] std::vector<double> measured_sensitivities(const ModelSource& source, const Layouts& found,
                                                         const BudgetOptions& options,
                                                         const std::vector<double>& presumed) {
    std::vector<double> costs = sensitivities(source, *options.calibration, found.matrices, *options.texts,
                                              options.n_threads, options.progress);
    const auto is_unseen = [&](const TensorSpec& spec) {
        return spec.stack == StackIndex::encoder && is_head(stack_of(source, spec), spec);
    };
    double of_measured = 0, of_presumed = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        if (is_unseen(found.matrices[i])) continue;
        of_measured += costs[i];
        of_presumed += presumed[i];
    }
    for (std::size_t i = 0; i < costs.size(); ++i)
        if (is_unseen(found.matrices[i]) && of_presumed > 0)
            costs[i] = std::max(costs[i], presumed[i] * of_measured / of_presumed);
    return costs;
}

[[nodiscard]] std::uint64_t bytes_of(const TensorSpec& spec, Type type) {
    return tensor_bytes(Layout::panels, type, spec.n_rows, spec.n_cols, panel_stride_for(type, spec.n_cols));
}

/// Every type that each matrix may have, without costs.
[[nodiscard]] std::vector<MatrixChoices> choices_of(const ModelSource& source, const Layouts& found) {
    std::vector<MatrixChoices> matrices;
    for (const TensorSpec& spec : found.matrices) {
        matrices.push_back({spec, {}});
        for (const Type type : candidate_types(source, spec))
            matrices.back().choices.push_back({type, bytes_of(spec, type), 0});
    }
    return matrices;
}

[[noreturn]] void refuse(const Budget& budget, const Layouts& found, std::uint64_t least) {
    char line[160];
    if (budget.bytes)
        std::snprintf(line, sizeof line, "--bytes: expected %s or more for this model, got %s",
                      with_separators(found.head_bytes + least).c_str(), with_separators(budget.bytes).c_str());
    else
        std::snprintf(line, sizeof line, "--bits: expected %.3f or more for this model, got %.3f",
                      std::ceil(8000.0 * static_cast<double>(least) / static_cast<double>(found.n_weights)) / 1000,
                      budget.bits);
    throw host::Error(line);
}

/// The bytes that the weights' section may have. Throws host::Error where the smallest choices take more.
[[nodiscard]] double bytes_within(const Budget& budget, const Layouts& found,
                                  const std::vector<MatrixChoices>& matrices) {
    const double wanted = budget.bytes ? static_cast<double>(budget.bytes) - static_cast<double>(found.head_bytes)
                                       : budget.bits * static_cast<double>(found.n_weights) / 8;
    std::uint64_t least = found.fixed_bytes;
    for (const MatrixChoices& matrix : matrices) {
        const auto smaller = [](const Choice& a, const Choice& b) { return a.bytes < b.bytes; };
        least += std::min_element(matrix.choices.begin(), matrix.choices.end(), smaller)->bytes;
    }
    if (wanted < static_cast<double>(least)) refuse(budget, found, least);
    return wanted;
}

}  // namespace

std::vector<std::size_t> least_cost(const std::vector<MatrixChoices>& matrices, std::uint64_t bytes) {
    std::vector<std::size_t> chosen(matrices.size());
    std::uint64_t taken = 0;
    for (const MatrixChoices& matrix : matrices) taken += matrix.choices.front().bytes;
    if (taken > bytes) return {};
    std::vector<TypeStep> steps;
    for (std::size_t i = 0; i < matrices.size(); ++i)
        for (std::size_t to = 1; to < matrices[i].choices.size(); ++to)
            steps.push_back(step_of(matrices, i, to - 1, to));
    std::stable_sort(steps.begin(), steps.end(), [](const TypeStep& a, const TypeStep& b) { return a.gain > b.gain; });
    for (const TypeStep& step : steps) {  // a matrix's own come in their order, for the hull is convex
        if (chosen[step.matrix] + 1 != step.to || step.bytes > bytes - taken) continue;
        chosen[step.matrix] = step.to;
        taken += step.bytes;
    }
    return chosen;
}

void check_budget(const ModelSource& source, WriteOptions write, const Budget& budget, bool with_columns) {
    Calibration columns;
    if (with_columns) {
        columns.stack = calibrated_stack(source);
        columns.columns.resize(1);
        write.calibration = &columns;
    }
    const Layouts found = find_matrices(source, write);
    (void)bytes_within(budget, found, choices_of(source, found));
}

std::vector<ChosenType> choose_types(const ModelSource& source, const WriteOptions& write,
                                     const BudgetOptions& options) {
    const Layouts found = find_matrices(source, write);
    std::vector<MatrixChoices> matrices = choices_of(source, found);
    const double wanted = bytes_within(options.budget, found, matrices);
    const auto losses = relative_losses(source, options.calibration, found.matrices, options.n_threads);
    std::vector<double> costs = presumed_sensitivities(source, found);
    if (options.calibration) costs = measured_sensitivities(source, found, options, costs);
    for (std::size_t i = 0; i < matrices.size(); ++i) {
        std::vector<Choice>& choices = matrices[i].choices;
        for (std::size_t k = 0; k < choices.size(); ++k) choices[k].cost = losses[i][k] * costs[i];
        keep_hull(choices);
    }
    const double most = 0x1p62;
    const auto chosen = least_cost(matrices, static_cast<std::uint64_t>(std::min(wanted, most)) - found.fixed_bytes);
    if (chosen.size() != matrices.size())
        throw host::Error("weights are beyond the range of the smallest types; a larger budget has larger ones");
    std::vector<ChosenType> result;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
        const TensorSpec& spec = matrices[i].spec;
        const Choice& choice = matrices[i].choices[chosen[i]];
        const double n = static_cast<double>(spec.n_rows) * spec.n_cols;
        result.push_back({spec, choice.type, 8 * static_cast<double>(choice.bytes) / n, choice.cost});
    }
    return result;
}

MatrixTypes types_of(const std::vector<ChosenType>& chosen) {
    MatrixTypes types;
    for (const ChosenType& each : chosen) types[key_of(each.spec)] = each.type;
    return types;
}

}  // namespace fovea
