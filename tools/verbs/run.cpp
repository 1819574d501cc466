// fovea run: a prompt in, its continuation out.
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/host/generation.h"
#include "fovea/host/opened.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/output_file.h"
#include "host/base/words.h"
#include "host/model/beam_options.h"
#include "host/model/context.h"
#include "host/text/session_file.h"
#include "tools/options/adapters.h"
#include "tools/options/answer_form.h"
#include "tools/options/given_prompt.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/options/sampling.h"
#include "tools/show/view.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/chat.h"
#include "tools/verbs/run_batch.h"
#include "tools/verbs/run_options.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMostNew = kUnlimited - 1;
constexpr std::uint32_t kDrafted = 8;  // tokens that --draft proposes in each pass

void write_piece(std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
}

/// The context that was asked for, or the model's.
std::uint32_t context_of(const RunOptions& options, const host::Opened& opened) {
    return checked_context(opened.name, opened.model, options.context, kUnlimited);
}

/// How many new tokens there can be: -n, or as many as the context has room for behind the prompt.
std::uint32_t new_tokens(const RunOptions& options, std::uint64_t n_prompt, std::uint64_t context) {
    if (n_prompt == 0) throw UsageError("prompt: expected 1 token or more, got none");
    const std::uint64_t most = context - (options.n_new ? 1 : 0);  // one at least
    if (n_prompt > most)
        throw host::Error("prompt: expected at most " + std::to_string(most) + " tokens, which a context of " +
                          std::to_string(context) + " has room for, got " + std::to_string(n_prompt));
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(options.n_new, context - n_prompt));
}

/// Without --context a session has room for this prompt and its answer, no more.
Limits session_limits(const RunOptions& options, std::uint32_t n_positions) {
    return {.max_kv_len = options.context ? options.context : n_positions,
            .n_threads = options.common.n_threads,
            .kv_type = options.kv_type};
}

/// All that answers prompts, one after the other. `opened` must outlive it. A saved session is restored before the model of
/// --draft is opened.
struct Answering {
    host::Opened draft;
    host::Generation generation;
    AnswerForm form;

    Answering(const RunOptions& options, const host::Opened& opened, std::uint32_t n_positions,
              const SavedText* before = nullptr)
        : generation(opened, session_limits(options, n_positions),
                     {.isa = options.common.isa_or_best(), .remote = options.shared->remote()}, options.limits()),
          form(options.form, opened) {
        if (before) generation.resume(*before, options.session);
        if (options.draft.empty()) return;
        draft = open_path(options.draft, options.common.opening());
        generation.propose_by(draft,
                              {.max_kv_len = std::min(n_positions, draft.config().decoder.max_positions),
                               .n_threads = options.common.n_threads},
                              {.isa = options.common.isa_or_best()});
    }

    /// For the next answer, of n_new tokens at most.
    [[nodiscard]] GenerateOptions begin(const RunOptions& options, std::uint32_t n_new) {
        GenerateOptions generate = options.generate();
        generate.n_new = n_new;
        generate.filter = form.start();
        return generate;
    }
};

std::string closed_prompt(const host::Opened& opened, const std::string& text) {
    return text + std::string(opened.model.info().prompt_suffix);
}

void print_figures(std::FILE* out, const host::Generated& made, const host::Generation& by,
                   const host::Opened& opened) {
    const char* cold = made.is_cold(opened.model.bytes().size()) ? " cold: the file was mapped meanwhile" : "";
    std::fprintf(out, "%.0f tokens per second (prompt %.0f%s), %s arena bytes, %s, %u %s, %s file bytes",
                 made.tokens_per_second(), made.prefill_tokens_per_second(), cold,
                 with_separators(by.plan().arena_bytes).c_str(), by.session().isa(), by.plan().limits.n_threads,
                 by.plan().limits.n_threads == 1 ? "thread" : "threads",
                 with_separators(opened.model.bytes().size()).c_str());
    const GenerateFigures& f = made.figures;
    if (f.n_proposed)
        std::fprintf(out, ", %u tokens in %u passes, %u of %u proposed ones right", made.n_decoded, f.n_passes,
                     f.n_accepted, f.n_proposed);
    std::fprintf(out, "\n");
}

void print_json(const std::string& text, std::span<const Token> tokens, const host::Generated& made,
                const host::Generation& by, const host::Opened& opened, const AnswerForm& form) {
    Json object;
    object["text"] = text;
    if (!tokens.empty()) object["tokens"] = std::vector<Token>(tokens.begin(), tokens.end());
    object["finish"] = host::name_of(made.finish);
    if (form.wanted()) {
        object["complete"] = form.complete();
        object["n_forced_tokens"] = made.figures.n_forced;
    }
    object["n_tokens"] = made.figures.n_tokens;
    object["n_prompt_tokens"] = made.figures.n_prompt;
    object["n_kept_tokens"] = made.figures.n_kept;
    object["n_passes"] = made.figures.n_passes;
    object["n_proposed_tokens"] = made.figures.n_proposed;
    object["n_accepted_tokens"] = made.figures.n_accepted;
    object["n_draft_passes"] = made.figures.n_draft_passes;
    object["tokens_per_second"] = made.tokens_per_second();
    object["prefill_tokens_per_second"] = made.prefill_tokens_per_second();
    object["prefill_page_faults"] = made.n_page_faults;
    object["prefill_is_cold"] = made.is_cold(opened.model.bytes().size());
    object["arena_bytes"] = by.plan().arena_bytes;
    object["file_bytes"] = opened.model.bytes().size();
    object["isa"] = by.session().isa();
    object["n_threads"] = by.plan().limits.n_threads;
    std::printf("%s\n", json_text(object).c_str());
}

/// The file of --session, where there is one.
std::optional<SavedText> read_session(const RunOptions& options, Mapping& mapping) {
    std::error_code ignored;  // what cannot be looked at cannot be written either, and is refused then
    if (options.session.empty() || !std::filesystem::exists(options.session, ignored)) return std::nullopt;
    require(map_file(options.session.c_str(), mapping), options.session);
    return host::split_session_file(mapping.bytes(), options.session);
}

/// The text as it is made, or the ids where the model has none. Theirs are parted by commas, as --tokens reads them.
host::Generated write_text(const RunOptions& options, const host::Opened& opened, host::Generation& generation,
                           std::span<const Token> prompt, const GenerateOptions& generate) {
    bool first = true;
    const auto write_ids = [&](std::span<const Token> ids) {
        for (const Token id : ids) {
            write_piece((first ? "" : ",") + std::to_string(id));
            first = false;
        }
        return true;
    };
    if (opened.tokenizer.valid()) {
        if (options.echo)
            write_piece(options.tokens.empty() ? closed_prompt(opened, options.prompt)
                                               : opened.text(prompt, {.show_special = true}));
        return generation.generate(prompt, generate, write_piece);
    }
    if (options.echo) write_ids(prompt);
    return generation.generate_until(prompt, generate, [&](const Piece& piece) { return write_ids(piece.tokens); });
}

void run_once(RunOptions& options, const host::Opened& opened) {
    check_layer(options.view, opened.model.config().decoder);
    const std::string prompt = closed_prompt(opened, options.prompt);
    const std::vector<Token> tokens =
        options.tokens.empty() ? opened.tokens(prompt, {.parse_special = options.special}) : options.tokens;
    const std::uint32_t n_new = new_tokens(options, tokens.size(), context_of(options, opened));
    Mapping mapping;
    if (!options.session.empty()) check_can_write(options.session);
    const std::optional<SavedText> before = read_session(options, mapping);
    const std::uint64_t n_positions = std::max<std::uint64_t>(
        tokens.size() + n_new,
        before ? std::min<std::uint64_t>(before->tokens.size(), opened.model.config().decoder.max_positions) : 0);
    Answering answering(options, opened, static_cast<std::uint32_t>(n_positions), before ? &*before : nullptr);
    host::Generation& generation = answering.generation;
    const GenerateOptions generate = answering.begin(options, options.n_new);
    // Before the figures, so that where this fails its refusal is all there is on standard error.
    const auto write_files = [&] {
        const std::span<const Token> all = generation.tokens();
        if (!options.session.empty()) host::write_session_file(options.session, generation.session(), all);
        show_attention(options.view, opened, generation.session(), all, all.size(), false);
    };
    if (options.common.json) {
        std::string text;
        const host::Generated made =
            generation.generate(tokens, generate, [&](std::string_view piece) { text += piece; });
        write_files();
        const std::span<const Token> added = generation.all_tokens().subspan(tokens.size());
        print_json(text, options.tokens.empty() ? std::span<const Token>() : added, made, answering.generation, opened,
                   answering.form);
    } else {
        const host::Generated made = write_text(options, opened, generation, tokens, generate);
        write_piece("\n");
        write_files();
        flush_output();
        if (answering.form.wanted() && !answering.form.complete())
            std::fprintf(stderr, "note: the answer ends before it fits the form, for -n or the context is too small\n");
        if (!options.quiet) print_figures(stderr, made, answering.generation, opened);
    }
}

/// A prompt per line until the end of the input; each is answered on its own.
void run_interactively(RunOptions& options, const host::Opened& opened) {
    const std::uint32_t context = context_of(options, opened);
    Answering answering(options, opened, context);
    std::fprintf(stderr, "%s: a prompt per line, an empty one ends.\n", one_line(opened.name).c_str());
    for (std::string line; std::fputs("> ", stderr), std::getline(std::cin, line) && !line.empty();) {
        const std::vector<Token> tokens =
            opened.tokens(closed_prompt(opened, line), {.parse_special = options.special});
        std::uint32_t n_new = 0;
        try {
            n_new = new_tokens(options, tokens.size(), context);
        } catch (const host::Error& refusal) {  // this line was too long; the next may not be
            std::fprintf(stderr, "%s\n", refusal.what());
            continue;
        }
        const host::Generated made =
            answering.generation.generate(tokens, answering.begin(options, n_new), write_piece);
        write_piece("\n");
        print_figures(stderr, made, answering.generation, opened);
    }
}

/// On a terminal: a conversation with a model that says how it is talked to, else each line on its own.
void answer_lines(RunOptions& options, const host::Opened& opened) {
    const ModelInfo& info = opened.model.info();
    const bool talks = !info.chat_template.empty() || !info.prompt_suffix.empty();
    const bool by_lines =
        options.form.wanted() || options.n_proposed || !options.draft.empty() || options.special || options.echo;
    if (!talks || by_lines) return run_interactively(options, opened);
    ChatOptions chat;
    chat.common = options.common;
    chat.sampling = options.sampling;
    chat.stop = options.stop;
    chat.quiet = options.quiet;
    if (options.has_n_new) chat.n_new = options.n_new;
    chat.context = options.context;
    chat.kv_type = options.kv_type;
    hold_conversation(chat, opened);
}

/// A few commands with their answers, and what else the built-in model understands.
void show_demo(RunOptions& options, const host::Opened& opened) {
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
        const GenerateOptions generate = answering.begin(options, new_tokens(options, tokens.size(), context));
        std::printf("  %s\n    ", command);
        const host::Generated made = answering.generation.generate(tokens, generate, write_piece);
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

}  // namespace

void answer_batch(const RunOptions& options, const host::Opened& opened) {
    const bool continues = opened.kind() != host::Kind::translation;
    if (continues) (void)context_of(options, opened);
    const BatchOptions batch{.input = options.batch,
                             .output = options.output,
                             .n_sequences = options.n_sequences,
                             .context = options.context,
                             .kv_type = options.kv_type,
                             .defaults = {options.sampling,
                                          options.stop,
                                          continues || options.has_n_new ? options.n_new : kUnlimited,
                                          options.languages,
                                          {}},
                             .form = options.form,
                             .quiet = options.quiet};
    run_batch(batch, options.common, opened);
}

namespace {

void run(RunOptions& options) {
    settle(options.common);
    if (!options.has_prompt) refuse_text_as_model(options.model);
    host::Opened opened = open_path_or_demo(options.model, options.common.opening());
    check_biases(options.sampling, opened.model);
    if (opened.kind() == host::Kind::translation && !options.common.workers.empty())
        throw UsageError("--workers: expected a model that continues its prompt, got one that writes another text");
    if (opened.kind() == host::Kind::translation) return write_target(options, opened);
    if (!options.languages.from.empty() || !options.languages.to.empty())
        throw UsageError("--from, --to: expected a model that translates, got one that continues its prompt");
    if (options.n_beams)
        throw UsageError(
            "--beams: expected a model that writes one text from another, got one that continues its prompt");
    opened.need_logits();
    open_loras(opened, options.loras, options.common.opening());
    options.shared = std::make_shared<const SharedWork>(options.common, opened);
    if (!options.tokens.empty() && !options.form.wanted()) return run_once(options, opened);
    if (options.batch.empty() || options.form.wanted()) (void)opened.need_tokenizer();  // a batch may be of ids
    if (!options.tokens.empty()) return run_once(options, opened);
    if (!options.batch.empty()) return answer_batch(options, opened);
    if (options.has_prompt) {
        options.prompt = given_prompt(options.prompt, options.prompt_file);
        return run_once(options, opened);
    }
    if (!isatty(STDIN_FILENO) && input_speaks()) {
        options.prompt = read_input();
        if (!options.prompt.empty()) return run_once(options, opened);
    }
    if (options.common.json) throw UsageError("prompt: expected -p TEXT with --json, got none");
    if (options.model.empty()) return show_demo(options, opened);
    if (isatty(STDIN_FILENO)) return answer_lines(options, opened);
    throw UsageError("prompt: expected -p TEXT, or one on standard input, got none");
}

void add_batch(CLI::App& verb, RunOptions& options) {
    add_text(verb, "--batch", options.batch,
             "requests, a JSON object a line with a prompt or messages, computed many at a time; - for standard input")
        .type_name("FILE");
    add_text(verb, "-o,--output", options.output,
             "with --batch: a file for the answers (default: standard output); an unfinished one is continued")
        .type_name("FILE");
    add_count(verb, "--sequences", options.n_sequences, 1, 1024,
              "with --batch: requests computed at once (default 16)");
}

/// Options for models that write another text than their prompt.
void add_target(CLI::App& verb, RunOptions& options) {
    add_text(verb, "--from", options.languages.from,
             "of a model that translates: the source's language, as it names it")
        .type_name("LANGUAGE");
    add_text(verb, "--to", options.languages.to, "and the language to translate into, such as fr, fra_Latn or fr_XX")
        .type_name("LANGUAGE");
    add_count(verb, "--beams", options.n_beams, 1, kMostBeams,
              "of a model that writes another text: beginnings that go on side by side (default: what the model says)");
}

/// What goes with --batch, and what with nothing else.
void check_batch(const RunOptions& options, std::size_t n_given) {
    if (options.batch.empty()) {
        if (!options.output.empty()) throw UsageError("-o: expected --batch with it, got none");
        return;
    }
    const std::pair<bool, const char*> others[] = {{n_given > 0, "a prompt"},
                                                   {!options.session.empty(), "--session"},
                                                   {!options.common.workers.empty(), "--workers"},
                                                   {!options.draft.empty(), "--draft"},
                                                   {options.n_proposed > 0, "--speculate"},
                                                   {options.view.wanted(), "--weights or --picture"},
                                                   {options.special, "--special"},
                                                   {options.echo, "--echo"}};
    for (const auto& other : others)
        if (other.first)
            throw UsageError(std::string("--batch: expected no options of a single prompt, got ") + other.second);
    if (options.common.json && (options.output.empty() || options.output == "-"))
        throw UsageError("--json: expected -o FILE with --batch, got standard output for the answers");
}

/// Refuses options that do not go together. Prompts are counted in n_given; `several`: not all of them are of -p.
void check_given(const RunOptions& options, std::size_t n_given, bool several) {
    options.form.check();
    if (options.form.compact && options.form.schema_path.empty() && options.batch.empty())
        throw UsageError("--compact: expected --json-schema beside it, got none");
    if (several) throw UsageError("prompt: expected one of PROMPT, -p, -f and --tokens, got several");
    check_batch(options, n_given);
    for (const std::string& text : options.stop)
        if (text.empty()) throw UsageError("--stop: expected a text, got an empty one");
    check_view(options.view, options.common);
    if (options.view.wanted() && n_given == 0)
        throw UsageError("--weights and --picture: expected -p TEXT with them, got none");
    if (!options.session.empty() && n_given == 0) throw UsageError("--session: expected -p TEXT with it, got none");
    check_sessions(options.session, options.loras);
}

}  // namespace

void add_run(CLI::App& app) {
    auto options = std::make_shared<RunOptions>();
    CLI::App& verb = add_verb(app, "run", "Continue a prompt, or show the built-in model");
    add_model(verb, options->model, "a Fovea file (default: the built-in model of home commands)");
    const Option prompt = add_text(verb, "-p,--prompt", options->prompt,
                                   "the text to continue; - for standard input, @FILE for a file's");
    const Option second = add_argument(verb, "PROMPT", options->prompt, "the same, without -p");
    const Option from_file =
        add_text(verb, "-f,--file", options->prompt_file, "a file with the text to continue").type_name("FILE");
    add_value(
        verb, "-n",
        [options](const std::string& text) {
            options->has_n_new = true;
            options->n_new =
                text == "-1" ? kUnlimited : static_cast<std::uint32_t>(read_count("-n", text, 0, kMostNew));
        },
        "new tokens at most (default 128); -1: as many as the context has room for")
        .type_name("N");
    add_flag(verb, "--echo", options->echo, "print the prompt first");
    add_sampling(verb, options->sampling);
    add_form(verb, options->form);
    add_count(verb, "--context", options->context, 1, kUnlimited,
              "positions to hold (default: what the prompt and -n need)");
    add_texts(verb, "--stop", options->stop, "a text that ends the answer, which has all before it; may be repeated");
    const Option speculate =
        add_count(verb, "--speculate", options->n_proposed, 0, 256,
                  "tokens to guess ahead and verify in one pass: the same text, in fewer passes where it repeats");
    add_text(verb, "--draft", options->draft,
             "a smaller model with the same vocabulary that does the guessing (8 tokens, or those of --speculate)")
        .type_name("FILE");
    add_text(
        verb, "--session", options->session,
        "a file that keeps the cache between runs: what the prompt begins with like the last is not computed again")
        .type_name("FILE");
    add_view(verb, options->view, true);
    add_kv(verb, options->kv_type);
    add_loras(verb, options->loras);
    add_target(verb, *options);
    add_flag(verb, "--special", options->special, "read special tokens in the prompt, and show those that come");
    add_flag(verb, "--quiet", options->quiet, "no figures on standard error");
    const Option tokens = add_tokens(verb, options->tokens, "the ids to continue, such as 1,2,3, instead of a text");
    add_batch(verb, *options);
    add_workers(verb, options->common);
    add_verify(verb, options->common);
    add_common(verb, options->common);
    set_action(verb, [options, prompt, second, from_file, speculate, tokens] {
        const std::size_t n_given = prompt.count() + second.count() + from_file.count() + tokens.count();
        const bool several = n_given > 1 && n_given != prompt.count();  // the last -p counts
        check_given(*options, n_given, several);
        if (!options->draft.empty() && speculate.count() == 0) options->n_proposed = kDrafted;
        options->stop_views.assign(options->stop.begin(), options->stop.end());
        options->has_prompt = n_given > 0;
        run(*options);
    });
}

}  // namespace fovea
