// Calls of tools that an answer must be: how the prompt begins one in the model's dialect, and the form of what follows.
#pragma once
#include <string>
#include <string_view>

#include "host/base/json.h"
#include "host/chat/dialect.h"
#include "host/chat/tainted_text.h"
#include "host/grammar/grammar.h"

namespace fovea {

/// Calls of tools by name: one of them, or any. Arguments are in the dialect's own syntax if all tools' can be (has_own_form), else
/// JSON, which every reader takes.
class ForcedCall {
public:
    /// tools: an array of OpenAI's. name: of the only one that may be called; empty: any of them.
    /// in_prompt: the prompt ends with what the call begins with; else the form has all but the dialect's mark.
    /// Throws grammar::GrammarError where no tool has the name.
    ForcedCall(const Dialect& dialect, const Json& tools, std::string_view name, bool in_prompt);

    /// What the answer begins with and its form has not.
    [[nodiscard]] const TaintedText& begun() const { return begun_; }
    /// Throws grammar::GrammarError for parameters that are no schema.
    [[nodiscard]] grammar::Grammar form(const grammar::SchemaOptions& options = {}) const;

private:
    const Dialect* dialect_;
    bool is_own_ = false;  // the syntax
    Json functions_ = Json::array();
    TaintedText begun_;
    std::string before_, between_, after_;  // the form's words before a name, behind it, and at the end
};

/// A conversation's prompt, and what it has of the answer, for who reads that.
struct BegunAnswer {
    TaintedText prompt;
    std::string begun;
};
/// Where what is said has a form. In dialects of channels the prompt opens the final one for it.
enum class FormPlace {
    none,
    at_once,          ///< all of the answer: reasoning that the template began ends before it
    after_reasoning,  ///< behind reasoning that the template began, if it did: grammar::behind its closing mark
};
/// What the template gave; behind it the call that is forced, before which reasoning ends. call: null: none.
[[nodiscard]] BegunAnswer begin_answer(const AnswerDialect& dialect, TaintedText prompt, const ForcedCall* call,
                                       FormPlace form);

}  // namespace fovea
