#include "host/translate/translation.h"

#include <algorithm>

#include "host/base/error.h"
#include "host/base/languages.h"

namespace fovea {
namespace {

/// The token of that spelling.
std::optional<Token> find_token(const Tokenizer& tokenizer, const std::string& spelling) {
    for (Token id = 0; id < tokenizer.vocab_size(); ++id)
        if (token_bytes(tokenizer, id) == spelling) return id;
    return std::nullopt;
}

/// ">>fra<<", "__fr__", "fra_Latn", "fr_XX", but not T5's "<extra_id_0>".
bool looks_like_language(const Tokenizer& tokenizer, const TargetRules& rules, Token id) {
    const std::string_view text = token_bytes(tokenizer, id);
    if (text.size() > 4 && text.starts_with(">>") && text.ends_with("<<")) return true;
    return tokenizer.is_special(id) && !rules.is_plain(id) && text.find('_') != text.npos &&
           text.find_first_of("<>[]") == text.npos;
}

struct Language {
    Token token;
    bool before_source;  // Marian's, which the source says
};

/// The token of a language's name as a model spells it.
std::optional<Language> find_spelled(const Tokenizer& tokenizer, const TargetRules& rules, const std::string& name) {
    if (const auto token = find_token(tokenizer, ">>" + name + "<<")) return Language{*token, true};
    for (const std::string& spelling : {name, "__" + name + "__"})
        if (const auto token = find_token(tokenizer, spelling); token && looks_like_language(tokenizer, rules, *token))
            return Language{*token, spelling.starts_with(">>")};
    return {};
}

/// That of a name as people write it: "German", "de", "de-AT".
std::optional<Language> find_known(const Tokenizer& tokenizer, const TargetRules& rules, const std::string& name) {
    const std::optional<KnownLanguage> known = find_known_language(name);
    if (!known) return {};
    const std::string code(known->code), three(known->three);
    for (const std::string& spelling : {code + "_" + known->region, three + "_" + known->script, code, three})
        if (const auto found = find_spelled(tokenizer, rules, spelling)) return found;
    std::optional<Language> found;  // the only one that begins with it, such as de_DE
    for (Token id = 0; id < tokenizer.vocab_size(); ++id) {
        const std::string_view text = token_bytes(tokenizer, id);
        if (!text.starts_with(code + "_") && !text.starts_with(three + "_")) continue;
        if (!looks_like_language(tokenizer, rules, id)) continue;
        if (found) return {};
        found = Language{id, false};
    }
    return found;
}

Language find_language(const Tokenizer& tokenizer, const TargetRules& rules, const std::string& option,
                       const std::string& name) {
    if (const auto found = find_spelled(tokenizer, rules, name)) return *found;
    if (const auto found = find_known(tokenizer, rules, name)) return *found;
    constexpr std::size_t kMostNamed = 6;
    const std::string got = name.substr(0, 60);
    std::string known;
    std::size_t n_known = 0;
    for (Token id = 0; id < tokenizer.vocab_size(); ++id)
        if (looks_like_language(tokenizer, rules, id) && n_known++ < kMostNamed)
            known += (known.empty() ? "" : ", ") + std::string(token_bytes(tokenizer, id));
    if (known.empty())
        throw host::ArgumentError(option + ": expected none, for the model has no tokens of languages, got " + got);
    throw host::ArgumentError(option + ": expected one of the model's " + std::to_string(n_known) +
                              " languages, such as " + known + ", got " + got);
}

[[noreturn]] void refuse_source(const Languages& languages) {
    throw host::ArgumentError(std::string(languages.from_name) +
                              ": expected a model that is told the source's language, got one that is not");
}

}  // namespace

ToldLanguages find_languages(const Languages& languages, const Tokenizer& tokenizer, TargetRules rules) {
    ToldLanguages told{.from = {}, .before = {}, .rules = std::move(rules)};
    if (!languages.from.empty()) {
        const Language from = find_language(tokenizer, told.rules, languages.from_name, languages.from);
        if (from.before_source) refuse_source(languages);
        told.from = from.token;
    }
    if (languages.to.empty()) return told;
    const Language to = find_language(tokenizer, told.rules, languages.to_name, languages.to);
    if (to.before_source)
        told.before = to.token;
    else if (!told.rules.is_plain(told.rules.start))
        told.rules.start = to.token;
    else
        told.rules.forced = to.token;
    return told;
}

std::vector<Token> with_languages(std::vector<Token> source, const ToldLanguages& told, const Languages& languages,
                                  const Tokenizer& tokenizer) {
    bool found = false;
    for (Token& id : source)
        if (told.from && looks_like_language(tokenizer, told.rules, id)) id = *told.from, found = true;
    if (told.from && !found) refuse_source(languages);
    if (told.before) source.insert(source.begin(), *told.before);
    return source;
}

std::vector<Token> with_languages(std::vector<Token> source, const Languages& languages, const Tokenizer& tokenizer,
                                  TargetRules& rules) {
    ToldLanguages told = find_languages(languages, tokenizer, rules);
    source = with_languages(std::move(source), told, languages, tokenizer);
    rules = std::move(told.rules);
    return source;
}

TargetPlan Translation::plan(const host::Opened& opened, const TargetLimits& limits, GeneratorLimits generator) {
    TargetPlan plan{.stacks = plan_target(opened, limits, 1 + generator.max_proposed, 1)};
    generator.max_tokens = plan.stacks.texts.limits.max_kv_len;
    require(make_generator_plan(opened.model, opened.tokenizer, generator, plan.generator), opened.name);
    return plan;
}

Translation::Translation(const host::Opened& opened, const TargetLimits& limits, const GeneratorLimits& generator)
    : opened_(opened),
      plan_(plan(opened, limits, generator)),
      source_(opened, limits, plan_.stacks),
      text_(source_.make_text()),
      generator_(start_generator(opened, text_, plan_.generator.limits)) {}

void Translation::start(std::span<const Token> source, const TargetRules& rules, GenerateOptions how) {
    require(rewind(text_, 0), opened_.name);
    require(resume(*generator_, {}), opened_.name);
    source_.read(source);
    filter_.emplace(rules, source);
    how.filter = filter_->filter();
    how.memory = source_.memory();
    how.end_tokens = rules.ends;
    how.n_new = std::min(how.n_new, rules.most_new(source_.max_positions()));
    const std::vector<Token> prompt = rules.prompt();
    require(fovea::start(*generator_, prompt, how), opened_.name);
}

}  // namespace fovea
