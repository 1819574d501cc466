// fovea run with a model of two stacks: the prompt is what the encoder reads, and the decoder writes a text of its own.
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "convert/refusal.h"
#include "generate.h"
#include "given_prompt.h"
#include "output_file.h"
#include "report.h"
#include "verbs/run_options.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// What was written, and in what time.
struct Written {
    std::string text;
    std::vector<Token> tokens;
    FinishReason finish = FinishReason::none;
    std::optional<float> score;  // of beam search
    std::size_t n_source = 0;
    double source_seconds = 0, seconds = 0;

    [[nodiscard]] double tokens_per_second() const {
        return seconds > 0 ? static_cast<double>(tokens.size()) / seconds : 0;
    }
    [[nodiscard]] double source_tokens_per_second() const {
        return source_seconds > 0 ? static_cast<double>(n_source) / source_seconds : 0;
    }
};

/// What the file says, with as many beams as --beams or, where tokens are not simply the likeliest, one.
TargetRules rules_of(const RunOptions& options, const OpenedModel& opened) {
    TargetRules rules = TargetRules::read(find_info(opened.model, "target"), opened.model.config().decoder.vocab_size,
                                          opened.name + ": target");
    const std::pair<bool, const char*> others[] = {{options.sampling.wanted(), "options of sampling"},
                                                   {!options.stop.empty(), "--stop"},
                                                   {options.n_proposed > 0, "--speculate"}};
    for (const auto& [given, name] : others) {
        if (given && options.n_beams > 1)
            throw Refusal(
                "--beams: expected 1 beside " + std::string(name) + ", got " + std::to_string(options.n_beams), 2);
        if (given) rules.beams.n_beams = 1;
    }
    if (options.n_beams) rules.beams.n_beams = options.n_beams;
    return rules;
}

/// A source's text, or its ids, in; the target's pieces to `on_piece`. Beams give one, for a text's beginning may change.
class Target {
public:
    Target(const RunOptions& options, const OpenedModel& opened)
        : options_(options), opened_(opened), said_(rules_of(options, opened)) {
        const TargetLimits limits{
            .n_threads = options.common.n_threads, .isa = options.common.isa_or_best(), .kv_type = options.kv_type};
        if (said_.beams.n_beams > 1)
            beams_.emplace(opened.model, opened.name, limits, said_);
        else
            writer_.emplace(opened.model, opened.tokenizer, opened.name, limits, options.limits());
    }

    [[nodiscard]] Written write(std::vector<Token> source, const std::function<void(const Piece&)>& on_piece) {
        rules_ = said_;
        if (opened_.tokenizer.valid())
            source_ = with_languages(std::move(source), options_.languages, opened_.tokenizer, rules_);
        else
            source_ = std::move(source);
        GenerateOptions how = options_.generate();
        if (!options_.has_n_new) how.n_new = kUnlimited;  // the model's own limit
        Written made;
        made.n_source = source_.size();
        Clock::time_point started = Clock::now();
        beams_ ? beams_->start(source_, rules_, how.n_new) : writer_->start(source_, rules_, how);
        made.source_seconds = seconds_since(started);
        started = Clock::now();
        beams_ ? search(made, on_piece) : follow(made, on_piece);
        made.seconds = seconds_since(started);
        return made;
    }

    [[nodiscard]] std::vector<Token> tokenized(const std::string& text) const {
        return tokenize_text(opened_, text, options_.special);
    }
    [[nodiscard]] std::uint64_t n_bytes() const { return beams_ ? beams_->n_bytes() : writer_->n_bytes(); }

private:
    void follow(Written& made, const std::function<void(const Piece&)>& on_piece) {
        for (Piece piece; piece.finish == FinishReason::none;) {
            require(writer_->next(piece), opened_.name);
            made.text += piece.text;
            made.tokens.insert(made.tokens.end(), piece.tokens.begin(), piece.tokens.end());
            made.finish = piece.finish;
            on_piece(piece);
        }
    }
    void search(Written& made, const std::function<void(const Piece&)>& on_piece) {
        while (beams_->next()) continue;
        BeamWriter::Text best = beams_->best();
        made.text = text_of(best.tokens);
        made.tokens = std::move(best.tokens);
        made.score = best.score;
        made.finish = best.finish;
        Piece whole;
        whole.text = made.text;
        whole.tokens = made.tokens;
        on_piece(whole);
    }
    /// Of tokens behind the prompt, on which it depends whether a space is dropped.
    [[nodiscard]] std::string text_of(std::span<const Token> tokens) const {
        if (!opened_.tokenizer.valid()) return {};
        std::vector<char> room(max_piece_bytes(opened_.tokenizer));
        Decoder decoder;
        std::string text;
        for (const Token id : rules_.prompt()) (void)decode(opened_.tokenizer, decoder, id, options_.special, room);
        for (const Token id : tokens) text += decode(opened_.tokenizer, decoder, id, options_.special, room);
        return text + std::string(finish(decoder, room));
    }

    const RunOptions& options_;
    const OpenedModel& opened_;
    TargetRules said_, rules_;            // of the file, and with this text's languages
    std::optional<TargetWriter> writer_;  // or, with several beams,
    std::optional<BeamWriter> beams_;
    std::vector<Token> source_;
};

void print_figures(const Written& made, const Target& target, const RunOptions& options, const OpenedModel& opened) {
    std::fprintf(stderr, "%.0f tokens per second (source %.0f), %s arena bytes, %u %s, %s file bytes\n",
                 made.tokens_per_second(), made.source_tokens_per_second(), with_separators(target.n_bytes()).c_str(),
                 options.common.n_threads, options.common.n_threads == 1 ? "thread" : "threads",
                 with_separators(opened.model.bytes().size()).c_str());
    if (made.finish == FinishReason::length || made.finish == FinishReason::context)
        std::fprintf(stderr, "note: the text ends at its limit, not where the model ends it\n");
}

void print_json(const Written& made, const Target& target, const RunOptions& options, const OpenedModel& opened) {
    nlohmann::ordered_json object;
    object["text"] = made.text;
    object["tokens"] = made.tokens;
    object["finish"] = name(made.finish);
    if (made.score) object["score"] = *made.score;
    object["n_tokens"] = made.tokens.size();
    object["n_prompt_tokens"] = made.n_source;
    object["tokens_per_second"] = made.tokens_per_second();
    object["prefill_tokens_per_second"] = made.source_tokens_per_second();
    object["arena_bytes"] = target.n_bytes();
    object["file_bytes"] = opened.model.bytes().size();
    object["n_threads"] = options.common.n_threads;
    const auto replace = nlohmann::ordered_json::error_handler_t::replace;  // a text may end within a character
    std::printf("%s\n", object.dump(-1, ' ', false, replace).c_str());
}

void write_one(Target& target, const std::vector<Token>& source, const RunOptions& options, const OpenedModel& opened) {
    const bool has_text = opened.tokenizer.valid(), prints = !options.common.json;
    bool first = true;
    const Written made = target.write(source, [&](const Piece& piece) {
        if (prints && has_text) std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
        for (const Token id : has_text ? std::span<const Token>() : piece.tokens) {
            if (prints) std::printf(first ? "%u" : ",%u", id);
            first = false;
        }
        if (prints) std::fflush(stdout);
    });
    if (options.common.json) return print_json(made, target, options, opened);
    std::fputc('\n', stdout);
    flush_output();
    if (!options.quiet) print_figures(made, target, options, opened);
}

/// What belongs to models that continue their prompt.
void check(const RunOptions& options, const OpenedModel& opened) {
    const std::pair<bool, const char*> others[] = {{!options.session.empty(), "--session"},
                                                   {!options.draft.empty(), "--draft"},
                                                   {options.form.wanted(), "a form of answers"},
                                                   {options.view.wanted(), "--weights or --picture"},
                                                   {options.context != 0, "--context"},
                                                   {options.echo, "--echo"},
                                                   {!options.loras.empty(), "--lora"}};
    for (const auto& [given, name] : others)
        if (given)
            throw Refusal(std::string(name) + ": expected a model that continues its prompt, got " + opened.name +
                              ", which writes another text",
                          2);
    if (!options.batch.empty() && options.n_beams > 1)
        throw Refusal("--beams: expected 1 beside --batch, got " + std::to_string(options.n_beams), 2);
    if (!opened.tokenizer.valid() && !(options.languages.from + options.languages.to).empty())
        (void)need_tokenizer(opened);
    if (options.tokens.empty()) (void)need_tokenizer(opened);
}

}  // namespace

void write_target(RunOptions& options, const OpenedModel& opened) {
    check(options, opened);
    if (!options.batch.empty()) return answer_batch(options, opened);
    std::optional<std::string> text;
    if (options.tokens.empty() && options.has_prompt) text = given_prompt(options.prompt, options.prompt_file);
    if (options.tokens.empty() && !text && !isatty(STDIN_FILENO) && input_speaks()) text = read_input();
    if (options.tokens.empty() && !text && (options.common.json || !isatty(STDIN_FILENO)))
        throw Refusal("prompt: expected -p TEXT, or one on standard input, got none", 2);
    Target target(options, opened);
    if (!options.tokens.empty()) return write_one(target, options.tokens, options, opened);
    if (text) return write_one(target, target.tokenized(*text), options, opened);
    std::fprintf(stderr, "%s: a text per line, an empty one ends.\n", one_line(opened.name).c_str());
    for (std::string line; std::fputs("> ", stderr), std::getline(std::cin, line) && !line.empty();) try {
            write_one(target, target.tokenized(line), options, opened);
        } catch (const Refusal& refusal) {  // this line was too long; the next may not be
            std::fprintf(stderr, "%s\n", refusal.what());
        }
}

}  // namespace fovea
