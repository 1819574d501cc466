#include "convert/open/convert.h"

#include <cstdio>

#include "convert/calibrate/calibration.h"
#include "host/base/error.h"
#include "host/model/stacks.h"

namespace fovea {
namespace {

/// What column scales are chosen for where a budget chooses types: four bits or so.
constexpr Type kBudgetColumns = Type::q4_k;

}  // namespace

WriteOptions write_options(const ConvertOptions& options, const ModelSource& source) {
    WriteOptions write;
    write.type = options.budget ? Type::q8 : options.type.value_or(source.type);
    write.as_source = !options.type && !options.budget;
    write.exact_tables = write.as_source && source.exact_tables;
    write.n_threads = options.n_threads;
    write.progress = options.progress;
    write.quantized = options.quantized;
    return write;
}

void convert_source(const ConvertOptions& options) {
    const ModelSource source = read_source(options);
    const bool is_adapter = source.config.encoder.adapter_rank || source.config.decoder.adapter_rank;
    if (is_adapter && (options.budget || is_quantized(options.type.value_or(source.type))))
        throw host::ArgumentError("--type: expected f32, f16 or bf16 for an adapter, got a quantized one");
    for (const std::string& note : source.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
    WriteOptions write = write_options(options, source);
    const bool calibrates = options.calibration_text || options.calibrates_itself;
    if (calibrates && write.as_source && !is_quantized(source.type))
        throw host::ArgumentError(
            "--calibrate: expected a quantized --type, --bits or --bytes beside it, or a quantized source, got none");
    if (calibrates) check_calibrated(source);
    if (options.budget)  // before the minutes that a calibration takes
        check_budget(source, write, *options.budget, calibrates && options.column_scales);
    Calibration calibration;
    Texts texts;
    if (calibrates) {
        texts = options.calibration_text
                    ? texts_of(source, *options.calibration_text, kCalibrationTokens)
                    : own_texts(source, kCalibrationTokens, options.n_threads, options.writing_text);
        CalibrationOptions how{.n_threads = options.n_threads, .progress = options.calibrating};
        how.outliers = write.as_source;
        if (options.column_scales && !how.outliers) how.columns_for = options.budget ? kBudgetColumns : write.type;
        calibration = calibrate(source, texts, how);
        write.calibration = &calibration;
        if (options.calibrated) options.calibrated(calibration);
    }
    MatrixTypes types;
    if (options.budget) {
        const std::vector<ChosenType> chosen = choose_types(source, write,
                                                            {.budget = *options.budget,
                                                             .calibration = write.calibration,
                                                             .texts = &texts,
                                                             .n_threads = options.n_threads,
                                                             .progress = options.measuring});
        if (options.chosen) options.chosen(chosen);
        types = types_of(chosen);
        write.types = &types;
    }
    write_file(source, options.output, write);
    if (options.lacks_tokenizer && source.tokenizer.empty() && output_stack(source.config).vocab_size &&
        options.base.empty())
        options.lacks_tokenizer();
}

}  // namespace fovea
