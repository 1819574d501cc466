#include "serve/api/prompt_reader.h"

#include <algorithm>

#include "host/base/status_error.h"
#include "host/base/words.h"
#include "host/chat/thinking.h"
#include "host/model/stacks.h"
#include "host/model/text_pairs.h"

namespace fovea::serve {
namespace {

// What one conversation's template may take of the thread that speaks HTTP.
constexpr ChatTemplateLimits kTemplateLimits{.n_steps = 2'000'000, .n_bytes = 64 << 20};
constexpr std::size_t kBytesPerToken = 64;  // of a text that fills the context: ten times what languages have

}  // namespace

PromptReader::PromptReader(const host::Opened& served, std::uint32_t context, bool has_answer)
    : served_(served),
      context_(context),
      most_(has_answer && served.kind() != host::Kind::translation ? context - 1 : context) {
    most_bytes_ = std::size_t{context} * std::max(kBytesPerToken, std::size_t{4});
    const std::uint64_t n_scratch = tokenize_scratch_bytes(served.tokenizer, most_bytes_);
    scratch_ = Arena(n_scratch);
    if (scratch_.size() < n_scratch)
        throw host::Error(served.name + ": memory: expected " + with_separators(n_scratch) +
                          " bytes to read prompts, got less");
    if (served.kind() == host::Kind::translation) {
        rules_ = TargetRules::read(find_info(served.model, "target"), served.model.config().decoder.vocab_size,
                                   served.name + ": target");
        no_chat_ = "expected a model that answers, got one that writes a text from a text, for /v1/completions";
        return;
    }
    if (!has_answer) prompts_ = prompts_of(served.model, served.name);
    const ModelInfo& info = served.model.info();
    if (!has_answer || (info.chat_template.empty() && !info.prompt_suffix.empty())) return;
    try {
        chat_ = ModelChat::of(served.model, served.tokenizer);
    } catch (const ChatTemplateError& error) {  // its completions may still be asked for
        no_chat_ =
            std::string("expected a model with a chat template that can be read, got one that cannot: ") + error.what();
    }
}

void PromptReader::refuse_length(const char* param, const std::string& got) const {
    throw RequestError(400,
                       std::string(param) + ": expected at most " + std::to_string(most_) +
                           " tokens, for this model's maximum context length is " + std::to_string(context_) +
                           " tokens, got " + got,
                       param, "context_length_exceeded");
}

std::vector<Token> PromptReader::checked(const std::vector<Token>& tokens, const char* param) const {
    if (tokens.empty()) throw RequestError(400, std::string(param) + ": expected 1 token or more, got none", param);
    if (tokens.size() > most_) refuse_length(param, std::to_string(tokens.size()));
    const std::uint32_t n_words = input_stack(served_.model.config()).vocab_size;
    for (const Token token : tokens)
        if (token >= n_words)
            throw RequestError(400,
                               std::string(param) + ": expected token ids below " + std::to_string(n_words) + ", got " +
                                   std::to_string(token),
                               param);
    return tokens;
}

std::vector<Token> PromptReader::tokens_of(const std::string& text, const TokenizeOptions& options, const char* param,
                                           bool cuts) {
    std::string_view read = text;
    if (read.size() > most_bytes_) {
        if (!cuts) refuse_length(param, "a text of " + std::to_string(text.size()) + " bytes");
        read = read.substr(0, most_bytes_);
    }
    try {
        std::vector<Token> tokens = host::tokenize(served_.tokenizer, read, options, {}, scratch_);
        if (cuts && tokens.size() > most_)
            cut_text(host::tokenize(served_.tokenizer, "", options, {}, scratch_), most_, tokens);
        return tokens;
    } catch (const host::StatusError& error) {
        throw RequestError(500, error.what(), param);
    }
}

std::vector<Token> PromptReader::read_text(const std::string& text, const TokenizeOptions& options, const char* param) {
    return tokens_of(text, options, param, false);
}

std::string PromptReader::render(const Request& request) const {
    if (!no_chat_.empty()) throw RequestError(400, "messages: " + no_chat_, "messages");
    if (chat_) {
        ChatInput input;
        input.messages = request.messages;
        // What newer clients call developer is the system to templates that do not know the word.
        if (served_.model.info().chat_template.find("developer") == std::string_view::npos)
            for (Json& message : input.messages)
                if (message["role"] == "developer") message["role"] = "system";
        input.tools = request.tools;
        input.extra = request.template_extra;
        input.limits = kTemplateLimits;
        try {
            return chat_->render(std::move(input));
        } catch (const ChatTemplateError& error) {
            throw RequestError(400, std::string("messages: the model's chat template: ") + error.what(), "messages");
        }
    }
    // A model whose prompts a text closes answers one text at a time: the last that a user said.
    for (auto message = request.messages.rbegin(); message != request.messages.rend(); ++message)
        if ((*message)["role"] == "user")
            return (*message)["content"].get<std::string>() + std::string(served_.model.info().prompt_suffix);
    throw RequestError(400, "messages: expected one of role user, got none", "messages");
}

std::string PromptReader::prompt_of(const Request& request) const {
    if (!makes_vectors(request.api)) return {};
    const auto is_tokens = [](const Prompt& prompt) { return prompt.is_tokens; };
    if (request.prompt_name && std::any_of(request.prompts.begin(), request.prompts.end(), is_tokens))
        throw RequestError(400, "prompt_name: expected texts beside it, got token ids", "prompt_name");
    try {
        return prompt_before(prompts_, request.prompt_name);
    } catch (const host::Error& error) {
        throw RequestError(400, std::string("prompt_name: ") + error.what(), "prompt_name");
    }
}

/// What the languages change. They are looked for among all tokens: what was found is kept.
std::shared_ptr<const ToldLanguages> PromptReader::told(const Languages& languages) {
    constexpr std::size_t kMostKept = 256;
    const auto key = std::pair(languages.from, languages.to);
    if (const auto found = told_.find(key); found != told_.end()) return found->second;
    if (told_.size() == kMostKept) told_.clear();
    return told_[key] = std::make_shared<const ToldLanguages>(find_languages(languages, served_.tokenizer, *rules_));
}

PromptReader::Prompted PromptReader::read_sources(const Request& request) {
    if (request.prompts.empty()) throw RequestError(400, "prompt: expected a text, got none", "prompt");
    const auto refuse = [&](const std::string& field) {
        throw RequestError(400, field + ": expected none, for " + served_.name + " writes a text from a text", field);
    };
    if (request.form != Form::any) refuse(request.form_field.empty() ? "response_format" : request.form_field);
    if (request.echo) refuse("echo");
    Prompted read;
    try {
        const std::shared_ptr<const ToldLanguages> told = this->told(request.languages);
        read.rules = {told, &told->rules};
        for (const Prompt& prompt : request.prompts) {
            const std::vector<Token> source =
                checked(prompt.is_tokens ? prompt.tokens : tokens_of(prompt.text, {}, "prompt", false), "prompt");
            read.prompts.push_back(
                checked(with_languages(source, *told, request.languages, served_.tokenizer), "prompt"));
        }
    } catch (const host::Error& refusal) {
        const std::string message = refusal.what();
        throw RequestError(400, message, message.substr(0, message.find(':')));
    }
    return read;
}

PromptReader::Prompted PromptReader::read_pairs(const Request& request) {
    const TokenizeOptions bare{.add_special = false};
    const std::vector<Token> query = tokens_of(request.query, bare, "query", true);
    Prompted read;
    for (const Prompt& document : request.prompts) {
        const std::vector<Token> text = tokens_of(document.text, bare, "documents", true);
        try {
            PairTokens pair = join_texts(served_.tokenizer, query, text, most_, CutOf::longer,
                                         served_.model.config().encoder.n_token_types);
            read.prompts.push_back(std::move(pair.ids));
            read.types.push_back(std::move(pair.types));
        } catch (const host::Error& error) {
            throw RequestError(400, std::string("query: ") + error.what(), "query");
        }
    }
    return read;
}

PromptReader::Prompted PromptReader::read(const Request& request) {
    if (rules_ && !is_chat(request)) return read_sources(request);
    const Languages& told = request.languages;
    if (const char* field = !told.from.empty() ? told.from_name : !told.to.empty() ? told.to_name : nullptr)
        throw RequestError(
            400, std::string(field) + ": expected a model that writes a text from a text, got " + served_.name, field);
    if (is_chat(request)) {
        // A template has the start token itself, and other special ones.
        const TokenizeOptions options{.add_special = !chat_, .parse_special = chat_.has_value()};
        const std::string text = render(request);
        return {{checked(tokens_of(text, options, "messages", false), "messages")}, begins_in_thought(text)};
    }
    if (request.api == Api::rerank) return read_pairs(request);
    const char* param = makes_vectors(request.api) ? "input" : "prompt";
    if (request.prompts.empty()) throw RequestError(400, std::string(param) + ": expected a text, got none", param);
    const std::string before = prompt_of(request);
    std::vector<std::vector<Token>> prompts;
    for (const Prompt& prompt : request.prompts)
        prompts.push_back(checked(
            prompt.is_tokens ? prompt.tokens : tokens_of(before + prompt.text, {}, param, request.cuts), param));
    return {std::move(prompts)};
}

}  // namespace fovea::serve
