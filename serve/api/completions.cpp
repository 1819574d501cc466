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

}  // namespace

Reply endpoints::complete(Call& call, Service& service) {
    const Json body = read_json(call.body);
    const Request request = read_completion(Fields(body));
    return text_reply<CompletionAnswer>(call, service.find(request.model, Work::text), request, kNewTokens);
}

}  // namespace fovea::serve
