#include "host/translate/translator.h"

#include "host/base/error.h"

namespace fovea {
namespace {

TargetRules rules_of(const Model& model, const std::string& name, std::uint32_t n_beams) {
    TargetRules rules =
        TargetRules::read(find_info(model, "target"), model.config().decoder.vocab_size, name + ": target");
    if (n_beams) rules.beams.n_beams = n_beams;
    return rules;
}

}  // namespace

Translator::Translator(const Model& model, const Tokenizer& tokenizer, const std::string& name, const Options& options)
    : tokenizer_(tokenizer), name_(name), said_(rules_of(model, name, options.n_beams)) {
    if (said_.beams.n_beams > 1)
        beams_.emplace(model, name, options.limits, said_);
    else
        writer_.emplace(model, tokenizer, name, options.limits, options.generator);
}

void Translator::start(std::vector<Token> source, const Languages& languages, const GenerateOptions& how) {
    rules_ = said_;
    source_ = tokenizer_.valid() ? with_languages(std::move(source), languages, tokenizer_, rules_) : std::move(source);
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
        require(writer_->next(piece), name_);
        made.text += piece.text;
        made.tokens.insert(made.tokens.end(), piece.tokens.begin(), piece.tokens.end());
        made.finish = piece.finish;
        if (on_piece) on_piece(piece);
    }
    return made;
}

Translator::Text Translator::search() {
    while (beams_->next()) continue;
    BeamWriter::Text best = beams_->best();
    Text made{.text = text_of(best.tokens), .finish = best.finish, .score = best.score};
    made.tokens = std::move(best.tokens);
    return made;
}

/// Of tokens behind the prompt, on which it depends whether a space is dropped.
std::string Translator::text_of(std::span<const Token> tokens) const {
    if (!tokenizer_.valid()) return {};
    std::vector<char> room(max_piece_bytes(tokenizer_));
    Decoder decoder;
    std::string text;
    for (const Token id : rules_.prompt()) (void)decode(tokenizer_, decoder, id, shows_special_, room);
    for (const Token id : tokens) text += decode(tokenizer_, decoder, id, shows_special_, room);
    return text + std::string(finish(decoder, room));
}

}  // namespace fovea
