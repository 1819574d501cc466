// `fovea chat`: piped messages, what stays in the cache, sessions, commands and Ctrl-C on a terminal; how `run` is given prompts.
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>

#include <cstdlib>

#if __has_include(<pty.h>)
#include <pty.h>
#endif

#include "convert/sources/chat_info.h"
#include "fovea/host/chat.h"
#include "host/text/conversation.h"
#include "tests/support/chat_model.h"
#include "tests/support/command_line.h"
#include "tests/support/small_models.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

/// What it prints where `input` is piped into it.
Ran piped(const std::string& input, std::vector<std::string> arguments) {
    const TemporaryFolder folder;
    write_text(folder / "input", input);
    std::string command = "exec '" FOVEA_CLI "'";
    for (const std::string& argument : arguments) command += " '" + argument + "'";
    command += " < '" + (folder / "input").string() + "' > '" + (folder / "out").string() + "' 2> '" +
               (folder / "err").string() + "'";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder / "out"), read_text(folder / "err")};
}

std::vector<json> answers(const Ran& ran) {
    CAPTURE(ran.err);
    CHECK(ran.status == 0);
    std::vector<json> all;
    for (std::size_t at = 0, end; (end = ran.out.find('\n', at)) != std::string::npos; at = end + 1)
        all.push_back(json::parse(ran.out.substr(at, end - at)));
    return all;
}

TEST_CASE("cli: chat computes only what is new, and answers as without a cache") {
    const ChatModel model;
    const std::vector<std::string> options{"chat", model.path, "--json", "-n", "9", "--system", "Be brief."};
    const std::vector<json> all = answers(piped("Hello\nAnd then?\nWhy?\n", options));
    REQUIRE(all.size() == 3);
    CHECK(all[0]["n_kept_tokens"] == 0);
    for (std::size_t i = 1; i < 3; ++i) {
        const int before = all[i - 1]["n_prompt_tokens"].get<int>() + all[i - 1]["n_tokens"].get<int>();
        CHECK(all[i]["n_kept_tokens"].get<int>() >= before - 1);  // the last token has not been computed
        CHECK(all[i]["n_prompt_tokens"].get<int>() > before);
    }
    CHECK(answers(piped("Hello\nAnd then?\nWhy?\n", options))[2]["text"] == all[2]["text"]);
    CHECK(answers(piped("Hello\n/undo\nHello\n", options))[1]["text"] == all[0]["text"]);
    CHECK(answers(piped("Hello\n/retry\n", options))[1]["text"] == all[0]["text"]);
    const json anew = answers(piped("Hello\n/reset\nHello\n", options))[1];
    CHECK(anew["text"] == all[0]["text"]);
    CHECK(anew["n_prompt_tokens"] == all[0]["n_prompt_tokens"]);
}

TEST_CASE("cli: chat sees marks that are special tokens, and hides other special tokens") {
    for (const char* chat_template : {kTemplate, "{{ messages[-1].content }}{# [THINK] #}"}) {
        const ChatModel model(chat_template, 400, true, {}, {"[THINK]", "[/THINK]", "[OTHER]"});
        const auto answer_of_only = [&](const char* mark) {
            const Ran ids = run_fovea({"tokenize", model.path, "-p", mark, "--special"});
            const std::string id = ids.out.substr(0, ids.out.find_first_of(" \n"));
            return answers(
                run_fovea({"chat", model.path, "--json", "-n", "3", "-p", "a", "--logit-bias", id + "+1000"}))[0];
        };
        const json thought = answer_of_only("[THINK]");
        CHECK(thought["thinking"] == "[THINK][THINK]");
        CHECK(thought["text"] == "");
        CHECK(answer_of_only("[/THINK]")["text"] == "[/THINK][/THINK][/THINK]");
        CHECK(answer_of_only("[OTHER]")["text"] == "");
    }
}

TEST_CASE("cli: chat with a model whose prompts a text closes answers each message as run does") {
    const std::string commands = read_text(FOVEA_GOLDEN_DIR "/demo_commands.txt");
    std::string messages;
    std::vector<std::string> wanted;
    for (std::size_t at = 0; wanted.size() < 3; at = commands.find('\n', at) + 1) {
        const std::size_t tab = commands.find('\t', at);
        messages += commands.substr(at, tab - at) + '\n';
        wanted.push_back(commands.substr(tab + 1, commands.find('\n', tab) - tab - 1));
    }
    const std::vector<json> all =
        answers(piped(messages, {"chat", FOVEA_SOURCE_DIR "/tools/demo/demo.fovea", "--json"}));
    REQUIRE(all.size() == wanted.size());
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i]["text"] == wanted[i]);
}

TEST_CASE(
    "chat: templates print the source's own start and end tokens, and one for tools is used where there are tools") {
    const TemporaryFolder folder;
    write_text(folder / "tokenizer_config.json", R"({"chat_template": [
        {"name": "default", "template": "{{ bos_token }}default{{ eos_token }}"},
        {"name": "tool_use", "template": "{{ bos_token }}{{ tools | length }} tools"}],
        "bos_token": {"content": "<|end|>"}, "eos_token": null})");
    write_text(folder / "special_tokens_map.json", R"({"bos_token": "<|other|>", "eos_token": "<|im_end|>"})");
    ModelSource source;
    add_chat_info(folder.path(), source);
    const ChatModel model("", 400, true, {source.info.begin(), source.info.end()});
    const host::Opened opened = open_path(model.path);
    const ModelChat chat = ModelChat::of(opened.model, opened.tokenizer);
    ChatInput input;
    input.messages.push_back({{"role", "user"}, {"content", "a"}});
    CHECK(chat.render(input).text() == "<|end|>default<|im_end|>");
    input.tools = nlohmann::ordered_json::array();
    CHECK(chat.render(input).text() == "<|end|>default<|im_end|>");
    input.tools.push_back({{"type", "function"}});
    CHECK(chat.render(input).text() == "<|end|>1 tools");
    CHECK(ModelChat::with(opened.model, opened.tokenizer, "[{{ bos_token }}]").render(input).text() == "[<|end|>]");

    write_text(folder / "chat_template.jinja", "[{{ bos_token }}]");  // a file counts more than the field
    write_text(folder / "special_tokens_map.json", "{}");
    write_text(folder / "tokenizer_config.json", R"({"bos_token": null})");
    ModelSource without;
    add_chat_info(folder.path(), without);
    const ChatModel bare("", 400, true, {without.info.begin(), without.info.end()});
    const host::Opened other = open_path(bare.path);
    CHECK(ModelChat::of(other.model, other.tokenizer).render(input).text() ==
          "[]");  // as transformers: no such variable
}

TEST_CASE("cli: chat goes on in a session, and refuses another file as one") {
    const ChatModel model;
    const std::string session = (model.folder / "session").string();
    const std::vector<json> whole = answers(piped("Hello\nWhy?\n", {"chat", model.path, "--json", "-n", "9"}));
    REQUIRE(whole.size() == 2);
    const auto part = [&](const char* text) {
        return json::parse(output_of({"chat", model.path, "--json", "-n", "9", "-p", text, "--session", session}));
    };
    CHECK(part("Hello")["text"] == whole[0]["text"]);
    const json second = part("Why?");
    CHECK(second["n_kept_tokens"].get<int>() >= whole[0]["n_prompt_tokens"].get<int>());
    CHECK(second["n_prompt_tokens"].get<int>() > whole[0]["n_prompt_tokens"].get<int>());
    check_refused({"chat", model.path, "--session", model.path, "-p", "a"}, 1,
                  "expected another file than what is read");
    const std::string other = (model.folder / "other").string();
    write_text(other, "text");
    check_refused({"chat", model.path, "--session", other, "-p", "a"}, 1,
                  "expected a saved conversation, got another file");
    const std::string kept_by = (model.folder / "kept").string();
    CHECK(piped("Hello\n/nothing\n", {"chat", model.path, "-n", "2", "--session", kept_by}).status == 1);
    CHECK(contains(read_text(kept_by), "Hello"));  // what was said before the message that is refused
    const std::string mine = (model.folder / "mine").string();
    write_text(mine, "not a conversation");
    const Ran kept = piped("Hello\n/save " + mine + "\n", {"chat", model.path, "-n", "2"});
    CHECK(kept.status == 1);
    CHECK(contains(kept.err, mine + ": expected a new file or a saved conversation, got another file"));
    CHECK(read_text(mine) == "not a conversation");
    const std::string saved = read_text(session);
    for (std::size_t n : {std::size_t{5}, std::size_t{15}, std::size_t{60}, saved.size() / 2, saved.size() - 1}) {
        write_text(model.folder / "cut", saved.substr(0, n));
        check_refused({"chat", model.path, "--session", (model.folder / "cut").string(), "-p", "a"}, 1, "cut: ");
    }
}

TEST_CASE("cli: chat leaves out the oldest turns where the context is full, and says what it cannot do") {
    const ChatModel model;
    std::string lines;
    for (int i = 0; i < 6; ++i) lines += "one two three four five six seven eight\n";
    const std::vector<json> all = answers(piped(lines, {"chat", model.path, "--json", "-n", "10", "--context", "150"}));
    CHECK(all.size() == 6);
    int n_forgotten = 0;
    for (const json& one : all) n_forgotten += one["n_forgotten_messages"].get<int>();
    CHECK(n_forgotten > 0);
    const Ran refused = piped(std::string(4000, 'x') + "\n", {"chat", model.path, "--context", "40"});
    CHECK(refused.status == 1);
    CHECK(contains(refused.err, "message: expected one that a context of 40 tokens has room for"));
    CHECK(contains(piped("/nothing\n", {"chat", model.path}).err,
                   "command: expected one that /help lists, got /nothing"));
    check_refused({"chat"}, 2, "MODEL");
    check_refused({"chat", model.path, "--context", "9999", "-p", "a"}, 1, "--context: expected at most");
    const ChatModel damaged("{% if %}"), refusing("{{ raise_exception('not so') }}"), without("");
    check_refused({"chat", damaged.path, "-p", "a"}, 1, "chat template: line 1: expected an expression");
    check_refused({"chat", refusing.path, "-p", "a"}, 1, "chat template: line 1: not so");
    const Ran noted = run_fovea({"chat", without.path, "-p", "a", "-n", "2"});
    CHECK(contains(noted.err, "no chat template: ChatML, for which it has tokens"));
    CHECK(run_fovea({"chat", without.path, "-p", "a", "-n", "2", "--quiet"}).err == "");
}

#if __has_include(<pty.h>)
/// A program on a terminal of its own.
class OnTerminal {
public:
    explicit OnTerminal(std::vector<std::string> arguments) {
        std::vector<char*> argv{const_cast<char*>(FOVEA_CLI)};
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
        if (child_ != 0) return;
        setenv("TERM", "xterm", 1);
        execv(FOVEA_CLI, argv.data());
        _exit(127);
    }
    ~OnTerminal() {
        if (terminal_ >= 0) close(terminal_);
        if (child_ > 0 && !ended_) {
            kill(child_, SIGKILL);
            waitpid(child_, nullptr, 0);
        }
    }
    OnTerminal(const OnTerminal&) = delete;
    OnTerminal& operator=(const OnTerminal&) = delete;

    /// False where there are no terminals.
    [[nodiscard]] bool runs() const { return child_ > 0; }
    void type(const std::string& text) const {
        CHECK(write(terminal_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    /// Whether it shows these words within a minute, behind those that were asked for before.
    bool shows(const std::string& words) {
        std::size_t at = 0;
        for (int i = 0; i < 600 && (at = shown_.find(words)) == shown_.npos && !closed_; ++i) wait();
        at = shown_.find(words);
        if (at != shown_.npos) shown_.erase(0, at + words.size());
        return at != shown_.npos;
    }
    /// Whether it asks for a line within a minute, and takes keys by itself from there on.
    bool asks() {
        termios set{};
        return shows("> ") && tcgetattr(terminal_, &set) == 0 && !(set.c_lflag & static_cast<tcflag_t>(ICANON | ECHO));
    }
    void send(int signal) const { CHECK(kill(child_, signal) == 0); }
    /// Its exit status, if it ends within a minute; -1: a signal ended it.
    int status() {
        for (int i = 0; i < 600 && !closed_; ++i) wait();
        REQUIRE(closed_);
        int status = -1;
        ended_ = waitpid(child_, &status, 0) == child_;
        CHECK(ended_);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    /// A tenth of a second, or until it shows more or ends.
    void wait() {
        pollfd ready{terminal_, POLLIN, 0};
        if (poll(&ready, 1, 100) <= 0) return;
        char part[4096];
        const ssize_t n = read(terminal_, part, sizeof part);
        if (n <= 0)
            closed_ = true;
        else
            shown_.append(part, static_cast<std::size_t>(n));
    }

    std::string shown_;
    int terminal_ = -1;
    pid_t child_ = -1;
    bool closed_ = false, ended_ = false;
};

TEST_CASE("cli: chat on a terminal: Ctrl-C ends the answer, takes back a line, and twice ends the program") {
    const ChatModel model(kTemplate, 200'000, false);
    // `run` without a prompt holds the same conversation, for the model has a template.
    for (const char* verb : {"chat", "run"}) {
        CAPTURE(verb);
        OnTerminal chat({verb, model.path, "--context", "200000"});
        if (!chat.runs()) {
            MESSAGE("skipped: no terminals here");
            return;
        }
        CHECK(chat.asks());
        chat.type("Hello\n");
        usleep(500'000);
        chat.type("\x03");
        CHECK(chat.shows("ended by Ctrl-C"));
        CHECK(chat.asks());
        chat.type("/help\n");
        CHECK(chat.shows("/retry"));
        CHECK(chat.asks());
        chat.type("/nothing\n");
        CHECK(chat.shows("expected one that /help lists"));
        CHECK(chat.asks());
        chat.type("/quit");
        CHECK(chat.shows("/quit"));
        chat.type("\x03");
        CHECK(chat.asks());
        chat.type("\x03");
        CHECK(chat.shows("(Ctrl-C again or Ctrl-D ends)"));
        CHECK(chat.asks());
        chat.type("/history\n");  // after which it is the first again
        CHECK(chat.shows("user: Hello"));
        CHECK(chat.asks());
        chat.type("\x03");
        CHECK(chat.shows("(Ctrl-C again or Ctrl-D ends)"));
        CHECK(chat.asks());
        chat.type("\x03");
        CHECK(chat.status() == 0);
    }
}

TEST_CASE("cli: chat on a terminal: a signal that ends the program leaves the conversation in its file") {
    const ChatModel model;
    for (const int signal : {SIGTERM, SIGHUP}) {
        const std::string session = (model.folder / (signal == SIGTERM ? "term" : "hup")).string();
        OnTerminal chat({"chat", model.path, "-n", "3", "--session", session});
        if (!chat.runs()) {
            MESSAGE("skipped: no terminals here");
            return;
        }
        REQUIRE(chat.asks());
        chat.type("Hello\n");
        REQUIRE(chat.asks());
        chat.send(signal);
        CHECK(chat.status() == -1);
        CHECK(contains(read_text(session), "Hello"));
    }
}

TEST_CASE("cli: chat on a terminal: what is pasted is one message, of any characters; Ctrl-D ends") {
    const ChatModel model;
    OnTerminal chat({"chat", model.path, "-n", "2", "--quiet"});
    if (!chat.runs()) return;
    CHECK(chat.asks());
    chat.type(
        "\x1b[200~first line\r\tsecond \x07\xe6\xbc\xa2"
        "e\xcc\x81\nlast\x1b[201~");
    CHECK(chat.shows("last"));
    chat.type("!\n");
    CHECK(chat.asks());
    chat.type("/history\n");
    CHECK(
        chat.shows("user: first line\r\n\tsecond \xe6\xbc\xa2"
                   "e\xcc\x81\r\nlast!\r\nassistant: "));
    CHECK(chat.asks());
    chat.type("\x04");
    CHECK(chat.status() == 0);
}
#endif

TEST_CASE("cli: run takes its prompt as a second argument, from a file, and from standard input") {
    const DemoFile demo;
    const std::string want = output_of({"run", demo.path, "-p", "lock the front door"});
    write_text(demo.folder / "prompt", "lock the front door\n");
    const std::string file = (demo.folder / "prompt").string();
    CHECK(output_of({"run", demo.path, "lock the front door"}) == want);
    CHECK(output_of({"run", demo.path, "-f", file}) == want);
    CHECK(output_of({"run", demo.path, "-p", "@" + file}) == want);
    CHECK(piped("lock the front door\n", {"run", demo.path}).out == want);
    CHECK(piped("lock the front door\n", {"run", demo.path, "-p", "-"}).out == want);
    CHECK(json::parse(piped("lock the front door\n", {"run", demo.path, "--json"}).out)["text"].get<std::string>() +
              "\n" ==
          want);
    CHECK(run_fovea({"run", demo.path, "lock the front door", "--quiet"}).err == "");
    check_refused({"run", demo.path, "a", "-f", file}, 2,
                  "prompt: expected one of PROMPT, -p, -f and --tokens, got several");
    check_refused({"run", demo.path, "-f", "/none/such"}, 1, "/none/such: ");
    check_refused({"run", demo.path}, 2, "prompt: expected -p TEXT, or one on standard input, got none");
    CHECK(piped("lock the front door\n", {"run"}).out == want);
    for (const char* text : {"lock the front door", "lock", "lock it."})
        check_refused({"run", text}, 1,
                      text + std::string(": no such file; a text for the built-in model is given by -p TEXT\n"));
    check_refused({"run", "lock.fovea"}, 1, "lock.fovea: no such file\n");
    check_refused({"run", "my models", "a"}, 1, "my models: no such file\n");
}

TEST_CASE("cli: a sampling option without --temp means a temperature of 1") {
    const auto ran = [](std::vector<std::string> more) {
        std::vector<std::string> arguments{"run", "-p", "turn", "-n", "20"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return output_of(arguments);
    };
    CHECK(ran({"--top-p", "0.9", "--seed", "7"}) == ran({"--top-p", "0.9", "--seed", "7", "--temp", "1"}));
    CHECK(ran({"--top-k", "3", "--temp", "0"}) == ran({}));
}

TEST_CASE("chat: what the options do not say of sampling is as the model's file has it, and run is greedy") {
    const ChatModel own(kTemplate, 400, true, {{"sampling", R"({"temperature":1.5,"top_k":40,"repeat_penalty":1.3})"}});
    const ChatModel plain;
    const auto said = [](const ChatModel& model, std::vector<std::string> more) {
        std::vector<std::string> arguments{"chat", model.path, "-p", "hello", "-n", "16", "--seed", "4", "--quiet"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return output_of(arguments);
    };
    const std::vector<std::string> drawn{"--temp", "1.5", "--top-k", "40"};
    CHECK(said(own, {}) == said(plain, {"--temp", "1.5", "--top-k", "40", "--repeat-penalty", "1.3"}));
    CHECK(said(own, {"--repeat-penalty", "1"}) == said(plain, drawn));
    CHECK(said(own, {"--temp", "0", "--repeat-penalty", "1"}) == said(plain, {"--temp", "0"}));
    CHECK(output_of({"run", own.path, "-p", "hello", "-n", "16"}) ==
          output_of({"run", plain.path, "-p", "hello", "-n", "16"}));
    CHECK(output_of({"inspect", own.path}).find("chats sample by {\"temperature\":1.5") != std::string::npos);
    CHECK(json::parse(output_of({"inspect", own.path, "--json"}))["sampling"]["top_k"] == 40);
    const ChatModel wrong(kTemplate, 400, true, {{"sampling", R"({"top_p":7})"}});
    check_refused({"chat", wrong.path, "-p", "hello"}, 1, "sampling: top_p: expected a number from 0.0 to 1.0, got 7");
}

TEST_CASE("cli: an answer is no shorter than --min-tokens, and ends by no token with --ignore-eos") {
    const ChatModel model;
    const auto vocabulary = json::parse(output_of({"inspect", model.path, "--json"}))["decoder"]["vocab_size"];
    const std::string likely_end = std::to_string(vocabulary.get<int>() - 1) + "+180";
    const auto n_tokens = [&](std::vector<std::string> more) {
        std::vector<std::string> arguments{"chat",   model.path, "-p",           "hi",       "-n",    "60",
                                           "--temp", "30",       "--logit-bias", likely_end, "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const json made = json::parse(output_of(arguments));
        return std::pair(made["n_tokens"].get<int>(), made["finish"] == "end");
    };
    int n_early = 0;
    for (int seed = 0; seed < 40; ++seed) {
        const std::string own = std::to_string(seed);
        const auto [n, ends] = n_tokens({"--seed", own});
        n_early += ends && n < 20;
        CHECK(n_tokens({"--seed", own, "--min-tokens", "20"}).first >= 20);
        CHECK_FALSE(n_tokens({"--seed", own, "--ignore-eos"}).second);
    }
    CHECK(n_early > 0);
}

TEST_CASE("chat: what was saved is loaded beside the same adapters alone") {
    const ChatModel model;
    const std::string file = (model.folder / "kept").string();
    const auto chat = [&](const std::vector<std::string>& loras, const std::string& lines) {
        std::vector<std::string> arguments{"chat", model.path, "-n", "4", "--quiet"};
        for (const std::string& lora : loras) arguments.insert(arguments.end(), {"--lora", lora});
        return piped(lines, arguments);
    };
    const std::vector<std::vector<std::string>> ways{
        {}, {model.adapter}, {model.adapter + ":0.5"}, {model.adapter, model.adapter}};
    for (const auto& saved_with : ways) {
        fs::remove(file);
        CHECK(chat(saved_with, "hello\n/save " + file + "\n").status == 0);
        for (const auto& loaded_with : ways) {
            const Ran ran = chat(loaded_with, "/load " + file + "\nand now\n");
            CAPTURE(ran.err);
            CHECK((ran.status == 0) == (loaded_with == saved_with));
            CHECK((ran.status == 0 || contains(ran.err, "kept: expected a saved session with its tokens, ")));
        }
    }
}

TEST_CASE("chat: an empty file is a new session's, as mktemp makes one") {
    const ChatModel model;
    const std::string file = (model.folder / "kept").string();
    write_text(file, "");
    for (const int n_messages : {2, 4}) {
        CHECK(piped("hello\n", {"chat", model.path, "-n", "4", "--quiet", "--session", file}).status == 0);
        CHECK(contains(read_text(file), n_messages == 2 ? "hello" : "},{"));
    }
    const std::string text = output_of({"run", model.path, "-p", "hello", "-n", "4", "--quiet"});
    write_text(file, "");
    CHECK(output_of({"run", model.path, "-p", "hello", "-n", "4", "--quiet", "--session", file}) == text);
    CHECK(fs::file_size(file) > 0);
}

TEST_CASE("chat: calls of tools are shown, and the next line is what a call gave") {
    // A token that is a call, and the only one that the model writes.
    const ChatModel model(kTemplate, 1000, true, {},
                          {R"(<tool_call>{"name": "lamp", "arguments": {"on": true}}</tool_call>)"});
    const std::size_t id =
        json::parse(read_text(FOVEA_GOLDEN_DIR "/tokenizer_smollm.json"))["model"]["vocab"].size() + 2;
    const std::string tools = (model.folder / "tools.json").string(), session = (model.folder / "talk").string();
    write_text(tools, R"([{"type": "function", "function": {"name": "lamp", "description": "Lights."}}])");
    const std::vector<std::string> asked = {
        "chat", model.path, "--tools", tools, "--logit-bias", std::to_string(id) + "+100", "-n", "1", "--quiet"};
    const auto with = [&](std::vector<std::string> more) {
        std::vector<std::string> all = asked;
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const std::string line = R"({"name":"lamp","arguments":{"on":true}})";
    const Ran ran = piped("light\nlit\n", with({"--session", session}));
    CAPTURE(ran.err);
    REQUIRE(ran.status == 0);
    CHECK(ran.out == line + '\n' + line + '\n');
    const std::string saved = read_text(session);
    CHECK(
        saved.find(
            R"({"role":"user","content":"light"},{"role":"assistant","content":"","tool_calls":[{"id":"call00002")") !=
        saved.npos);
    CHECK(saved.find(R"({"role":"tool","content":"lit","tool_call_id":"call00002","name":"lamp"})") != saved.npos);
    const Ran next = piped("off\n", with({"--session", session, "--json"}));
    REQUIRE(next.status == 0);
    CHECK(json::parse(next.out)["tool_calls"] == json::array({json::parse(line)}));
    CHECK(read_text(session).find(R"({"role":"tool","content":"off",)") != saved.npos);
    for (const char* wrong : {"{}", "[]", "[3]", R"([{"function": {}}])", "x"}) {
        write_text(tools, wrong);
        const Ran refused = piped("light\n", asked);
        CHECK(refused.status == 1);
        CHECK(refused.err.find("tools: expected [") != refused.err.npos);
    }
}

}  // namespace
}  // namespace fovea::testing
