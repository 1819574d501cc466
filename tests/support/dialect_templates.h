// Each dialect of calls as a template writes it, for tests of what reads answers and of the forms of calls.
#pragma once
#include <string>
#include <vector>

#include "host/base/json.h"
#include "host/chat/chat_template.h"
#include "host/chat/dialect.h"

namespace fovea::testing {

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

inline constexpr const char* kThink = "<think>\n{{ m.reasoning_content }}\n</think>\n\n";
inline constexpr const char* kObject = R"({"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}})";
inline constexpr const char* kKeywords =
    "{{ f.name }}({% for k in f.arguments %}{{ k }}={{ f.arguments[k] | tojson }}{% if not loop.last %}, {% endif %}{% "
    "endfor %})";
inline constexpr const char* kRaw = "{% set v = f.arguments[k] %}{{ v if v is string else v | tojson }}";
inline const std::string kTags =
    std::string("<function={{ f.name }}>\n{% for k in f.arguments %}<parameter={{ k }}>\n") + kRaw +
    "\n</parameter>\n{% endfor %}</function>";
inline const std::string kSeed = std::string("<function={{ f.name }}>{% for k in f.arguments %}<parameter={{ k }}>") +
                                 kRaw + "</parameter>{% endfor %}</function>";
inline const std::string kKeys =
    std::string("{{ f.name }}\n{% for k in f.arguments %}<arg_key>{{ k }}</arg_key>\n<arg_value>") + kRaw +
    "</arg_value>\n{% endfor %}";
inline const std::string kInvoke =
    std::string("<invoke name=\"{{ f.name }}\">\n{% for k in f.arguments %}<parameter name=\"{{ k }}\">") + kRaw +
    "</parameter>\n{% endfor %}</invoke>";
inline const std::string kMarked =
    std::string("<" BAR "DSML" BAR "invoke name=\"{{ f.name }}\">\n{% for k in f.arguments %}<" BAR "DSML" BAR
                "parameter name=\"{{ k }}\" string=\"{{ 'true' if f.arguments[k] is string else 'false' }}\">") +
    kRaw + "</" BAR "DSML" BAR "parameter>\n{% endfor %}</" BAR "DSML" BAR "invoke>";

/// Objects whose keys stand bare, and texts between `quote`.
inline std::string members(const std::string& quote) {
    return "{% macro v(x) %}{% if x is string %}" + quote + "{{ x }}" + quote +
           "{% elif x is mapping %}{{ '{' }}{% for k in x %}{{ k }}:{{ v(x[k]) }}{% if not loop.last %},{% endif %}{% "
           "endfor %}"
           "{{ '}' }}{% elif x is iterable %}[{% for y in x %}{{ v(y) }}{% if not loop.last %},{% endif %}{% endfor %}]"
           "{% else %}{{ x | tojson }}{% endif %}{% endmacro %}call:{{ f.name }}{{ v(f.arguments) }}";
}
inline const std::string kGemma = members("<|\"|>"), kEscape = members("<escape>");

inline const std::vector<Family>& families() {
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
inline std::string begun_of(const Family& family) {
    return std::string(family.dialect) == "gpt-oss" ? "<|start|>assistant" : "";
}

inline std::string template_of(const Family& family) {
    return std::string("{% set m = messages[0] %}{% if m.reasoning_content %}") + family.thought + "{% endif %}" +
           family.said + "{% if m.tool_calls %}" + family.begin +
           "{% for c in m.tool_calls %}{% set f = c.function %}" + family.call + "{% if not loop.last %}" +
           family.between + "{% endif %}{% endfor %}" + family.end + "{% endif %}";
}

/// What the template makes of an answer: {"role": "assistant", "content", "reasoning_content", "tool_calls"}.
inline std::string rendered(const ChatTemplate& chat_template, const Json& answer) {
    ChatInput input;
    input.messages = Json::array({answer});
    return chat_template.render(input).text();
}

#undef BAR
#undef JOIN

}  // namespace fovea::testing
