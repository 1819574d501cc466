#include "convert/sources/sampling_info.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "convert/formats/gguf.h"
#include "convert/formats/text_file.h"
#include "host/base/decimal.h"
#include "host/base/json.h"

namespace fovea {
namespace {

constexpr double kMostCount = 1 << 30;

/// A sampler's option: its name, which transformers and GGUF mostly have too, and its range. Whole numbers below 0 mean all.
struct Member {
    const char* name;
    double least, most;
    bool draws, is_whole;
};
constexpr Member kOptions[] = {
#define FOVEA_SAMPLER_TEMPERATURE(field, neutral, least, most, ...) {#field, least, most, true, false},
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, ...) {#field, least, most, draws, false},
#define FOVEA_SAMPLER_COUNT(field, neutral, most, draws, ...) \
    {#field, -1, most < kMostCount ? most : kMostCount, draws, true},
#include "fovea/sampler_options.inc"
};
constexpr std::pair<std::string_view, std::string_view> kGgufNames[] = {{"temperature", "temp"},
                                                                        {"repeat_penalty", "penalty_repeat"}};

/// Members of transformers' that change what is chosen and are not heeded, with what changes nothing.
constexpr std::pair<const char*, double> kUnheeded[] = {{"num_beams", 1},
                                                        {"epsilon_cutoff", 0},
                                                        {"eta_cutoff", 0},
                                                        {"no_repeat_ngram_size", 0},
                                                        {"encoder_no_repeat_ngram_size", 0},
                                                        {"encoder_repetition_penalty", 1},
                                                        {"guidance_scale", 1},
                                                        {"top_h", 0},
                                                        {"penalty_alpha", 0},
                                                        {"min_length", 0},
                                                        {"min_new_tokens", 0},
                                                        {"token_healing", 0}};
constexpr const char* kUnheededLists[] = {"bad_words_ids",
                                          "force_words_ids",
                                          "forced_bos_token_id",
                                          "forced_eos_token_id",
                                          "sequence_bias",
                                          "constraints",
                                          "exponential_decay_length_penalty",
                                          "watermarking_config",
                                          "stop_strings",
                                          "dola_layers"};
constexpr const char* kUnheededOfChats[] = {"suppress_tokens", "begin_suppress_tokens", "max_new_tokens"};

void note(const Fields& said, const char* member, const std::string& who, std::vector<std::string>& notes) {
    notes.push_back(said.place() + ": " + member + ": " + who + " don't heed it");
}

void add(const Member& member, double value, SortedJson& options) {
    if (member.is_whole)
        options[member.name] = std::max<std::int64_t>(static_cast<std::int64_t>(value), 0);
    else
        options[member.name] = value;
}

/// The decimal number that a float of a file was written as.
double shortest(double number) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(number)).ptr;
    (void)read_decimal({text.data(), end}, number);
    return number;
}

void keep(const SortedJson& options, ModelSource& source) {
    if (!options.empty()) source.info.emplace_back("sampling", json_text(options, true));
}

}  // namespace

void add_sampling_info(const Fields& config, const std::filesystem::path& generation, ModelSource& source) {
    const Fields said = is_there(generation) ? Fields::read(generation) : config;
    SortedJson options = SortedJson::object();
    if (said.flag_or("do_sample", false)) {
        options = {{"temperature", 1.0}, {"top_k", 50}};
        for (const Member& member : kOptions)
            if (member.draws && said.has(member.name))
                add(member, said.number(member.name, member.least, member.most), options);
    }
    if (const double penalty = said.number_or("repetition_penalty", 0.01, 100, 1); penalty != 1) {
        options["repeat_penalty"] = penalty;
        options["repeat_last_n"] = -1;
    }
    note_unheeded(said, "chats", source.notes);
    for (const char* member : kUnheededOfChats)
        if (said.has(member) && !said.json()[member].empty()) note(said, member, "chats", source.notes);
    keep(options, source);
}

void add_sampling_info(const Gguf& file, ModelSource& source) {
    SortedJson options = SortedJson::object();
    const std::string place = "general.sampling.", last_n = place + "penalty_last_n";
    for (const Member& member : kOptions) {
        std::string key = place + member.name;
        for (const auto& [option, name] : kGgufNames)
            if (option == member.name) key = place + std::string(name);
        if (!file.has(key)) continue;
        const double number = file.number(key, member.least, member.most);
        add(member, member.is_whole ? number : shortest(number), options);
    }
    if (file.has(last_n)) options["repeat_last_n"] = static_cast<std::int64_t>(file.number(last_n, -1, kMostCount));
    if (options.value("mirostat", 0) == 1) {
        source.notes.push_back(file.path().string() + ": general.sampling.mirostat: chats know version 2 alone");
        options.erase("mirostat");
    }
    if (file.has("general.sampling.sequence"))
        source.notes.push_back(file.path().string() + ": general.sampling.sequence: chats have an order of their own");
    keep(options, source);
}

void note_unheeded(const Fields& said, const std::string& who, std::vector<std::string>& notes) {
    for (const auto& [member, neutral] : kUnheeded)
        if (said.has(member) && said.json()[member] != neutral && said.json()[member] != false)
            note(said, member, who, notes);
    for (const char* member : kUnheededLists)
        if (said.has(member) && !said.json()[member].empty()) note(said, member, who, notes);
}

}  // namespace fovea
