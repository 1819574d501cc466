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

/// A source's ids in, the target's text out.
void write_one(Translator& translator, const std::vector<Token>& source, const RunOptions& options,
               const host::Opened& opened) {
    const bool json = options.common.json;
    PieceWriter writer(opened);
    const double started = host::seconds_now();
    translator.start(source, options.languages,
                     options.generate(options.n_new.value_or(kAny)));  // else the model's limit
    const double read = host::seconds_now();
    const Translator::Text made = translator.write([&](const Piece& piece) {
        if (!json) writer.write(piece);
    });
    const auto per_second = [](std::size_t n, double seconds) {
        return seconds > 0 ? static_cast<double>(n) / seconds : 0;
    };
    const double speed = per_second(made.tokens.size(), host::seconds_now() - read),
                 source_speed = per_second(translator.n_source(), read - started);
    const std::uint64_t arena_bytes = translator.n_bytes(), file_bytes = opened.model.bytes().size();
    if (json) {
        Json object{{"text", made.text}, {"tokens", made.tokens}, {"finish", host::name_of(made.finish)}};
        if (made.score) object["score"] = *made.score;
        object.update(Json{{"n_tokens", made.tokens.size()},
                           {"n_prompt_tokens", translator.n_source()},
                           {"tokens_per_second", speed},
                           {"prefill_tokens_per_second", source_speed},
                           {"arena_bytes", arena_bytes},
                           {"file_bytes", file_bytes},
                           {"n_threads", options.common.n_threads}});
        return print_line(object);
    }
    writer.write("\n");
    flush_output();
    if (options.quiet) return;
    std::fprintf(stderr, "%.0f tokens per second (source %.0f), %s arena bytes, %s, %s file bytes\n", speed,
                 source_speed, with_separators(arena_bytes).c_str(),
                 counted(options.common.n_threads, "thread").c_str(), with_separators(file_bytes).c_str());
    if (made.finish == FinishReason::length || made.finish == FinishReason::context)
        std::fprintf(stderr, "note: the text ends at its limit, not where the model ends it\n");
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
    const auto write_text = [&](const std::string& source) {
        write_one(translator, opened.tokens(source, {.parse_special = options.special}), options, opened);
    };
    if (!options.tokens.empty()) return write_one(translator, options.tokens, options, opened);
    if (text) return write_text(*text);
    std::fprintf(stderr, "%s: a text per line, an empty one ends.\n", one_line(opened.name).c_str());
    for (std::string line; std::fputs("> ", stderr), read_input_line(line) && !line.empty();) try {
            write_text(line);
        } catch (const host::Error& refusal) {  // this line was too long; the next may not be
            std::fprintf(stderr, "%s\n", refusal.what());
        }
}

}  // namespace fovea
