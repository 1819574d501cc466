#include "fovea/host/chat.h"

#include <algorithm>
#include <utility>

#include "engine/format/tables.h"
#include "fovea/host/tokens.h"
#include "host/base/ascii.h"
#include "host/base/message_end.h"
#include "host/base/tokens_around.h"
#include "host/chat/chat_template.h"
#include "host/chat/dialect.h"
#include "host/chat/told_tools.h"

namespace fovea {
namespace {

/// Tokens that end a turn in public templates. A model's file may name only the end of a text.
constexpr std::string_view kTurnEnds[] = {"<|im_end|>",
                                          "<|eot_id|>",
                                          "<|eom_id|>",
                                          "<end_of_turn>",
                                          kMessageEnd,
                                          "<|endoftext|>",
                                          "<|end_of_text|>",
                                          "<|end_of_turn|>",
                                          "<|END_OF_TURN_TOKEN|>",
                                          "<|end_of_sentence|>",
                                          "<\xef\xbd\x9c"
                                          "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                                          "<|return|>",
                                          "<|call|>",
                                          "</s>",
                                          "<|EOT|>"};

constexpr std::string_view kPlain =
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ message.content ~ '\\n\\n' }}"
    "{% else %}{{ message.role | capitalize ~ ': ' ~ message.content ~ '\\n' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

/// For a model whose prompts a text closes: only the last message, as `run` has it.
constexpr std::string_view kLastAlone =
    "{{ bos_token }}{% for message in messages %}{% if loop.last %}{{ message.content }}{% endif %}{% endfor %}";

std::vector<Token> tokenized(const Tokenizer& tokenizer, std::string_view text, std::span<const TextRange> plain = {}) {
    try {
        return host::tokenize_around(tokenizer, text, plain, ModelChat::read_options());
    } catch (const host::Error&) {
        throw ChatTemplateError("prompt: expected a text that can be tokenized, got " + std::to_string(text.size()) +
                                " bytes that cannot");
    }
}

/// Whether a token looks like one that parts a prompt: a mark at both ends.
bool is_marked(std::string_view text) {
    const auto is_mark = [](char c) { return !is_letter_or_digit(c) && static_cast<unsigned char>(c) > ' '; };
    return !text.empty() && is_mark(text.front()) && is_mark(text.back());
}

constexpr char kData = '\x1a';  // a control character, which stands for data

/// What the template itself wrote, and data of any length as one character.
std::string without_data(const TaintedText& prompt) {
    std::string own;
    std::size_t at = 0;
    for (const TextRange& range : prompt.data()) {
        own.append(prompt.text(), at, range.first - at) += kData;
        at = range.last;
    }
    return own.append(prompt.text(), at);
}

/// The special token with this text, or kNoToken.
Token special_token(const Tokenizer& tokenizer, std::string_view text) {
    const std::vector<Token> tokens = tokenized(tokenizer, text);
    return tokens.size() == 1 && tokenizer.is_special(tokens[0]) ? tokens[0] : Tokenizer::kNoToken;
}

std::shared_ptr<const ChatTemplate> parsed(std::string_view text) {
    return std::make_shared<const ChatTemplate>(ChatTemplate::parse(text));
}

/// Null where there is no text.
Json given_json(std::string_view text, const char* name) {
    if (text.empty()) return {};
    Json json = read_json(text);
    if (json.is_discarded()) throw host::ArgumentError(std::string(name) + ": expected JSON, got other text");
    return json;
}

}  // namespace

ModelChat::ModelChat(const Model& model, const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    if (!tokenizer.valid()) throw host::Error("chat: expected a model with a tokenizer, got one without");
    if (tokenizer.bos() != Tokenizer::kNoToken) bos_ = token_bytes(tokenizer, tokenizer.bos());
    for (Token id = 0; id < tokenizer.vocab_size(); ++id)
        if (tokenizer.ends_text(id)) end_tokens_.push_back(id);
    if (!end_tokens_.empty()) eos_ = token_bytes(tokenizer, end_tokens_.front());
    const auto named = read_json(find_info(model, "special_tokens"));
    for (const auto& [key, text] : {std::pair{"bos_token", &bos_}, std::pair{"eos_token", &eos_}})
        if (named.is_object() && named.contains(key) && named[key].is_string()) *text = named[key].get<std::string>();
    const auto has = [&](std::string_view text) { return special_token(tokenizer, text) != Tokenizer::kNoToken; };
    const bool has_messages = answers_in_messages(has);
    for (const std::string_view text : kTurnEnds) {
        const Token id = has_messages && text == kMessageEnd ? Tokenizer::kNoToken : special_token(tokenizer, text);
        if (id != Tokenizer::kNoToken) end_tokens_.push_back(id);
    }
    std::sort(end_tokens_.begin(), end_tokens_.end());
}

/// What the template shows by itself.
void ModelChat::find_shown(std::string_view text) {
    if (tools_template_ || dialect_.calls->syntax == CallSyntax::channels) return;  // both are for tools
    ChatInput input;
    input.bos_token = bos_;
    input.eos_token = eos_;
    shown_ = std::make_shared<const ShownParts>(shown_parts(*template_, text, std::move(input)));
}

/// The dialect that templates show, which of its marks are special tokens, and which other tokens part a prompt.
void ModelChat::find_marks(std::string_view shown) {
    dialect_ = dialect_of(shown, [&](auto text) { return special_token(tokenizer_, text) != Tokenizer::kNoToken; });
    for (Token id = 0; id < tokenizer_.vocab_size(); ++id)
        if (tokenizer_.is_special(id) && has_in_marks(dialect_, token_bytes(tokenizer_, id))) marks_.push_back(id);
    std::vector<Token> added;
    const Tables tables = TokenizerReader::tables(tokenizer_);
    for (const AddedToken& token : tables.added_tokens)
        if (is_marked(tables.spelling(token)) && !has_in_marks(dialect_, tables.spelling(token)))
            added.push_back(token.id);
    std::sort(added.begin(), added.end());
    for (const Token id : tokenized(tokenizer_, shown))
        if (std::binary_search(added.begin(), added.end(), id) && !tokenizer_.is_special(id)) named_.push_back(id);
    std::sort(named_.begin(), named_.end());
    unknown_ = tokenized(tokenizer_, {&kData, 1});
}

ModelChat ModelChat::of(const Model& model, const Tokenizer& tokenizer) {
    ModelChat chat(model, tokenizer);
    std::string text(model.info().chat_template);
    if (!text.empty()) {
        chat.template_ = parsed(text);
        if (const std::string_view tools = find_info(model, "chat_template_tool_use"); !tools.empty()) {
            chat.tools_template_ = parsed(tools);
            text += tools;
        }
    } else if (special_token(tokenizer, "<|im_start|>") != Tokenizer::kNoToken) {
        chat.template_ = std::make_shared<const ChatTemplate>(ChatTemplate::chatml());
        chat.note_ = "no chat template: ChatML, for which it has tokens";
    } else if (!model.info().prompt_suffix.empty()) {
        const std::string suffix = json_text(Json(model.info().prompt_suffix));  // quoted as templates do
        chat.template_ = parsed(std::string(kLastAlone) + "{{ " + suffix + " }}");
        chat.note_ = "no chat template: it answers each message by itself, without a system text";
        chat.find_marks(text);
        return chat;  // it is told of no tools
    } else {
        chat.template_ = parsed(kPlain);
        chat.note_ = "no chat template: turns as plain text";
        chat.stops_ = {"\nUser:", "\nAssistant:"};
    }
    chat.find_marks(text);
    chat.find_shown(text);
    return chat;
}

ModelChat ModelChat::with(const Model& model, const Tokenizer& tokenizer, std::string_view text) {
    ModelChat chat(model, tokenizer);
    chat.template_ = parsed(text);
    chat.find_marks(text);
    chat.find_shown(text);
    return chat;
}

std::string ModelChat::prompt(const ChatText& conversation) const { return render(conversation).text(); }

std::vector<Token> ModelChat::tokens(const ChatText& conversation) const { return read(render(conversation)); }

TaintedText ModelChat::render(const ChatText& conversation) const {
    ChatInput input;
    input.messages = given_json(conversation.messages, "messages");
    if (!input.messages.is_array() || input.messages.empty())
        throw host::ArgumentError("messages: expected an array of 1 message or more, got other JSON");
    input.tools = given_json(conversation.tools, "tools");
    if (!conversation.extra.empty()) input.extra = given_json(conversation.extra, "extra");
    input.add_generation_prompt = conversation.add_generation_prompt;
    try {
        return render(std::move(input));
    } catch (const ChatTemplateError& error) {
        throw host::Error(std::string("chat template: ") + error.what());
    }
}

TaintedText ModelChat::render(ChatInput input) const {
    if (input.bos_token.empty()) input.bos_token = bos_;
    if (input.eos_token.empty()) input.eos_token = eos_;
    const auto is_of_tools = [](const Json& one) {
        return one.is_object() && (one.contains("tool_calls") || one.value("role", Json()) == "tool");
    };
    const bool tells = shown_ && !shown_->tools && input.tools.is_array() && !input.tools.empty();
    if (shown_ && (tells || std::any_of(input.messages.begin(), input.messages.end(), is_of_tools))) {
        ShownParts shown = *shown_;
        if (tells) shown.calls = shown.results = false;  // all in one form
        input.messages = tell_tools(input.messages, tells ? input.tools : Json(), *dialect_.calls, shown, input.limits);
    }
    if (tells) input.tools = nullptr;
    const bool has_tools = tools_template_ && input.tools.is_array() && !input.tools.empty();
    return (has_tools ? tools_template_ : template_)->render(input);
}

std::vector<Token> ModelChat::own_of(const std::vector<Token>& tokens) const {
    std::vector<Token> own;
    for (const Token id : tokens)
        if ((tokenizer_.is_special(id) || std::binary_search(named_.begin(), named_.end(), id)) &&
            std::find(unknown_.begin(), unknown_.end(), id) == unknown_.end())
            own.push_back(id);
    return own;
}

std::vector<Token> ModelChat::read(const TaintedText& prompt, const Tokenize& tokenize) const {
    const auto tokens = [&](std::string_view text, std::span<const TextRange> plain) {
        return tokenize ? tokenize(text, plain) : tokenized(tokenizer_, text, plain);
    };
    std::vector<Token> read = tokens(prompt.text(), {});
    // Borders of data would end words: they matter only where data has the template's tokens.
    if (prompt.data().empty() || own_of(read) == own_of(tokens(without_data(prompt), {}))) return read;
    return tokens(prompt.text(), prompt.data());
}

TokenizeOptions ModelChat::read_options() { return {.add_special = false, .parse_special = true}; }

std::vector<Token> ModelChat::tokens_of(std::string_view prompt) const { return tokenized(tokenizer_, prompt); }

}  // namespace fovea
