// What holds of calls in a dialect: they are read back as the template writes them, and the form of a forced call takes them.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/constraint_run.h"
#include "fovea/constraint.h"
#include "host/base/words.h"
#include "host/chat/answer_reader.h"
#include "host/text/forced_call.h"
#include "tests/fuzz/form.h"
#include "tests/support/dialect_templates.h"

namespace fovea::testing {

/// Calls are {"name", "arguments"}; tools are OpenAI's. Every check gives what is wrong, or nothing.
class CallChecks {
public:
    explicit CallChecks(const Family& family)
        : family_(family),
          dialect_(dialect_of(template_of(family))),
          template_(ChatTemplate::parse(template_of(family))) {}

    /// Whole, byte by byte and as a stream's pieces.
    [[nodiscard]] std::string read_back(const Json& tools, const Json& calls) const {
        const std::string text = written(calls), begun = begun_of(family_);
        const Json readable = as_told(tools, calls);
        for (const std::size_t n : {text.size(), std::size_t{1}})
            if (std::string fault = fault_of(readable, read(tools, begun, text, n, false)); !fault.empty())
                return fault + " in " + text;
        const std::string fault = fault_of(readable, read(tools, begun, text, 3, true));
        return fault.empty() ? "" : fault + ", streamed, in " + text;
    }

    /// name: of the tool that must be called; empty: any. The call fits its tool's schema.
    [[nodiscard]] std::string fits_form(const Json& tools, const Json& call, const std::string& name, bool in_prompt) {
        const ForcedCall forced(*dialect_.calls, tools, name, in_prompt);
        const Constraint& constraint = form_of(forced, json_text(tools) + name + (in_prompt ? "1" : "0"));
        const std::string text(trimmed(written(Json::array({call})), kMarkSpace)), begun = forced.begun().text();
        if (!text.starts_with(begun)) return "expected " + begun + " before " + text;
        const std::string rest = text.substr(begun.size());
        const std::size_t taken = longest(constraint, rest);
        if (taken == rest.npos || !is_end(rest.substr(taken))) return "the form of " + begun + " does not take " + rest;
        const std::string fault = fault_of(Json::array({call}), read(tools, begun, rest.substr(0, taken), 1, false));
        if (!fault.empty()) return fault + " in " + begun + rest.substr(0, taken);
        return lacks_nothing(constraint, begun, call, tools);
    }

private:
    struct Read {
        std::string text;
        Json calls = Json::array(), streamed = Json::array();
    };

    [[nodiscard]] std::string written(const Json& calls) const {
        Json all = Json::array();
        for (const Json& call : calls) all.push_back({{"type", "function"}, {"function", call}});
        return rendered(template_,
                        {{"role", "assistant"}, {"content", ""}, {"reasoning_content", ""}, {"tool_calls", all}});
    }

    /// What stands in the place of a text is one, where nothing but the schema tells texts from JSON.
    [[nodiscard]] Json as_told(const KnownTools& tools, Json calls) const {
        if (dialect_.calls->syntax != CallSyntax::tagged || dialect_.calls->has_kinds) return calls;
        for (Json& call : calls)
            for (auto& [name, value] : call["arguments"].items())
                if (!value.is_string() && tools.is_text(call["name"].get<std::string>(), name))
                    value = json_text(value);
        return calls;
    }

    [[nodiscard]] Read read(const Json& tools, const std::string& begun, const std::string& text, std::size_t n,
                            bool streams) const {
        Read out;
        AnswerReader reader(
            {.dialect = dialect_, .begun = begun, .reads_calls = true, .tools = tools, .streams_calls = streams});
        const auto on_text = [&](std::string_view part, bool) { out.text += part; };
        for (std::size_t at = 0; at < text.size(); at += n) reader.add(text.substr(at, n), on_text);
        reader.finish(on_text);
        for (const ToolCall& one : reader.calls())
            out.calls.push_back({{"name", one.name}, {"arguments", one.arguments}});
        std::vector<std::string> arguments;
        for (const CallPiece& piece : reader.pieces()) {
            if (piece.index == arguments.size())
                arguments.emplace_back(), out.streamed.push_back({{"name", piece.name}});
            arguments.at(piece.index) += piece.arguments;
        }
        for (std::size_t i = 0; i < arguments.size(); ++i) out.streamed[i]["arguments"] = read_json(arguments[i]);
        return out;
    }

    [[nodiscard]] static std::string fault_of(const Json& calls, const Read& read) {
        if (!trimmed(read.text, kMarkSpace).empty()) return "expected calls alone, got the text " + read.text;
        if (read.calls != calls) return "expected " + json_text(calls) + ", got " + json_text(read.calls);
        return read.streamed == calls ? ""
                                      : "expected " + json_text(calls) + ", got pieces of " + json_text(read.streamed);
    }

    [[nodiscard]] const Constraint& form_of(const ForcedCall& forced, const std::string& key) {
        std::unique_ptr<Compiled>& known = forms_[key];
        if (known) return known->constraint;
        const fuzz::FormVocabulary& v = fuzz::FormVocabulary::get();
        known = std::make_unique<Compiled>();
        known->bytes = grammar::compile(forced.form(), v.tokenizer, v.index, {.known_masks = false});
        fuzz::promise(open_constraint(v.tokenizer, known->bytes, v.index, known->constraint).ok(), "a form opens");
        return known->constraint;
    }

    /// How much of a text a form takes at most, and may end there; npos: nothing.
    [[nodiscard]] static std::size_t longest(const Constraint& constraint, std::string_view text) {
        std::vector<std::uint64_t> memory(constraint_state_bytes(constraint) / 8);
        ConstraintState state;
        fuzz::promise(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory)), state).ok(),
                      "a state is made");
        std::size_t most = can_end(state) ? 0 : text.npos;
        for (std::size_t i = 0; i < text.size() && advance_bytes(*ConstraintAccess::run(state), text.substr(i, 1)); ++i)
            if (can_end(state)) most = i + 1;
        return most;
    }

    /// What a template writes behind a form: nothing, or the marks of the calls' end.
    [[nodiscard]] bool is_end(std::string_view rest) const {
        rest = trimmed(rest, kMarkSpace);
        for (const std::string_view mark : kMessageEnds)
            if (rest == mark) return true;
        return rest.empty() || rest == trimmed(call_words(*dialect_.calls, true).end, kMarkSpace) ||
               rest == trimmed(own_call_words(*dialect_.calls).end, kMarkSpace);
    }

    /// The form does not take the call without its first required argument.
    [[nodiscard]] std::string lacks_nothing(const Constraint& constraint, const std::string& begun, Json call,
                                            const Json& tools) const {
        for (const Json& tool : tools) {
            const Json& function = tool["function"];
            const Json required = function.value("parameters", Json::object()).value("required", Json::array());
            if (function["name"] != call["name"] || required.empty()) continue;
            call["arguments"].erase(required[0].get<std::string>());
            const std::string text(trimmed(written(Json::array({call})), kMarkSpace));
            const std::size_t taken = longest(constraint, text.substr(begun.size()));
            if (taken != text.npos && is_end(text.substr(begun.size() + taken))) return "the form takes " + text;
        }
        return "";
    }

    struct Compiled {
        std::vector<std::byte> bytes;
        Constraint constraint;
    };
    const Family& family_;
    const AnswerDialect dialect_;
    const ChatTemplate template_;
    std::map<std::string, std::unique_ptr<Compiled>> forms_;
};

}  // namespace fovea::testing
