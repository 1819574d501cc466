#include "fovea/host/translator.h"

#include <algorithm>

#include "host/base/clock.h"
#include "host/base/error.h"
#include "host/translate/beam_translation.h"
#include "host/translate/split_source.h"
#include "host/translate/translation.h"

namespace fovea {
namespace {

TargetRules rules_of(const host::Opened& opened, std::uint32_t n_beams) {
    need_target(opened);
    TargetRules rules = TargetRules::read(find_info(opened.model, "target"), opened.config().decoder.vocab_size,
                                          opened.name + ": target");
    if (n_beams > kMostBeams)
        throw host::ArgumentError("beams: expected at most " + std::to_string(kMostBeams) + ", got " +
                                  std::to_string(n_beams));
    if (n_beams) rules.beams.n_beams = n_beams;
    return rules;
}

}  // namespace

struct Translator::Parts {
    const host::Opened& opened;
    TargetRules said, rules{};            // of the file, and with this text's languages
    std::optional<Translation> writer{};  // or, with several beams,
    std::optional<BeamTranslation> beams{};
    std::vector<Token> source{};
    std::size_t n_source = 0;
    bool shows_special = false;

    [[nodiscard]] Text follow(const std::function<void(const Piece&)>& on_piece);
    [[nodiscard]] Text search();
    [[nodiscard]] std::string text_of(std::span<const Token> tokens) const;
};

Translator::Translator(const host::Opened& opened, const Options& options)
    : parts_(new Parts{.opened = opened, .said = rules_of(opened, options.n_beams)}) {
    if (parts_->said.beams.n_beams > 1)
        parts_->beams.emplace(opened, options.limits, parts_->said);
    else
        parts_->writer.emplace(opened, options.limits, options.generator);
}

Translator::~Translator() = default;

std::size_t Translator::n_source() const { return parts_->n_source; }

std::uint32_t Translator::max_source() const {
    return parts_->beams ? parts_->beams->max_source() : parts_->writer->max_source();
}

std::uint64_t Translator::n_bytes() const {
    return parts_->beams ? parts_->beams->n_bytes() : parts_->writer->n_bytes();
}

TargetPlan Translator::plan(const host::Opened& opened, const Options& options) {
    const TargetRules rules = rules_of(opened, options.n_beams);
    return rules.beams.n_beams > 1 ? BeamTranslation::plan(opened, options.limits, rules)
                                   : Translation::plan(opened, options.limits, options.generator);
}

void Translator::start(std::vector<Token> source, const Languages& languages, const GenerateOptions& how) {
    Parts& p = *parts_;
    p.rules = p.said;
    p.source = p.opened.tokenizer.valid() ? with_languages(std::move(source), languages, p.opened.tokenizer, p.rules)
                                          : std::move(source);
    p.n_source = p.source.size();
    p.shows_special = how.show_special;
    if (p.beams)
        p.beams->start(p.source, p.rules, how.n_new);
    else
        p.writer->start(p.source, p.rules, how);
}

Translator::Text Translator::translate(std::string_view source, const Languages& languages, const GenerateOptions& how,
                                       const TokenizeOptions& read, const std::function<void(const Piece&)>& on_piece) {
    Parts& p = *parts_;
    const bool is_told_before = find_languages(languages, p.opened.need_tokenizer(), p.said).before.has_value();
    const std::vector<std::string_view> parts = split_source(source, [&](std::string_view text) {
        return p.opened.tokens(text, read).size() + is_told_before <= max_source();
    });
    Text all{.n_parts = static_cast<std::uint32_t>(parts.size())};
    GenerateOptions rest = how;
    std::size_t n_source = 0;
    for (const std::string_view part : parts) {
        bool joins = !all.text.empty();  // what begins behind another part has a space before it
        const double started = host::seconds_now();
        start(p.opened.tokens(part, read), languages, rest);
        all.source_seconds += host::seconds_now() - started;
        n_source += p.n_source;
        const Text one = write([&](const Piece& piece) {
            Piece space;
            if (joins && !piece.text.empty() && piece.text.front() != ' ') space.text = " ";
            joins = joins && piece.text.empty();
            all.text.append(space.text).append(piece.text);
            if (on_piece && !space.text.empty()) on_piece(space);
            if (on_piece) on_piece(piece);
        });
        all.tokens.insert(all.tokens.end(), one.tokens.begin(), one.tokens.end());
        if (parts.size() == 1) all.score = one.score;
        if (all.finish == FinishReason::none || all.finish == FinishReason::end_token) all.finish = one.finish;
        rest.n_new -= std::min(rest.n_new, static_cast<std::uint32_t>(one.tokens.size()));
        if (one.finish == FinishReason::stop_text) break;
    }
    p.n_source = n_source;
    return all;
}

Translator::Text Translator::write(const std::function<void(const Piece&)>& on_piece) {
    if (parts_->writer) return parts_->follow(on_piece);
    Text made = parts_->search();
    Piece whole;
    whole.text = made.text;
    whole.tokens = made.tokens;
    whole.finish = made.finish;
    if (on_piece) on_piece(whole);
    return made;
}

Translator::Text Translator::Parts::follow(const std::function<void(const Piece&)>& on_piece) {
    Text made;
    for (Piece piece; piece.finish == FinishReason::none;) {
        require(writer->next(piece), opened.name);
        made.text += piece.text;
        made.tokens.insert(made.tokens.end(), piece.tokens.begin(), piece.tokens.end());
        made.finish = piece.finish;
        if (on_piece) on_piece(piece);
    }
    return made;
}

Translator::Text Translator::Parts::search() {
    while (beams->next()) continue;
    BeamTranslation::Text best = beams->best();
    Text made{.text = text_of(best.tokens), .finish = best.finish, .score = best.score};
    made.tokens = std::move(best.tokens);
    return made;
}

/// The text of tokens behind the prompt, which decides whether a space is dropped.
std::string Translator::Parts::text_of(std::span<const Token> tokens) const {
    if (!opened.tokenizer.valid()) return {};
    const std::vector<Token> before = rules.prompt();
    return opened.text(tokens, {.show_special = shows_special, .before = before});
}

}  // namespace fovea
