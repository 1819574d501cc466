// From a request of HTTP to a job, and from its events to the answer. What may be asked: routes.cpp.
#include "serve/http/server.h"

#include <algorithm>
#include <random>

#include "host/base/error.h"
#include "host/speech/speech_engine.h"
#include "serve/api/forms_of.h"
#include "serve/http/call.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kCompletionTokens = 16;  // new tokens of a completion that does not say how many
constexpr std::uint64_t kMostChances = 100'000;  // some 600 bytes each until they are written

std::int64_t seconds_now() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// An answer under way: the job's events come to it on the HTTP thread.
struct Pending {
    Answer answer;
    std::weak_ptr<Exchange> exchange;  // gone where the client is
    HttpAnswer head;
    bool stream = false, ollama = false, with_hash = false;

    void take(const std::vector<Event>& events) {
        const ExchangePtr client = exchange.lock();
        if (!client) return;
        const std::string bytes = answer.add(events);
        if (stream) {
            client->write(bytes);
            if (!answer.ended()) return;
            client->write(answer.closing());
            return client->end();
        }
        if (!answer.ended()) return;
        if (const Failure& failure = answer.failure(); failure.status) {
            head.status = failure.status;
            head.body = error_body(ollama, failure.status, failure.message);
        } else {
            head.body = answer.whole();
            head.content_type = answer.content_type();
            if (with_hash) head.headers.emplace_back("X-Fovea-Logits-Hash", answer.hashes());
        }
        client->answer(std::move(head));
    }
};

std::uint64_t seed_of(const Request& request) {
    if (!request.random_seed) return request.sampler.seed;
    std::random_device device;
    return device();
}

/// What an encoder computes from the prompts.
void fill_vector_job(const Request& request, const host::Opened& served, Job& job) {
    job.scores = request.api == Api::rerank;
    const std::uint32_t width = served.vector_width();
    if (request.n_dimensions > width)
        throw RequestError(
            400,
            "dimensions: expected at most " + std::to_string(width) + ", got " + std::to_string(request.n_dimensions),
            "dimensions");
}

/// Refuses more probabilities than an answer may have that is written as a whole.
void check_chances(const Job& job, std::uint32_t context) {
    if (job.n_likeliest < 0) return;
    const std::uint64_t n = std::uint64_t{job.n_choices()} * std::min(job.n_new, context) *
                            (1u + static_cast<std::uint32_t>(job.n_likeliest));
    if (n > kMostChances)
        throw RequestError(400,
                           "logprobs: expected at most " + std::to_string(kMostChances) +
                               " in an answer that is not streamed (choices × max_tokens × (1 + top_logprobs)), got " +
                               std::to_string(n),
                           "logprobs");
}

}  // namespace

Server::Server(const std::vector<host::Opened>& models, ServerOptions options)
    : models_(models),
      options_(std::move(options)),
      scheduler_(models, options_.worker, metrics_),
      http_(
          options_.http, metrics_,
          [this](HttpRequest request, ExchangePtr exchange, int refused) {
              handle(std::move(request), exchange, refused);
          },
          [this](const HttpRequest& headers) { return admits(headers); }),
      started_(seconds_now()) {
    for (std::size_t i = 0; i < models.size(); ++i) {
        Worker& worker = scheduler_.worker(i);
        readers_.push_back(std::make_unique<PromptReader>(models[i], worker.max_prompt(), worker.work() == Work::text));
        forms_.push_back(std::make_unique<Forms>(models[i].tokenizer));
    }
}

Server::~Server() { scheduler_.stop(); }

std::uint64_t Server::memory_bytes() const {
    std::uint64_t bytes = scheduler_.memory_bytes();
    for (const auto& reader : readers_) bytes += reader->memory_bytes();
    return bytes;
}

std::uint64_t Server::http_bytes() const {
    constexpr std::uint64_t kUnsent = 128 << 10;  // of a connection: what a sequence may be ahead of it, twice
    constexpr std::uint64_t kJson = 40;           // times a body's bytes, while it is read: one at a time
    const HttpLimits& limits = options_.http;
    const bool hears = std::any_of(models_.begin(), models_.end(),
                                   [](const host::Opened& served) { return served.kind() == host::Kind::speech; });
    return limits.n_connections * (limits.header_bytes + 4096 + kUnsent) + limits.body.all_bytes +
           kJson * limits.body.bytes + (hears ? limits.upload.all_bytes : 0) + scheduler_.later_bytes();
}

void Server::run(const std::function<void(std::uint16_t port)>& ready) {
    scheduler_.start();
    const std::uint16_t port = http_.listen(options_.host, options_.port);
    ready(port);
    http_.run(options_.drain_time, [this] { scheduler_.stop(); });
    scheduler_.stop();
    for (std::size_t i = 0; i < models_.size(); ++i)
        if (const std::uint32_t n = scheduler_.worker(i).n_lost_pages())
            throw host::Error(models_[i].name + ": pages: expected all back at the end, got " + std::to_string(n) +
                              " fewer");
}

void Server::submit(Call& call, Api api) {
    if (work_of(api) == Work::speech) return hear(call, api);
    Request request = read_request(api, call.request.body);
    const std::size_t model = find_model(request.model, api);
    if (!request.only_loads) return submit(call, request, model);
    if (makes_vectors(api)) return answer(call, {{"model", models_[model].name}, {"embeddings", Json::array()}});
    Json loaded = {{"model", models_[model].name}, {"created_at", utc_time(seconds_now())}};
    if (api == Api::ollama_chat)
        loaded["message"] = {{"role", "assistant"}, {"content", ""}};
    else
        loaded["response"] = "";
    loaded["done"] = true;
    loaded["done_reason"] = "load";
    answer(call, std::move(loaded));
}

/// A form with a recording, whose bytes go on to the job.
void Server::hear(Call& call, Api api) {
    Request request = read_upload(api, call.request.header("content-type"), std::move(call.request.body));
    const std::size_t model = find_model(request.model, api);
    submit(call, request, model);
}

JobPtr Server::make_job(const Call& call, Request& request, std::size_t model) {
    if (request.api == Api::rerank && !models_[model].scores_pairs())
        throw RequestError(400, "model: expected a reranker, a CrossEncoder with one label, got " + models_[model].name,
                           "model");
    auto job = std::make_shared<Job>();
    job->user = call.user;
    job->arrived = call.arrived;
    job->deadline = call.arrived + options_.time;
    if (work_of(request.api) == Work::speech) {
        fill_speech_job(request, model, *job);
        job->recording->taken = call.request.taken;
        return job;
    }
    PromptReader::Prompted read = readers_[model]->read(request);
    if (read.rules)
        job->write_from(std::move(read.prompts), std::move(read.rules));
    else
        job->prompts = std::move(read.prompts);
    job->types = std::move(read.types);
    job->in_thought = read.in_thought;
    if (makes_vectors(request.api))
        fill_vector_job(request, models_[model], *job);
    else
        fill_text_job(call, request, model, *job);
    return job;
}

void Server::fill_speech_job(Request& request, std::size_t model, Job& job) const {
    const host::Opened& served = models_[model];
    job.recording = std::make_shared<Recording>();
    SpeechOptions& options = job.recording->options;
    options.language = request.language;
    options.task = request.api == Api::translation ? "translate" : "transcribe";
    if (request.sampler.temperature > 0) options.temperatures = {request.sampler.temperature};
    options.seed = job.sampler.seed = seed_of(request);
    options.words = request.times.words;
    try {
        const auto n_words = served.model.config().decoder.vocab_size;
        check_speech(SpeechTokens::read(find_info(served.model, "speech"), n_words, served.name), options.language,
                     options.task);
    } catch (const host::Error& refusal) {
        throw RequestError(400, refusal.what());
    }
    options.before = tokens_before(served.tokenizer, request.said_before);
    job.recording->bytes = std::move(request.sound);
}

/// What makes text, and what it must be.
void Server::fill_text_job(const Call& call, const Request& request, std::size_t model, Job& job) {
    const std::string foreign =
        foreign_bias(request.penalized.biases, models_[model].model.config().decoder.vocab_size);
    if (!foreign.empty()) throw RequestError(400, "logit_bias: expected token " + foreign, "logit_bias");
    job.n_each = request.n_each;
    job.sampler = request.sampler;
    if (job.rules && !request.has_temperature) job.sampler.temperature = 0;
    const std::uint32_t most = job.rules ? job.rules->most_new(scheduler_.worker(model).context()) : 0xffffffffu;
    const bool is_short = request.api == Api::completion && !job.rules;
    job.n_new = std::min(most, request.n_new.value_or(is_short ? kCompletionTokens : most));
    job.penalized = request.penalized;
    job.stop = request.stop;
    job.n_likeliest = request.n_likeliest;
    if (!request.stream) check_chances(job, scheduler_.worker(model).context());
    if (const ModelChat* chat = readers_[model]->chat(); chat && PromptReader::is_chat(request)) {
        job.stop.insert(job.stop.end(), chat->stops().begin(), chat->stops().end());
        job.end_tokens = chat->end_tokens();
    }
    job.hash_logits = call.wants_hash();
    job.constrain = form_of(request, *forms_[model]);
    job.sampler.seed = seed_of(request);
}

AnswerOptions Server::answer_options(const Call& call, const Request& request, std::size_t model, const Job& job) {
    AnswerOptions options{
        .api = request.api,
        .id = call.id,
        .model = models_[model].name,
        .created = seconds_now(),
        .n_choices = job.n_choices(),
        .n_each = job.n_each,
        .stream = request.stream,
        .with_usage = request.with_usage,
        .with_hash = job.hash_logits,
        .with_chances = request.n_likeliest >= 0,
        .in_base64 = request.in_base64,
        .n_dimensions = request.n_dimensions,
        .unit_length = request.api == Api::ollama_embed && !models_[model].model.config().encoder.normalize_pooled,
        .n_best = request.n_best,
        .through_sigmoid = find_info(models_[model].model, "scores") == "sigmoid",
        .transcript = request.transcript,
        .times = request.times,
        .echoed = request.echoed,
        .may_call = !request.tools.is_null(),
        .must_call = request.form == Form::tool,
        .parts_thought = request.parts_thought && PromptReader::is_chat(request),
        .in_thought = job.in_thought && request.form == Form::any,
        .echo = {},
        .arrived = call.arrived};
    for (const Prompt& document : request.prompts)
        if (request.shows_documents) options.documents.push_back(document.text);
    for (std::uint32_t i = 0; request.echo && i < options.n_choices; ++i) {
        const Prompt& prompt = request.prompts[i / job.n_each];
        if (!prompt.is_tokens) {
            options.echo.push_back(prompt.text);
            continue;
        }
        options.echo.push_back(models_[model].text(prompt.tokens, {.goes_on = true}));
    }
    return options;
}

/// False where it has been refused.
bool Server::queue(Call& call, std::size_t model, const JobPtr& job) {
    if (http_.draining()) {
        job->deliver = nullptr;
        refuse(call, 503, "server: it is stopping");
        return false;
    }
    if (!scheduler_.submit(model, job)) {
        job->deliver = nullptr;
        call.headers.emplace_back("Retry-After", retry_after(model));
        refuse(call, 429,
               "queue: expected fewer than " + std::to_string(options_.worker.queue_capacity) +
                   " waiting requests, got as many; try again later",
               {}, "queue_full");
        return false;
    }
    call.exchange->on_gone([this, job] {
        job->cancelled = true;
        ++metrics_.n_cancelled;
        scheduler_.ring();
    });
    return true;
}

void Server::submit(Call& call, Request& request, std::size_t model) {
    const JobPtr job = make_job(call, request, model);
    if (request.random_seed) call.headers.emplace_back("X-Fovea-Seed", std::to_string(job->sampler.seed));
    call.headers.emplace_back("X-Request-Id", call.id);
    AnswerOptions options = answer_options(call, request, model, *job);
    const auto pending = std::make_shared<Pending>(
        Pending{Answer(options), call.exchange, {}, request.stream, is_ollama(request.api), job->hash_logits});
    pending->head.headers = call.headers;
    job->deliver = [this, pending](std::vector<Event> events) {
        http_.post([pending, events = std::move(events)] { pending->take(events); });
    };
    if (!queue(call, model, job)) return;
    if (!request.stream) return;
    call.exchange->count_unsent(job->unsent, [this] { scheduler_.ring(); });
    HttpAnswer head = pending->head;
    head.content_type = is_ollama(request.api) ? "application/x-ndjson" : "text/event-stream";
    head.headers.emplace_back("Cache-Control", "no-cache");
    call.exchange->begin(head);
    call.exchange->write(pending->answer.opening());
}

std::string Server::retry_after(std::size_t model) {
    const ModelMetrics& metrics = metrics_.models[models_[model].name];
    const double seconds =
        metrics.request.mean() * static_cast<double>(scheduler_.worker(model).queue.size()) / options_.worker.n_sequences;
    return std::to_string(std::clamp(static_cast<int>(seconds + 1), 1, 60));
}

}  // namespace fovea::serve
