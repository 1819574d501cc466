#include "convert/sources/whisper_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "convert/formats/ggml_whisper.h"
#include "convert/formats/text_file.h"
#include "convert/packed/blocks.h"
#include "convert/sources/hf_speech.h"
#include "convert/sources/source_names.h"
#include "convert/sources/whisper.h"
#include "convert/tokenizers/ranked_tokens.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// The languages in the order of their tokens, by their codes. The last is in models since 2023 alone.
constexpr std::string_view kLanguages =
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml "
    "cy sk te "
    "fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz "
    "fo ht ps "
    "tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue";
constexpr const char* kBehindLanguages[] = {"translate",   "transcribe", "startoflm",
                                            "startofprev", "nospeech",   "notimestamps"};
constexpr std::uint32_t kTimes = 1501;  // from 0 to 30 seconds, 0.02 apart
constexpr std::uint32_t kFixed = 2 + std::size(kBehindLanguages) + kTimes;
constexpr std::uint32_t kEnglishVocab = 51864, kMostLanguages = 100;

/// What no model is to write down: signs of noises, of music and of who speaks (openai-whisper's Tokenizer.non_speech_tokens). Words
/// of the second list count by their first token.
constexpr std::string_view kSigns =
    "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ 「 」 『 』 << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] "
    "{{ }} ♪♪ ♪♪♪";
constexpr std::string_view kNotes = "♩ ♪ ♫ ♬ ♭ ♮ ♯";

/// OpenAI's names and transformers', as parts of whole names.
constexpr std::pair<std::string_view, std::string_view> kParts[] = {
    {".blocks.", ".layers."},
    {".cross_attn_ln.", ".encoder_attn_layer_norm."},
    {".cross_attn.", ".encoder_attn."},
    {".attn_ln.", ".self_attn_layer_norm."},
    {".attn.", ".self_attn."},
    {".query.", ".q_proj."},
    {".key.", ".k_proj."},
    {".value.", ".v_proj."},
    {".out.", ".out_proj."},
    {".mlp.0.", ".fc1."},
    {".mlp.2.", ".fc2."},
    {".mlp_ln.", ".final_layer_norm."},
    {"encoder.ln_post.", "encoder.layer_norm."},
    {"decoder.ln.", "decoder.layer_norm."},
    {".token_embedding.", ".embed_tokens."},
    {".positional_embedding", ".embed_positions.weight"}};

void use_names_of_transformers(Safetensors& weights) {
    rename_tensors(weights, [](std::string name) {
        for (const auto& [own, theirs] : kParts)
            if (const std::size_t at = name.find(own); at != name.npos) name.replace(at, own.size(), theirs);
        return "model." + name;
    });
}

/// The parts of a text with single spaces.
template<class Take>
void for_each_word(std::string_view words, const Take& take) {
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(' '));
        take(word);
        words.remove_prefix(std::min(word.size() + 1, words.size()));
    }
}

/// The tokens behind the `n_base` of texts, by their names.
std::map<std::string, std::uint32_t> special_tokens(std::uint32_t n_base, std::uint32_t n_vocab,
                                                    const std::string& place) {
    if (n_vocab < n_base + kFixed + 1 || n_vocab - n_base - kFixed > kMostLanguages)
        throw host::Error(place + ": n_vocab: expected " + std::to_string(n_base) + " tokens, " +
                          std::to_string(kFixed) + " special ones and 1 to 100 languages, got " +
                          std::to_string(n_vocab));
    const std::uint32_t n_languages = n_vocab - n_base - kFixed;
    std::map<std::string, std::uint32_t> tokens;
    std::uint32_t next = n_base, n_named = 0;
    const auto add = [&](std::string_view name) { tokens.emplace("<|" + std::string(name) + "|>", next++); };
    add("endoftext");
    add("startoftranscript");
    for_each_word(kLanguages, [&](std::string_view code) {
        if (n_named++ < n_languages) add(code);
    });
    for (const char* name : kBehindLanguages) add(name);
    for (std::uint32_t i = 0; i < kTimes; ++i) {
        const std::uint32_t hundredths = 2 * i;
        const std::string part = std::to_string(hundredths % 100);
        add(std::to_string(hundredths / 100) + "." + (part.size() < 2 ? "0" : "") + part);
    }
    return tokens;
}

/// The ids that are never written.
SortedJson suppressed(const std::optional<RankedTokens>& ranked, const std::map<std::string, std::uint32_t>& special) {
    std::set<std::uint32_t> ids;
    const auto add_sign = [&](std::string_view sign, bool by_first) {
        for (const std::string& text : {std::string(sign), " " + std::string(sign)}) {
            const std::vector<std::uint32_t> word = ranked->word(text, ranked->size());
            if (word.size() == 1 || by_first) ids.insert(word[0]);
        }
    };
    if (ranked) {
        for_each_word(kSigns, [&](std::string_view sign) { add_sign(sign, false); });
        for_each_word(kNotes, [&](std::string_view sign) { add_sign(sign, true); });
        ids.insert(ranked->word(" -", ranked->size())[0]);
        ids.insert(ranked->word(" '", ranked->size())[0]);
    }
    for (const char* name : {"<|startoftranscript|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>",
                             "<|startofprev|>", "<|nospeech|>"})
        ids.insert(special.at(name));
    return ids;
}

struct WhisperFile {
    fs::path path;
    std::map<std::string, std::int64_t> sizes;  ///< by OpenAI's names
    Safetensors weights;                        ///< by OpenAI's names
    std::optional<RankedTokens> tokens;
    ReadFilters filters = [](Sound& sound) { return read_preprocessor({}, sound); };
};

ModelSource join(WhisperFile file) {
    const std::string place = file.path.string();
    const auto size = [&](const char* name) {
        const auto found = file.sizes.find(name);
        if (found == file.sizes.end() || found->second < 1 || found->second > std::int64_t{1} << 30)
            throw host::Error(place + ": " + name + ": expected a whole number from 1 to 1073741824, got " +
                              (found == file.sizes.end() ? "none" : std::to_string(found->second)));
        return static_cast<std::uint32_t>(found->second);
    };
    const std::uint32_t width = size("n_audio_state"), n_vocab = size("n_vocab");
    if (size("n_text_state") != width)
        throw host::Error(place + ": n_text_state: expected n_audio_state, " + std::to_string(width) + ", got " +
                          std::to_string(size("n_text_state")));
    const std::uint32_t n_base = file.tokens ? file.tokens->size() : n_vocab == kEnglishVocab ? 50256 : 50257;
    const std::map<std::string, std::uint32_t> special = special_tokens(n_base, n_vocab, place);
    SortedJson begin = SortedJson::array({special.at("<|endoftext|>")});
    if (file.tokens) begin.push_back(file.tokens->word(" ", n_base)[0]);
    const Fields config(SortedJson{{"model_type", kWhisperType},
                                   {"_name_or_path", file.path.stem().string()},
                                   {"vocab_size", n_vocab},
                                   {"num_mel_bins", size("n_mels")},
                                   {"d_model", width},
                                   {"encoder_layers", size("n_audio_layer")},
                                   {"encoder_attention_heads", size("n_audio_head")},
                                   {"encoder_ffn_dim", 4 * width},
                                   {"max_source_positions", size("n_audio_ctx")},
                                   {"decoder_layers", size("n_text_layer")},
                                   {"decoder_attention_heads", size("n_text_head")},
                                   {"decoder_ffn_dim", 4 * width},
                                   {"max_target_positions", size("n_text_ctx")},
                                   {"max_initial_timestamp_index", 50},  // a second
                                   {"suppress_tokens", suppressed(file.tokens, special)},
                                   {"begin_suppress_tokens", begin}},
                        place);
    use_plain_names(file.weights);
    use_names_of_transformers(file.weights);
    std::vector<std::string> none;  // the fields above have nothing to note
    ModelSource source =
        join_whisper(config, file.filters, std::move(file.weights), speech_info(config, {}, special, none));
    const TokenizerFacts facts = {.vocab_size = n_vocab, .eos = {special.at("<|endoftext|>")}};
    if (file.tokens)
        source.tokenizer = file.tokens->section(special, facts, source.notes);
    else
        source.notes.push_back(place + ": has no tokens; --tokenizer takes " +
                               (n_vocab == kEnglishVocab ? "gpt2" : "multilingual") +
                               ".tiktoken of openai-whisper's folder assets");
    return source;
}

}  // namespace

bool is_openai_whisper(const TorchCheckpoint& checkpoint) { return checkpoint.numbers.count("dims.n_mels") != 0; }

ModelSource read_openai_whisper(const fs::path& path, TorchCheckpoint checkpoint, fs::path tokens) {
    WhisperFile file{.path = path, .sizes = {}, .weights = std::move(checkpoint.tensors), .tokens = {}};
    for (const auto& [name, number] : checkpoint.numbers) {
        const std::string own = name.substr(name.find_last_of('.') + 1);
        file.sizes.emplace(own, number);
    }
    const bool is_english = file.sizes.count("n_vocab") && file.sizes["n_vocab"] == kEnglishVocab;
    if (const fs::path beside = path.parent_path() / (is_english ? "gpt2.tiktoken" : "multilingual.tiktoken");
        tokens.empty() && is_there(beside))
        tokens = beside;
    if (!tokens.empty()) file.tokens = RankedTokens::read(text_of(map_source(tokens, 64u << 20)), tokens.string());
    return join(std::move(file));
}

ModelSource read_ggml_whisper_file(const fs::path& path, Mapping mapping) {
    GgmlWhisper read = read_ggml_whisper(mapping, path.string());
    WhisperFile file{.path = path, .sizes = {}, .weights = {}, .tokens = {}};
    file.sizes = {{"n_vocab", read.n_vocab},
                  {"n_audio_ctx", read.n_audio_ctx},
                  {"n_audio_state", read.n_audio_state},
                  {"n_audio_head", read.n_audio_head},
                  {"n_audio_layer", read.n_audio_layer},
                  {"n_text_ctx", read.n_text_ctx},
                  {"n_text_state", read.n_text_state},
                  {"n_text_head", read.n_text_head},
                  {"n_text_layer", read.n_text_layer},
                  {"n_mels", read.n_mels}};
    file.weights.files.push_back(path);
    file.weights.mappings.push_back(std::move(mapping));
    for (const GgmlWhisper::Tensor& tensor : read.tensors)
        if (!file.weights.tensors
                 .emplace(tensor.name, tensor_of_blocks(*tensor.blocks, tensor.data, tensor.shape, tensor.bytes))
                 .second)
            throw host::Error(path.string() + ": tensor " + tensor.name + ": expected once, got twice");
    for (const char* bias : {"encoder.conv1.bias", "encoder.conv2.bias"})  // which are columns there
        if (const auto found = file.weights.tensors.find(bias); found != file.weights.tensors.end())
            if (std::vector<std::uint64_t>& shape = found->second.shape; shape.size() == 2 && shape[1] == 1)
                shape.pop_back();
    if (!read.tokens.empty() && read.tokens.back() == "<|endoftext|>")
        read.tokens.pop_back();  // of who converted a folder
    file.tokens.emplace(std::move(read.tokens), path.string());
    file.filters = [&read](Sound& sound) {
        (void)read_preprocessor({}, sound);
        if (read.n_bins != sound.n_bins())
            throw host::Error("mel filters: expected " + std::to_string(sound.n_bins()) + " numbers of each, got " +
                              std::to_string(read.n_bins));
        return std::move(read.filters);
    };
    return join(std::move(file));
}

}  // namespace fovea
