// What kind of source it is that options name, and the model that it is.
#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "convert/families/heads.h"
#include "convert/formats/ggml_whisper.h"
#include "convert/formats/safetensors.h"
#include "convert/formats/text_file.h"
#include "convert/formats/torch_pickle.h"
#include "convert/open/convert.h"
#include "convert/open/foreign.h"
#include "convert/open/hub_cache.h"
#include "convert/open/late_heads.h"
#include "convert/open/other_heads.h"
#include "convert/open/pair_template.h"
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
#include "convert/sources/next_head.h"
#include "convert/sources/source_names.h"
#include "convert/sources/text_part.h"
#include "convert/sources/torch_module.h"
#include "convert/sources/whisper.h"
#include "convert/sources/whisper_file.h"
#include "convert/tokenizers/numbered_pieces.h"
#include "convert/tokenizers/tokenizer_file.h"
#include "convert/tokenizers/vocab_json.h"
#include "host/base/error.h"
#include "host/base/source_file.h"
#include "host/base/words.h"
#include "host/model/stacks.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// Adds the tokenizer the caller named, else the first of `beside` that is there, else none.
void add_tokenizer(const fs::path& named, std::initializer_list<fs::path> beside, const TokenizerFacts& facts,
                   ModelSource& source) {
    fs::path path = named;
    for (const fs::path& candidate : beside)
        if (path.empty() && is_there(candidate)) path = candidate;
    if (path.empty()) return;
    source.tokenizer = tokenizer_section_from_file(path, facts, source.notes);
}

/// The same of a folder of transformers'.
void add_tokenizer_of(const fs::path& folder, const fs::path& named, const TokenizerFacts& facts, ModelSource& source) {
    const bool has_vocabulary = reads_vocab_json(folder) || !numbered_pieces(folder).empty();
    add_tokenizer(named,
                  {folder / "tokenizer.json", folder / "vocab.txt", folder / "tokenizer.model",
                   folder / "tokenizer.bin", has_vocabulary ? folder / "vocab.json" : fs::path()},
                  facts, source);
}

[[nodiscard]] bool is_distance(Position position) {
    return position == Position::relative || position == Position::disentangled;
}

/// How long texts may be. Positions that are distances have no end of their own: a module may give one.
void set_text_limit(const TextSettings& settings, HfConfig& config) {
    Stack& stack = config.stack();
    const std::uint32_t limit = settings.most_tokens;
    const bool any_length = stack.position == Position::none && is_distance(stack.blocks[0].attention.position);
    constexpr std::uint32_t kMostRows = 1u << 16;
    if (limit > stack.max_positions && any_length && settings.module_says)
        stack.max_positions = std::min(limit, kMostRows);
    if (limit && limit <= stack.max_positions) config.source.info.emplace_back("max_seq_length", std::to_string(limit));
}

/// Leaves room in the longest text for tokens of the template that are left out: transformers cuts texts with them there.
void lower_text_limit(std::uint32_t n, ModelSource& source) {
    const auto is_limit = [](const auto& entry) { return entry.first == "max_seq_length"; };
    const auto found = std::find_if(source.info.begin(), source.info.end(), is_limit);
    const std::uint32_t limit = found == source.info.end() ? source.config.encoder.max_positions
                                                           : static_cast<std::uint32_t>(std::stoul(found->second));
    if (found != source.info.end()) source.info.erase(found);
    source.info.emplace_back("max_seq_length", std::to_string(limit > n ? limit - n : 1));
}

/// A CrossEncoder says beside config.json how its logits become scores.
void read_score_function(const fs::path& folder, bool messages, HfConfig& config) {
    if (messages) add_prompts(folder, "CrossEncoder", config.source);
    if (!is_there(folder / "config_sentence_transformers.json")) return;
    const Fields fields = Fields::read(folder / "config_sentence_transformers.json");
    if (!messages && !fields.text_or("default_prompt_name", "").empty())
        config.source.notes.push_back(fields.place() + ": default_prompt_name: no prompt is put before pairs");
    if (const char* scores = scores_of_activation(fields, "activation_fn"))
        for (auto& [key, value] : config.source.info)
            if (key == "scores") value = scores;
}

/// What sentence-transformers adds to an encoder, into its stack. Without a Pooling it is a CrossEncoder, whose head is the
/// model's own.
void add_modules(SentenceModules modules, const fs::path& given, bool messages, HfConfig& config) {
    if (!modules.sparse.empty()) return use_as_sparse(modules.sparse, given, config);
    if (modules.is_late) {
        const fs::path folder = given / modules.encoder;
        return use_late_interaction(given, folder, std::move(modules), config);
    }
    if (modules.pooling == Pooling::none) return read_score_function(given, messages, config);
    if (messages)
        throw host::Error(given.string() +
                          ": modality_config: message: expected texts as they are before a Pooling, got messages");
    add_prompts(given, "SentenceTransformer", config.source);
    Stack& stack = config.stack();
    stack.pooling = modules.pooling;
    stack.normalize_pooled = modules.normalize;
    std::copy(modules.maps.begin(), modules.maps.end(), stack.head.begin());
    config.map_files = std::move(modules.map_files);
}

std::string_view magic() { return {reinterpret_cast<const char*>(kMagic), sizeof kMagic}; }

/// As many as `magic` has; none of what is no regular file.
std::string first_bytes(const fs::path& path) {
    std::error_code error;
    char bytes[sizeof kMagic];
    std::ifstream file;
    if (fs::is_regular_file(path, error)) file.open(path, std::ios::binary);
    file.read(bytes, sizeof bytes);
    return {bytes, static_cast<std::size_t>(file.gcount())};
}

bool is_folder(const fs::path& path, std::string_view) {
    std::error_code error;
    return fs::is_directory(path, error);
}
bool is_gguf(const fs::path&, std::string_view start) { return start.starts_with("GGUF"); }

[[noreturn]] ModelSource refuse_adapter(const ConvertOptions& options) {
    throw host::Error(options.source.string() +
                      ": expected a model, got an adapter of one; --base MODEL makes a file of it, "
                      "and convert MODEL --lora merges it");
}

/// The same of GGUF files.
ModelSource read_gguf_adapter(const ConvertOptions& options) {
    const std::uint32_t base = vectors_checksum(read_gguf(options.base, map_source(options.base), false));
    ModelSource source = join_gguf_lora(options.base, read_gguf_lora(options.source));
    (source.config.encoder.n_layers ? source.config.encoder : source.config.decoder).adapter_base = base;
    return source;
}

/// Forgets settings that `unpack` found to be left over.
void settle_quantization(HfConfig& config) {
    if (!config.quantization || !config.quantization->name.empty()) return;
    config.source.notes.push_back(config.quantization->note);
    config.quantization.reset();
}

/// An adapter as a file of its own, by the names and the shape of the model that `options.base` is.
ModelSource read_adapter(const ConvertOptions& options) {
    if (!options.loras.empty()) throw host::ArgumentError("--lora, --base: expected one of them, got both");
    const bool of_gguf = is_gguf(options.source, first_bytes(options.source)),
               is_base_gguf = is_gguf(options.base, first_bytes(options.base));
    if (options.calibration_text || options.calibrates_itself || options.budget ||
        (options.type && is_quantized(*options.type)))
        throw host::ArgumentError("--base: expected --type f32, f16 or bf16 for an adapter, got a quantized one");
    if (of_gguf && is_base_gguf) return read_gguf_adapter(options);
    if (of_gguf || !is_folder(options.base, {}))
        throw host::Error(
            "--base: expected the model of the adapter in the adapter's own format, a GGUF file beside a GGUF "
            "file or a Hugging Face folder beside PEFT's, got " +
            options.base.string());
    const fs::path config_path = options.config.empty() ? options.base / "config.json" : options.config;
    HfConfig config = read_hf_config(config_path, {}), of_model = read_hf_config(config_path, {});
    if (config.source.config.encoder.n_layers && config.source.config.decoder.n_layers)
        Fields::read(config_path).refuse("model_type", "a model of one stack for --base");
    const bool is_text_part = config.is_text_part;
    const auto weights = [&](const std::optional<Quantization>& quantization) {
        Safetensors files = read_weights_folder(options.base);
        use_plain_names(files);
        if (quantization) quantization->unpack(files);
        if (is_text_part) keep_text_part(files);
        return files;
    };
    LoraFolder folder = read_lora_folder(options.source);
    if (is_text_part) keep_text_part(folder, config.source.notes);
    Safetensors names = weights(config.quantization), whole = weights(config.quantization);
    settle_quantization(of_model);
    config.stack().adapter_base = vectors_checksum(join_hf_model(std::move(of_model), std::move(whole)));
    return join_lora(std::move(config), std::move(names), std::move(folder));
}

/// A model of two stacks that writes down what it hears, with its tokenizer.
ModelSource read_speech(const ConvertOptions& options, const Fields& fields, const fs::path& folder,
                        Safetensors weights) {
    ModelSource source = read_whisper(fields, folder, std::move(weights));
    TokenizerFacts facts{.vocab_size = source.config.decoder.vocab_size};
    if (fields.has("eos_token_id")) facts.eos.push_back(fields.count("eos_token_id", 0, facts.vocab_size - 1));
    add_tokenizer(options.tokenizer,
                  {folder / "tokenizer.json", reads_vocab_json(folder) ? folder / "vocab.json" : fs::path()}, facts,
                  source);
    return source;
}

/// What the folder says of the texts of a model that gives vectors or classes.
TokenizerFacts facts_of(const std::optional<TextSettings>& settings, HfConfig& config, std::uint32_t& n_left_out) {
    TokenizerFacts facts = {config.stack().vocab_size, config.bos, config.eos};
    if (!settings) return facts;
    set_text_limit(*settings, config);
    if (settings->cuts_front) config.source.info.emplace_back("truncation_side", "left");
    if (config.unpooled) config.source.info.emplace_back("unpooled", std::to_string(*config.unpooled));
    facts.lower_case = settings->lower_case, facts.has_token_types = settings->has_token_types;
    facts.adds_bos = settings->adds_bos, facts.adds_eos = settings->adds_eos;
    facts.appends_eos = settings->appends_eos, facts.bert = settings->bert;
    facts.left_out_last = config.unpooled;
    facts.n_left_out = &n_left_out;
    return facts;
}

/// Leaves out what is not of the text model, or of its next-token head.
void keep_parts(const ConvertOptions& options, HfConfig& config, Safetensors& files) {
    if (options.mtp) name_next_head(config, files);
    if (config.is_text_part) keep_text_part(files);
    if (options.mtp) keep_next_head(config, files);
}

/// Heads beside the model's files, or among its weights.
void add_other_heads(const ConvertOptions& options, const Fields& fields, bool has_modules, const fs::path& folder,
                     HfConfig& config) {
    if (options.sparse && options.colbert)
        throw host::ArgumentError("--sparse, --colbert: expected one of them, got both");
    if (options.sparse) return add_sparse_head(folder, config);
    if (options.colbert) return add_colbert_head(folder, config);
    if (!has_modules && is_colbert(fields)) use_colbert(folder, config);
}

/// What gives the weights of a model whose configuration lies in `folder`.
using ReadWeights = std::function<Safetensors(const fs::path& folder)>;

/// A model of transformers, sentence-transformers or PyTorch, whose files but the weights lie in the folder `given`.
ModelSource read_hf(const ConvertOptions& options, const fs::path& given, const ReadWeights& read_weights) {
    const bool has_modules = is_there(given / "modules.json");
    SentenceModules modules;  // what sentence-transformers adds to an encoder
    if (has_modules) modules = read_sentence_modules(given / "modules.json");
    const fs::path folder = has_modules ? given / modules.encoder : given;
    const fs::path config_path = options.config.empty() ? folder / "config.json" : options.config;
    const auto weights = [&](const std::optional<Quantization>& quantization) {
        Safetensors files = read_weights(folder);
        use_plain_names(files);
        if (quantization) quantization->unpack(files);
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
    const bool becomes_reranker = options.reranker && gives_logits(fields);
    HfConfig config =
        read_hf_config(config_path, folder / "generation_config.json",
                       modules.pooling != Pooling::none || modules.is_late || modules.scored || becomes_reranker);
    if (has_modules && config.stack_index() != StackIndex::encoder)
        throw host::Error((given / "modules.json").string() + ": expected a Pooling behind a decoder, got none");
    if (modules.scored) score_tokens(fields, *modules.scored, config);
    std::optional<TextSettings> settings;
    if (config.stack_index() == StackIndex::encoder) settings = read_text_settings(folder);
    const bool messages = settings && settings->messages;
    if (has_modules) add_modules(std::move(modules), given, messages, config);
    add_other_heads(options, fields, has_modules, folder, config);
    std::uint32_t n_left_out = 0;
    const TokenizerFacts facts = facts_of(settings, config, n_left_out);
    ModelSource texts;  // the tokenizer, and notes of it
    add_tokenizer_of(folder, options.tokenizer, facts, texts);
    if (options.reranker) add_reranker(config_path, texts.tokenizer, config);
    Safetensors files = weights(config.quantization);
    settle_quantization(config);
    keep_parts(options, config, files);
    for (const ScaledAdapter& lora : options.loras) {
        LoraFolder adapter = read_lora_folder(lora.folder);
        if (config.is_text_part) keep_text_part(adapter, config.source.notes);
        add_lora(std::move(adapter), lora.scale, files);
    }
    ModelSource source = join_hf_model(std::move(config), std::move(files));
    add_chat_info(folder, source);
    source.tokenizer = std::move(texts.tokenizer);
    source.notes.insert(source.notes.end(), texts.notes.begin(), texts.notes.end());
    if (messages)
        add_pair_template(*settings->messages, source);
    else if (options.reranker)
        source.info.emplace_back("pair_template", kQwenRerankerPair);
    if (n_left_out) lower_text_limit(n_left_out, source);
    if (const fs::path pieces = folder / "spm.model"; source.tokenizer.empty() && is_there(pieces))
        source.notes.push_back(
            pieces.string() +
            ": not read, and there is no tokenizer.json; AutoTokenizer and save_pretrained write one");
    return source;
}

ModelSource read_folder(const ConvertOptions& options) {
    return read_hf(options, options.source, [](const fs::path& folder) { return read_weights_folder(folder); });
}

ModelSource read_safetensors(const ConvertOptions& options) {
    return read_hf(options, options.source.parent_path(),
                   [&](const fs::path&) { return read_safetensors_file(options.source); });
}

/// A model that is one file. Adapters and next-token heads, of which there are some only for GGUF, are the caller's.
Mapping map_model(const ConvertOptions& options, bool is_gguf = false) {
    if (!options.loras.empty() && !is_gguf)
        throw host::ArgumentError(options.source.string() +
                                  ": --lora: expected a Hugging Face source or a GGUF file, got another kind");
    if (!options.config.empty())
        throw host::ArgumentError(options.source.string() +
                                  ": --config: expected a Hugging Face source, got another kind");
    if (options.mtp && !is_gguf)
        throw host::ArgumentError(options.source.string() +
                                  ": --mtp: expected a Hugging Face source or a GGUF file, got another kind");
    if (options.reranker || options.sparse || options.colbert)
        throw host::ArgumentError(options.source.string() +
                                  (options.colbert  ? ": --colbert"
                                   : options.sparse ? ": --sparse"
                                                    : ": --reranker") +
                                  ": expected a Hugging Face source, got another kind");
    Mapping mapping = map_source(options.source);
    if (mapping.bytes().empty()) throw host::Error(options.source.string() + ": expected a model, got an empty file");
    return mapping;
}

ModelSource with_tokenizer(const ConvertOptions& options, std::initializer_list<fs::path> beside, ModelSource source) {
    add_tokenizer(options.tokenizer, beside, {output_stack(source.config).vocab_size, {}, {}}, source);
    return source;
}

ModelSource read_gguf_model(const ConvertOptions& options) {
    if (options.loras.empty() && is_gguf_adapter(options.source)) refuse_adapter(options);
    std::vector<ScaledGgufLora> loras;
    for (const ScaledAdapter& lora : options.loras) {
        if (!is_gguf(lora.folder, first_bytes(lora.folder)))
            throw host::Error("--lora: expected an adapter as a GGUF file beside a GGUF model, got " +
                              lora.folder.string());
        loras.push_back({read_gguf_lora(lora.folder), lora.scale});
    }
    return with_tokenizer(
        options, {},
        read_gguf(options.source, map_model(options, true), options.tokenizer.empty(), std::move(loras), options.mtp));
}

ModelSource read_fovea_model(const ConvertOptions& options) {
    return with_tokenizer(options, {}, read_fovea_file(options.source, map_model(options)));
}

ModelSource read_llama2c_model(const ConvertOptions& options) {
    return with_tokenizer(options, {options.source.parent_path() / "tokenizer.bin"},
                          read_llama2c(options.source, map_model(options)));
}

/// A checkpoint of PyTorch: the weights of the folder that it lies in, or OpenAI's Whisper.
ModelSource read_checkpoint(const ConvertOptions& options) {
    TorchCheckpoint checkpoint = read_torch_checkpoint(options.source);
    const fs::path folder = options.source.parent_path();
    if (is_openai_whisper(checkpoint)) {
        const bool is_ranked = options.tokenizer.extension() == ".tiktoken";
        ModelSource source =
            read_openai_whisper(options.source, std::move(checkpoint), is_ranked ? options.tokenizer : "");
        if (is_ranked) return source;
        return with_tokenizer(options, {}, std::move(source));
    }
    if (!is_there(options.config.empty() ? folder / "config.json" : options.config))
        throw host::Error(options.source.string() +
                          ": expected a config.json beside a checkpoint of PyTorch, got none");
    return read_hf(options, folder, [&](const fs::path&) { return read_torch_file(options.source); });
}

ModelSource read_ggml_model(const ConvertOptions& options) {
    return with_tokenizer(options, {}, read_ggml_whisper_file(options.source, map_model(options)));
}

[[noreturn]] ModelSource refuse_foreign(const ConvertOptions& options) {
    throw host::Error(options.source.string() + ": expected a model that can be read here, got " +
                      foreign_model(options.source, first_bytes(options.source)));
}

[[noreturn]] ModelSource refuse_json(const ConvertOptions& options) {
    const fs::path folder = options.source.has_parent_path() ? options.source.parent_path() : fs::path(".");
    throw host::Error(options.source.string() +
                      ": expected the folder that it is in, or a file of weights, got a .json file; give " +
                      folder.string());
}

/// A kind of source.
struct SourceKind {
    const char* name;
    /// By its path and, of a file, its first bytes.
    bool (*looks_like)(const fs::path& path, std::string_view start);
    ModelSource (*read)(const ConvertOptions& options);
    bool opens = true;  ///< is converted where a model is to be opened
};

bool is_adapter(const fs::path& path, std::string_view) {
    return is_there(path / "adapter_config.json") && !is_there(path / "config.json");
}
bool is_safetensors(const fs::path& path, std::string_view) { return path.extension() == ".safetensors"; }
bool is_json(const fs::path& path, std::string_view) { return path.extension() == ".json" && is_there(path); }
bool is_checkpoint(const fs::path&, std::string_view start) { return looks_like_checkpoint(start); }
bool is_ggml(const fs::path&, std::string_view start) { return looks_like_ggml(start); }
bool is_foreign(const fs::path& path, std::string_view start) { return !foreign_model(path, start).empty(); }
bool is_fovea(const fs::path&, std::string_view start) { return start == magic(); }
bool is_other(const fs::path&, std::string_view) { return true; }

/// The first that a source looks like counts.
constexpr SourceKind kSourceKinds[] = {
    {"a folder with an adapter alone", is_adapter, refuse_adapter},
    {"another program's", is_foreign, refuse_foreign},
    {"a Hugging Face folder", is_folder, read_folder},
    {"its weights", is_safetensors, read_safetensors},
    {"its configuration", is_json, refuse_json, false},
    {"GGUF", is_gguf, read_gguf_model},
    {"a checkpoint of PyTorch", is_checkpoint, read_checkpoint},
    {"whisper.cpp's", is_ggml, read_ggml_model},
    {"Fovea", is_fovea, read_fovea_model, false},
    {"llama2.c", is_other, read_llama2c_model, false},  // whose oldest files begin with no magic number
};

const SourceKind& kind_of(const fs::path& path) {
    const std::string start = first_bytes(path);
    return *std::find_if(std::begin(kSourceKinds), std::end(kSourceKinds),
                         [&](const SourceKind& kind) { return kind.looks_like(path, start); });
}

/// What is there already is replaced where it is a Fovea file that is not read, or empty: another kind is somebody's.
void check_output(const ConvertOptions& options) {
    std::error_code error;
    if (!fs::is_regular_file(options.output, error)) return;
    if (fs::equivalent(options.source, options.output, error))
        throw host::Error("-o: expected another file than what is read, got " + options.output.string());
    if (!magic().starts_with(first_bytes(options.output)))
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

bool is_source(const fs::path& path) {
    std::error_code error;
    return (fs::is_directory(path, error) || fs::is_regular_file(path, error)) && kind_of(path).opens;
}

ModelSource read_source(const ConvertOptions& given) {
    ConvertOptions options = given;
    options.source = find_source(given.source);
    options.base = find_source(given.base);
    for (ScaledAdapter& lora : options.loras) lora.folder = find_source(lora.folder);
    check_output(options);
    return with_origin(options.base.empty() ? kind_of(options.source).read(options) : read_adapter(options));
}

ModelSource read_source(const ConvertOptions& options, Safetensors weights) {
    check_output(options);
    return with_origin(read_hf(options, options.source, [&](const fs::path&) { return std::move(weights); }));
}

}  // namespace fovea
