#include "serve/api/prompt_reader.h"

#include <algorithm>
#include <cctype>

#include "host/chat/chat_template.h"
#include "host/model/text_pairs.h"
#include "host/model/texts.h"
#include "host/translate/split_source.h"
#include "serve/api/answer.h"
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

bool calls_tools(const Json& message) { return message.contains("tool_calls") && !message["tool_calls"].empty(); }

/// What a conversation's last message has of the answer that goes on with it.
std::string begun_by(const Request& request) { return request.messages.back()["content"].get<std::string>(); }

/// Other servers' ids of calls become such as Mistral's templates take.
void shorten_ids(Json& messages) {
    const auto shorten = [](Json& object, const char* name) {
        const auto id = object.find(name);
        if (id == object.end() || !id->is_string()) return;
        const std::string& text = id->get_ref<const std::string&>();
        const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
        if (text.size() != 9 || !std::all_of(text.begin(), text.end(), is_plain)) *id = call_id(text, 0, 0);
    };
    for (Json& message : messages) {
        shorten(message, "tool_call_id");
        if (calls_tools(message))
            for (Json& call : message["tool_calls"]) shorten(call, "id");
    }
}

/// The end of a text that is cut in front, as many of its bytes as can be read.
std::string_view end_of(std::string_view text, const host::PromptTokens& reader) {
    if (text.size() > reader.most_bytes()) text.remove_prefix(text.size() - reader.most_bytes());
    while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xc0) == 0x80) text.remove_prefix(1);
    return text;
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
    if (!has_answer && served.has_late_interaction()) late_.emplace(served);
    const ModelInfo& info = served.model.info();
    if (has_answer) infill_ = Infill(served);
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
    if (request.continues_answer &&
        (request.messages.back()["role"] != "assistant" || calls_tools(request.messages.back())))
        refuse("continue_final_message", "a text of the assistant as the last message", "another one");
    if (!request.documents.is_null() &&
        (!chat_ || served_.model.info().chat_template.find("documents") == std::string_view::npos))
        refuse("documents", "a model whose chat template has them", served_.name);
    if (chat_) return render_template(request);
    // A model whose prompts a text closes answers one text at a time: the last that a user said.
    for (auto message = request.messages.rbegin(); message != request.messages.rend(); ++message)
        if ((*message)["role"] == "user")
            return (*message)["content"].get<std::string>() + std::string(served_.model.info().prompt_suffix) +
                   (request.continues_answer ? begun_by(request) : "");
    refuse("messages", "one of role user", "none");
}

std::vector<Token> PromptReader::read_rendered(const TaintedText& prompt, const Request& request) {
    // A template has the start token itself, and other special ones.
    const TokenizeOptions options{.add_special = request.adds_special.value_or(!chat_),
                                  .parse_special = chat_.has_value()};
    const auto tokenize = [&](std::string_view text, std::span<const TextRange> plain) {
        return tokens_.read(text, options, plain);
    };
    return named("messages",
                 [&] { return chat_ ? chat_->read(prompt, tokenize) : tokens_.read(prompt.text(), options); });
}

TaintedText PromptReader::render_template(const Request& request) const {
    // Stands behind a message that goes on. Templates that cut space off take the last character.
    constexpr std::string_view kMark = "<<the answer goes on here>> ";
    ChatInput input;
    input.messages = request.messages;
    // What newer clients call developer is the system to templates that do not know the word.
    if (served_.model.info().chat_template.find("developer") == std::string_view::npos)
        for (Json& message : input.messages)
            if (message["role"] == "developer") message["role"] = "system";
    if (served_.model.info().chat_template.find("length != 9") != std::string_view::npos) shorten_ids(input.messages);
    if (request.continues_answer) input.messages.back()["content"] = begun_by(request) + std::string(kMark);
    input.add_generation_prompt = request.opens_answer && !request.continues_answer;
    input.tools = request.tools;
    input.documents = request.documents;
    input.extra = request.template_extra;
    input.limits = kTemplateLimits;
    TaintedText text;
    try {
        text = chat_->render(std::move(input));
    } catch (const ChatTemplateError& error) {
        throw RequestError(400, std::string("messages: the model's chat template: ") + error.what(), "messages");
    }
    if (!request.continues_answer) return text;
    const std::string_view all = text.text();
    const std::size_t at = all.rfind(kMark.substr(0, kMark.size() - 1));
    if (at == all.npos) refuse("continue_final_message", "a chat template that shows the last message", served_.name);
    std::string_view before = all.substr(0, at);
    if (!all.substr(at).starts_with(kMark)) before = before.substr(0, before.find_last_not_of(" \n\r\t") + 1);
    return text.part(before);
}

void PromptReader::check_ids(const char* name, std::span<const Token> ids) const {
    const std::uint32_t vocab_size = served_.model.config().decoder.vocab_size;
    for (const Token id : ids)
        if (id >= vocab_size) refuse(name, "ids below " + std::to_string(vocab_size), std::to_string(id));
}

std::shared_ptr<const TokenRules> PromptReader::token_rules(const Request& request) {
    check_ids("stop_token_ids", request.end_tokens);
    if (!request.allowed && request.bad_words.empty()) return nullptr;
    TokenRules rules{.vocab_size = served_.model.config().decoder.vocab_size, .allowed = {}, .banned = {}};
    if (request.allowed) {
        if (request.allowed->empty()) refuse("allowed_token_ids", "1 token id or more", "none");
        if (request.form != Form::any || rules_)
            refuse("allowed_token_ids", rules_ ? "a model that continues texts" : "no form beside it", "another one");
        check_ids("allowed_token_ids", *request.allowed);
        rules.allowed.assign((rules.vocab_size + 31) / 32, 0);
        for (const Token id : *request.allowed) rules.allowed[id / 32] |= 1u << id % 32;
    }
    // As vLLM has it: a text's tokens at a text's start, and behind a space.
    for (const std::string& word : request.bad_words)
        for (const std::string& text : {word, ' ' + word}) {
            std::vector<Token> tokens = read_text(text, {.add_special = false}, "bad_words");
            if (!tokens.empty()) rules.banned.push_back(std::move(tokens));
        }
    return std::make_shared<const TokenRules>(std::move(rules));
}

/// The tokens of a prompt that are read, of as many as there are.
std::vector<Token> PromptReader::fitted(std::vector<Token> tokens, const Request& request) const {
    const std::size_t most = std::min(request.most_prompt.value_or(0xffffffffu), tokens_.most());
    if (request.most_prompt && tokens.size() > most)
        tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(most));
    return checked(tokens_, std::move(tokens));
}

/// What the languages change. They are looked for among all tokens: what was found is kept.
std::shared_ptr<const ToldLanguages> PromptReader::told(const Languages& languages) {
    constexpr std::size_t kMostKept = 256;
    const auto key = std::pair(languages.from, languages.to);
    const std::lock_guard lock(*telling_);
    if (const auto found = told_.find(key); found != told_.end()) return found->second;
    if (told_.size() == kMostKept) told_.clear();
    return told_[key] = std::make_shared<const ToldLanguages>(find_languages(languages, served_.tokenizer, *rules_));
}

PromptReader::Prompted PromptReader::read_sources(const Request& request) {
    if (request.prompts.empty()) refuse("prompt", "a text", "none");
    const std::string field = request.form != Form::any ? request.form_field
                              : request.infills         ? "suffix"
                              : request.echo            ? "echo"
                              : request.adds_special    ? "add_special_tokens"
                              : request.allowed         ? "allowed_token_ids"
                              : request.most_prompt     ? "truncate_prompt_tokens"
                                                        : "";
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

PromptReader::Prompted PromptReader::read_pairs(const std::string& query, const std::vector<std::string>& documents,
                                                const char* query_field) {
    const PairReader reader{
        .read = [&](std::string_view text, const TokenizeOptions& options,
                    std::span<const TextRange> plain) { return tokens_.read(text, options, plain); },
        .most_bytes = tokens_.most_bytes()};
    Prompted read;
    for (const std::string& document : documents) {
        TextTokens pair = refused(
            query_field, [&] { return tokens_of_pair(served_, query, document, {.n_most = tokens_.most()}, reader); });
        read.prompts.push_back(std::move(pair.ids));
        read.types.push_back(std::move(pair.types));
    }
    return read;
}

void PromptReader::add_late(const std::vector<std::string>& texts, bool are_queries, const char* field,
                            Prompted& read) {
    const std::string before = late_->prompt_of(are_queries, {});
    for (const std::string& text : texts) {
        const std::string whole = (before + text).substr(0, tokens_.most_bytes());
        TextTokens tokens = refused(field, [&] { return late_->settle(are_queries, tokens_.read(whole)); });
        named(field, [&] { return tokens_.check(tokens.ids); });
        read.prompts.push_back(std::move(tokens.ids));
        read.n_unseen.push_back(tokens.n_unseen);
    }
}

PromptReader::Prompted PromptReader::read(const Request& request) {
    if (rules_ && !request.is_chat) return read_sources(request);
    const Languages& told = request.languages;
    if (const char* field = !told.from.empty() ? told.from_name : !told.to.empty() ? told.to_name : nullptr)
        refuse(field, "a model that writes a text from a text", served_.name);
    if (request.is_chat) return read_conversation(request);
    if (request.prompts.empty()) refuse("prompt", "a text", "none");
    const TokenizeOptions options{.add_special = request.adds_special.value_or(true)};
    Prompted read;
    for (const Prompt& prompt : request.prompts)
        read.prompts.push_back(named("prompt", [&] {
            if (request.infills) return read_infill(prompt, request);
            const std::string_view text = request.most_prompt ? end_of(prompt.text, tokens_) : prompt.text;
            return fitted(prompt.is_tokens ? prompt.tokens : tokens_.read(text, options), request);
        }));
    return read;
}

std::vector<Token> PromptReader::read_infill(const Prompt& prompt, const Request& request) {
    if (!infill_) refuse("suffix", "a model with tokens for texts that are filled in", served_.name);
    if (prompt.is_tokens) refuse("prompt", "a text beside suffix", "token ids");
    if (request.echo) refuse("echo", "none beside suffix", "true");
    if (request.most_prompt) refuse("truncate_prompt_tokens", "none beside suffix", "one");
    const TaintedText text = infill_.prompt(
        {.beginning = prompt.text, .end = request.suffix, .begun = request.begun, .files = request.files});
    const TokenizeOptions options{.add_special = request.adds_special.value_or(true), .parse_special = true};
    return checked(tokens_, tokens_.read(text.text(), options, text.data()));
}

PromptReader::Prompted PromptReader::read_conversation(const Request& request) {
    const std::optional<ForcedCall> call = forced_call_of(request, chat());
    if (call && request.continues_answer)
        refuse("tool_choice", "no call that must be where the last message goes on", "one");
    BegunAnswer answer{render(request), call                       ? call->begun().text()
                                        : request.continues_answer ? begun_by(request)
                                                                   : std::string()};
    std::string form_mark;
    if (chat_ && !request.continues_answer) {
        const FormPlace place = form_place(request, answer.prompt);
        answer = begin_answer(chat_->dialect(), std::move(answer.prompt), call ? &*call : nullptr, place);
        const ReasoningMarks& marks = *chat_->dialect().reasoning;
        if (place == FormPlace::after_reasoning && !call && answer.begun == marks.open) form_mark = marks.close;
    }
    return {{named("messages", [&] { return fitted(read_rendered(answer.prompt, request), request); })},
            std::move(answer.begun),
            std::move(form_mark)};
}

/// Where the form begins. Reasoning that is asked for by name is begun in the prompt, unless the template did.
FormPlace PromptReader::form_place(const Request& request, TaintedText& prompt) const {
    if (request.form == Form::any) return FormPlace::none;
    const ReasoningMarks& marks = *chat_->dialect().reasoning;
    const auto is_close = [&](Token mark) { return token_bytes(served_.tokenizer, mark) == marks.close; };
    const std::vector<Token>& special = chat_->marks();
    if (!request.parts_thought || std::any_of(special.begin(), special.end(), is_close))  // no form has a special token
        return FormPlace::at_once;
    const auto asked = request.template_extra.find("enable_thinking");
    const bool is_known = served_.model.info().chat_template.find(marks.open) != std::string_view::npos;
    if (request.form != Form::tool && asked != request.template_extra.end() && *asked == true && is_known &&
        begun_answer(chat_->dialect(), prompt.text()).empty())
        prompt.add(std::string(marks.open) + (marks.open.ends_with('\n') ? "" : "\n"));
    return FormPlace::after_reasoning;
}

PromptReader::Prompted PromptReader::read(const VectorRequest& request) {
    if (request.prompts.empty()) refuse(request.field, "a text", "none");
    const auto is_tokens = [](const Prompt& prompt) { return prompt.is_tokens; };
    if (request.prompt_name && std::any_of(request.prompts.begin(), request.prompts.end(), is_tokens))
        refuse("prompt_name", "texts beside it", "token ids");
    const std::string before = refused("prompt_name", [&] { return prompt_before(prompts_, request.prompt_name); });
    Prompted read;
    for (const Prompt& prompt : request.prompts) {
        std::vector<Token> tokens = named(request.field, [&] {
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
