#include "host/speech/speech_rules.h"

#include <algorithm>
#include <limits>

#include "host/base/error.h"
#include "host/base/languages.h"
#include "host/base/source_file.h"
#include "host/speech/chances.h"

namespace fovea {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// Reads fields of the JSON object, each refusal naming one.
class RulesReader {
public:
    RulesReader(std::string_view json, std::uint32_t vocab_size, const std::string& name)
        : vocab_size_(vocab_size), fields_(parsed(json, name + ": speech"), name + ": speech") {}

    [[nodiscard]] Token token(const char* field) const {
        if (!fields_.has(field))
            throw host::Error(fields_.place() + ": " + field + ": expected a token's id, got none");
        return id_of(field, fields_.json()[field]);
    }
    [[nodiscard]] Token token_or(const char* field, Token otherwise) const {
        return fields_.has(field) ? id_of(field, fields_.json()[field]) : otherwise;
    }
    [[nodiscard]] std::vector<Token> tokens(const char* field) const {
        std::vector<Token> ids;
        for (const SortedJson& id : items(field, SortedJson::value_t::array, ids_wanted()))
            ids.push_back(id_of(field, id));
        return ids;
    }
    /// Ids by their names, without "<|" and "|>".
    [[nodiscard]] std::map<std::string, Token> named(const char* field) const {
        std::map<std::string, Token> ids;
        for (const auto& [key, id] : items(field, SortedJson::value_t::object, ids_wanted()).items()) {
            const bool marked = key.size() > 4 && key.starts_with("<|") && key.ends_with("|>");
            ids[marked ? key.substr(2, key.size() - 4) : key] = id_of(field, id);
        }
        return ids;
    }
    /// Pairs of small numbers.
    [[nodiscard]] std::vector<SpeechTokens::Head> heads(const char* field) const {
        const auto is_small = [](const SortedJson& x) { return x.is_number_unsigned() && x <= 0xffff; };
        std::vector<SpeechTokens::Head> all;
        for (const SortedJson& pair : items(field, SortedJson::value_t::array, "pairs of a layer and a head")) {
            if (!pair.is_array() || pair.size() != 2 || !is_small(pair[0]) || !is_small(pair[1]))
                fields_.refuse(field, "a pair of a layer and a head", pair);
            all.push_back({pair[0], pair[1]});
        }
        return all;
    }
    [[nodiscard]] std::optional<std::uint32_t> count(const char* field) const {
        if (!fields_.has(field)) return std::nullopt;
        const SortedJson& count = fields_.json()[field];
        if (!count.is_number_unsigned() || count > vocab_size_)
            fields_.refuse(field, "a whole number up to " + std::to_string(vocab_size_));
        return count.get<std::uint32_t>();
    }
    [[nodiscard]] bool flag_or(const char* field, bool otherwise) const { return fields_.flag_or(field, otherwise); }

private:
    static SortedJson parsed(std::string_view text, const std::string& place) {
        check_json_depth(text, place);
        SortedJson json = read_sorted_json(text);
        if (!json.is_object()) throw host::Error(place + ": expected a JSON object, got something else");
        return json;
    }

    [[nodiscard]] std::string ids_wanted() const { return "ids below " + std::to_string(vocab_size_); }

    /// A field's items; none if it is not there.
    [[nodiscard]] const SortedJson& items(const char* field, SortedJson::value_t type,
                                          const std::string& wanted) const {
        static const SortedJson kNone;
        if (!fields_.has(field)) return kNone;
        if (fields_.json()[field].type() != type) fields_.refuse(field, wanted);
        return fields_.json()[field];
    }

    [[nodiscard]] Token id_of(const char* field, const SortedJson& json) const {
        if (!json.is_number_unsigned() || json >= vocab_size_) fields_.refuse(field, ids_wanted(), json);
        return json;
    }

    std::uint32_t vocab_size_;
    Fields fields_;
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
        if (tokens.max_first_timestamp) forbid(logits, first + *tokens.max_first_timestamp + 1, logits.size());
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
    tokens.max_first_timestamp = reader.count("max_initial_timestamp_index");
    return tokens;
}

std::string SpeechTokens::language_of(Token token) const {
    for (const auto& [name, id] : languages)
        if (id == token) return name;
    return {};
}

std::string SpeechTokens::language_named(const std::string& written) const {
    if (languages.contains(written)) return written;
    const auto known = find_known_language(written);
    return known && (multilingual ? languages.contains(std::string(known->code)) : known->code == "en")
               ? std::string(known->code)
               : written;
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
    (void)speech_prompt(tokens, any ? tokens.languages.begin()->first : tokens.language_named(language), task, true);
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
