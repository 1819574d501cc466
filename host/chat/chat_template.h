// A model's chat template: it turns a conversation into a prompt as the model was trained on.
//
//     const ChatTemplate chat = ChatTemplate::parse(text);         // the file's text, which is not trusted
//     std::string prompt = chat.render({.messages = messages});    // [{"role": "user", "content": "Hello"}]
//
// Templates are written in Jinja2 and evaluated as Hugging Face transformers does: sandboxed, trim_blocks and lstrip_blocks
// on, break and continue, {% generation %}, raise_exception, strftime_now, and a tojson that writes what json.dumps
// does. Not supported: include, import, extends and block, arguments by * and **, the format filter, letters beyond
// ASCII in upper, lower, title and capitalize, which stay as they are, and integers of more than 64 bits. Filters give
// lists where Jinja2's give generators, which are true even when they give nothing. Text is not escaped, except beside
// a text that `safe` marked.
#pragma once
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "fovea/host/error.h"
#include "host/base/json.h"
#include "host/chat/tainted_text.h"

namespace fovea {

/// A template cannot be read, or fails on this conversation: one line, "line N: ..." if the place is known.
struct ChatTemplateError : host::Error {
    using Error::Error;
};

/// Limits of a rendering; beyond them is a ChatTemplateError. The defaults are far above the needs of conversations.
struct ChatTemplateLimits {
    std::uint64_t n_steps = 10'000'000;    ///< expressions evaluated and elements touched
    std::uint64_t n_bytes = 256ull << 20;  ///< of all texts and lists that are made, each counted once
    std::uint32_t depth = 400;             ///< of calls and expressions within each other
};

/// The variables of a template. The order of keys is kept, for templates print objects.
struct ChatInput {
    /// Objects with "role" and "content", at least one. Members that are null are left out, as transformers does.
    Json messages = Json::array();
    Json tools{};                       ///< null: none
    Json documents{};                   ///< null: none
    bool add_generation_prompt = true;  ///< ends with what begins the model's answer
    std::string bos_token{};            ///< as text; empty: the variable is not defined
    std::string eos_token{};
    Json extra = Json::object();  ///< more variables, "enable_thinking" among them
    std::time_t now = -1;         ///< what strftime_now tells; -1: the present
    ChatTemplateLimits limits{};
};

namespace chat {
struct Block;
}

/// A template that has been read. Copies share it; any number of threads may render at once.
class ChatTemplate {
public:
    /// Throws ChatTemplateError. Reads at most kMostBytes of text, in time proportional to them.
    [[nodiscard]] static ChatTemplate parse(std::string_view text);
    static constexpr std::size_t kMostBytes = 1 << 20;
    /// ChatML, which most models that come without a template understand best.
    [[nodiscard]] static ChatTemplate chatml();

    /// The prompt, of which what the input gave is data: messages, tools, documents and other variables. Throws ChatTemplateError: an expression fails, the template refuses the conversation with
    /// raise_exception, or a limit is reached.
    [[nodiscard]] TaintedText render(const ChatInput& input) const;

private:
    std::shared_ptr<const chat::Block> body_;
};

}  // namespace fovea
