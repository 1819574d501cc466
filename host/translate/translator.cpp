#include "host/translate/translator.h"

#include "host/base/error.h"

namespace fovea {
namespace {

TargetRules rules_of(const host::Opened& opened, std::uint32_t n_beams) {
    TargetRules rules = TargetRules::read(find_info(opened.model, "target"), opened.config().decoder.vocab_size,
                                          opened.name + ": target");
    if (n_beams) rules.beams.n_beams = n_beams;
    return rules;
}

}  // namespace

Translator::Translator(const host::Opened& opened, const Options& options)
    : opened_(opened), said_(rules_of(opened, options.n_beams)) {
    if (said_.beams.n_beams > 1)
        beams_.emplace(opened, options.limits, said_);
    else
        writer_.emplace(opened, options.limits, options.generator);
}

TargetPlan Translator::plan(const host::Opened& opened, const Options& options) {
    const TargetRules rules = rules_of(opened, options.n_beams);
    return rules.beams.n_beams > 1 ? BeamTranslation::plan(opened, options.limits, rules)
                                   : Translation::plan(opened, options.limits, options.generator);
}

void Translator::start(std::vector<Token> source, const Languages& languages, const GenerateOptions& how) {
    rules_ = said_;
    source_ = opened_.tokenizer.valid() ? with_languages(std::move(source), languages, opened_.tokenizer, rules_)
                                        : std::move(source);
    shows_special_ = how.show_special;
    if (beams_)
        beams_->start(source_, rules_, how.n_new);
    else
        writer_->start(source_, rules_, how);
}

Translator::Text Translator::write(const std::function<void(const Piece&)>& on_piece) {
    if (writer_) return follow(on_piece);
    Text made = search();
    Piece whole;
    whole.text = made.text;
    whole.tokens = made.tokens;
    whole.finish = made.finish;
    if (on_piece) on_piece(whole);
    return made;
}

Translator::Text Translator::follow(const std::function<void(const Piece&)>& on_piece) {
    Text made;
    for (Piece piece; piece.finish == FinishReason::none;) {
        require(writer_->next(piece), opened_.name);
        made.text += piece.text;
        made.tokens.insert(made.tokens.end(), piece.tokens.begin(), piece.tokens.end());
        made.finish = piece.finish;
        if (on_piece) on_piece(piece);
    }
    return made;
}

Translator::Text Translator::search() {
    while (beams_->next()) continue;
    BeamTranslation::Text best = beams_->best();
    Text made{.text = text_of(best.tokens), .finish = best.finish, .score = best.score};
    made.tokens = std::move(best.tokens);
    return made;
}

/// The text of tokens behind the prompt, which decides whether a space is dropped.
std::string Translator::text_of(std::span<const Token> tokens) const {
    if (!opened_.tokenizer.valid()) return {};
    const std::vector<Token> before = rules_.prompt();
    return opened_.text(tokens, {.show_special = shows_special_, .before = before});
}

}  // namespace fovea
