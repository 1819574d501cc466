#include "host/speech/speech_rules.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "host/base/error.h"
#include "host/base/source_file.h"
#include "host/speech/chances.h"

namespace fovea {
namespace {

using Json = nlohmann::json;
constexpr float kNever = -std::numeric_limits<float>::infinity();

/// Reads fields of the JSON object, each refusal naming one.
class RulesReader {
public:
    RulesReader(std::string_view json, std::uint32_t vocab_size, const std::string& name)
        : vocab_size_(vocab_size), place_(name + ": speech: ") {
        check_json_depth(json, name + ": speech");
        json_ = Json::parse(json, nullptr, false);
        if (!json_.is_object()) throw host::Error(place_ + "expected a JSON object, got something else");
    }

    [[nodiscard]] Token token(const char* field) const {
        const auto at = json_.find(field);
        if (at == json_.end() || at->is_null()) throw host::Error(place_ + field + ": expected a token's id, got none");
        return id_of(field, *at);
    }
    [[nodiscard]] Token token_or(const char* field, Token otherwise) const {
        const auto at = json_.find(field);
        return at == json_.end() || at->is_null() ? otherwise : id_of(field, *at);
    }
    [[nodiscard]] std::vector<Token> tokens(const char* field) const {
        std::vector<Token> ids;
        const auto at = json_.find(field);
        if (at == json_.end() || at->is_null()) return ids;
        if (!at->is_array()) refuse(field, *at);
        for (const Json& id : *at) ids.push_back(id_of(field, id));
        return ids;
    }
    /// Ids by their names, without "<|" and "|>".
    [[nodiscard]] std::map<std::string, Token> named(const char* field) const {
        std::map<std::string, Token> ids;
        const auto at = json_.find(field);
        if (at == json_.end() || at->is_null()) return ids;
        if (!at->is_object()) refuse(field, *at);
        for (const auto& [key, id] : at->items()) {
            const bool marked = key.size() > 4 && key.starts_with("<|") && key.ends_with("|>");
            ids[marked ? key.substr(2, key.size() - 4) : key] = id_of(field, id);
        }
        return ids;
    }
    /// Pairs of small numbers.
    [[nodiscard]] std::vector<SpeechTokens::Head> heads(const char* field) const {
        constexpr std::uint64_t kMost = 0xffff;
        std::vector<SpeechTokens::Head> all;
        const auto at = json_.find(field);
        if (at == json_.end() || at->is_null()) return all;
        const auto is_small = [](const Json& x) { return x.is_number_unsigned() && x.get<std::uint64_t>() <= kMost; };
        if (!at->is_array()) refuse(field, *at, "pairs of a layer and a head");
        for (const Json& pair : *at) {
            if (!pair.is_array() || pair.size() != 2 || !is_small(pair[0]) || !is_small(pair[1]))
                refuse(field, pair, "a pair of a layer and a head");
            all.push_back({pair[0].get<std::uint32_t>(), pair[1].get<std::uint32_t>()});
        }
        return all;
    }
    [[nodiscard]] std::uint32_t count_or(const char* field, std::uint32_t otherwise) const {
        const auto at = json_.find(field);
        if (at == json_.end() || at->is_null()) return otherwise;
        if (!at->is_number_unsigned() || at->get<std::uint64_t>() > vocab_size_)
            refuse(field, *at, "a whole number up to " + std::to_string(vocab_size_));
        return at->get<std::uint32_t>();
    }
    [[nodiscard]] bool flag_or(const char* field, bool otherwise) const {
        const auto at = json_.find(field);
        if (at == json_.end() || at->is_null()) return otherwise;
        if (!at->is_boolean()) refuse(field, *at, "true or false");
        return at->get<bool>();
    }
    [[noreturn]] void refuse(const char* field, const Json& got) const {
        refuse(field, got, "ids below " + std::to_string(vocab_size_));
    }
    [[noreturn]] void refuse(const char* field, const Json& got, const std::string& wanted) const {
        throw host::Error(place_ + field + ": expected " + wanted + ", got " +
                          got.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60));
    }

private:
    [[nodiscard]] Token id_of(const char* field, const Json& json) const {
        if (!json.is_number_unsigned() || json.get<std::uint64_t>() >= vocab_size_) refuse(field, json);
        return json.get<Token>();
    }

    Json json_;
    std::uint32_t vocab_size_;
    std::string place_;
};

std::string choices(const std::map<std::string, Token>& named) {
    std::string list;
    for (const auto& [name, id] : named) list += (list.empty() ? "" : ", ") + name;
    return list;
}

void forbid(std::span<float> logits, std::size_t begin, std::size_t end) {
    begin = std::min(begin, logits.size());
    end = std::min(end, logits.size());
    for (std::size_t i = begin; i < end; ++i) logits[i] = kNever;
}

/// The rules of timestamps that need no probabilities.
void apply_order(const SpeechTokens& tokens, std::span<const Token> written, std::span<float> logits) {
    const std::size_t first = tokens.first_timestamp(), n = written.size();
    logits[tokens.no_timestamps] = kNever;
    const bool last_is = n >= 1 && tokens.is_timestamp(written[n - 1]);
    const bool before_is = n < 2 || tokens.is_timestamp(written[n - 2]);
    if (last_is && before_is) forbid(logits, first, logits.size());  // a stretch has begun
    if (last_is && !before_is) forbid(logits, 0, tokens.end);        // one has ended: another begins, or all ends
    const auto latest = std::find_if(written.rbegin(), written.rend(), [&](Token t) { return tokens.is_timestamp(t); });
    if (latest != written.rend()) forbid(logits, first, last_is && !before_is ? *latest : std::size_t{*latest} + 1);
    if (n == 0) {
        forbid(logits, 0, first);
        if (tokens.max_first_timestamp) forbid(logits, first + tokens.max_first_timestamp + 1, logits.size());
    }
}

}  // namespace

SpeechTokens SpeechTokens::read(std::string_view json, std::uint32_t vocab_size, const std::string& name) {
    if (json.empty())
        throw host::Error(name + ": speech: expected a model that writes what it hears, got one without its rules");
    const RulesReader reader(json, vocab_size, name);
    SpeechTokens tokens;
    tokens.vocab_size = vocab_size;
    tokens.start = reader.token("decoder_start_token_id");
    tokens.end = reader.token("eos_token_id");
    tokens.no_timestamps = reader.token("no_timestamps_token_id");
    // Where Whisper's vocabularies have them: …, previous, no_speech, no_timestamps, timestamps.
    if (tokens.no_timestamps < 2 || tokens.no_timestamps + 1 >= vocab_size)
        throw host::Error(name + ": speech: no_timestamps_token_id: expected timestamps behind it, got " +
                          std::to_string(tokens.no_timestamps) + " of " + std::to_string(vocab_size) + " ids");
    tokens.previous = reader.token_or("prev_sot_token_id", tokens.no_timestamps - 2);
    tokens.no_speech = reader.token_or("no_speech_token_id", tokens.no_timestamps - 1);
    tokens.languages = reader.named("lang_to_id");
    tokens.tasks = reader.named("task_to_id");
    tokens.multilingual = reader.flag_or("is_multilingual", !tokens.languages.empty());
    if (tokens.multilingual && (tokens.languages.empty() || tokens.tasks.empty()))
        throw host::Error(name + ": speech: lang_to_id, task_to_id: expected those of a multilingual model, got none");
    tokens.suppressed = reader.tokens("suppress_tokens");
    tokens.suppressed.insert(tokens.suppressed.end(), {tokens.start, tokens.previous, tokens.no_speech});
    for (const auto& [task, id] : tokens.tasks) tokens.suppressed.push_back(id);  // control tokens are no text
    tokens.suppressed_first = reader.tokens("begin_suppress_tokens");
    tokens.alignment_heads = reader.heads("alignment_heads");
    tokens.max_first_timestamp = reader.count_or("max_initial_timestamp_index", 0);
    return tokens;
}

std::string SpeechTokens::language_of(Token token) const {
    for (const auto& [name, id] : languages)
        if (id == token) return name;
    return {};
}

std::vector<Token> speech_prompt(const SpeechTokens& tokens, const std::string& language, const std::string& task,
                                 bool timestamps) {
    std::vector<Token> prompt{tokens.start};
    if (tokens.multilingual) {
        const auto l = tokens.languages.find(language);
        if (l == tokens.languages.end())
            throw host::ArgumentError("language: expected one of " + choices(tokens.languages) + ", got " + language);
        const auto t = tokens.tasks.find(task);
        if (t == tokens.tasks.end())
            throw host::ArgumentError("task: expected one of " + choices(tokens.tasks) + ", got " + task);
        prompt.insert(prompt.end(), {l->second, t->second});
    } else {
        if (!language.empty() && language != "en")
            throw host::ArgumentError("language: expected none, or en, of a model of one language, got " + language);
        if (task != "transcribe")
            throw host::ArgumentError("task: expected transcribe of a model of one language, got " + task);
    }
    if (!timestamps) prompt.push_back(tokens.no_timestamps);
    return prompt;
}

void check_speech(const SpeechTokens& tokens, const std::string& language, const std::string& task) {
    const bool any = tokens.multilingual && language.empty();
    (void)speech_prompt(tokens, any ? tokens.languages.begin()->first : language, task, true);
}

DetectedLanguage detect_language(const SpeechTokens& tokens, std::span<const float> logits) {
    std::vector<float> of_languages;
    Token best = 0;
    for (const auto& [name, id] : tokens.languages) {
        const bool first = of_languages.empty();
        of_languages.push_back(logits[id]);
        if (first || logits[id] > logits[best] || (logits[id] == logits[best] && id < best)) best = id;
    }
    return {tokens.language_of(best), 1.0 / exp_sum(of_languages).sum};
}

void apply_rules(const SpeechTokens& tokens, std::span<const Token> written, bool timestamps, std::span<float> logits) {
    for (const Token id : tokens.suppressed) logits[id] = kNever;
    if (written.empty())
        for (const Token id : tokens.suppressed_first) logits[id] = kNever;
    if (!timestamps) return;
    apply_order(tokens, written, logits);
    const std::span<float> texts = logits.first(tokens.first_timestamp());
    const ExpSum stamps = exp_sum(logits.subspan(tokens.first_timestamp()));
    const float most = *std::max_element(texts.begin(), texts.end());
    if (stamps.sum > 0 && stamps.log() > static_cast<double>(most)) forbid(texts, 0, texts.size());
}

}  // namespace fovea
