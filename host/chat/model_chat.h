// A model's chat template, and the parts of its tokenizer that a conversation needs. For the command line, servers and
// Python.
//
//     const ModelChat chat = ModelChat::of(model, tokenizer);
//     const std::vector<Token> prompt = chat.tokens(input);      // never with a start token of their own: the template has it
//     ... generate until one of chat.end_tokens() is chosen, or one of chat.stops() shows
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fovea/model.h"
#include "fovea/tokenizer.h"
#include "host/chat/chat_template.h"

namespace fovea {

class ModelChat {
public:
    /// The model's own template. A model without one gets ChatML if the vocabulary has its tokens; else only the last
    /// message if a text closes the model's prompts; else turns as plain text. Throws ChatTemplateError if the model's
    /// own cannot be read, std::invalid_argument if there is no tokenizer. Model and tokenizer are views, whose bytes
    /// must outlive this.
    [[nodiscard]] static ModelChat of(const Model& model, const Tokenizer& tokenizer);
    /// The same with a given template.
    [[nodiscard]] static ModelChat with(const Model& model, const Tokenizer& tokenizer, std::string_view text);

    /// A note to the user about the template: "no chat template: ..."; empty if it is the model's own.
    [[nodiscard]] const std::string& note() const { return note_; }

    /// The prompt as text. With tools, the model's template for them is used, if it has one. If `input` has no
    /// bos_token or eos_token, the model's source gives them, or else the tokenizer's start and first end token.
    [[nodiscard]] std::string render(ChatInput input) const;
    /// The prompt's tokens, special ones read. Text that looks like them is read so too, as transformers does.
    [[nodiscard]] std::vector<Token> tokens(const ChatInput& input) const;
    [[nodiscard]] std::vector<Token> tokens_of(std::string_view prompt) const;

    /// Tokens that end a turn: the model's end tokens, and the tokens that templates end turns with.
    [[nodiscard]] const std::vector<Token>& end_tokens() const { return end_tokens_; }
    /// Texts that end a turn, if no token does; mostly none.
    [[nodiscard]] const std::vector<std::string>& stops() const { return stops_; }

private:
    ModelChat(const Model& model, const Tokenizer& tokenizer);

    Tokenizer tokenizer_;
    ChatTemplate template_;
    std::optional<ChatTemplate> tools_template_;
    std::string bos_, eos_, note_;
    std::vector<Token> end_tokens_;
    std::vector<std::string> stops_;
};

}  // namespace fovea
