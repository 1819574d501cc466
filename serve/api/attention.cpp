// POST /v1/attention: what the tokens of a conversation look at, for the page at "/" and whoever draws it otherwise.
#include <cmath>

#include "serve/api/other_fields.h"
#include "serve/api/text_fields.h"
#include "serve/api/vector_answer.h"

namespace fovea::serve {
namespace {

struct Asked {
    AttentionView view;
    std::uint32_t n_heads = 0;
    std::vector<Token> text{};
    std::size_t n_prompt = 0;  ///< tokens of it before the answer's
};

Asked read_view(const Fields& fields, const Stack& stack) {
    Asked asked;
    asked.view.layer = static_cast<std::uint32_t>(fields.whole("layer", 0, 0, std::int64_t{stack.n_layers} - 1));
    asked.n_heads = stack.block(asked.view.layer).attention.n_heads;
    asked.view.head = static_cast<std::int32_t>(fields.whole("head", -1, -1, std::int64_t{asked.n_heads} - 1));
    return asked;
}

/// The prompt of a conversation, or a text as it is.
Request read_text(const Fields& fields) {
    Request request;
    if (fields.find("messages")) {
        if (fields.find("prompt")) refuse("prompt", "it or messages", "both");
        request.is_chat = true;
        request.messages = read_messages(*fields.find("messages"));
        return request;
    }
    const Json& prompt = fields.need("prompt", "a text, or messages");
    if (!prompt.is_string()) fields.refuse("prompt", "a text", prompt);
    request.prompts.push_back({prompt.get<std::string>(), {}, false});
    return request;
}

/// Rows of what each token gives to itself and those before it, in thousandths: enough for a drawing.
Json rows_of(const std::vector<float>& weights, std::size_t n) {
    Json rows = Json::array();
    for (std::size_t query = 0; query < n; ++query) {
        Json row = Json::array();
        for (std::size_t key = 0; key <= query; ++key)
            row.push_back(std::round(double{weights[query * n + key]} * 1000) / 1000);
        rows.push_back(std::move(row));
    }
    return rows;
}

Json shown(const Asked& asked, const host::Opened& served, const std::vector<float>& weights) {
    Json tokens = Json::array();
    for (const Token id : asked.text) tokens.push_back(std::string(token_bytes(served.tokenizer, id)));
    return {{"object", "attention"},
            {"model", served.name},
            {"layer", asked.view.layer},
            {"n_layers", served.model.config().decoder.n_layers},
            {"head", asked.view.head < 0 ? Json() : Json(asked.view.head)},
            {"n_heads", asked.n_heads},
            {"n_prompt_tokens", asked.n_prompt},
            {"tokens", std::move(tokens)},
            {"weights", rows_of(weights, asked.text.size())}};
}

}  // namespace

Reply endpoints::show_attention(Call& call, Service& service) {
    const Fields fields = fields_of(call, {"model", "messages", "prompt", "answer", "layer", "head"});
    check_members(call.json, kChat, call.ignored);
    ModelEntry& entry = service.find(call, fields.text("model"), Work::text);
    const host::Opened& served = entry.served;
    if (served.kind() == host::Kind::translation) refuse("model", "one that continues its prompt", served.name);
    Asked asked = read_view(fields, served.model.config().decoder);
    asked.text = std::move(entry.prompts.read(read_text(fields)).prompts[0]);
    asked.n_prompt = asked.text.size();
    const std::vector<Token> answer = entry.prompts.read_text(fields.text("answer"), {.add_special = false}, "answer");
    asked.text.insert(asked.text.end(), answer.begin(), answer.end());
    const std::size_t most = std::min(service.n_viewed, entry.context);
    if (asked.text.size() > most)
        refuse("messages", "at most " + std::to_string(most) + " tokens to look at", std::to_string(asked.text.size()),
               "context_length_exceeded");
    const JobPtr job = job_of(call);
    job->prompts = {asked.text};
    job->view = asked.view;
    const auto word = [asked = std::move(asked), &served](const Vectors& weights) {
        return shown(asked, served, weights.all.front());
    };
    return {.job = job, .model = entry.index, .answer = std::make_unique<VectorAnswer>(1, word)};
}

}  // namespace fovea::serve
