#include "convert/open/convert.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "convert/calibrate/calibration.h"
#include "convert/families/heads.h"
#include "convert/formats/safetensors.h"
#include "convert/formats/torch_pickle.h"
#include "convert/sources/chat_info.h"
#include "convert/sources/fovea_file.h"
#include "convert/sources/gguf_model.h"
#include "convert/sources/hf_config.h"
#include "convert/sources/hf_model.h"
#include "convert/sources/hf_prompts.h"
#include "convert/sources/hf_texts.h"
#include "convert/sources/llama2c.h"
#include "convert/sources/lora.h"
#include "convert/sources/lora_file.h"
#include "convert/sources/text_part.h"
#include "convert/sources/torch_module.h"
#include "convert/sources/whisper.h"
#include "convert/tokenizers/numbered_pieces.h"
#include "convert/tokenizers/tokenizer_file.h"
#include "convert/tokenizers/vocab_json.h"
#include "convert/writer/writer.h"
#include "host/base/error.h"
#include "host/base/source_file.h"
#include "host/base/words.h"
#include "host/model/stacks.h"

namespace fovea {
namespace {

/// What column scales are chosen for where a budget chooses types: four bits or so.
constexpr Type kBudgetColumns = Type::q4_k;

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error);
}

/// Adds the tokenizer the caller named, else the first of `beside` that is there, else none.
void add_tokenizer(const fs::path& named, std::initializer_list<fs::path> beside, const TokenizerFacts& facts,
                   ModelSource& source) {
    fs::path path = named;
    for (const fs::path& candidate : beside)
        if (path.empty() && is_there(candidate)) path = candidate;
    if (path.empty()) return;
    source.tokenizer = tokenizer_section_from_file(path, facts, source.notes);
}

[[nodiscard]] bool is_distance(Position position) {
    return position == Position::relative || position == Position::disentangled;
}

/// How long texts may be. Positions that are distances have no end of their own: a module may give one.
void set_text_limit(const TextSettings& settings, HfConfig& config) {
    Stack& stack = config.stack();
    const std::uint32_t limit = settings.most_tokens;
    const bool any_length = stack.position == Position::none && is_distance(stack.blocks[0].position);
    constexpr std::uint32_t kMostRows = 1u << 16;
    if (limit > stack.max_positions && any_length && settings.module_says)
        stack.max_positions = std::min(limit, kMostRows);
    if (limit && limit <= stack.max_positions) config.source.info.emplace_back("max_seq_length", std::to_string(limit));
}

/// A CrossEncoder says beside config.json how its logits become scores.
void read_score_function(const fs::path& folder, HfConfig& config) {
    if (!is_there(folder / "config_sentence_transformers.json")) return;
    const Fields fields = Fields::read(folder / "config_sentence_transformers.json");
    if (!fields.text_or("default_prompt_name", "").empty())
        config.source.notes.push_back(fields.place() + ": default_prompt_name: no prompt is put before pairs");
    if (const char* scores = scores_of_activation(fields, "activation_fn"))
        for (auto& [key, value] : config.source.info)
            if (key == "scores") value = scores;
}

/// What sentence-transformers adds to an encoder, into its stack. Without a Pooling it is a CrossEncoder, whose head is the
/// model's own.
void add_modules(SentenceModules modules, const fs::path& given, const fs::path& folder, HfConfig& config) {
    if (modules.pooling == Pooling::none) return read_score_function(folder, config);
    add_prompts(given, config.source);
    Stack& stack = config.stack();
    stack.pooling = modules.pooling;
    stack.normalize_pooled = modules.normalize;
    std::copy(modules.maps.begin(), modules.maps.end(), stack.head.begin());
    config.map_files = std::move(modules.map_files);
}

/// An adapter as a file of its own, by the names and the shape of the model that `options.base` is.
ModelSource read_adapter(const ConvertOptions& options) {
    if (!options.loras.empty()) throw host::ArgumentError("--lora, --base: expected one of them, got both");
    if (options.calibration_text || options.calibrates_itself || options.budget ||
        (options.type && is_quantized(*options.type)))
        throw host::ArgumentError("--base: expected --type f32, f16 or bf16 for an adapter, got a quantized one");
    const fs::path config_path = options.config.empty() ? options.base / "config.json" : options.config;
    HfConfig config = read_hf_config(config_path, {}), of_model = read_hf_config(config_path, {});
    if (config.source.config.encoder.n_layers && config.source.config.decoder.n_layers)
        Fields::read(config_path).refuse("model_type", "a model of one stack for --base");
    const bool is_text_part = config.is_text_part;
    const auto weights = [&](const std::optional<Quantization>& quantization) {
        Safetensors files = read_weights_folder(options.base);
        if (quantization) quantization->unpack(files);
        if (is_text_part) keep_text_part(files);
        return files;
    };
    Safetensors names = weights(config.quantization), whole = weights(config.quantization);
    config.stack().adapter_base = vectors_checksum(join_hf_model(std::move(of_model), std::move(whole)));
    return join_lora(std::move(config), std::move(names), read_lora_folder(options.source));
}

/// A model of two stacks that writes down what it hears, with its tokenizer.
ModelSource read_speech(const ConvertOptions& options, const Fields& fields, const fs::path& folder,
                        Safetensors weights) {
    ModelSource source = read_whisper(fields, folder, std::move(weights));
    TokenizerFacts facts{.vocab_size = source.config.decoder.vocab_size};
    if (fields.has("eos_token_id")) facts.eos.push_back(fields.count("eos_token_id", 0, facts.vocab_size - 1));
    add_tokenizer(options.tokenizer, {folder / "tokenizer.json"}, facts, source);
    return source;
}

/// `arrays`: the weights, where the caller has them; else they are read beside the configuration.
ModelSource read_hf(const ConvertOptions& options, const fs::path& given, bool single_file,
                    Safetensors* arrays = nullptr) {
    const bool has_modules = is_there(given / "modules.json");
    SentenceModules modules;  // what sentence-transformers adds to an encoder
    if (has_modules) modules = read_sentence_modules(given / "modules.json");
    const fs::path folder = has_modules ? given / modules.encoder : given;
    const fs::path config_path = options.config.empty() ? folder / "config.json" : options.config;
    const auto weights = [&](const std::optional<Quantization>& quantization) {
        Safetensors files = arrays        ? std::move(*arrays)
                            : single_file ? read_safetensors_file(options.source)
                                          : read_weights_folder(folder);
        if (quantization) quantization->unpack(files);
        for (const ScaledAdapter& lora : options.loras) add_lora(read_lora_folder(lora.folder), lora.scale, files);
        return files;
    };
    const Fields fields = Fields::read(config_path);
    const std::string type = fields.text("model_type");
    const bool hears = type == kWhisperType;
    if (is_torch_module(type) && !options.loras.empty())
        fields.refuse("model_type", "a model of transformers, whose modules --lora names");
    if (hears && !options.loras.empty()) fields.refuse("model_type", "a model of one stack for --lora");
    if (is_torch_module(type)) return read_torch_module(fields, weights({}));
    if (hears) return read_speech(options, fields, folder, weights({}));
    HfConfig config = read_hf_config(config_path, folder / "generation_config.json", modules.pooling != Pooling::none);
    if (has_modules && config.stack_index() != StackIndex::encoder)
        throw host::Error((given / "modules.json").string() + ": expected a Pooling behind a decoder, got none");
    if (has_modules) add_modules(std::move(modules), given, folder, config);
    TokenizerFacts facts = {config.stack().vocab_size, config.bos, config.eos};
    if (config.stack_index() == StackIndex::encoder) {
        const TextSettings settings = read_text_settings(folder);
        set_text_limit(settings, config);
        config.source.notes.insert(config.source.notes.end(), settings.notes.begin(), settings.notes.end());
        facts.lower_case = settings.lower_case, facts.has_token_types = settings.has_token_types;
        facts.adds_bos = settings.adds_bos, facts.adds_eos = settings.adds_eos;
        facts.appends_eos = settings.appends_eos;
        facts.left_out_last = config.unpooled;
    }
    Safetensors files = weights(config.quantization);
    if (config.is_text_part) keep_text_part(files);
    ModelSource source = join_hf_model(std::move(config), std::move(files));
    add_chat_info(folder, source);
    add_tokenizer(
        options.tokenizer,
        {folder / "tokenizer.json", folder / "vocab.txt", folder / "tokenizer.model", folder / "tokenizer.bin",
         reads_vocab_json(folder) || !numbered_pieces(folder).empty() ? folder / "vocab.json" : fs::path()},
        facts, source);
    if (const fs::path pieces = folder / "spm.model"; source.tokenizer.empty() && is_there(pieces))
        source.notes.push_back(
            pieces.string() +
            ": not read, and there is no tokenizer.json; AutoTokenizer and save_pretrained write one");
    return source;
}

bool starts_with(std::span<const std::byte> bytes, const void* prefix, std::size_t n) {
    return bytes.size() >= n && std::memcmp(bytes.data(), prefix, n) == 0;
}

ModelSource read_file(const ConvertOptions& options) {
    if (options.source.extension() == ".safetensors") return read_hf(options, options.source.parent_path(), true);
    if (options.source.extension() == ".json" && is_there(options.source)) {
        const fs::path folder = options.source.has_parent_path() ? options.source.parent_path() : fs::path(".");
        throw host::Error(options.source.string() +
                          ": expected the folder that it is in, or a file of weights, got a .json file; give " +
                          folder.string());
    }
    if (!options.loras.empty())
        throw host::ArgumentError(options.source.string() +
                                  ": --lora: expected a Hugging Face source, got another kind");
    if (!options.config.empty())
        throw host::ArgumentError(options.source.string() +
                                  ": --config: expected a Hugging Face source, got another kind");
    Mapping mapping = map_source(options.source);
    const auto bytes = mapping.bytes();
    if (bytes.empty()) throw host::Error(options.source.string() + ": expected a model, got an empty file");
    if (starts_with(bytes, "GGUF", 4)) {
        ModelSource source = read_gguf(options.source, std::move(mapping), options.tokenizer.empty());
        add_tokenizer(options.tokenizer, {}, {output_stack(source.config).vocab_size, {}, {}}, source);
        return source;
    }
    if (starts_with(bytes, kMagic, sizeof kMagic)) {
        ModelSource source = read_fovea_file(options.source, std::move(mapping));
        add_tokenizer(options.tokenizer, {}, {output_stack(source.config).vocab_size, {}, {}}, source);
        return source;
    }
    ModelSource source = read_llama2c(options.source, std::move(mapping));
    add_tokenizer(options.tokenizer, {options.source.parent_path() / "tokenizer.bin"},
                  {source.config.decoder.vocab_size, {}, {}}, source);
    return source;
}

}  // namespace

namespace {

/// What is there already is replaced where it is a Fovea file that is not read, or empty: another kind is somebody's.
void check_output(const ConvertOptions& options) {
    std::error_code error;
    if (!fs::is_regular_file(options.output, error)) return;
    if (fs::equivalent(options.source, options.output, error))
        throw host::Error("-o: expected another file than what is read, got " + options.output.string());
    char start[sizeof kMagic] = {};
    std::ifstream file(options.output, std::ios::binary);
    file.read(start, sizeof start);
    if (file.gcount() && std::memcmp(start, kMagic, std::min<std::size_t>(sizeof kMagic, file.gcount())) != 0)
        throw host::Error("-o: expected a new file, or a Fovea file to replace, got another kind: " +
                          options.output.string());
}

ModelSource with_origin(ModelSource source) {
    const auto add_once = [&](const char* key, const std::string& value) {
        const auto is_key = [&](const auto& entry) { return entry.first == key; };
        if (std::none_of(source.info.begin(), source.info.end(), is_key)) source.info.emplace_back(key, value);
    };
    add_once("source_type", type_name(source.type));
    add_once("converter", "fovea convert, format " + std::to_string(kFormatMajor) + "." + std::to_string(kFormatMinor));
    return source;
}

}  // namespace

ModelSource read_source(const ConvertOptions& options) {
    std::error_code error;
    check_output(options);
    if (!options.base.empty()) return with_origin(read_adapter(options));
    if (is_there(options.source / "adapter_config.json") && !is_there(options.source / "config.json"))
        throw host::Error(options.source.string() +
                          ": expected a model, got an adapter of one; --base MODEL makes a file of it, "
                          "and convert MODEL --lora merges it");
    return with_origin(fs::is_directory(options.source, error) ? read_hf(options, options.source, false)
                                                               : read_file(options));
}

ModelSource read_source(const ConvertOptions& options, Safetensors weights) {
    check_output(options);
    return with_origin(read_hf(options, options.source, false, &weights));
}

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
        if (options.column_scales) how.columns_for = options.budget ? kBudgetColumns : write.type;
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
