#include "host/chat/chat_template.h"

#include "host/chat/interpreter.h"
#include "host/chat/parser.h"

namespace fovea {
namespace {

/// Messages as transformers hands them to a template: members that are null are left out, and the reasoning stands
/// under each of the names that templates read.
Json settled(const Json& messages) {
    if (!messages.is_array() || messages.empty())
        throw ChatTemplateError("messages: expected a list of 1 or more, got none");
    Json all = Json::array();
    for (const Json& message : messages) {
        if (!message.is_object()) throw ChatTemplateError("message: expected an object, got another value");
        const Json* reasoning = nullptr;
        for (const char* name : {"reasoning_content", "thinking", "reasoning"})
            if (!reasoning && message.contains(name) && !message[name].is_null()) reasoning = &message[name];
        Json one = Json::object();
        if (reasoning) one["thinking"] = *reasoning;
        for (const auto& [key, value] : message.items())
            if (!value.is_null()) one[key] = value;
        if (reasoning) one["reasoning_content"] = *reasoning;
        all.push_back(std::move(one));
    }
    return all;
}

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view text) {
    ChatTemplate made;
    made.body_ = std::make_shared<const chat::Block>(chat::parse_block(text));
    return made;
}

ChatTemplate ChatTemplate::chatml() {
    return parse(
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
}

TaintedText ChatTemplate::render(const ChatInput& input) const {
    if (!body_) throw ChatTemplateError("expected a template that was read, got none");
    return chat::Interpreter(input, settled(input.messages)).run(*body_);
}

}  // namespace fovea
