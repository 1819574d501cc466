#include "host/translate/beam_translation.h"

#include <algorithm>

#include "host/base/error.h"

namespace fovea {
namespace {

BeamOptions with_room(BeamOptions options, std::uint32_t max_positions) {
    options.most_tokens = max_positions;
    return options;
}

std::size_t mask_words(std::size_t vocab_size) { return (vocab_size + 31) / 32; }

}  // namespace

/// Texts take as many positions as the rules let them have. Pages suffice for beams that have nothing in common: sharing
/// leaves some free.
TargetPlan BeamTranslation::plan(const host::Opened& opened, TargetLimits limits, const TargetRules& rules) {
    const Stack& decoder = opened.config().decoder;
    const std::uint32_t n_beams = rules.beams.n_beams;
    limits.max_target = rules.longest(limits.max_target ? limits.max_target : decoder.max_positions);
    TargetPlan plan{.stacks = plan_target(opened, limits, n_beams, n_beams)};
    const std::uint32_t max_positions = plan.stacks.texts.limits.max_kv_len;
    const std::uint64_t of_each = 2 * sizeof(Cache) + sizeof(Step) + sizeof(BeamSearch::Row) +
                                  decoder.vocab_size * sizeof(float) +
                                  mask_words(decoder.vocab_size) * sizeof(std::uint32_t);
    plan.search_bytes = n_beams * of_each + (max_positions + std::uint64_t{1}) * sizeof(Token) +
                        BeamSearch::n_bytes(with_room(rules.beams, max_positions));
    return plan;
}

BeamTranslation::BeamTranslation(const host::Opened& opened, const TargetLimits& limits, const TargetRules& rules)
    : opened_(opened),
      plan_(plan(opened, limits, rules)),
      source_(opened, limits, plan_.stacks),
      vocab_size_(opened.config().decoder.vocab_size),
      search_(with_room(rules.beams, source_.max_positions())) {
    const std::uint32_t n_beams = rules.beams.n_beams;
    texts_.reserve(n_beams), next_.reserve(n_beams), steps_.reserve(n_beams), rows_.reserve(n_beams);
    logits_.resize(n_beams * vocab_size_);
    allowed_.resize(n_beams * mask_words(vocab_size_));
    text_.reserve(source_.max_positions() + std::size_t{1});
}

void BeamTranslation::start(std::span<const Token> source, const TargetRules& rules, std::uint32_t n_new) {
    source_.read(source);
    filter_.emplace(rules, source);
    prompt_ = rules.prompt();
    const auto n_given = static_cast<std::uint32_t>(prompt_.size() - 1);
    const std::uint32_t n_most = rules.most_new(source_.max_positions());
    ends_by_length_ = rules.ends_by_length(source_.max_positions()) && n_most <= n_new;
    n_most_ = n_given + std::min(n_most, n_new) + (ends_by_length_ && n_most ? 1 : 0);
    for (Cache& text : texts_) require(end_cache(text), opened_.name);
    texts_.clear();
    search_.start(n_given, n_most_);
    texts_.push_back(source_.make_text());
}

/// The next beams' caches: each parent's goes to its first child, and others fork it.
void BeamTranslation::follow(std::span<const Beam> beams) {
    next_.assign(beams.size(), Cache{});
    for (std::uint32_t parent = 0; parent < texts_.size(); ++parent) {
        const auto first = std::find_if(beams.begin(), beams.end(), [&](const Beam& b) { return b.parent == parent; });
        if (first == beams.end())
            require(end_cache(texts_[parent]), opened_.name);
        else
            next_[static_cast<std::size_t>(first - beams.begin())] = texts_[parent];
    }
    for (std::size_t i = 0; i < beams.size(); ++i)
        if (!next_[i].valid()) require(fork_cache(texts_[beams[i].parent], next_[i]), opened_.name);
    texts_.swap(next_);
}

/// A beam's next tokens that the rules allow.
void BeamTranslation::forbid(std::size_t beam, std::size_t row) {
    const std::size_t n_words = mask_words(vocab_size_);
    const std::span<std::uint32_t> mask = std::span(allowed_).subspan(row * n_words, n_words);
    std::fill(mask.begin(), mask.end(), 0xffffffffu);
    text_ = prompt_;
    search_.tokens_of(beam, text_);
    const TokenFilter filter = filter_->filter();
    filter.allow(filter.context, text_, mask);
    rows_.push_back({std::span(logits_).subspan(row * vocab_size_, vocab_size_), mask});
}

/// The rows of the beams, which all are at the prompt, or each at its last token.
void BeamTranslation::compute(std::span<const Token> prompt) {
    const std::span<const Beam> beams = search_.beams();
    steps_.clear(), rows_.clear();
    for (std::size_t i = 0; i < texts_.size(); ++i)
        steps_.push_back({.cache = texts_[i],
                          .tokens = prompt.empty() ? std::span(&beams[i].token, 1) : prompt,
                          .logits = std::span(logits_).subspan(i * vocab_size_, vocab_size_),
                          .memory = source_.memory()});
    require(forward(source_.workspace(), steps_), opened_.name);
    for (std::size_t i = 0; i < beams.size(); ++i) forbid(i, prompt.empty() ? i : 0);
}

bool BeamTranslation::next() {
    if (search_.done()) return false;
    const bool is_first = texts_[0].kv_len() == 0;
    if (ends_by_length_ && search_.n_tokens() + 1 == n_most_) return search_.take_end(), false;
    compute(is_first ? std::span<const Token>(prompt_) : std::span<const Token>());
    while (is_first && texts_.size() < search_.beams().size())
        require(fork_cache(texts_[0], texts_.emplace_back()), opened_.name);
    require(search_.take(rows_), opened_.name);
    if (search_.done()) return false;
    follow(search_.beams());
    return true;
}

BeamTranslation::Text BeamTranslation::best() const {
    Text text{.finish = FinishReason::length};
    const Hypothesis& best = search_.hypotheses()[0];
    if (!best.is_text) return text;
    search_.tokens_of(best, text.tokens);
    text.score = best.score;
    if (best.ended && !(ends_by_length_ && best.n_before + 1 == n_most_)) text.finish = FinishReason::end_token;
    return text;
}

}  // namespace fovea
