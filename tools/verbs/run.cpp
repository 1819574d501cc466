// fovea run: a prompt in, its continuation out.
#include <unistd.h>
#include <filesystem>

#include "host/base/output_file.h"
#include "host/base/text_file.h"
#include "host/model/beam_options.h"
#include "host/model/context.h"
#include "host/text/session_file.h"
#include "tools/options/given_prompt.h"
#include "tools/options/ranks.h"
#include "tools/verbs/run_options.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostNew = 128;  // tokens, unless -n says another number

/// The context that was asked for, or the model's.
std::uint32_t context_of(const RunOptions& options, const host::Opened& opened) {
    return checked_context(opened.name, opened.model, options.context, kAny);
}

/// How many new tokens there can be: -n, or as many as the context has room for behind the prompt.
std::uint32_t new_tokens(const RunOptions& options, std::uint64_t n_prompt, std::uint64_t context) {
    if (n_prompt == 0) throw UsageError("prompt: expected 1 token or more, got none");
    const std::uint32_t n_new = options.n_new.value_or(kMostNew);
    const std::uint64_t most = context - (n_new ? 1 : 0);  // one at least
    if (n_prompt > most)
        throw host::Error("prompt: expected at most " + std::to_string(most) + " tokens, which a context of " +
                          std::to_string(context) + " has room for, got " + std::to_string(n_prompt));
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(n_new, context - n_prompt));
}

/// All that answers prompts, one after the other. `opened` must outlive it. A saved session is restored before the model of
/// --draft is opened.
struct Answering {
    host::Opened draft;
    host::Generation generation;
    AnswerForm form;

    /// Without --context a session has room for this prompt and its answer, no more.
    Answering(const RunOptions& options, const host::Opened& opened, std::uint32_t n_positions,
              const SavedText* before = nullptr)
        : generation(opened, options.common.limits(options.context ? options.context : n_positions),
                     options.common.session(), options.limits()),
          form(options.form, opened) {
        if (before) generation.resume(*before, options.session);
        if (options.draft.empty()) return;
        draft = open_path(options.draft, options.common.opening());
        if (is_other_rank()) return;  // the first alone guesses
        generation.propose_by(draft,
                              {.max_kv_len = std::min(n_positions, draft.config().decoder.max_positions),
                               .n_threads = options.common.n_threads},
                              options.common.session());
    }

    /// The next answer, of n_new tokens at most.
    template<class OnPiece>
    host::Generated answer(const RunOptions& options, std::span<const Token> prompt, std::uint32_t n_new,
                           OnPiece on_piece) {
        GenerateOptions how = options.generate(n_new);
        how.filter = form.start();
        return generation.generate_until(prompt, how, [&](const Piece& piece) {
            on_piece(piece);
            return true;
        });
    }
};

std::string closed_prompt(const host::Opened& opened, const std::string& text) {
    return text + std::string(opened.model.info().prompt_suffix);
}

void print_figures(std::FILE* out, const host::Generated& made, const host::Generation& by,
                   const host::Opened& opened) {
    const std::uint64_t file_bytes = opened.model.bytes().size();
    std::fprintf(out, "%.0f tokens per second (prompt %.0f%s), %s arena bytes, %s, %s, %s file bytes",
                 made.tokens_per_second(), made.prefill_tokens_per_second(),
                 made.is_cold(file_bytes) ? " cold: the file was mapped meanwhile" : "",
                 with_separators(by.plan().arena_bytes).c_str(), by.session().isa(),
                 counted(by.plan().limits.n_threads, "thread").c_str(), with_separators(file_bytes).c_str());
    const GenerateFigures& f = made.figures;
    if (f.n_proposed)
        std::fprintf(out, ", %u tokens in %u passes, %u of %u proposed ones right", made.n_decoded, f.n_passes,
                     f.n_accepted, f.n_proposed);
    std::fprintf(out, "\n");
}

void print_json(const std::string& text, const std::vector<Token>& tokens, const host::Generated& made,
                const Answering& by, const host::Opened& opened) {
    Json object{{"text", text}};
    if (!tokens.empty()) object["tokens"] = tokens;
    object["finish"] = host::name_of(made.finish);
    if (by.form.wanted()) {
        object["complete"] = by.form.complete();
        object["n_forced_tokens"] = made.figures.n_forced;
    }
    const GenerateFigures& f = made.figures;
    object.update(Json{{"n_tokens", f.n_tokens},
                       {"n_prompt_tokens", f.n_prompt},
                       {"n_kept_tokens", f.n_kept},
                       {"n_passes", f.n_passes},
                       {"n_proposed_tokens", f.n_proposed},
                       {"n_accepted_tokens", f.n_accepted},
                       {"n_draft_passes", f.n_draft_passes},
                       {"acceptance_rate", f.n_proposed ? 1.0 * f.n_accepted / f.n_proposed : 0.0},
                       {"tokens_per_pass", f.n_passes ? 1.0 * made.n_decoded / f.n_passes : 0.0},
                       {"tokens_per_second", made.tokens_per_second()},
                       {"prefill_tokens_per_second", made.prefill_tokens_per_second()},
                       {"prefill_page_faults", made.n_page_faults},
                       {"prefill_is_cold", made.is_cold(opened.model.bytes().size())},
                       {"arena_bytes", by.generation.plan().arena_bytes},
                       {"file_bytes", opened.model.bytes().size()},
                       {"isa", by.generation.session().isa()},
                       {"n_threads", by.generation.plan().limits.n_threads}});
    print_line(object);
}

/// The file of --session, where there is one.
std::optional<SavedText> read_session(const RunOptions& options, Mapping& mapping) {
    std::error_code ignored;                   // what cannot be looked at cannot be written either, and is refused then
    if (is_other_rank()) return std::nullopt;  // the first hands over what it restores
    if (options.session.empty() || !std::filesystem::exists(options.session, ignored) ||
        std::filesystem::is_empty(options.session, ignored))  // as mktemp makes one
        return std::nullopt;
    require(map_file(options.session.c_str(), mapping), options.session);
    return host::split_session_file(mapping.bytes(), options.session);
}

void run_once(const RunOptions& options, const host::Opened& opened) {
    check_layer(options.view, opened.model.config().decoder);
    const std::string prompt = closed_prompt(opened, options.prompt);
    const std::vector<Token> tokens =
        options.tokens.empty() ? opened.tokens(prompt, {.parse_special = options.special}) : options.tokens;
    const std::uint32_t n_new = new_tokens(options, tokens.size(), context_of(options, opened));
    Mapping mapping;
    if (!options.session.empty()) check_can_write(options.session);
    const std::optional<SavedText> before = read_session(options, mapping);
    const std::uint64_t n_before =
        before ? std::min<std::uint64_t>(before->tokens.size(), opened.model.config().decoder.max_positions) : 0;
    const std::uint64_t n_positions =
        std::max<std::uint64_t>(tokens.size() + n_new, std::stoul(from_first_rank(std::to_string(n_before)).value()));
    lead_ranks();
    Answering answering(options, opened, static_cast<std::uint32_t>(n_positions), before ? &*before : nullptr);
    host::Generation& generation = answering.generation;
    if (follows_first_rank(generation.session())) return;
    const bool json = options.common.json;
    PieceWriter writer(opened);
    if (options.echo && !json && !opened.tokenizer.valid())
        writer.write(tokens);
    else if (options.echo && !json)
        writer.write(options.tokens.empty() ? prompt : opened.text(tokens, {.show_special = true}));
    std::string text;
    const host::Generated made =
        answering.answer(options, tokens, options.n_new.value_or(kMostNew), [&](const Piece& piece) {
            text += piece.text;
            if (!json) writer.write(piece);
        });
    if (!json) writer.write("\n");
    // Before the figures, so that where this fails its refusal is all there is on standard error.
    const std::span<const Token> held = generation.tokens(), added = generation.all_tokens().subspan(tokens.size());
    if (!options.session.empty()) host::write_session_file(options.session, generation.session(), held);
    std::vector<Token> new_ids;
    if (!options.tokens.empty()) new_ids.assign(added.begin(), added.end());
    show_attention(options.view, opened, generation.session(), held, held.size(), false);
    if (json) return print_json(text, new_ids, made, answering, opened);
    flush_output();
    if (answering.form.wanted() && !answering.form.complete())
        std::fprintf(stderr, "note: the answer ends before it fits the form, for -n or the context is too small\n");
    if (!options.quiet) print_figures(stderr, made, generation, opened);
}

/// A prompt per line until the end of the input; each is answered on its own.
void run_interactively(const RunOptions& options, const host::Opened& opened) {
    const std::uint32_t context = context_of(options, opened);
    Answering answering(options, opened, context);
    std::fprintf(stderr, "%s: a prompt per line, an empty one ends.\n", one_line(opened.name).c_str());
    for (std::string line; std::fputs("> ", stderr), read_input_line(line) && !line.empty();) {
        const std::vector<Token> tokens =
            opened.tokens(closed_prompt(opened, line), {.parse_special = options.special});
        std::uint32_t n_new = 0;
        try {
            n_new = new_tokens(options, tokens.size(), context);
        } catch (const host::Error& refusal) {  // this line was too long; the next may not be
            std::fprintf(stderr, "%s\n", refusal.what());
            continue;
        }
        PieceWriter writer(opened);
        const host::Generated made =
            answering.answer(options, tokens, n_new, [&](const Piece& piece) { writer.write(piece); });
        writer.write("\n");
        print_figures(stderr, made, answering.generation, opened);
    }
}

/// On a terminal: a conversation with a model that says how it is talked to, else each line on its own.
void answer_lines(const RunOptions& options, const host::Opened& opened) {
    const ModelInfo& info = opened.model.info();
    const bool talks = !info.chat_template.empty() || !info.prompt_suffix.empty();
    const bool by_lines =
        options.form.wanted() || options.n_proposed() || !options.draft.empty() || options.special || options.echo;
    if (!talks || by_lines) return run_interactively(options, opened);
    hold_conversation({options, {}, {}, {}, false, false}, opened);
}

/// A few commands with their answers, and what else the built-in model understands.
void show_demo(const RunOptions& options, const host::Opened& opened) {
    static constexpr const char* kCommands[] = {"turn on the reading lamp in the living room",
                                                "set the heating in the bedroom to twenty one degrees",
                                                "close the blinds in the office at half past seven in the evening",
                                                "is the front door locked",
                                                "set a timer for twenty five minutes",
                                                "remind me to water the plants at 6 pm",
                                                "add olive oil to the shopping list",
                                                "wake me up at 7 am",
                                                "play jazz in the kitchen"};
    const std::uint32_t context = context_of(options, opened);
    Answering answering(options, opened, context);
    host::Generated all;
    std::printf("The built-in model turns home commands into JSON:\n\n");
    for (const char* command : kCommands) {
        const std::vector<Token> tokens = opened.tokens(closed_prompt(opened, command));
        const std::uint32_t n_new = new_tokens(options, tokens.size(), context);
        std::printf("  %s\n    ", command);
        const host::Generated made =
            answering.answer(options, tokens, n_new, [](const Piece& piece) { PieceWriter::write(piece.text); });
        std::printf("\n");
        all.figures.n_prompt += made.figures.n_prompt;
        all.figures.n_passes += made.figures.n_passes;
        all.figures.n_proposed += made.figures.n_proposed;
        all.figures.n_accepted += made.figures.n_accepted;
        all.prefill_seconds += made.prefill_seconds;
        all.n_decoded += made.n_decoded;
        all.decode_seconds += made.decode_seconds;
    }
    std::printf(
        "\nIt knows rooms, lights, switches, heating, blinds, locks, timers, alarms, reminders, lists, music, and\n"
        "questions about them, in English. Anything else gets a guess. Ask it something:\n\n"
        "    fovea run -p \"dim the kitchen lights to forty percent\"\n\n");
    print_figures(stdout, all, answering.generation, opened);
}

/// What goes with --batch, and what with nothing else.
void check_batch(const RunOptions& options) {
    if (options.batch.empty()) {
        if (!options.output.empty()) throw UsageError("-o: expected --batch with it, got none");
        return;
    }
    if (const char* other = first_given({{options.has_prompt, "a prompt"},
                                         {!options.session.empty(), "--session"},
                                         {!options.draft.empty(), "--draft"},
                                         {options.n_proposed() > 0, "--speculate"},
                                         {options.view.wanted(), "--weights or --picture"},
                                         {options.special, "--special"},
                                         {options.echo, "--echo"}}))
        throw UsageError(std::string("--batch: expected no options of a single prompt, got ") + other);
    if (options.common.json && (options.output.empty() || options.output == "-"))
        throw UsageError("--json: expected -o FILE with --batch, got standard output for the answers");
}

/// Refuses options that do not go together.
void check_given(const RunOptions& options) {
    options.form.check();
    if (const char* other =
            first_given({{options.batch == "-", "--batch -"}, {options.view.wanted(), "--weights or --picture"}}))
        refuse_by_ranks(other);
    if (options.form.compact && options.form.schema_path.empty() && options.batch.empty())
        throw UsageError("--compact: expected --json-schema beside it, got none");
    if (options.n_others && options.n_prompts + options.n_others > 1)  // the last -p counts
        throw UsageError("prompt: expected one of PROMPT, -p, -f and --tokens, got several");
    check_batch(options);
    options.check_stop();
    check_view(options.view, options.common);
    if (options.view.wanted() && !options.has_prompt)
        throw UsageError("--weights and --picture: expected -p TEXT with them, got none");
    if (!options.session.empty() && !options.has_prompt)
        throw UsageError("--session: expected -p TEXT with it, got none");
    check_sessions(options.session, options.loras);
}

void run(RunOptions& options) {
    options.has_prompt = options.n_prompts + options.n_others > 0;
    check_given(options);
    options.stop_views.assign(options.stop.begin(), options.stop.end());
    settle(options.common);
    if (!options.has_prompt) refuse_text_as_model(options.model);
    host::Opened opened = open_path_or_demo(options.model, options.common.opening());
    check_biases(options.sampling, opened.model);
    if (opened.kind() == host::Kind::translation) return write_target(options, opened);
    if (!options.languages.from.empty() || !options.languages.to.empty())
        throw UsageError("--from, --to: expected a model that translates, got one that continues its prompt");
    if (options.n_beams)
        throw UsageError(
            "--beams: expected a model that writes one text from another, got one that continues its prompt");
    opened.need_logits();
    open_loras(opened, options.loras, options.common.opening());
    // A batch may be of ids.
    if (options.form.wanted() || (options.tokens.empty() && options.batch.empty())) (void)opened.need_tokenizer();
    if (!options.tokens.empty()) return run_once(options, opened);
    if (!options.batch.empty()) {
        (void)context_of(options, opened);
        options.n_new = options.n_new.value_or(kMostNew);
        return run_batch(options, opened);
    }
    const auto ask = [&] { return asked_prompt(options.has_prompt, options.prompt, options.prompt_file); };
    if (const auto prompt = from_first_rank(is_other_rank() ? std::nullopt : ask());  // the others have no input
        prompt && (options.has_prompt || !prompt->empty())) {
        options.prompt = *prompt;
        return run_once(options, opened);
    }
    if (options.common.json) throw UsageError("prompt: expected -p TEXT with --json, got none");
    refuse_by_ranks("run without a prompt");
    if (options.model.empty()) return show_demo(options, opened);
    if (isatty(STDIN_FILENO)) return answer_lines(options, opened);
    throw UsageError("prompt: expected -p TEXT, or one on standard input, got none");
}

}  // namespace

void PieceWriter::write(std::span<const Token> ids) {
    for (const Token id : ids) {
        write((first_ ? "" : ",") + std::to_string(id));
        first_ = false;
    }
}

void PieceWriter::write(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void add_run(CLI::App& app) {
    const auto declare = [](const Verb& verb, RunOptions& o) {
        const auto counts_as_other = [&o](Option option) { option.each([&o] { ++o.n_others; }); };
        verb.model(o.model, "a Fovea file (default: the built-in model of home commands)");
        verb.text("-p,--prompt", o.prompt, "the text to continue; - for standard input, @FILE for a file's").each([&o] {
            ++o.n_prompts;
        });
        counts_as_other(verb.argument("PROMPT", o.prompt, "the same, without -p"));
        counts_as_other(verb.input("-f,--file", o.prompt_file, "a file with the text to continue"));
        verb.count_or_any("-n", o.n_new, 0,
                          "new tokens at most (default 128); -1: as many as the context has room for");
        verb.flag("--echo", o.echo, "print the prompt first");
        add_sampling(verb, o.sampling);
        add_form(verb, o.form);
        verb.count("--context", o.context, 1, kAny, "positions to hold (default: what the prompt and -n need)");
        verb.texts("--stop", o.stop, "a text that ends the answer, which has all before it; may be repeated");
        verb.count("--speculate", o.speculate, 0, 256,
                   "tokens to guess ahead and verify in one pass: the same text, in fewer passes where it repeats");
        verb.input(
            "--draft", o.draft,
            "a smaller model with the same vocabulary that does the guessing (8 tokens, or those of --speculate)");
        verb.output(
            "--session", o.session,
            "a file that keeps the cache between runs: what the prompt begins with like the last is not computed "
            "again");
        add_view(verb, o.view, true);
        verb.kv(o.common.kv_type);
        add_loras(verb, o.loras);
        verb.text("--from", o.languages.from, "of a model that translates: the source's language, as it names it",
                  "LANGUAGE");
        verb.text("--to", o.languages.to, "and the language to translate into, such as fr, fra_Latn or fr_XX",
                  "LANGUAGE");
        verb.count(
            "--beams", o.n_beams, 1, kMostBeams,
            "of a model that writes another text: beginnings that go on side by side (default: what the model says)");
        verb.flag("--special", o.special, "read special tokens in the prompt, and show those that come");
        verb.flag("--quiet", o.quiet, "no figures on standard error");
        counts_as_other(verb.tokens(o.tokens, "the ids to continue, such as 1,2,3, instead of a text"));
        verb.input(
            "--batch", o.batch,
            "requests, a JSON object a line with a prompt or messages, computed many at a time; - for standard input");
        verb.output("-o,--output", o.output,
                    "with --batch: a file for the answers (default: standard output); an unfinished one is continued");
        verb.count("--sequences", o.n_sequences, 1, 1024, "with --batch: requests computed at once (default 16)");
        verb.opening(o.common);
    };
    add_verb<RunOptions>(app, "run", "Continue a prompt, or show the built-in model", run, declare);
}

}  // namespace fovea
