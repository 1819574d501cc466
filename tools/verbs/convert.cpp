// fovea convert: a model in another format becomes one flat file.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "convert/open/convert.h"
#include "fovea/host/opened.h"
#include "host/base/json.h"
#include "host/base/output_file.h"
#include "host/base/text_file.h"
#include "host/base/words.h"
#include "tools/options/options.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

struct Arguments {
    CommonOptions common;
    std::string source, output, tokenizer, config, calibrate, base;
    std::vector<ScaledPath> loras;
    Type type = Type::f32;
    bool has_type = false, has_bits = false, has_bytes = false, keeps_columns = false;
    float bits = 0;
    std::uint64_t bytes = 0;

    [[nodiscard]] bool has_budget() const { return has_bits || has_bytes; }
};

/// Instead of a file: a text that the model writes.
constexpr const char* kOwnText = "self";

/// What a budget made of each matrix: lines on stdout, or for --json.
struct Choices {
    Json matrices = Json::array();
    bool calibrated = false, json = false;

    /// What a cost is counted in.
    [[nodiscard]] const char* cost_of(const std::vector<ChosenType>& chosen) const {
        if (!calibrated) return "cost, presumed";
        const bool vectors = !chosen.empty() && chosen[0].spec.stack == StackIndex::encoder;
        return vectors ? "cost, 1 - cosine" : "cost, nats a token";
    }

    void take(const std::vector<ChosenType>& chosen) {
        if (!json) std::printf("%-16s %5s  %-7s %6s  %s\n", "matrix", "layer", "type", "bits", cost_of(chosen));
        for (const ChosenType& each : chosen) {
            const char* role = role_name(static_cast<std::uint16_t>(each.spec.role));
            if (json)
                matrices.push_back({{"role", role},
                                    {"layer", each.spec.layer},
                                    {"type", type_name(each.type)},
                                    {"bits", each.bits},
                                    {"cost", each.cost}});
            else
                std::printf("%-16s %5u  %-7s %6.3f  %.3g\n", role, each.spec.layer, type_name(each.type), each.bits,
                            each.cost);
        }
    }
};

/// What quantizing lost of each tensor, for one line on stderr and for --json.
struct Losses {
    Json tensors = Json::array();
    double sum = 0, most = 0;
    std::string worst;

    void add(const TensorSpec& spec, Type type, double relative_error) {
        const std::string role = role_name(static_cast<std::uint16_t>(spec.role));
        tensors.push_back(
            {{"role", role}, {"layer", spec.layer}, {"type", type_name(type)}, {"relative_error", relative_error}});
        sum += relative_error;
        if (relative_error < most) return;
        most = relative_error;
        worst = std::string(type_name(type)) + " " + role + " of layer " + std::to_string(spec.layer);
    }
    void print() const {
        if (tensors.empty()) return;
        if (most == 0) {
            std::fprintf(stderr, "%zu quantized tensors kept, without a loss\n", tensors.size());
            return;
        }
        std::fprintf(stderr, "%zu tensors quantized: relative error %.5f on average, %.5f at most (%s)\n",
                     tensors.size(), sum / static_cast<double>(tensors.size()), most, worst.c_str());
    }
};

/// How far a calibration scaled the columns of inputs.
struct TableColumns {
    std::size_t n_inputs = 0;
    float least = 1, most = 1;

    void take(const Calibration& calibration) {
        for (const std::vector<float>& input : calibration.columns) {
            n_inputs += !input.empty();
            for (const float scale : input) least = std::min(least, scale), most = std::max(most, scale);
        }
    }
    [[nodiscard]] Json to_json() const { return {{"inputs", n_inputs}, {"least", least}, {"most", most}}; }
    void print() const {
        if (n_inputs)
            std::fprintf(stderr, "columns of %zu inputs scaled by powers of two, 1/%g to %g\n", n_inputs,
                         1 / static_cast<double>(least), static_cast<double>(most));
    }
};

void convert_as_asked(Arguments& arguments) {
    if (arguments.source.empty()) throw UsageError("SOURCE: expected a model to convert, got none");
    if (arguments.output.empty()) throw UsageError("-o: expected the file to write, got none");
    if (arguments.output == "-") throw UsageError("-o: expected a file's name, got -");
    settle(arguments.common);
    ConvertOptions options;
    options.source = arguments.source;
    options.output = arguments.output;
    options.tokenizer = arguments.tokenizer;
    options.config = arguments.config;
    options.base = arguments.base;
    for (const ScaledPath& lora : arguments.loras) options.loras.push_back({lora.path, lora.scale});
    if (arguments.has_type) options.type = arguments.type;
    options.n_threads = arguments.common.n_threads;
    if (arguments.has_type + arguments.has_bits + arguments.has_bytes > 1)
        throw UsageError("--type, --bits, --bytes: expected one of them, got several");
    if (arguments.has_budget()) options.budget = {arguments.bits, arguments.bytes};
    if (!arguments.calibrate.empty()) {
        if (!arguments.has_budget() && (!arguments.has_type || !is_quantized(arguments.type)))
            throw UsageError("--calibrate: expected a quantized --type, --bits or --bytes beside it, got none");
        options.calibrates_itself = arguments.calibrate == kOwnText;
        if (!options.calibrates_itself) options.calibration_text = read_text_file(arguments.calibrate);
        options.writing_text = progress_line("writing a text to read");
        options.calibrating =
            progress_line(options.calibrates_itself ? "reading it" : "reading " + arguments.calibrate);
    } else if (arguments.keeps_columns) {
        throw UsageError("--no-column-scales: expected --calibrate beside it, got none");
    }
    options.column_scales = !arguments.keeps_columns;
    TableColumns columns;
    options.calibrated = [&](const Calibration& calibration) { columns.take(calibration); };
    Losses losses;
    options.quantized = [&](const TensorSpec& spec, Type type, double error) { losses.add(spec, type, error); };
    Choices choices{.calibrated = !arguments.calibrate.empty(), .json = arguments.common.json};
    options.chosen = [&](const std::vector<ChosenType>& chosen) { choices.take(chosen); };
    options.measuring = progress_line("measuring matrices");
    bool lacks_tokenizer = false;
    options.lacks_tokenizer = [&] { lacks_tokenizer = true; };
    options.progress = progress_line("writing " + arguments.output);
    convert_source(options);
    if (arguments.common.json) {
        Json object{{"file", arguments.output},
                    {"file_bytes", std::filesystem::file_size(options.output)},
                    {"quantized", losses.tensors}};
        if (columns.n_inputs) object["column_scales"] = columns.to_json();
        if (arguments.has_budget()) object["chosen"] = choices.matrices;
        std::printf("%s\n", json_text(object).c_str());
    }
    flush_output();
    columns.print();
    losses.print();
    if (lacks_tokenizer)
        std::fprintf(stderr, "note: %s: no tokenizer was found beside it: the model takes ids (--tokens), not text\n",
                     arguments.source.c_str());
}

}  // namespace

void add_convert(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App& verb =
        add_verb(app, "convert", "Turn a Hugging Face folder, a GGUF file or a llama2.c checkpoint into a Fovea file");
    add_argument(verb, "SOURCE", arguments->source,
                 "a folder with config.json, a .safetensors, a GGUF, a llama2.c or a Fovea file");
    add_text(verb, "-o,--output", arguments->output, "the file to write").type_name("FILE");
    const Option type =
        add_type(verb, "--type", arguments->type, {std::begin(kTypes), std::end(kTypes)},
                 "of the weights (default: the source's): " + type_names({std::begin(kTypes), std::end(kTypes)}));
    const Option bits = add_real(
        verb, "--bits", arguments->bits, 1, 32,
        "of a weight on average: each matrix gets the type that loses least within them; best with --calibrate");
    const Option bytes = add_size(verb, "--bytes", arguments->bytes, "the same for the whole file: 90M");
    add_text(verb, "--tokenizer", arguments->tokenizer,
             "a tokenizer.json, vocab.txt, vocab.json or tokenizer.bin (default: beside the model)")
        .type_name("PATH");
    add_text(verb, "--config", arguments->config, "a config.json (default: beside the model)").type_name("PATH");
    add_scaled_paths(verb, "--lora", arguments->loras,
                     "a PEFT adapter's folder, merged into the weights; maybe several, each maybe with a scale");
    add_text(verb, "--base", arguments->base,
             "SOURCE is a PEFT adapter's folder, and this the model's: makes a file for run --lora")
        .type_name("FOLDER");
    add_text(
        verb, "--calibrate", arguments->calibrate,
        "quantize so that outputs change least on a text like this one (its first 8,192 tokens); self: on one that "
        "the model writes")
        .type_name("FILE|self");
    add_flag(verb, "--no-column-scales", arguments->keeps_columns,
             "with --calibrate: leave the columns of inputs as they are, for firmware without that part");
    add_common(verb, arguments->common);
    set_action(verb, [arguments, type, bits, bytes] {
        arguments->has_type = type.count() > 0;
        arguments->has_bits = bits.count() > 0;
        arguments->has_bytes = bytes.count() > 0;
        convert_as_asked(*arguments);
    });
}

}  // namespace fovea
