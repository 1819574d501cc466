// How models write reasoning and calls of tools in their answers. A dialect is a row of a table (dialects.inc), found from the
// model's chat template, or from its vocabulary where the template shows none.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "fovea/host/chat.h"

namespace fovea {

/// Space that may stand beside marks.
inline constexpr std::string_view kMarkSpace = "\n\r \t";

/// What stands between a call's marks.
enum class CallSyntax {
    json,      ///< {"name": "f", "arguments": {"a": 1}}, or a list of such objects
    named,     ///< the name, then an object: f[ARGS]{"a": 1}
    tagged,    ///< the name, then each argument between marks: <parameter=a>1</parameter>
    python,    ///< [f(a=1), g()]
    members,   ///< call:f{a:1}
    channels,  ///< messages whose header names the tool: to=functions.f<|message|>{"a": 1}
};

/// A row. A mark that is empty is not written.
struct Dialect {
    std::string_view name;
    std::string_view shown[2] = {};  ///< texts of a template that is written for it, both
    CallSyntax syntax = CallSyntax::json;
    std::string_view open = {}, close = {};  ///< around all calls; without `close` they are the answer's end
    std::string_view bare = {};              ///< what calls may begin with at an answer's start, without `open`
    std::string_view call_open = {}, call_close = {};
    std::string_view name_open = {},
                     name_close = {};  ///< around the name, which has no character that name_close begins with
    std::string_view key_open = {}, key_close = {};      ///< tagged: around an argument's name,
    std::string_view value_open = {}, value_close = {};  ///< and its value
    bool has_lines = false;                              ///< tagged: a value has a line end before it and behind it
    bool has_kinds = false;        ///< tagged: "true" before value_open for a text, "false" for JSON
    std::string_view quote = {};   ///< members: around a text
    std::string_view beside = {};  ///< another mark that stands beside a name
    // How a call is begun that the model did not begin itself (forced_call.h).
    std::string_view lead = {};   ///< between `open` and the call; a list, if it ends with '['
    std::string_view first = {};  ///< json: what stands in the object before the name
    std::string_view name_key = "name", arguments_key = "arguments";  ///< json: its members
};

/// Marks around reasoning.
struct ReasoningMarks {
    std::string_view open, close;
};

/// All rows; the first is what models are taken for that show none.
[[nodiscard]] std::span<const Dialect> all_dialects();
/// The row of this name; null: none.
[[nodiscard]] const Dialect* find_dialect(std::string_view name);
/// What a template is written for. `is_special`: whether a text is one of the model's special tokens.
[[nodiscard]] AnswerDialect dialect_of(std::string_view chat_template,
                                       const std::function<bool(std::string_view)>& is_special = {});

/// A call's words in a dialect: what stands before its name, between that and its arguments, behind these, and at the calls' end.
struct CallWords {
    std::string before, between, after, end;
};
/// Arguments are JSON in all of them. plain_names: names are letters, digits and "_-." alone; else they are texts of JSON.
[[nodiscard]] CallWords call_words(const Dialect& dialect, bool plain_names);
/// The same of dialects whose arguments are not JSON, as their templates write them; the name is plain.
[[nodiscard]] CallWords own_call_words(const Dialect& dialect);

/// Before a name, in the syntax of members.
inline constexpr std::string_view kMembersCall = "call:";
/// Marks of messages in channels: what begins a header, what ends it, and what ends a message.
inline constexpr std::string_view kHeaderBegins[] = {"<|start|>", "<|channel|>"};
inline constexpr std::string_view kHeaderEnd = "<|message|>";
inline constexpr std::string_view kMessageEnds[] = {"<|end|>", "<|call|>", "<|return|>"};

/// Whether the dialect has this text in one of its marks: a special token that is must be seen by who reads the answer.
[[nodiscard]] bool has_in_marks(const AnswerDialect& dialect, std::string_view text);

/// What a prompt's end has of the answer: the mark that opens reasoning, or a message's header. Empty: nothing.
[[nodiscard]] std::string_view begun_answer(const AnswerDialect& dialect, std::string_view prompt);

}  // namespace fovea
