// A model's chat template, and the parts of its tokenizer that a conversation needs.
//
//     const ModelChat chat = ModelChat::of(opened.model, opened.tokenizer);
//     const std::vector<Token> tokens = chat.tokens({.messages = R"([{"role": "user", "content": "Hello"}])"});
//     ... generate until one of chat.end_tokens() is chosen, or one of chat.stops() shows
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/host/error.h"
#include "fovea/model.h"
#include "fovea/tokenize_around.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
struct ChatInput;   // host/chat/chat_template.h
class TaintedText;  // host/chat/tainted_text.h

class ChatTemplate;
struct Dialect;         // host/chat/dialect.h
struct ReasoningMarks;  // there too
struct ShownParts;      // host/chat/told_tools.h

/// How a model's answers have reasoning and calls of tools.
struct AnswerDialect {
    const Dialect* calls = nullptr;
    const ReasoningMarks* reasoning = nullptr;
};

/// A conversation as JSON.
struct ChatText {
    std::string_view messages;          ///< an array of objects with "role" and "content", one or more
    std::string_view tools = {};        ///< an array of tools as OpenAI's API has them; empty: none
    std::string_view extra = {};        ///< an object of more variables for the template, as {"enable_thinking": false}
    bool add_generation_prompt = true;  ///< ends with what begins the model's answer
};

class ModelChat {
public:
    /// The model's own template. A model without one gets ChatML if the vocabulary has its tokens; else only the last
    /// message if a text closes the model's prompts; else turns as plain text. Throws host::Error if the model's own
    /// cannot be read, or if there is no tokenizer. Model and tokenizer are views, whose bytes must outlive this.
    [[nodiscard]] static ModelChat of(const Model& model, const Tokenizer& tokenizer);
    /// The same with a given template.
    [[nodiscard]] static ModelChat with(const Model& model, const Tokenizer& tokenizer, std::string_view text);

    /// A note to the user about the template: "no chat template: ..."; empty if it is the model's own.
    [[nodiscard]] const std::string& note() const { return note_; }

    /// The prompt as text. With tools, the model's template for them is used, if it has one. Where it knows none, a text lists
    /// them, and calls and results are texts. Throws host::ArgumentError for
    /// what is not JSON, host::Error where the template refuses the conversation.
    [[nodiscard]] std::string prompt(const ChatText& conversation) const;
    /// Its tokens, as read() gives them. Throws what prompt() does.
    [[nodiscard]] std::vector<Token> tokens(const ChatText& conversation) const;
    /// The same of parsed JSON. If `input` has no bos_token or eos_token, the model's source gives them, or else the
    /// tokenizer's start and first end token.
    [[nodiscard]] TaintedText render(ChatInput input) const;

    using Tokenize = std::function<std::vector<Token>(std::string_view text, std::span<const TextRange> plain)>;
    /// The tokens of what a template rendered, without a start token of their own: the template has it. The template's
    /// special tokens are read. What a conversation has of that form stays text, and so do other tokens that the template
    /// names, but for marks of reasoning and calls. tokenize: as tokenize_around does with read_options(); null: that.
    [[nodiscard]] std::vector<Token> read(const TaintedText& prompt, const Tokenize& tokenize = {}) const;
    [[nodiscard]] static TokenizeOptions read_options();
    /// The tokens of a text, special ones read wherever they stand, as transformers does: for prompts from elsewhere.
    [[nodiscard]] std::vector<Token> tokens_of(std::string_view prompt) const;

    /// Tokens that end a turn: the model's end tokens, and the tokens that templates end turns with.
    [[nodiscard]] const std::vector<Token>& end_tokens() const { return end_tokens_; }
    /// Texts that end a turn, if no token does; mostly none.
    [[nodiscard]] const std::vector<std::string>& stops() const { return stops_; }
    /// How answers are written, as the template shows it.
    [[nodiscard]] const AnswerDialect& dialect() const { return dialect_; }
    /// The special tokens among the dialect's marks: an answer's text has them (GenerateOptions::shown), so that it can be read.
    [[nodiscard]] const std::vector<Token>& marks() const { return marks_; }

private:
    ModelChat(const Model& model, const Tokenizer& tokenizer);
    void find_marks(std::string_view shown);
    void find_shown(std::string_view text);
    [[nodiscard]] TaintedText render(const ChatText& conversation) const;
    [[nodiscard]] std::vector<Token> own_of(const std::vector<Token>& tokens) const;

    Tokenizer tokenizer_;
    std::shared_ptr<const ChatTemplate> template_, tools_template_;  // tools_template_: null where it is the same
    std::string bos_, eos_, note_;
    std::vector<Token> end_tokens_, marks_;
    std::vector<Token> named_;    // by the template, and not special
    std::vector<Token> unknown_;  // what the character that stands for data becomes
    std::vector<std::string> stops_;
    AnswerDialect dialect_;
    std::shared_ptr<const ShownParts> shown_;  // by the template; null: all, or nobody is told of tools
};

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
