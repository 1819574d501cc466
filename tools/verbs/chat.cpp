// fovea chat: a conversation by the model's own template.
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <string_view>

#include "host/base/output_file.h"
#include "host/base/text_file.h"
#include "host/model/context.h"
#include "host/text/conversation.h"
#include "tools/options/ranks.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/line_editor.h"
#include "tools/verbs/chat.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

constexpr char kHelp[] =
    "/help             this list\n"
    "/reset            begin anew, with the same system text\n"
    "/undo             forget the last message and its answer\n"
    "/retry            answer the last message again\n"
    "/system [TEXT]    another system text, or none\n"
    "/save FILE        keep the conversation and its cache\n"
    "/load FILE        go on with one that was kept\n"
    "/history          show the messages\n"
    "/quit             end; so do Ctrl-D, and Ctrl-C twice. Ctrl-C ends an answer, or takes back a line\n"
    "A line that ends with \\ goes on in the next.\n";

class Chat {
public:
    Chat(const ChatOptions& options, host::Conversation& conversation, bool interactive)
        : options_(options), conversation_(conversation), interactive_(interactive) {}

    void run() {
        LineEditor editor(interactive_);
        bool ends_next = false;
        while (!done_) {
            CatchInterrupt::forget();
            if (CatchInterrupt::ends()) break;
            const Json calls = conversation_.open_calls();
            const std::string asks = calls.empty() ? "> " : calls[0]["function"]["name"].get<std::string>() + " gave> ";
            std::optional<std::string> line = editor.read(asks.c_str());
            bool begun = editor.had_text();
            while (line && line->ends_with('\\')) {
                line->back() = '\n';
                begun = true;
                const std::optional<std::string> more = editor.read(". ");
                if (!more) break;
                *line += *more;
            }
            if (CatchInterrupt::ends()) break;
            const bool interrupted = CatchInterrupt::came();
            if (interrupted && interactive_) {  // Ctrl-C takes back what was typed, then says how to end, then ends
                if (ends_next) break;
                ends_next = !begun;
                std::fputs(begun ? "\n" : "\n(Ctrl-C again or Ctrl-D ends)\n", stderr);
                continue;
            }
            ends_next = false;
            if (!line || interrupted) break;
            if (line->find_first_not_of(" \t\r\n") != line->npos) take(*line);
        }
        if (interactive_) std::fputs("\n", stderr);
    }

    void answer(const std::string& text) {
        const bool dim = options_.show_thinking && isatty(STDOUT_FILENO);
        const auto on_part = [&](std::string_view part, bool is_thought) {
            if (options_.common.json || (is_thought && !options_.show_thinking)) return;
            if (is_thought && dim) std::fputs("\x1b[2m", stdout);
            std::fwrite(part.data(), 1, part.size(), stdout);
            if (is_thought && dim) std::fputs("\x1b[0m", stdout);
            std::fflush(stdout);
        };
        const host::Answer made = conversation_.say(text, on_part, &CatchInterrupt::came());
        const bool stopped = CatchInterrupt::forget();
        if (made.made.figures.n_prompt == 0) return;  // calls wait for their results
        if (options_.common.json) return print_json(made);
        if (made.calls.empty() || !made.said.empty()) std::fputs("\n", stdout);
        for (const ToolCall& call : made.calls) print_line(call_of(call));
        flush_output();
        report(made, stopped);
    }

private:
    /// A line: a command, or a message.
    void take(const std::string& line) {
        try {
            if (line.starts_with('/') && !line.starts_with("//")) return command(line);
            answer(line.starts_with("//") ? line.substr(1) : line);
        } catch (const host::Error& refusal) {
            if (!interactive_) throw;
            std::fprintf(stderr, "%s\n", refusal.what());
        }
    }

    void command(const std::string& line) {
        const std::size_t space = line.find(' ');
        const std::string name = line.substr(0, space);
        const std::string rest = line.substr(std::min(line.find_first_not_of(' ', space), line.size()));
        const auto need_file = [&] {
            if (rest.empty()) throw host::Error(name + ": expected a file after it, got none");
        };
        if (name == "/help") {
            std::fputs(kHelp, stderr);
        } else if (name == "/quit" || name == "/exit" || name == "/bye") {
            done_ = true;
        } else if (name == "/reset") {
            conversation_.reset();
        } else if (name == "/undo") {
            (void)last_message(name);
        } else if (name == "/retry") {
            answer(last_message(name));
        } else if (name == "/system") {
            conversation_.set_system(rest);
        } else if (name == "/save") {
            need_file();
            conversation_.save(rest);
        } else if (name == "/load") {
            need_file();
            conversation_.load(rest);
        } else if (name == "/history") {
            for (const auto& message : conversation_.messages())
                std::fprintf(stderr, "%s: %s\n", message["role"].get<std::string>().c_str(),
                             message["content"].get<std::string>().c_str());
        } else {
            throw host::Error("command: expected one that /help lists, got " + name);
        }
    }

    std::string last_message(const std::string& name) {
        std::string text = conversation_.undo();
        if (text.empty()) throw host::Error(name + ": expected a message before it, got none");
        return text;
    }

    void report(const host::Answer& answer, bool stopped) const {
        if (options_.quiet) return;
        std::string notes;
        if (!answer.thought.empty() && !options_.show_thinking)
            notes += "thought for " + with_separators(answer.thought.size()) + " bytes (--show-thinking shows them); ";
        if (answer.n_forgotten)
            notes +=
                "the context is full: the oldest " + std::to_string(answer.n_forgotten) + " messages were left out; ";
        if (stopped) notes += CatchInterrupt::ends() ? "ended by a signal; " : "ended by Ctrl-C; ";
        if (!answer.ended && answer.made.finish == FinishReason::context) notes += "ended where the context does; ";
        if (!interactive_ && notes.empty()) return;
        const GenerateFigures& f = answer.made.figures;
        std::fprintf(stderr, "(%s%u tokens, %.0f per second; prompt %u, of which %u were kept)\n", notes.c_str(),
                     f.n_tokens, answer.made.tokens_per_second(), f.n_prompt, f.n_kept);
    }

    static Json call_of(const ToolCall& call) { return {{"name", call.name}, {"arguments", call.arguments}}; }

    void print_json(const host::Answer& answer) const {
        Json object{{"text", answer.said}};
        for (const ToolCall& call : answer.calls) object["tool_calls"].push_back(call_of(call));
        if (!answer.thought.empty()) object["thinking"] = answer.thought;
        object.update(Json{{"finish", answer.ended ? "end" : host::name_of(answer.made.finish)},
                           {"n_tokens", answer.made.figures.n_tokens},
                           {"n_prompt_tokens", answer.made.figures.n_prompt},
                           {"n_kept_tokens", answer.made.figures.n_kept},
                           {"n_forgotten_messages", answer.n_forgotten},
                           {"tokens_per_second", answer.made.tokens_per_second()}});
        print_line(object);
        flush_output();
    }

    const ChatOptions& options_;
    host::Conversation& conversation_;
    bool interactive_, done_ = false;
};

ModelChat open_chat(const ChatOptions& options, const host::Opened& opened) {
    try {
        if (options.template_path.empty()) return ModelChat::of(opened.model, opened.tokenizer);
        return ModelChat::with(opened.model, opened.tokenizer, read_text_file(options.template_path));
    } catch (const ChatTemplateError& error) {
        throw host::Error((options.template_path.empty() ? opened.name : options.template_path) +
                          ": chat template: " + error.what());
    }
}

/// Functions with names, as OpenAI's API has them.
Json read_tools(const std::string& path) {
    Json tools = read_json(read_text_file(path));
    const auto is_tool = [](const Json& tool) {
        return tool.is_object() && tool.value("function", Json()).is_object() &&
               tool["function"].value("name", Json()).is_string();
    };
    if (!tools.is_array() || tools.empty() || !std::all_of(tools.begin(), tools.end(), is_tool))
        throw host::Error(
            path + R"(: tools: expected [{"type": "function", "function": {"name": ...}}, ...], got other text)");
    return tools;
}

}  // namespace

void TextOptions::check_stop() const {
    for (const std::string& text : stop)
        if (text.empty()) throw UsageError("--stop: expected a text, got an empty one");
}

std::uint32_t TextOptions::n_stop_bytes() const {
    std::size_t n_bytes = 0;
    for (const std::string& text : stop) n_bytes += text.size();
    return static_cast<std::uint32_t>(std::min<std::size_t>(n_bytes, kAny));
}

void hold_conversation(const ChatOptions& given, const host::Opened& opened) {
    opened.need_logits();
    (void)opened.need_tokenizer();
    check_biases(given.sampling, opened.model);
    const ModelChat chat = open_chat(given, opened);
    const std::uint32_t context = checked_context(opened.name, opened.model, given.context, kDefaultContext);
    ChatOptions options = given;
    options.stop.insert(options.stop.end(), chat.stops().begin(), chat.stops().end());
    options.sampling.take(OwnSampling::of(opened.model, opened.name));
    lead_ranks();
    host::Generation generation(opened, options.common.limits(context), options.common.session(),
                                {.max_stop_bytes = std::max(options.n_stop_bytes(), 1u)});
    if (follows_first_rank(generation.session())) return;
    const std::vector<std::string_view> stop_views(options.stop.begin(), options.stop.end());
    GenerateOptions generating{.n_new = options.n_new.value_or(kAny), .stop = stop_views};
    options.sampling.apply(generating);
    host::Conversation conversation(opened, chat, generation, generating);
    if (!options.tools.empty()) conversation.set_tools(read_tools(options.tools));
    if (options.no_thinking) conversation.set_extra({{"enable_thinking", false}});
    if (!options.session.empty()) {
        check_can_write(options.session);
        std::error_code ignored;
        if (std::filesystem::exists(options.session, ignored) && !std::filesystem::is_empty(options.session, ignored))
            conversation.load(options.session);
    }
    if (!options.system.empty()) conversation.set_system(options.system);
    if (!options.has_prompt && !has_input())
        throw host::Error("standard input: expected messages, a line each, got a descriptor that is closed");
    const bool interactive = !options.has_prompt && isatty(STDIN_FILENO) && !options.common.json;
    if (!options.quiet && !chat.note().empty())
        std::fprintf(stderr, "%s: %s\n", one_line(opened.name).c_str(), chat.note().c_str());
    if (interactive && !options.quiet)
        std::fprintf(stderr, "%s: a message per line; /help lists commands.\n", one_line(opened.name).c_str());
    std::optional<CatchInterrupt> catches(std::in_place);
    Chat talk(options, conversation, interactive);
    try {
        if (options.has_prompt)
            talk.answer(options.prompt);
        else
            talk.run();
    } catch (const host::Error&) {  // what was said before it is kept
        if (!options.session.empty()) conversation.save(options.session);
        throw;
    }
    if (!options.session.empty()) conversation.save(options.session);
    const int signal = CatchInterrupt::ends();
    catches.reset();
    if (signal) (void)raise(signal);  // whoever sent it sees that it ended the program
}

static void run_chat(ChatOptions& options) {
    options.check_stop();
    settle(options.common);
    need_model(options.model);
    check_sessions(options.session, options.loras);
    host::Opened opened = open_path(options.model, options.common.opening());
    open_loras(opened, options.loras, options.common.opening());
    hold_conversation(options, opened);
}

void add_chat(CLI::App& app) {
    add_verb<ChatOptions>(
        app, "chat", "Talk with a model: a message per line", run_chat, [](const Verb& verb, ChatOptions& o) {
            verb.model(o.model);
            verb.text("--system", o.system, "the text that tells the model how to answer");
            verb.text("-p,--prompt", o.prompt, "one message; its answer, and the end").each([&o] {
                o.has_prompt = true;
            });
            verb.output("--session", o.session, "a file that keeps the conversation and its cache between runs");
            verb.input("--template", o.template_path, "a file with a chat template (default: the model's own)");
            verb.count_or_any("-n", o.n_new, 1, "tokens of an answer at most (default: until it ends)");
            add_sampling(verb, o.sampling);
            add_loras(verb, o.loras);
            verb.texts("--stop", o.stop, "a text that ends an answer; may be repeated");
            verb.count("--context", o.context, 1, kAny, "positions to hold (default: the model's, at most 4096)");
            verb.kv(o.common.kv_type);
            verb.input(
                "--tools", o.tools,
                "functions that answers may call, as OpenAI's API has them (JSON); the next line is what a call gave");
            verb.flag("--show-thinking", o.show_thinking, "show the reasoning before an answer");
            verb.flag("--no-thinking", o.no_thinking, "tell the template that the model is not to reason first");
            verb.flag("--quiet", o.quiet, "answers alone: no notes and no figures");
            verb.opening(o.common);
        });
}

}  // namespace fovea
