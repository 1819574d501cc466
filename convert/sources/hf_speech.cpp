#include "convert/sources/hf_speech.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "convert/formats/text_file.h"
#include "convert/sources/sampling_info.h"
#include "convert/weights/mel_filters.h"
#include "engine/format/format.h"
#include "host/base/wanted_json.h"
#include "host/base/words.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostTokenizerBytes = 256u << 20;  // of a tokenizer.json

constexpr const char* kMembers[] = {"suppress_tokens",
                                    "begin_suppress_tokens",
                                    "lang_to_id",
                                    "task_to_id",
                                    "no_timestamps_token_id",
                                    "is_multilingual",
                                    "max_initial_timestamp_index",
                                    "decoder_start_token_id",
                                    "eos_token_id",
                                    "prev_sot_token_id",
                                    "alignment_heads"};
/// What else changes a transcript, unless it has this value or is not there: how Fovea transcribes where nobody says otherwise.
constexpr std::pair<const char*, double> kSpeechDefaults[] = {{"repetition_penalty", 1.0},
                                                              {"no_speech_threshold", 0.6},
                                                              {"logprob_threshold", -1.0},
                                                              {"compression_ratio_threshold", 2.4}};
constexpr double kMedianWidth = 7;  // of weights, where times of words are looked for

/// A matrix of numbers [n_rows][n_cols], or one the other way round; else nothing.
std::optional<std::vector<float>> matrix_of(const SortedJson& rows, std::size_t n_rows, std::size_t n_cols) {
    const auto is_matrix = [&](std::size_t n, std::size_t of_each) {
        return rows.is_array() && rows.size() == n && std::all_of(rows.begin(), rows.end(), [&](const SortedJson& row) {
                   return row.is_array() && row.size() == of_each &&
                          std::all_of(row.begin(), row.end(), [](const SortedJson& x) { return x.is_number(); });
               });
    };
    const bool turned = !is_matrix(n_rows, n_cols) && is_matrix(n_cols, n_rows);
    if (!turned && !is_matrix(n_rows, n_cols)) return std::nullopt;
    std::vector<float> values;
    values.reserve(n_rows * n_cols);
    for (std::size_t row = 0; row < n_rows; ++row)
        for (std::size_t col = 0; col < n_cols; ++col)
            values.push_back((turned ? rows[col][row] : rows[row][col]).get<float>());
    return values;
}

/// "<|en|>", "<|haw|>": two letters or three.
bool is_language(const std::string& name) {
    return (name.size() == 6 || name.size() == 7) && name.starts_with("<|") && name.ends_with("|>") &&
           std::all_of(name.begin() + 2, name.end() - 2, [](char c) { return c >= 'a' && c <= 'z'; });
}

/// What the names of tokens say.
SortedJson by_names(const std::map<std::string, std::uint32_t>& tokens, std::uint32_t vocab_size) {
    constexpr std::uint32_t kEnglishVocab =
        51864;  // of the models for English alone, which have the languages' tokens too
    SortedJson members = SortedJson::object();
    const auto set = [&](const char* member, const char* name) {
        if (const auto token = tokens.find(name); token != tokens.end() && !members.contains(member))
            members[member] = token->second;
    };
    set("decoder_start_token_id", "<|startoftranscript|>");
    set("eos_token_id", "<|endoftext|>");
    set("prev_sot_token_id", "<|startofprev|>");
    set("no_timestamps_token_id", "<|notimestamps|>");
    set("no_speech_token_id", "<|nospeech|>");
    set("no_speech_token_id", "<|nocaptions|>");
    set("timestamp_begin", "<|0.00|>");
    for (const char* task : {"transcribe", "translate"})
        if (const auto token = tokens.find("<|" + std::string(task) + "|>"); token != tokens.end())
            members["task_to_id"][task] = token->second;
    for (const auto& [name, id] : tokens)
        if (is_language(name)) members["lang_to_id"][name] = id;
    members["is_multilingual"] = members.contains("lang_to_id") && vocab_size != kEnglishVocab;
    return members;
}

/// Ids that are forced but for what each transcript begins with anyway.
bool forces_more(const SortedJson& forced, const SortedJson& known) {
    const SortedJson tasks = known.value("task_to_id", SortedJson::object());
    const std::array usual = {SortedJson(), known.value("no_timestamps_token_id", SortedJson()),
                              tasks.value("transcribe", SortedJson())};
    return std::any_of(forced.begin(), forced.end(), [&](const SortedJson& one) {
        return !one.is_array() || one.size() != 2 || std::find(usual.begin(), usual.end(), one[1]) == usual.end();
    });
}

/// Notes of what is not heeded. `said`: generation_config.json or, without that file, `config`. `known`: the members that are kept.
void note_options(const Fields& config, const Fields& said, const SortedJson& known, std::vector<std::string>& notes) {
    const Fields& forcing = said.has("forced_decoder_ids") ? said : config;  // as `generate` does for this one alone
    const auto note = [&](const std::string& member, const std::string& option = "") {
        notes.push_back(said.place() + ": " + member + ": transcripts don't heed it" + option);
    };
    note_unheeded(said, "transcripts", notes);
    for (const auto& [member, ours] : kSpeechDefaults)
        if (said.has(member) && said.json()[member] != ours) note(member);
    for (const char* member : {"language", "task"})
        if (said.has(member) && said.json()[member] != "transcribe") note(member, std::string(": --") + member);
    const bool is_told = said.has("language") || said.has("task");
    if (!is_told && forcing.has("forced_decoder_ids") && forces_more(forcing.json()["forced_decoder_ids"], known))
        note("forced_decoder_ids", ": --language and --task");
    if (!said.flag_or("condition_on_prev_tokens", true)) note("condition_on_prev_tokens", ": --no-previous-text");
    for (const char* member : {"max_length", "max_new_tokens"})
        if (said.has(member) && said.number(member, 0, 1e9) < config.count("max_target_positions") / 2) note(member);
    if (config.number_or("median_filter_width", 0, 1e9, kMedianWidth) != kMedianWidth)
        notes.push_back(config.place() + ": median_filter_width: transcripts don't heed it");
}

}  // namespace

std::vector<float> read_preprocessor(const fs::path& file, Sound& sound) {
    sound.sample_rate = 16000, sound.n_fft = 400, sound.hop_length = 160;
    if (!is_there(file)) return mel_filters(sound);
    const Fields fields = Fields::read(file);
    if (fields.has("feature_size") && fields.count("feature_size") != sound.n_mels)
        fields.refuse("feature_size", "config.json's num_mel_bins, " + std::to_string(sound.n_mels));
    if (fields.has("sampling_rate")) sound.sample_rate = fields.count("sampling_rate", 1, kMaxSampleRate);
    if (fields.has("n_fft")) sound.n_fft = fields.count("n_fft", 2, kMaxFft);
    if (fields.has("hop_length")) sound.hop_length = fields.count("hop_length", 1, kMaxHop);
    for (const char* name : {"dither", "padding_value"})  // noise, and what is no silence
        if (fields.number_or(name, -1e9, 1e9, 0) != 0) fields.refuse(name, "0");
    if (std::uint64_t{sound.n_mels} * sound.n_bins() > kMaxFilterWeights)
        fields.refuse("n_fft", "at most " + with_separators(kMaxFilterWeights) + " weights of all filters");
    if (!fields.has("mel_filters")) return mel_filters(sound);
    if (auto own = matrix_of(fields.json()["mel_filters"], sound.n_mels, sound.n_bins())) return *own;
    fields.refuse("mel_filters", "a list of " + std::to_string(sound.n_mels) + " lists of " +
                                     std::to_string(sound.n_bins()) + " numbers");
}

std::map<std::string, std::uint32_t> added_tokens(const fs::path& folder) {
    std::map<std::string, std::uint32_t> ids;
    const fs::path path = folder / "tokenizer.json", alone = folder / "added_tokens.json";
    if (!is_there(path) && is_there(alone)) {
        const Fields named = Fields::read(alone);
        for (const auto& [name, id] : named.json().items())
            if (id.is_number_unsigned()) ids.emplace(name, id.get<std::uint32_t>());
    }
    if (!is_there(path)) return ids;
    const Mapping mapping = map_source(path, kMostTokenizerBytes);
    const std::string_view text = text_of(mapping);
    check_json_depth(text, path.string());
    const auto is_wanted = [](std::size_t depth, std::string_view name) {
        return depth != 1 || name == "added_tokens";
    };
    const SortedJson json = read_wanted(text, is_wanted);
    if (!json.is_object() || !json.contains("added_tokens")) return ids;
    for (const SortedJson& token : json["added_tokens"]) {
        if (!token.is_object()) continue;
        const auto id = token.find("id"), name = token.find("content");
        if (id != token.end() && name != token.end() && id->is_number_unsigned() && name->is_string())
            ids.emplace(name->get<std::string>(), id->get<std::uint32_t>());
    }
    return ids;
}

std::string speech_info(const Fields& config, const fs::path& generation,
                        const std::map<std::string, std::uint32_t>& tokens, std::vector<std::string>& notes) {
    SortedJson members = by_names(tokens, config.count("vocab_size"));
    const Fields said = is_there(generation) ? Fields::read(generation) : config;
    for (const char* member : kMembers)
        if (said.has(member)) members[member] = said.json()[member];
    if (said.has("lang_to_id") && !said.flag_or("is_multilingual", true))
        notes.push_back(said.place() + ": is_multilingual: false: transcripts don't heed lang_to_id");
    const auto end = members.find("eos_token_id");  // a list where several end a text
    if (end != members.end() && end->is_array() && !end->empty()) {
        if (end->size() > 1) notes.push_back(said.place() + ": eos_token_id: the first alone ends a transcript");
        *end = SortedJson((*end)[0]);
    }
    const auto named = tokens.find("<|endoftext|>");  // behind all that texts are written of
    if (named != tokens.end() && end != members.end() && *end < named->second)
        said.refuse("eos_token_id", "<|endoftext|>, " + std::to_string(named->second) + ", or an id behind it");
    note_options(config, said, members, notes);
    return json_text(members, true);
}

}  // namespace fovea
