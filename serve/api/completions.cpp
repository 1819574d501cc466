// POST /v1/completions: what follows a prompt.
#include <cmath>

#include "serve/api/text_answer.h"
#include "serve/api/text_fields.h"

namespace fovea::serve {

Request read_completion(const Fields& fields) {
    Request request;
    (void)fields.need("prompt", "a text");
    read_text_fields(fields, kCompletion, request);
    if (request.prompts.size() * request.n_each > kMostChoices)
        refuse("n", "at most " + std::to_string(kMostChoices) + " answers of one request", "more");
    return request;
}

namespace {

constexpr std::uint32_t kNewTokens = 16;  // of an answer, where the request does not say how many
constexpr const char* kObject = "text_completion";

Json completion_logprobs(const std::vector<ChosenToken>& tokens, std::size_t n_chars) {
    Json words = Json::array(), chances = Json::array(), likeliest = Json::array(), offsets = Json::array();
    for (const ChosenToken& token : tokens) {
        words.push_back(token.bytes);
        const bool follows = !std::isnan(token.logprob);  // what a prompt's first token does not
        chances.push_back(follows ? Json(token.logprob) : Json());
        Json top = follows ? Json::object() : Json();
        for (const TokenChance& other : token.likeliest) top[other.bytes] = other.logprob;
        likeliest.push_back(std::move(top));
        offsets.push_back(n_chars);
        n_chars += n_characters(token.bytes);
    }
    return {{"tokens", std::move(words)},
            {"token_logprobs", std::move(chances)},
            {"top_logprobs", std::move(likeliest)},
            {"text_offset", std::move(offsets)}};
}

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
        return openai_whole(kObject, [&](std::size_t i, const Written& written) {
            return ended_choice({{"index", i}, {"text", written.text}}, chances(written.tokens, written.n_chars),
                                finish_word(written.last.finish));
        });
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
    const Request request = read_completion(Fields(call.json));
    return text_reply<CompletionAnswer>(call, service.find(call, request.model, Work::text), request, kNewTokens);
}

}  // namespace fovea::serve
