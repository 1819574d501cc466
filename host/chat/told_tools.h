// Tools of models whose template knows none: a text lists them, and calls and results are texts in the conversation. The form is that
// of Hermes' models, and the calls are in the model's dialect, which is Hermes' where the template shows no other.
#pragma once
#include "host/base/json.h"
#include "host/chat/chat_template.h"
#include "host/chat/dialect.h"

namespace fovea {

/// What a template shows of a conversation.
struct ShownParts {
    bool tools = true;    ///< the functions that may be called,
    bool calls = true;    ///< calls of them,
    bool results = true;  ///< what these gave,
    bool system = true;   ///< the system's text
};
/// Renders conversations to see. `text`: the template's. A template that refuses all of them counts as one that shows tools.
[[nodiscard]] ShownParts shown_parts(const ChatTemplate& chat_template, std::string_view text, ChatInput input);

/// The messages with what the template does not show as texts. Tools are listed in the system's text, or in the user's first where
/// there is no system. tools: an array of OpenAI's; null: none.
[[nodiscard]] Json tell_tools(const Json& messages, const Json& tools, const Dialect& dialect, const ShownParts& shown,
                              const ChatTemplateLimits& limits = {});

}  // namespace fovea
