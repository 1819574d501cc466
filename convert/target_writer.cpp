#include "convert/target_writer.h"

#include <algorithm>

#include "convert/refusal.h"

namespace fovea {
namespace {

/// The token of that spelling.
std::optional<Token> find_token(const Tokenizer& tokenizer, const std::string& spelling) {
    for (Token id = 0; id < tokenizer.vocab_size(); ++id)
        if (token_bytes(tokenizer, id) == spelling) return id;
    return std::nullopt;
}

/// ">>fra<<", "__fr__", "fra_Latn", "fr_XX".
bool looks_like_language(const Tokenizer& tokenizer, const TargetRules& rules, Token id) {
    const std::string_view text = token_bytes(tokenizer, id);
    if (text.size() > 4 && text.starts_with(">>") && text.ends_with("<<")) return true;
    return tokenizer.is_special(id) && !rules.is_plain(id) && text.find('_') != text.npos;
}

struct Language {
    Token token;
    bool before_source;  // Marian's, which the source says
};

Language find_language(const Tokenizer& tokenizer, const TargetRules& rules, const std::string& option,
                       const std::string& name) {
    if (const auto token = find_token(tokenizer, ">>" + name + "<<")) return {*token, true};
    for (const std::string& spelling : {name, "__" + name + "__"})
        if (const auto token = find_token(tokenizer, spelling); token && looks_like_language(tokenizer, rules, *token))
            return {*token, false};
    constexpr std::size_t kMostNamed = 6;
    const std::string got = name.substr(0, 60);
    std::string known;
    std::size_t n_known = 0;
    for (Token id = 0; id < tokenizer.vocab_size(); ++id)
        if (looks_like_language(tokenizer, rules, id) && n_known++ < kMostNamed)
            known += (known.empty() ? "" : ", ") + std::string(token_bytes(tokenizer, id));
    if (known.empty())
        throw Refusal(option + ": expected no language, for the model knows one pair alone, got " + got, 2);
    throw Refusal(option + ": expected one of the model's " + std::to_string(n_known) + " languages, such as " + known +
                      ", got " + got,
                  2);
}

[[noreturn]] void refuse_source(const Languages& languages) {
    throw Refusal(
        std::string(languages.from_name) + ": expected a model that is told the source's language, got one that is not",
        2);
}

}  // namespace

bool writes_target(const Config& config) noexcept {
    const Stack &encoder = config.encoder, &decoder = config.decoder;
    bool reads = false;
    for (std::uint32_t i = 0; i < decoder.n_blocks; ++i) reads |= decoder.blocks[i].cross_attention;
    return encoder.n_layers && encoder.vocab_size && decoder.n_layers && decoder.vocab_size &&
           decoder.has_output_head && reads;
}

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

TargetWriter::TargetWriter(const Model& model, const Tokenizer& tokenizer, const std::string& name,
                           const Options& options)
    : name_(name) {
    const Config& config = model.config();
    if (!writes_target(config))
        throw Refusal(name + ": model: expected an encoder with a decoder of texts, got another");
    max_source_ = options.max_source ? options.max_source : config.encoder.max_positions;
    max_positions_ = options.max_target ? options.max_target : config.decoder.max_positions;
    const auto take = [&](std::uint64_t bytes) {
        n_bytes_ += bytes;
        return Arena(bytes);
    };
    Plan plan;
    require(make_workspace_plan(config,
                                {.max_kv_len = max_positions_,
                                 .max_batch = std::max(max_source_, 1 + options.limits.max_proposed),
                                 .n_threads = options.n_threads,
                                 .kv_type = options.kv_type,
                                 .max_sequences = 1,
                                 .max_key_rows = max_source_},
                                plan),
            name);
    workspace_arena_ = take(plan.arena_bytes);
    require(make_workspace(model, plan.limits, workspace_arena_, workspace_, options.isa), name);
    if (options.cancel) set_cancel(workspace_, options.cancel);
    PoolPlan memory, text;
    require(make_pool_plan(config, {.max_kv_len = max_source_, .kv_type = options.kv_type, .memory = true}, memory),
            name);
    require(make_pool_plan(config, {.max_kv_len = max_positions_, .kv_type = options.kv_type}, text), name);
    memory_arena_ = take(memory.arena_bytes), text_arena_ = take(text.arena_bytes);
    require(make_pool(model, memory.limits, memory_arena_, memory_pool_), name);
    require(make_pool(model, text.limits, text_arena_, text_pool_), name);
    require(make_cache(memory_pool_, memory_), name);
    require(make_cache(text_pool_, text_), name);
    GeneratorLimits limits = options.limits;
    limits.max_tokens = max_positions_;
    GeneratorPlan generator;
    require(make_generator_plan(model, tokenizer, limits, generator), name);
    generator_arena_ = take(generator.arena_bytes);
    require(make_generator(model, tokenizer, text_, generator.limits, generator_arena_, generator_), name);
}

void TargetWriter::start(std::span<const Token> source, const TargetRules& rules, GenerateOptions how) {
    if (source.empty()) throw Refusal("prompt: expected 1 token or more, got none", 2);
    if (source.size() > max_source_)
        throw Refusal("prompt: expected at most " + std::to_string(max_source_) +
                      " tokens, as many as the model reads at once, got " + std::to_string(source.size()));
    require(rewind(text_, 0), name_);
    require(resume(generator_, {}), name_);
    require(rewind(memory_, 0), name_);
    const auto n_rows = static_cast<std::uint32_t>(source.size());
    require(cache_memory(workspace_, {.source = {.ids = source, .lengths = {&n_rows, 1}}}, {&memory_, 1}), name_);
    filter_.emplace(rules, source);
    how.filter = filter_->filter();
    how.memory = memory_;
    how.end_tokens = rules.ends;
    how.n_new = std::min(how.n_new, rules.most_new(max_positions_));
    const std::vector<Token> prompt = rules.prompt();
    require(fovea::start(generator_, prompt, how), name_);
}

}  // namespace fovea
