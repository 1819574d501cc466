// fovea convert: a model in another format becomes one flat file.
#include <filesystem>

#include "convert/open/convert.h"
#include "convert/open/shards.h"
#include "fovea/host/opened.h"
#include "host/base/json.h"
#include "host/base/output_file.h"
#include "host/base/text_file.h"
#include "tools/options/ranks.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct Arguments {
    CommonOptions common;
    std::string source, output, tokenizer, config, calibrate, base;
    std::vector<ScaledPath> loras;
    bool keeps_columns = false, reranker = false, sparse = false, colbert = false, mtp = false;
    std::optional<Type> type;
    std::optional<float> bits;
    std::uint32_t n_ranks = 0;  ///< 0: it is not cut up
    std::uint32_t n_stages = 1;
    std::string shares;
    std::optional<std::uint64_t> bytes;

    [[nodiscard]] bool has_budget() const { return bits || bytes; }
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

/// How far a calibration scaled the columns of inputs, and how many it left unquantized.
struct TableColumns {
    std::size_t n_inputs = 0, n_outliers = 0;
    float least = 1, most = 1;

    void take(const Calibration& calibration) {
        for (const std::vector<float>& input : calibration.columns) take(input);
        take(calibration.head_columns);
    }
    void take(const std::vector<float>& input) {
        n_inputs += !input.empty();
        for (const float scale : input)
            if (scale == 0)
                ++n_outliers;
            else
                least = std::min(least, scale), most = std::max(most, scale);
    }
    [[nodiscard]] Json to_json() const {
        return {{"inputs", n_inputs}, {"least", least}, {"most", most}, {"outliers", n_outliers}};
    }
    void print() const {
        if (n_outliers)
            std::fprintf(stderr, "%zu outlier columns of %zu inputs are not quantized\n", n_outliers, n_inputs);
        else if (n_inputs)
            std::fprintf(stderr, "columns of %zu inputs scaled by powers of two, 1/%g to %g\n", n_inputs,
                         1 / static_cast<double>(least), static_cast<double>(most));
    }
};

/// A Fovea file becomes a part for each rank.
void cut_up(const Arguments& arguments) {
    if (!arguments.n_ranks) throw UsageError("--shares, --stages: expected --shard with them, got none");
    if (const char* other = first_given(
            {{arguments.type || arguments.has_budget(), "a type of weights"},
             {!arguments.tokenizer.empty(), "--tokenizer"},
             {!arguments.config.empty(), "--config"},
             {!arguments.loras.empty(), "--lora"},
             {!arguments.base.empty(), "--base"},
             {!arguments.calibrate.empty(), "--calibrate"},
             {arguments.mtp || arguments.sparse || arguments.colbert || arguments.reranker, "a kind of model"}}))
        throw UsageError(std::string("--shard: expected a Fovea file that is cut up as it is, got ") + other);
    const host::RankShares shares = read_shares(arguments.shares, arguments.n_stages, arguments.n_ranks);
    if (shares.by_speed) throw UsageError("--shares: expected numbers, got speed, which a file does not know");
    const host::Opened whole = host::open_file(arguments.source);
    const RankSplit split{shares.each.empty() ? nullptr : shares.each.data(), shares.n_stages};
    const std::vector<std::string> paths =
        write_shards(whole, split, arguments.n_ranks, arguments.output, progress_line("writing " + arguments.output));
    Json files = Json::array();
    for (const std::string& path : paths)
        files.push_back({{"file", path}, {"file_bytes", std::filesystem::file_size(path)}});
    if (arguments.common.json) print_line({{"files", files}});
}

void convert_as_asked(Arguments& arguments) {
    if (arguments.source.empty()) throw UsageError("SOURCE: expected a model to convert, got none");
    if (arguments.output.empty()) throw UsageError("-o: expected the file to write, got none");
    if (arguments.output == "-") throw UsageError("-o: expected a file's name, got -");
    settle(arguments.common);
    if (arguments.n_ranks || !arguments.shares.empty() || arguments.n_stages > 1) return cut_up(arguments);
    ConvertOptions options{.source = arguments.source,
                           .output = arguments.output,
                           .type = arguments.type,
                           .tokenizer = arguments.tokenizer,
                           .config = arguments.config,
                           .base = arguments.base,
                           .sparse = arguments.sparse,
                           .colbert = arguments.colbert,
                           .mtp = arguments.mtp,
                           .reranker = arguments.reranker,
                           .column_scales = !arguments.keeps_columns,
                           .n_threads = arguments.common.n_threads,
                           .progress = progress_line("writing " + arguments.output),
                           .measuring = progress_line("measuring matrices")};
    for (const ScaledPath& lora : arguments.loras) options.loras.push_back({lora.path, lora.scale});
    if (arguments.type.has_value() + arguments.bits.has_value() + arguments.bytes.has_value() > 1)
        throw UsageError("--type, --bits, --bytes: expected one of them, got several");
    if (arguments.has_budget()) options.budget = {arguments.bits.value_or(0), arguments.bytes.value_or(0)};
    if (!arguments.calibrate.empty()) {
        if (arguments.type && !is_quantized(*arguments.type))
            throw UsageError("--calibrate: expected a quantized --type, --bits or --bytes beside it, got none");
        options.calibrates_itself = arguments.calibrate == kOwnText;
        if (!options.calibrates_itself) options.calibration_text = read_text_file(arguments.calibrate);
        options.writing_text = progress_line("writing a text to read");
        options.calibrating =
            progress_line(options.calibrates_itself ? "reading it" : "reading " + arguments.calibrate);
    } else if (arguments.keeps_columns) {
        throw UsageError("--no-column-scales: expected --calibrate beside it, got none");
    }
    TableColumns columns;
    options.calibrated = [&](const Calibration& calibration) { columns.take(calibration); };
    Losses losses;
    options.quantized = [&](const TensorSpec& spec, Type type, double error) { losses.add(spec, type, error); };
    Choices choices{.calibrated = !arguments.calibrate.empty(), .json = arguments.common.json};
    options.chosen = [&](const std::vector<ChosenType>& chosen) { choices.take(chosen); };
    bool lacks_tokenizer = false;
    options.lacks_tokenizer = [&] { lacks_tokenizer = true; };
    convert_source(options);
    if (arguments.common.json) {
        Json object{{"file", arguments.output},
                    {"file_bytes", std::filesystem::file_size(options.output)},
                    {"quantized", losses.tensors}};
        if (columns.n_inputs) object["column_scales"] = columns.to_json();
        if (arguments.has_budget()) object["chosen"] = choices.matrices;
        print_line(object);
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
    const auto declare = [](const Verb& verb, Arguments& o) {
        verb.input_argument("SOURCE", o.source,
                            "a folder with config.json, a .safetensors, a GGUF, a llama2.c or a Fovea file");
        verb.output("-o,--output", o.output, "the file to write");
        verb.weight_type(o.type, "the weights (default: the source's)");
        verb.real(
            "--bits", o.bits, 1, 32,
            "of a weight on average: each matrix gets the type that loses least within them; best with --calibrate");
        verb.size("--bytes", o.bytes, "the same for the whole file: 90M");
        verb.input("--tokenizer", o.tokenizer,
                   "a tokenizer.json, vocab.txt, vocab.json or tokenizer.bin (default: beside the model)", "PATH");
        verb.input("--config", o.config, "a config.json (default: beside the model)", "PATH");
        verb.scaled_paths(
            "--lora", o.loras,
            "an adapter merged into the weights, a PEFT folder or of a GGUF SOURCE a GGUF file; maybe several, "
            "each maybe with a scale");
        verb.input(
            "--base", o.base,
            "SOURCE is an adapter, a PEFT folder or a GGUF file, and this its model: makes a file for run --lora",
            "PATH");
        verb.count("--shard", o.n_ranks, 2, kMaxRanks,
                   "cut up SOURCE, a Fovea file: what each of so many ranks reads, in files that end in .0of2, .1of2");
        verb.text("--shares", o.shares, "with --shard: parts of the work for each, such as 3,1 (default: even)",
                  "LIST");
        verb.count("--stages", o.n_stages, 1, kMaxRanks, "with --shard: in so many stages, a run of layers in each");
        verb.flag("--mtp", o.mtp, "the next-token head (multi-token prediction) alone, a --draft of SOURCE's model");
        verb.flag("--sparse", o.sparse, "sparse vectors, by the head in SOURCE's sparse_linear.pt (bge-m3)");
        verb.flag("--colbert", o.colbert,
                  "vectors of tokens for late interaction, by the head in SOURCE's colbert_linear.pt (bge-m3)");
        verb.flag("--reranker", o.reranker,
                  "SOURCE scores pairs as Qwen3-Reranker does, and its folder does not say so");
        verb.input(
            "--calibrate", o.calibrate,
            "quantize so that outputs change least on a text like this one (its first 8,192 tokens); self: on one "
            "that the model writes. Without --type, of a source of quants, only inputs are quantized better",
            "FILE|self");
        verb.flag("--no-column-scales", o.keeps_columns,
                  "with --calibrate: leave the columns of inputs as they are, for firmware without that part");
        verb.common(o.common);
    };
    add_verb<Arguments>(app, "convert",
                        "Turn a Hugging Face folder, a GGUF file or a llama2.c checkpoint into a Fovea file",
                        convert_as_asked, declare);
}

}  // namespace fovea
