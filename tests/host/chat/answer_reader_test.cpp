// Answers in every dialect: what a template renders is read back, however it is cut into pieces and whichever marks are special.
#include "host/chat/answer_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/dialect_templates.h"

namespace fovea::testing {
namespace {

const Json& tools() {
    static const Json all = Json::parse(R"([
        {"type": "function", "function": {"name": "weather.at", "parameters": {"type": "object", "properties": {
            "city": {"type": "string"}, "code": {"type": "string"}, "days": {"type": "integer"}}}}},
        {"type": "function", "function": {"name": "stop-all"}}])");
    return all;
}

Json call(const char* name, const char* arguments) {
    return {{"type", "function"}, {"function", {{"name", name}, {"arguments", Json::parse(arguments)}}}};
}

/// Answers: without calls, with one, with several; with reasoning and a text, and without.
std::vector<Json> answers(const Family& family) {
    const Json first = call("weather.at", R"({"city": "Bad \"Ems\"\n<b> it's & \u00fc \\n", "code": "012", "days": 3,
                                              "exact": true, "at": [1, -2.5e3, []], "more": {"a": null, "b": {"c": "d"}}})");
    const Json calls[] = {Json::array(), Json::array({first}),
                          Json::array({first, call("stop-all", "{}"), call("weather.at", R"({"city": "x"})")})};
    std::vector<Json> all;
    for (const char* thought : {"", "So < that\n[x] {y"})
        for (const char* text : {"", "Let me <see>:\n{1}"})
            for (const Json& some : calls) {
                if ((!family.thought[0] && thought[0]) || (!family.has_text && text[0] && !some.empty())) continue;
                if (!text[0] && some.empty()) continue;
                all.push_back(
                    {{"role", "assistant"}, {"content", text}, {"reasoning_content", thought}, {"tool_calls", some}});
            }
    return all;
}

struct Read {
    std::string text, thought;
    Json calls = Json::array();
};

Read read_pieces(const AnswerReading& how, const std::vector<std::string>& pieces) {
    Read read;
    const auto on_text = [&](std::string_view text, bool is_thought) {
        (is_thought ? read.thought : read.text) += text;
    };
    AnswerReader reader(how);
    for (const std::string& piece : pieces) reader.add(piece, on_text);
    reader.finish(on_text);
    for (const ToolCall& one : reader.calls()) read.calls.push_back({{"name", one.name}, {"arguments", one.arguments}});
    return read;
}

std::vector<std::string> cut(const std::string& text, std::size_t n) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size(); at += n) pieces.push_back(text.substr(at, n));
    return pieces;
}

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of("\n "), end = text.find_last_not_of("\n ");
    return begin == text.npos ? "" : text.substr(begin, end + 1 - begin);
}

void check_read(const Read& read, const Json& answer) {
    CHECK(trimmed(read.text) == trimmed(answer["content"].get<std::string>()));
    CHECK(trimmed(read.thought) == answer["reasoning_content"].get<std::string>());
    CHECK(read.calls.size() == answer["tool_calls"].size());
    for (std::size_t i = 0; i < std::min(read.calls.size(), answer["tool_calls"].size()); ++i)
        CHECK(read.calls[i] == answer["tool_calls"][i]["function"]);
}

AnswerReading reading_of(const Family& family) {
    return {
        .dialect = dialect_of(template_of(family)), .begun = begun_of(family), .reads_calls = true, .tools = tools()};
}

/// What stands between angles or brackets may be a token of its own.
std::vector<std::string> marks_and_characters(const std::string& text) {
    std::vector<std::string> tokens;
    for (std::size_t at = 0; at < text.size();) {
        const char closes = text[at] == '<' ? '>' : text[at] == '[' ? ']' : '\0';
        const std::size_t end = closes ? text.find_first_of("<>[] \n=", at + 1) : text.npos;
        const std::size_t n = end != text.npos && text[end] == closes ? end + 1 - at : 1;
        tokens.push_back(text.substr(at, n));
        at += n;
    }
    return tokens;
}

}  // namespace

TEST_CASE("answers: every dialect is found from its template, and what that renders is read back wherever it is cut") {
    std::size_t n_read = 0;
    for (const Family& family : families()) {
        const AnswerReading how = reading_of(family);
        CAPTURE(family.dialect);
        CHECK(how.dialect.calls->name == family.dialect);
        const ChatTemplate chat = ChatTemplate::parse(template_of(family));
        for (const Json& answer : answers(family)) {
            const std::string text = rendered(chat, answer);
            CAPTURE(text);
            check_read(read_pieces(how, {text}), answer);
            for (const std::size_t n : {1, 2, 3, 7}) check_read(read_pieces(how, cut(text, n)), answer);
            for (std::size_t n = 1; n < text.size(); ++n)
                check_read(read_pieces(how, {text.substr(0, n), text.substr(n)}), answer);
            n_read += 1;
        }
    }
    CHECK(n_read > 200);
    for (const Dialect& row : all_dialects()) {
        const auto has_row = [&](const Family& family) { return row.name == family.dialect; };
        CAPTURE(row.name);
        CHECK(std::any_of(families().begin(), families().end(), has_row));
    }
}

TEST_CASE("answers: a reader is shown the special tokens of its dialect, and no others") {
    for (const Family& family : families()) {
        const AnswerReading how = reading_of(family);
        const ChatTemplate chat = ChatTemplate::parse(template_of(family));
        CAPTURE(family.dialect);
        for (const Json& answer : answers(family)) {
            std::vector<std::string> shown;
            for (const std::string& token : marks_and_characters(rendered(chat, answer))) {
                shown.push_back("<unk>");
                shown.push_back(token);
            }
            // Special tokens that are no marks show nothing, "<unk>" among them. The answer's own words are not special.
            const std::string words = json_text(answer);
            const auto hides = [&](const std::string& token) {
                return token.size() > 1 && !has_in_marks(how.dialect, token) &&
                       words.find(token.substr(1)) == words.npos;
            };
            std::erase_if(shown, hides);
            check_read(read_pieces(how, shown), answer);
        }
        CHECK_FALSE(has_in_marks(how.dialect, "<unk>"));
    }
}

TEST_CASE("answers: arguments as JSON text, other words for them, and marks within texts") {
    const auto calls = [&](std::string_view chat_template, const std::string& text) {
        const AnswerReading how{.dialect = dialect_of(chat_template), .reads_calls = true, .tools = tools()};
        const Read whole = read_pieces(how, {text});
        for (std::size_t n = 1; n < 9; ++n) {
            const Read read = read_pieces(how, cut(text, n));
            CHECK(read.calls == whole.calls);
            CHECK(read.text == whole.text);
        }
        return json_text(whole.calls) + whole.text;
    };
    CHECK(calls("", R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)") ==
          R"([{"name":"f","arguments":{"a":1}}])");
    CHECK(calls("", R"(<tool_call>{"name": "f", "arguments": {"a": "</tool_call>"}}</tool_call> so)") ==
          R"([{"name":"f","arguments":{"a":"</tool_call>"}}] so)");
    CHECK(calls("", R"(<tool_call>{"type": "function", "function": {"name": "f", "arguments": null}}</tool_call>)") ==
          R"([{"name":"f","arguments":{}}])");
    CHECK(calls("", R"(<tool_call>{'name': 'f', 'arguments': {'a': None, 'b': [True, (1, 2)]}}</tool_call>)") ==
          R"([{"name":"f","arguments":{"a":null,"b":[true,[1,2]]}}])");
    // JSON in a dialect of another syntax, and the answer's end in the place of the mark.
    CHECK(calls("<tool_call><function=", R"(<tool_call>{"name": "f", "arguments": {}})") ==
          R"([{"name":"f","arguments":{}}])");
    CHECK(
        calls("<|tool_call_start|>", R"(<|tool_call_start|>[{"name": "f", "arguments": {"a": 1}}]<|tool_call_end|>)") ==
        R"([{"name":"f","arguments":{"a":1}}])");
    CHECK(calls("<|tool_call_start|>", R"(<|tool_call_start|>[f(a='it\'s', b=None)]<|tool_call_end|>ok)") ==
          R"([{"name":"f","arguments":{"a":"it's","b":null}}]ok)");
    // Without a mark only a tool that there is.
    CHECK(calls("ipython parameters", R"({"name": "Bob", "parameters": {}})") ==
          R"([]{"name": "Bob", "parameters": {}})");
    CHECK(calls("ipython parameters", R"({"name": "stop-all", "parameters": {}})") ==
          R"([{"name":"stop-all","arguments":{}}])");
}

TEST_CASE("answers: what is no call is text, and no text is lost") {
    const AnswerReading how{.reads_calls = true};
    for (const char* text :
         {"nothing", "a <tool_call>3</tool_call> b", "<tool_call>{", "<tool<tool_call",
          R"(<tool_call>{"name": 3}</tool_call>)", "<tool_call>", "</tool_call>", "a<think>b</think>", "  <b>",
          "<think", R"(<tool_call>[]</tool_call>)", R"(<tool_call>{"name": "f", "arguments": "x"}</tool_call>)",
          R"(<tool_call>{"name": "f"} more</tool_call>)"})
        for (std::size_t n = 1; n < 20; ++n) {
            const Read read = read_pieces(how, cut(text, n));
            CHECK(read.text == text);
            CHECK(read.calls.empty());
        }
    const std::string mixed =
        R"(so: <tool_call>{"name": "f"}</tool_call> and<tool_call>{"name": "g", "parameters": {}}</tool_call>)";
    CHECK(read_pieces(how, {mixed}).text == "so:  and");
    CHECK(read_pieces({.reads_calls = false}, {mixed}).text == mixed);
    const std::string thinks = "<think>\nwhy < not\n</think>\n\nBecause <thin ice> is </thin>.";
    for (std::size_t n = 1; n < 20; ++n) {
        CHECK(read_pieces({}, cut(thinks, n)).thought == "\nwhy < not\n");
        CHECK(read_pieces({}, cut(thinks, n)).text == "Because <thin ice> is </thin>.");
        CHECK(read_pieces({.begun = "<think>"}, cut(thinks.substr(7), n)).thought == "\nwhy < not\n");
        CHECK(read_pieces({.parts_thought = false}, cut(thinks, n)).text == thinks);
    }
}

TEST_CASE("answers: what a prompt's end has of them") {
    const AnswerDialect plain = dialect_of(""), channels = dialect_of("<|channel|><|message|>"),
                        gemma = dialect_of("<|channel>thought");
    CHECK(begun_answer(plain, "a<think>\n") == "<think>");
    CHECK(begun_answer(plain, "a<think>\n\n</think>\n\n").empty());
    CHECK(begun_answer(gemma, "x<|channel>thought\n") == "<|channel>thought\n");
    CHECK(begun_answer(channels, "<|start|>user<|message|>a<|end|><|start|>assistant") == "<|start|>assistant");
    const auto special = [](std::string_view text) { return text == "[TOOL_CALLS]" || text == "[THINK]"; };
    CHECK(dialect_of("", special).calls->name == "mistral");
    CHECK(dialect_of("", special).reasoning->open == "[THINK]");
    CHECK(dialect_of("").calls->name == "hermes");
}

}  // namespace fovea::testing
