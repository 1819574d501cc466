// fovea run with a model of two stacks: the prompt is what the encoder reads, and the decoder writes a text of its own.
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/output_file.h"
#include "host/base/text_file.h"
#include "tools/options/given_prompt.h"
#include "tools/verbs/run_options.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

/// As many as --beams or, where tokens are not simply the likeliest, one. 0: what the model says.
std::uint32_t n_beams_of(const RunOptions& options) {
    const char* other = first_given({{options.sampling.wanted(), "options of sampling"},
                                     {!options.stop.empty(), "--stop"},
                                     {options.n_proposed() > 0, "--speculate"}});
    if (other && options.n_beams > 1)
        throw UsageError("--beams: expected 1 beside " + std::string(other) + ", got " +
                         std::to_string(options.n_beams));
    return other ? 1 : options.n_beams;
}

/// Writes targets, and says what is to be said of them.
class TargetPrinter {
public:
    TargetPrinter(Translator& translator, const RunOptions& options, const host::Opened& opened)
        : translator_(translator),
          options_(options),
          opened_(opened),
          how_(options.generate(options.n_new.value_or(kAny))) {}  // else the model's limit

    void write(const std::vector<Token>& source) {
        print(true, [&](const std::function<void(const Piece&)>& on_piece) {
            const double started = host::seconds_now();
            translator_.start(source, options_.languages, how_);
            const double seconds = host::seconds_now() - started;
            Translator::Text made = translator_.write(on_piece);
            made.source_seconds = seconds;
            return made;
        });
    }
    void write(std::string_view source, bool figures = true) {
        print(figures, [&](const std::function<void(const Piece&)>& on_piece) {
            return translator_.translate(source, options_.languages, how_, {.parse_special = options_.special},
                                         on_piece);
        });
    }
    /// A line of each line; of an empty one an empty line.
    void write_lines(std::string_view text) {
        const bool several = text.find('\n') != text.npos;
        for (bool more = true; more;) {
            const std::size_t end = text.find('\n');
            const std::string_view line = trimmed(text.substr(0, end), "\r");
            more = end != text.npos;
            text.remove_prefix(more ? end + 1 : text.size());
            if (several && trimmed(line, " \t").empty())
                print(false, [](const auto&) { return Translator::Text{.finish = FinishReason::end_token}; });
            else
                write(line, !several);
        }
    }

private:
    template<class Make>
    void print(bool figures, const Make& make) {
        PieceWriter writer(opened_);
        const double started = host::seconds_now();
        const Translator::Text made = make([&](const Piece& piece) {
            if (!options_.common.json) writer.write(piece);
        });
        const double seconds = host::seconds_now() - started - made.source_seconds;
        if (options_.common.json)
            print_json(made, seconds);
        else
            writer.write("\n"), flush_output();
        if (options_.quiet) return;
        if (made.n_parts > 1)
            std::fprintf(stderr, "note: a source was read in %u parts: the model reads at most %s tokens at once\n",
                         made.n_parts, with_separators(translator_.max_source()).c_str());
        if (options_.common.json) return;
        if (figures)
            std::fprintf(
                stderr, "%.0f tokens per second (source %.0f), %s arena bytes, %s, %s file bytes\n",
                per_second(made.tokens.size(), seconds), per_second(translator_.n_source(), made.source_seconds),
                with_separators(translator_.n_bytes()).c_str(), counted(options_.common.n_threads, "thread").c_str(),
                with_separators(opened_.model.bytes().size()).c_str());
        if (made.finish == FinishReason::length || made.finish == FinishReason::context)
            std::fprintf(stderr, "note: the text ends at its limit, not where the model ends it\n");
    }
    void print_json(const Translator::Text& made, double seconds) const {
        Json object{{"text", made.text}, {"tokens", made.tokens}, {"finish", host::name_of(made.finish)}};
        if (made.score) object["score"] = *made.score;
        if (made.n_parts > 1) object["n_parts"] = made.n_parts;
        object.update(Json{{"n_tokens", made.tokens.size()},
                           {"n_prompt_tokens", translator_.n_source()},
                           {"tokens_per_second", per_second(made.tokens.size(), seconds)},
                           {"prefill_tokens_per_second", per_second(translator_.n_source(), made.source_seconds)},
                           {"arena_bytes", translator_.n_bytes()},
                           {"file_bytes", opened_.model.bytes().size()},
                           {"n_threads", options_.common.n_threads}});
        print_line(object);
    }
    static double per_second(std::size_t n, double seconds) {
        return seconds > 0 ? static_cast<double>(n) / seconds : 0;
    }

    Translator& translator_;
    const RunOptions& options_;
    const host::Opened& opened_;
    const GenerateOptions how_;
};

/// Whether a file of lines is read line by line: so by models that translate sentences.
bool translates_lines(const host::Opened& opened) {
    const std::string_view family = opened.model.info().architecture;
    return family == "marian" || family == "m2m_100" || family == "mbart";
}

/// What belongs to models that continue their prompt.
void check(const RunOptions& options, const host::Opened& opened) {
    if (const char* other = first_given({{!options.session.empty(), "--session"},
                                         {!options.draft.empty(), "--draft"},
                                         {options.form.wanted(), "a form of answers"},
                                         {options.view.wanted(), "--weights or --picture"},
                                         {options.context != 0, "--context"},
                                         {options.echo, "--echo"},
                                         {!options.loras.empty(), "--lora"}}))
        throw UsageError(std::string(other) + ": expected a model that continues its prompt, got " + opened.name +
                         ", which writes another text");
    if (!options.batch.empty() && options.n_beams > 1)
        throw UsageError("--beams: expected 1 beside --batch, got " + std::to_string(options.n_beams));
    const bool names_language = !(options.languages.from + options.languages.to).empty();
    if (names_language || (options.tokens.empty() && options.batch.empty())) (void)opened.need_tokenizer();
}

}  // namespace

void write_target(const RunOptions& options, const host::Opened& opened) {
    check(options, opened);
    if (!options.batch.empty()) return run_batch(options, opened);
    std::optional<std::string> text;
    if (options.tokens.empty()) text = asked_prompt(options.has_prompt, options.prompt, options.prompt_file);
    if (options.tokens.empty() && !text && (options.common.json || !isatty(STDIN_FILENO)))
        throw UsageError("prompt: expected -p TEXT, or one on standard input, got none");
    Translator translator(opened, {.limits = {.n_threads = options.common.n_threads,
                                              .isa = options.common.isa_or_best(),
                                              .kv_type = options.common.kv_type},
                                   .generator = options.limits(),
                                   .n_beams = n_beams_of(options)});
    TargetPrinter printer(translator, options, opened);
    if (!options.tokens.empty()) return printer.write(options.tokens);
    const bool typed = options.has_prompt && options.prompt_file.empty() && options.prompt != "-" &&
                       (!options.prompt.starts_with('@') || options.prompt.starts_with("@@"));
    if (text) return !typed && translates_lines(opened) ? printer.write_lines(*text) : printer.write(*text);
    std::fprintf(stderr, "%s: a text per line, an empty one ends.\n", one_line(opened.name).c_str());
    for (std::string line; std::fputs("> ", stderr), read_input_line(line) && !line.empty();) printer.write(line);
}

}  // namespace fovea
