// POST /v1/completions: what follows a prompt.
#include "serve/api/fields.h"
#include "serve/api/text_answer.h"

namespace fovea::serve {

Request read_completion(const Fields& fields) {
    Request request;
    request.model = fields.text("model");
    request.prompts = read_prompts(fields.need("prompt", "a text"), "prompt", kMostChoices);
    read_common(fields, request);
    if (request.prompts.size() * request.n_each > kMostChoices)
        throw RequestError(
            400, "n: expected at most " + std::to_string(kMostChoices) + " answers of one request, got more", "n");
    request.n_likeliest = static_cast<int>(fields.whole("logprobs", -1, 0, kMostLikeliest));
    request.echo = fields.flag("echo", false);
    if (request.echo && request.n_likeliest >= 0)
        throw RequestError(400, "echo: expected no logprobs beside it, for those of a prompt are not computed", "echo");
    fields.only("suffix", "");
    request.languages.from = fields.text("from");
    request.languages.to = fields.text("to");
    if (fields.find("best_of")) fields.only("best_of", request.n_each);
    return request;
}

namespace {

constexpr std::uint32_t kNewTokens = 16;  // of an answer, where the request does not say how many
constexpr const char* kObject = "text_completion";

class CompletionAnswer final : public TextAnswer {
public:
    using TextAnswer::TextAnswer;
    [[nodiscard]] std::string begin() override {
        std::string out;
        for (std::size_t i = 0; i < choices_.size(); ++i)
            if (!choices_[i].text.empty())
                out += chunk(kObject, {{"index", i}, {"text", choices_[i].text}}, {}, choices_[i], nullptr);
        return out;
    }
    [[nodiscard]] std::string end() override { return openai_end(kObject); }
    [[nodiscard]] std::string whole() const override {
        Json json = head(kObject), list = Json::array();
        for (std::size_t i = 0; i < choices_.size(); ++i)
            list.push_back({{"index", i},
                            {"text", choices_[i].text},
                            {"logprobs", chances(choices_[i].tokens, choices_[i].n_chars)},
                            {"finish_reason", finish_word(choices_[i].finish)}});
        json["choices"] = std::move(list);
        json["usage"] = usage();
        return written(json);
    }

private:
    [[nodiscard]] Json chances(const std::vector<ChosenToken>& tokens, std::size_t n_chars) const {
        return options_.with_chances ? completion_logprobs(tokens, n_chars) : Json();
    }
    [[nodiscard]] std::string piece(Written& written, const Event& event, const Part& part) override {
        std::string out;
        if (!part.text.empty() || !event.tokens.empty())
            out += chunk(kObject, {{"index", event.choice}, {"text", part.text}},
                         event.tokens.empty() ? Json() : chances(event.tokens, written.n_chars), written, nullptr);
        for (const ChosenToken& token : event.tokens) written.n_chars += n_characters(token.bytes);
        if (event.ended)
            out += chunk(kObject, {{"index", event.choice}, {"text", ""}}, {}, written, finish_word(event.finish));
        return out;
    }
};

/// The prompts of a request as texts, one for each choice.
std::vector<std::string> echo_of(const Request& request, const Tokenizer& tokenizer, std::uint32_t n_choices) {
    std::vector<std::string> echo;
    for (std::uint32_t i = 0; i < n_choices; ++i) {
        const Prompt& prompt = request.prompts[i / request.n_each];
        std::string text = prompt.text;
        Decoder decoder;
        std::vector<char> piece(max_piece_bytes(tokenizer));
        for (const Token token : prompt.tokens) text += decode(tokenizer, decoder, token, false, piece);
        echo.push_back(std::move(text));
    }
    return echo;
}

}  // namespace

Reply endpoints::complete(Call& call, Service& service) {
    const Json body = read_json(call.body);
    const Request request = read_completion(Fields(body));
    ModelEntry& entry = service.find(request.model, Work::text);
    const JobPtr job = text_job(call, entry, request, kNewTokens);
    TextAnswerOptions options = text_options(call, entry, request, *job);
    if (request.echo) options.echo = echo_of(request, entry.served.tokenizer, options.n_choices);
    return text_reply(call, entry, request, job, std::make_unique<CompletionAnswer>(std::move(options)));
}

}  // namespace fovea::serve
