#include "serve/api/prompt_reader.h"

#include <algorithm>

#include "host/chat/chat_template.h"
#include "host/model/text_pairs.h"
#include "host/model/texts.h"
#include "host/translate/split_source.h"
#include "serve/api/forms_of.h"

namespace fovea::serve {
namespace {

// What one conversation's template may take of the thread that speaks HTTP.
constexpr ChatTemplateLimits kTemplateLimits{.n_steps = 2'000'000, .n_bytes = 64 << 20};

/// What `read` gives; where it refuses, the parameter is named.
template<class Read>
auto named(const char* param, const Read& read) try {
    return read();
} catch (const host::PromptError& error) {
    throw RequestError(400, std::string(param) + ": " + error.what(), param,
                       error.too_long ? "context_length_exceeded" : "");
}

/// The same of what host::Error refuses.
template<class Read>
auto refused(const char* param, const Read& read) try {
    return read();
} catch (const host::Error& error) {
    throw RequestError(400, std::string(param) + ": " + error.what(), param);
}

std::vector<Token> checked(const host::PromptTokens& reader, std::vector<Token> tokens) {
    reader.check(tokens);
    return tokens;
}

}  // namespace

PromptReader::PromptReader(const host::Opened& served, std::uint32_t context, bool has_answer)
    : served_(served),
      tokens_(served, context, has_answer && served.kind() != host::Kind::translation ? context - 1 : context) {
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

std::vector<Token> PromptReader::read_text(const std::string& text, const TokenizeOptions& options, const char* param) {
    return named(param, [&] { return tokens_.read(text, options); });
}

TaintedText PromptReader::render(const Request& request) const {
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
    refuse("messages", "one of role user", "none");
}

std::vector<Token> PromptReader::read_rendered(const TaintedText& prompt) {
    const auto tokenize = [&](std::string_view text, std::span<const TextRange> plain) {
        return tokens_.read(text, ModelChat::kRead, plain);
    };
    return named("messages", [&] {
        // A template has the start token itself, and other special ones.
        return chat_ ? chat_->read(prompt, tokenize) : tokens_.read(prompt.text());
    });
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
    if (request.prompts.empty()) refuse("prompt", "a text", "none");
    const std::string field = request.form != Form::any ? request.form_field : request.echo ? "echo" : "";
    if (!field.empty())
        throw RequestError(400, field + ": expected none, for " + served_.name + " writes a text from a text", field);
    Prompted read;
    try {
        const std::shared_ptr<const ToldLanguages> told = this->told(request.languages);
        read.rules = {told, &told->rules};
        const auto add = [&](const auto& tokens) {
            read.prompts.push_back(named("prompt", [&] {
                return checked(tokens_,
                               with_languages(checked(tokens_, tokens()), *told, request.languages, served_.tokenizer));
            }));
        };
        const auto fits = [&](std::string_view text) {
            return served_.tokens(text).size() + told->before.has_value() <= tokens_.most();
        };
        for (const Prompt& prompt : request.prompts)
            if (prompt.is_tokens)
                add([&] { return prompt.tokens; });
            else if (!request.splits)
                add([&] { return tokens_.read(prompt.text); });
            else
                for (const std::string_view part : split_source(prompt.text, fits))
                    add([&] { return tokens_.read(part); });
    } catch (const host::Error& refusal) {
        const std::string message = refusal.what();
        throw RequestError(400, message, message.substr(0, message.find(':')));
    }
    return read;
}

PromptReader::Prompted PromptReader::read_pairs(const std::string& query, const std::vector<std::string>& documents) {
    const TokenizeOptions bare{.add_special = false};
    const std::vector<Token> first = named("query", [&] { return tokens_.read_cut(query, bare); });
    Prompted read;
    for (const std::string& document : documents) {
        const std::vector<Token> second = named("documents", [&] { return tokens_.read_cut(document, bare); });
        PairTokens pair = refused("query", [&] {
            return join_texts(served_.tokenizer, first, second, tokens_.most(), CutOf::longer, cut_at(served_.model),
                              served_.model.config().encoder.n_token_types);
        });
        read.prompts.push_back(std::move(pair.ids));
        read.types.push_back(std::move(pair.types));
    }
    return read;
}

PromptReader::Prompted PromptReader::read(const Request& request) {
    if (rules_ && !request.is_chat) return read_sources(request);
    const Languages& told = request.languages;
    if (const char* field = !told.from.empty() ? told.from_name : !told.to.empty() ? told.to_name : nullptr)
        refuse(field, "a model that writes a text from a text", served_.name);
    if (request.is_chat) {
        const std::optional<ForcedCall> call = forced_call_of(request, chat());
        BegunAnswer answer{render(request), call ? call->begun().text() : ""};
        if (chat_)
            answer = begin_answer(chat_->dialect(), std::move(answer.prompt), call ? &*call : nullptr,
                                  request.form != Form::any);
        return {{named("messages", [&] { return checked(tokens_, read_rendered(answer.prompt)); })},
                std::move(answer.begun)};
    }
    if (request.prompts.empty()) refuse("prompt", "a text", "none");
    Prompted read;
    for (const Prompt& prompt : request.prompts)
        read.prompts.push_back(named(
            "prompt", [&] { return checked(tokens_, prompt.is_tokens ? prompt.tokens : tokens_.read(prompt.text)); }));
    return read;
}

PromptReader::Prompted PromptReader::read(const VectorRequest& request) {
    if (request.prompts.empty()) refuse("input", "a text", "none");
    const auto is_tokens = [](const Prompt& prompt) { return prompt.is_tokens; };
    if (request.prompt_name && std::any_of(request.prompts.begin(), request.prompts.end(), is_tokens))
        refuse("prompt_name", "texts beside it", "token ids");
    const std::string before = refused("prompt_name", [&] { return prompt_before(prompts_, request.prompt_name); });
    Prompted read;
    for (const Prompt& prompt : request.prompts) {
        std::vector<Token> tokens = named("input", [&] {
            const std::string text = before + prompt.text;
            return checked(tokens_, prompt.is_tokens ? prompt.tokens
                                    : request.cuts   ? tokens_.read_cut(text)
                                                     : tokens_.read(text));
        });
        drop_pads(served_.model, tokens);
        read.n_unpooled.push_back(prompt.is_tokens ? 0 : n_unpooled(served_, before, tokens.size()));
        read.prompts.push_back(std::move(tokens));
    }
    return read;
}

}  // namespace fovea::serve
