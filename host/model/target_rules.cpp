#include "host/model/target_rules.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr double kMostPenalty = 20;  // a float holds any length to this power

class JsonMembers {
public:
    JsonMembers(std::string_view text, std::uint32_t vocab_size, const std::string& place)
        : vocab_size_(vocab_size), place_(place) {
        check_json_depth(text, place);
        json_ = read_sorted_json(text);
        if (!json_.is_object()) throw host::Error(place_ + ": expected a JSON object, got something else");
    }

    [[nodiscard]] bool has(const char* name) const { return json_.contains(name) && !json_[name].is_null(); }

    /// One id, or a list of them.
    [[nodiscard]] std::vector<Token> ids(const char* name) const {
        if (!has(name)) return {};
        return json_[name].is_array() ? list(name, json_[name]) : std::vector<Token>{id(name, json_[name])};
    }
    [[nodiscard]] std::optional<Token> first_id(const char* name) const {
        const std::vector<Token> all = ids(name);
        return all.empty() ? std::nullopt : std::optional(all.front());
    }
    [[nodiscard]] std::vector<std::vector<Token>> lists(const char* name) const {
        std::vector<std::vector<Token>> all;
        if (!has(name)) return all;
        if (!json_[name].is_array()) refuse(name, json_[name], "lists of ids");
        for (const SortedJson& words : json_[name]) {
            all.push_back(list(name, words));
            if (all.back().empty()) refuse(name, words, "lists of one id or more");
        }
        return all;
    }
    [[nodiscard]] std::uint32_t count(const char* name) const {
        constexpr std::uint64_t kMost = 1u << 30;
        if (!has(name)) return 0;
        if (!json_[name].is_number_unsigned() || json_[name].get<std::uint64_t>() > kMost)
            refuse(name, json_[name], "a whole number up to " + with_separators(kMost));
        return json_[name].get<std::uint32_t>();
    }
    [[nodiscard]] float real_or(const char* name, double most, float otherwise) const {
        if (!has(name)) return otherwise;
        const double value = json_[name].is_number() ? json_[name].get<double>() : most + 1;
        if (!(std::fabs(value) <= most))
            refuse(name, json_[name],
                   "a number from -" + std::to_string(static_cast<int>(most)) + " to " +
                       std::to_string(static_cast<int>(most)));
        return static_cast<float>(value);
    }
    [[nodiscard]] bool flag_or(const char* name, bool otherwise) const {
        if (!has(name)) return otherwise;
        if (!json_[name].is_boolean()) refuse(name, json_[name], "true or false");
        return json_[name].get<bool>();
    }
    [[nodiscard]] BeamOptions beams() const {
        BeamOptions made{.length_penalty = real_or("length_penalty", kMostPenalty, 1),
                         .renormalized = flag_or("renormalize_logits", false),
                         .ends = ids("eos_token_id")};
        if (has("num_beams")) made.n_beams = count("num_beams");
        if (made.n_beams == 0 || made.n_beams > kMostBeams)
            refuse("num_beams", json_["num_beams"], "1 to " + std::to_string(kMostBeams));
        if (!has("early_stopping")) return made;
        const SortedJson& early = json_["early_stopping"];
        if (early == "never")
            made.early_stopping = EarlyStopping::never;
        else if (!early.is_boolean())
            refuse("early_stopping", early, "true, false or \"never\"");
        else if (early.get<bool>())
            made.early_stopping = EarlyStopping::yes;
        return made;
    }
    [[noreturn]] void refuse(const char* name, const SortedJson& got, const std::string& wanted) const {
        throw host::Error(place_ + ": " + name + ": expected " + wanted + ", got " +
                          json_text(got, true).substr(0, 60));
    }

private:
    [[nodiscard]] Token id(const char* name, const SortedJson& value) const {
        if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= vocab_size_)
            refuse(name, value, "ids below " + std::to_string(vocab_size_));
        return value.get<Token>();
    }
    [[nodiscard]] std::vector<Token> list(const char* name, const SortedJson& values) const {
        if (!values.is_array()) refuse(name, values, "a list of ids");
        std::vector<Token> all;
        for (const SortedJson& value : values) all.push_back(id(name, value));
        return all;
    }

    SortedJson json_;
    std::uint32_t vocab_size_;
    std::string place_;
};

/// How long the rules let a text with its start token be; 0: as long as there are positions.
std::uint64_t own_length(const TargetRules& rules) {
    return rules.max_new ? 1 + std::uint64_t{rules.max_new} : rules.max_length;
}

}  // namespace

TargetRules TargetRules::read(std::string_view text, std::uint32_t vocab_size, const std::string& place) {
    const JsonMembers members(text, vocab_size, place);
    TargetRules rules;
    const std::optional<Token> start = members.first_id("decoder_start_token_id"),
                               bos = members.first_id("bos_token_id");
    if (!start && !bos) throw host::Error(place + ": decoder_start_token_id: expected a token's id, got none");
    rules.start = start ? *start : *bos;
    rules.forced = members.first_id("forced_bos_token_id");
    rules.ends = members.ids("eos_token_id");
    rules.plain = rules.ends;
    for (const auto& id : {bos, members.first_id("pad_token_id")})
        if (id) rules.plain.push_back(*id);
    rules.suppressed = members.ids("suppress_tokens");
    rules.suppressed_first = members.ids("begin_suppress_tokens");
    rules.bad_words = members.lists("bad_words_ids");
    std::erase_if(rules.bad_words, [&](const std::vector<Token>& words) {  // an end is never bad
        return words.size() == 1 && std::find(rules.ends.begin(), rules.ends.end(), words[0]) != rules.ends.end();
    });
    rules.max_length = members.count("max_length");
    rules.max_new = members.count("max_new_tokens");
    rules.min_length = members.count("min_length");
    rules.min_new = members.count("min_new_tokens");
    rules.no_repeat = members.count("no_repeat_ngram_size");
    rules.no_repeat_source = members.count("encoder_no_repeat_ngram_size");
    rules.ends_at_max = members.first_id("forced_eos_token_id").has_value();
    rules.beams = members.beams();
    return rules;
}

bool TargetRules::is_plain(Token token) const { return std::find(plain.begin(), plain.end(), token) != plain.end(); }

std::vector<Token> TargetRules::prompt() const {
    return forced ? std::vector<Token>{start, *forced} : std::vector<Token>{start};
}

std::uint32_t TargetRules::longest(std::uint32_t max_positions) const {
    const std::uint64_t own = own_length(*this);
    return own && own < max_positions ? static_cast<std::uint32_t>(own) : max_positions;
}

bool TargetRules::ends_by_length(std::uint32_t max_positions) const {
    const std::uint64_t own = own_length(*this);
    return ends_at_max && own && own <= max_positions;
}

std::uint32_t TargetRules::most_new(std::uint32_t max_positions) const {
    std::uint32_t length = longest(max_positions);
    const auto n_prompt = static_cast<std::uint32_t>(prompt().size());
    if (ends_by_length(max_positions)) --length;
    return length > n_prompt ? length - n_prompt : 0;
}

}  // namespace fovea
