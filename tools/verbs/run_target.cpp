// fovea run with a model of two stacks: the prompt is what the encoder reads, and the decoder writes a text of its own.
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "fovea/host/generation.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/output_file.h"
#include "host/base/words.h"
#include "tools/options/given_prompt.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/run_options.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// What was written, and in what time.
struct WrittenTarget : Translator::Text {
    std::size_t n_source = 0;
    double source_seconds = 0, seconds = 0;

    [[nodiscard]] double tokens_per_second() const {
        return seconds > 0 ? static_cast<double>(tokens.size()) / seconds : 0;
    }
    [[nodiscard]] double source_tokens_per_second() const {
        return source_seconds > 0 ? static_cast<double>(n_source) / source_seconds : 0;
    }
};

/// As many as --beams or, where tokens are not simply the likeliest, one. 0: what the model says.
std::uint32_t n_beams_of(const RunOptions& options) {
    const std::pair<bool, const char*> others[] = {{options.sampling.wanted(), "options of sampling"},
                                                   {!options.stop.empty(), "--stop"},
                                                   {options.n_proposed > 0, "--speculate"}};
    for (const auto& [given, name] : others) {
        if (given && options.n_beams > 1)
            throw UsageError("--beams: expected 1 beside " + std::string(name) + ", got " +
                             std::to_string(options.n_beams));
        if (given) return 1;
    }
    return options.n_beams;
}

Translator::Options translator_options(const RunOptions& options) {
    return {.limits = {.n_threads = options.common.n_threads,
                       .isa = options.common.isa_or_best(),
                       .kv_type = options.kv_type},
            .generator = options.limits(),
            .n_beams = n_beams_of(options)};
}

/// A source's text, or its ids, in; the target's pieces to `on_piece`.
class Target {
public:
    Target(const RunOptions& options, const host::Opened& opened)
        : options_(options), opened_(opened), translator_(opened, translator_options(options)) {}

    [[nodiscard]] WrittenTarget write(std::vector<Token> source, const std::function<void(const Piece&)>& on_piece) {
        GenerateOptions how = options_.generate();
        if (!options_.has_n_new) how.n_new = kUnlimited;  // the model's own limit
        WrittenTarget made;
        Clock::time_point started = Clock::now();
        translator_.start(std::move(source), options_.languages, how);
        made.source_seconds = seconds_since(started);
        made.n_source = translator_.n_source();
        started = Clock::now();
        static_cast<Translator::Text&>(made) = translator_.write(on_piece);
        made.seconds = seconds_since(started);
        return made;
    }

    [[nodiscard]] std::vector<Token> tokenized(const std::string& text) const {
        return opened_.tokens(text, {.parse_special = options_.special});
    }
    [[nodiscard]] std::uint64_t n_bytes() const { return translator_.n_bytes(); }

private:
    const RunOptions& options_;
    const host::Opened& opened_;
    Translator translator_;
};

void print_figures(const WrittenTarget& made, const Target& target, const RunOptions& options,
                   const host::Opened& opened) {
    std::fprintf(stderr, "%.0f tokens per second (source %.0f), %s arena bytes, %u %s, %s file bytes\n",
                 made.tokens_per_second(), made.source_tokens_per_second(), with_separators(target.n_bytes()).c_str(),
                 options.common.n_threads, options.common.n_threads == 1 ? "thread" : "threads",
                 with_separators(opened.model.bytes().size()).c_str());
    if (made.finish == FinishReason::length || made.finish == FinishReason::context)
        std::fprintf(stderr, "note: the text ends at its limit, not where the model ends it\n");
}

void print_json(const WrittenTarget& made, const Target& target, const RunOptions& options,
                const host::Opened& opened) {
    Json object;
    object["text"] = made.text;
    object["tokens"] = made.tokens;
    object["finish"] = host::name_of(made.finish);
    if (made.score) object["score"] = *made.score;
    object["n_tokens"] = made.tokens.size();
    object["n_prompt_tokens"] = made.n_source;
    object["tokens_per_second"] = made.tokens_per_second();
    object["prefill_tokens_per_second"] = made.source_tokens_per_second();
    object["arena_bytes"] = target.n_bytes();
    object["file_bytes"] = opened.model.bytes().size();
    object["n_threads"] = options.common.n_threads;
    std::printf("%s\n", json_text(object).c_str());
}

void write_one(Target& target, const std::vector<Token>& source, const RunOptions& options,
               const host::Opened& opened) {
    const bool has_text = opened.tokenizer.valid(), prints = !options.common.json;
    bool first = true;
    const WrittenTarget made = target.write(source, [&](const Piece& piece) {
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
void check(const RunOptions& options, const host::Opened& opened) {
    const std::pair<bool, const char*> others[] = {{!options.session.empty(), "--session"},
                                                   {!options.draft.empty(), "--draft"},
                                                   {options.form.wanted(), "a form of answers"},
                                                   {options.view.wanted(), "--weights or --picture"},
                                                   {options.context != 0, "--context"},
                                                   {options.echo, "--echo"},
                                                   {!options.loras.empty(), "--lora"}};
    for (const auto& [given, name] : others)
        if (given)
            throw UsageError(std::string(name) + ": expected a model that continues its prompt, got " + opened.name +
                             ", which writes another text");
    if (!options.batch.empty() && options.n_beams > 1)
        throw UsageError("--beams: expected 1 beside --batch, got " + std::to_string(options.n_beams));
    if (!opened.tokenizer.valid() && !(options.languages.from + options.languages.to).empty())
        (void)opened.need_tokenizer();
    if (options.tokens.empty() && options.batch.empty()) (void)opened.need_tokenizer();
}

}  // namespace

void write_target(RunOptions& options, const host::Opened& opened) {
    check(options, opened);
    if (!options.batch.empty()) return answer_batch(options, opened);
    std::optional<std::string> text;
    if (options.tokens.empty() && options.has_prompt) text = given_prompt(options.prompt, options.prompt_file);
    if (options.tokens.empty() && !text && !isatty(STDIN_FILENO) && input_speaks()) text = read_input();
    if (options.tokens.empty() && !text && (options.common.json || !isatty(STDIN_FILENO)))
        throw UsageError("prompt: expected -p TEXT, or one on standard input, got none");
    Target target(options, opened);
    if (!options.tokens.empty()) return write_one(target, options.tokens, options, opened);
    if (text) return write_one(target, target.tokenized(*text), options, opened);
    std::fprintf(stderr, "%s: a text per line, an empty one ends.\n", one_line(opened.name).c_str());
    for (std::string line; std::fputs("> ", stderr), std::getline(std::cin, line) && !line.empty();) try {
            write_one(target, target.tokenized(line), options, opened);
        } catch (const host::Error& refusal) {  // this line was too long; the next may not be
            std::fprintf(stderr, "%s\n", refusal.what());
        }
}

}  // namespace fovea
