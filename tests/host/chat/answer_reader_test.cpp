// Answers in every dialect: what a template renders is read back, however it is cut into pieces and whichever marks are special.
#include "host/chat/answer_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "host/chat/chat_template.h"

namespace fovea::testing {
namespace {

// U+FF5C and U+2581, as DeepSeek has them.
#define BAR "\xef\xbd\x9c"
#define JOIN "\xe2\x96\x81"

/// A dialect as a template writes it: an answer's reasoning and text, and each call with what stands around all.
struct Family {
    const char* dialect;
    const char* thought;  ///< of m.reasoning_content; empty: there is none
    const char* begin;    ///< before the calls,
    const char* call;     ///< each, of f.name and f.arguments,
    const char* between;
    const char* end;       ///< and behind them
    bool has_text = true;  ///< a text may stand before calls
    const char* said = "{{ m.content }}";
};

constexpr const char* kThink = "<think>\n{{ m.reasoning_content }}\n</think>\n\n";
constexpr const char* kObject = R"({"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}})";
constexpr const char* kKeywords =
    "{{ f.name }}({% for k in f.arguments %}{{ k }}={{ f.arguments[k] | tojson }}{% if not loop.last %}, {% endif %}{% "
    "endfor %})";
constexpr const char* kRaw = "{% set v = f.arguments[k] %}{{ v if v is string else v | tojson }}";
const std::string kTags = std::string("<function={{ f.name }}>\n{% for k in f.arguments %}<parameter={{ k }}>\n") +
                          kRaw + "\n</parameter>\n{% endfor %}</function>";
const std::string kSeed = std::string("<function={{ f.name }}>{% for k in f.arguments %}<parameter={{ k }}>") + kRaw +
                          "</parameter>{% endfor %}</function>";
const std::string kKeys =
    std::string("{{ f.name }}\n{% for k in f.arguments %}<arg_key>{{ k }}</arg_key>\n<arg_value>") + kRaw +
    "</arg_value>\n{% endfor %}";
const std::string kInvoke =
    std::string("<invoke name=\"{{ f.name }}\">\n{% for k in f.arguments %}<parameter name=\"{{ k }}\">") + kRaw +
    "</parameter>\n{% endfor %}</invoke>";
const std::string kMarked =
    std::string("<" BAR "DSML" BAR "invoke name=\"{{ f.name }}\">\n{% for k in f.arguments %}<" BAR "DSML" BAR
                "parameter name=\"{{ k }}\" string=\"{{ 'true' if f.arguments[k] is string else 'false' }}\">") +
    kRaw + "</" BAR "DSML" BAR "parameter>\n{% endfor %}</" BAR "DSML" BAR "invoke>";

/// Objects whose keys stand bare, and texts between `quote`.
std::string members(const std::string& quote) {
    return "{% macro v(x) %}{% if x is string %}" + quote + "{{ x }}" + quote +
           "{% elif x is mapping %}{{ '{' }}{% for k in x %}{{ k }}:{{ v(x[k]) }}{% if not loop.last %},{% endif %}{% "
           "endfor %}"
           "{{ '}' }}{% elif x is iterable %}[{% for y in x %}{{ v(y) }}{% if not loop.last %},{% endif %}{% endfor %}]"
           "{% else %}{{ x | tojson }}{% endif %}{% endmacro %}call:{{ f.name }}{{ v(f.arguments) }}";
}
const std::string kGemma = members("<|\"|>"), kEscape = members("<escape>");

const std::vector<Family>& families() {
    static const std::vector<Family> all = {
        {"hermes", kThink, "\n<tool_call>\n", kObject, "\n</tool_call>\n<tool_call>\n", "\n</tool_call>"},
        {"hermes", kThink, "<tool_call>[", kObject, ", ", "]</tool_call>"},
        {"qwen3-coder", kThink, "\n\n<tool_call>\n", kTags.c_str(), "\n</tool_call>\n<tool_call>\n", "\n</tool_call>"},
        {"glm-4.5", "<think>{{ m.reasoning_content }}</think>\n", "\n<tool_call>", kKeys.c_str(),
         "</tool_call>\n<tool_call>", "</tool_call>"},
        {"minimax-m2", kThink, "\n<minimax:tool_call>\n", kInvoke.c_str(), "\n", "\n</minimax:tool_call>"},
        {"minimax-m1", "", "\n<tool_calls>\n", kObject, "\n", "\n</tool_calls>"},
        {"seed", "<seed:think>{{ m.reasoning_content }}</seed:think>", "<seed:tool_call>\n", kSeed.c_str(),
         "\n</seed:tool_call>\n<seed:tool_call>\n", "\n</seed:tool_call>"},
        {"deepseek-v3", kThink, "<" BAR "tool" JOIN "calls" JOIN "begin" BAR ">",
         "<" BAR "tool" JOIN "call" JOIN "begin" BAR ">function<" BAR "tool" JOIN "sep" BAR
         ">{{ f.name }}\n```json\n{{ f.arguments | tojson }}\n```<" BAR "tool" JOIN "call" JOIN "end" BAR ">",
         "\n", "<" BAR "tool" JOIN "calls" JOIN "end" BAR ">"},
        {"deepseek-v3.1", kThink, "<" BAR "tool" JOIN "calls" JOIN "begin" BAR ">",
         "<" BAR "tool" JOIN "call" JOIN "begin" BAR ">{{ f.name }}<" BAR "tool" JOIN "sep" BAR
         ">{{ f.arguments | tojson }}<" BAR "tool" JOIN "call" JOIN "end" BAR ">",
         "", "<" BAR "tool" JOIN "calls" JOIN "end" BAR ">"},
        {"deepseek-v3.2", kThink, "\n\n<" BAR "DSML" BAR "function_calls>\n", kMarked.c_str(), "\n",
         "\n</" BAR "DSML" BAR "function_calls>"},
        {"kimi-k2", "", "<|tool_calls_section_begin|>",
         "<|tool_call_begin|>functions.{{ f.name }}:{{ loop.index0 }}<|tool_call_argument_begin|>{{ f.arguments | "
         "tojson }}"
         "<|tool_call_end|>",
         "", "<|tool_calls_section_end|>"},
        {"mistral", "[THINK]{{ m.reasoning_content }}[/THINK]", "[TOOL_CALLS] [", kObject, ", ", "]"},
        {"mistral-args", "[THINK]{{ m.reasoning_content }}[/THINK]", "",
         "[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}", "", ""},
        {"mistral-args", "[THINK]{{ m.reasoning_content }}[/THINK]", "",
         "[TOOL_CALLS]{{ f.name }}[CALL_ID]x1[ARGS]{{ f.arguments | tojson }}", "", ""},
        {"lfm2", kThink, "<|tool_call_start|>[", kKeywords, ", ", "]<|tool_call_end|>"},
        {"olmo3", "", "<function_calls>", kKeywords, "\n", "</function_calls>"},
        {"llama4", "", "<|python_start|>[", kKeywords, ", ", "]<|python_end|>"},
        {"gemma3", "", "```tool_code\n", kKeywords, "\n", "\n```"},
        {"gemma4", "<|channel>thought\n{{ m.reasoning_content }}<channel|>", "<|tool_call>", kGemma.c_str(),
         "<tool_call|><|tool_call>", "<tool_call|>"},
        {"functiongemma", "", "<start_function_call>", kEscape.c_str(), "<end_function_call><start_function_call>",
         "<end_function_call>"},
        {"granite", kThink, "<|tool_call|>[", kObject, ", ", "]"},
        {"granite", "", "<|tool_call|>[", kObject, ", ", "]<|/tool_call|>"},
        {"phi-functools", "", "functools[", kObject, ", ", "]"},
        {"toolcall", kThink, "<TOOLCALL>[", kObject, ", ", "]</TOOLCALL>"},
        {"internlm2", "", "<|action_start|><|plugin|>\n", kObject, "<|action_end|>\n<|action_start|><|plugin|>\n",
         "<|action_end|>\n"},
        {"command-r7b", "<|START_THINKING|>{{ m.reasoning_content }}<|END_THINKING|>", "<|START_ACTION|>[",
         R"({"tool_call_id": "0", "tool_name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}})", ",",
         "]<|END_ACTION|>"},
        {"command-r", "", "Action: ```json\n[",
         R"({"tool_name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}})", ",\n", "]```"},
        {"llama3", "", "{# ipython #}", R"({"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}})", "; ",
         "", false},
        {"llama3", "", "{# ipython #}<|python_tag|>",
         R"({"type": "function", "name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}})", "; ", ""},
        {"gpt-oss", "<|channel|>analysis<|message|>{{ m.reasoning_content }}<|end|><|start|>assistant", "",
         "<|channel|>commentary to=functions.{{ f.name }} <|constrain|>json<|message|>{{ f.arguments | tojson }}",
         "<|call|><|start|>assistant", "<|call|>", true,
         "{% if m.content %}<|channel|>{{ 'commentary' if m.tool_calls else 'final' }}<|message|>{{ m.content }}<|end|>"
         "{% if m.tool_calls %}<|start|>assistant{% endif %}{% endif %}"},
        {"gpt-oss", "<|channel|>analysis<|message|>{{ m.reasoning_content }}<|end|><|start|>assistant", "",
         " to=functions.{{ f.name }}<|channel|>commentary json<|message|>{{ f.arguments | tojson }}",
         "<|end|><|start|>assistant", "", false,
         "{% if m.content %}<|channel|>final<|message|>{{ m.content }}<|return|>{% endif %}"},
    };
    return all;
}

/// How the template begins an answer, which the prompt has.
std::string begun_of(const Family& family) {
    return std::string(family.dialect) == "gpt-oss" ? "<|start|>assistant" : "";
}

std::string template_of(const Family& family) {
    return std::string("{% set m = messages[0] %}{% if m.reasoning_content %}") + family.thought + "{% endif %}" +
           family.said + "{% if m.tool_calls %}" + family.begin +
           "{% for c in m.tool_calls %}{% set f = c.function %}" + family.call + "{% if not loop.last %}" +
           family.between + "{% endif %}{% endfor %}" + family.end + "{% endif %}";
}

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
            ChatInput input;
            input.messages = Json::array({answer});
            const std::string text = chat.render(input).text();
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
            ChatInput input;
            input.messages = Json::array({answer});
            std::vector<std::string> shown;
            for (const std::string& token : marks_and_characters(chat.render(input).text())) {
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
