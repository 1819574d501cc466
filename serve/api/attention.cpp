// POST /v1/attention: what the tokens of a conversation look at, for the page at "/" and whoever draws it otherwise.
#include <cmath>

#include "serve/api/fields.h"
#include "serve/http/call.h"
#include "serve/jobs/attention_view.h"

namespace fovea::serve {
namespace {

struct Asked {
    AttentionView view;
    std::uint32_t n_heads = 0;
    std::size_t n_prompt = 0;  ///< tokens before the answer's
};

Asked read_view(const Fields& fields, const Stack& stack) {
    Asked asked;
    asked.view.layer = static_cast<std::uint32_t>(fields.whole("layer", 0, 0, std::int64_t{stack.n_layers} - 1));
    asked.n_heads = stack.block(asked.view.layer).n_heads;
    asked.view.head = static_cast<std::int32_t>(fields.whole("head", -1, -1, std::int64_t{asked.n_heads} - 1));
    return asked;
}

/// The prompt of a conversation, or a text as it is.
Request read_text(const Fields& fields) {
    Request request;
    if (fields.find("messages")) {
        if (fields.find("prompt")) throw RequestError(400, "prompt: expected it or messages, got both", "prompt");
        request.messages = read_messages(*fields.find("messages"));
        return request;
    }
    request.api = Api::completion;
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

Json answer_of(const host::Opened& served, const std::vector<Token>& text, const Asked& asked,
               const std::vector<float>& weights) {
    Json tokens = Json::array();
    for (const Token id : text) tokens.push_back(std::string(token_bytes(served.tokenizer, id)));
    return {{"object", "attention"},
            {"model", served.name},
            {"layer", asked.view.layer},
            {"n_layers", served.model.config().decoder.n_layers},
            {"head", asked.view.head < 0 ? Json() : Json(asked.view.head)},
            {"n_heads", asked.n_heads},
            {"n_prompt_tokens", asked.n_prompt},
            {"tokens", std::move(tokens)},
            {"weights", rows_of(weights, text.size())}};
}

}  // namespace

void Server::show_attention(Call& call) {
    const Json body = read_json(call.request.body);
    const Fields fields(body);
    const std::size_t model = find_model(fields.text("model"), Api::chat);
    const host::Opened& served = models_[model];
    if (served.kind() == host::Kind::translation)
        throw RequestError(400, "model: expected one that continues its prompt, got " + served.name, "model");
    Asked asked = read_view(fields, served.model.config().decoder);
    auto job = std::make_shared<Job>();
    job->prompts = readers_[model]->read(read_text(fields)).prompts;
    std::vector<Token>& text = job->prompts[0];
    asked.n_prompt = text.size();
    const std::vector<Token> answer =
        readers_[model]->read_text(fields.text("answer"), {.add_special = false}, "answer");
    text.insert(text.end(), answer.begin(), answer.end());
    const std::size_t most = std::min(options_.worker.n_viewed, scheduler_.worker(model).context());
    if (text.size() > most)
        throw RequestError(400,
                           "messages: expected at most " + std::to_string(most) + " tokens to look at, got " +
                               std::to_string(text.size()),
                           "messages", "context_length_exceeded");
    job->user = call.user;
    job->arrived = call.arrived;
    job->deadline = call.arrived + options_.time;
    job->view = asked.view;
    const std::weak_ptr<Exchange> client = call.exchange;
    job->deliver = [this, &served, client, asked, text = text, headers = call.headers](std::vector<Event> events) {
        http_.post([&served, client, asked, text, headers, event = std::move(events.back())] {
            const ExchangePtr exchange = client.lock();
            if (!exchange) return;
            const Failure& failure = event.failure;
            if (failure.status)
                return exchange->answer(
                    {failure.status, "application/json", error_body(false, failure.status, failure.message), headers});
            exchange->answer({200, "application/json", written(answer_of(served, text, asked, event.vector)), headers});
        });
    };
    (void)queue(call, model, job);
}

}  // namespace fovea::serve
