// From a reply's job to its answer, on two threads. What may be asked, and by whom: routes.cpp.
#include "serve/http/server.h"

#include <algorithm>

#include "host/base/error.h"
#include "serve/http/held_bytes.h"
#include "serve/jobs/processor_share.h"

namespace fovea::serve {
namespace {

/// An answer under way: the job's events come to it on the HTTP thread.
struct Pending {
    std::unique_ptr<Answer> answer;
    std::weak_ptr<Exchange> exchange;  // gone where the client is
    HttpAnswer head;
    std::string path;
    bool stream = false;
    RequestLog* log = nullptr;
    LoggedRequest logged;
    std::shared_ptr<const void> use;  // of the model, which words it

    void take(const std::vector<Event>& events) {
        const ExchangePtr client = exchange.lock();
        if (!client) return;
        if (log) log->add(logged, events);
        const std::string bytes = answer->add(events);
        if (answer->ended() && log) {
            const Failure& failure = answer->failure();
            log->write(logged, failure.status && !stream ? failure.status : 200, failure.message);
        }
        if (stream) {
            client->write(bytes);
            if (!answer->ended()) return;
            client->write(answer->end());
            return client->end();
        }
        if (!answer->ended()) return;
        if (const Failure& failure = answer->failure(); failure.status) {
            head.status = failure.status;
            if (failure.status == 429) head.headers.emplace_back("Retry-After", "1");
            head.body = error_body(path, failure.status, failure.message);
        } else {
            head.body = answer->whole();
            head.content_type = answer->content_type();
            if (std::string hashes = answer->hashes(); !hashes.empty())
                head.headers.emplace_back("X-Fovea-Logits-Hash", std::move(hashes));
        }
        client->answer(std::move(head));
    }
};

}  // namespace

Server::Server(const std::vector<host::Opened>& models, ServerOptions options)
    : options_(std::move(options)),
      scheduler_(models, options_.worker, metrics_),
      service_(models, scheduler_, metrics_, options_.worker, options_.seed, options_.stored_bytes),
      http_(
          options_.http, metrics_,
          [this](HttpRequest request, ExchangePtr exchange, int refused) {
              handle(std::move(request), exchange, refused);
          },
          [this](const HttpRequest& headers) { return admits(headers); }),
      reader_(options_.http.n_connections),
      preparer_(options_.worker.queue_capacity),
      loader_(options_.offered, options_.models_bytes, options_.worker, options_.seed, metrics_, scheduler_, service_,
              {[this](std::function<void()> call) { http_.post(std::move(call)); },
               [this](std::chrono::milliseconds time, std::function<void()> call) {
                   http_.post_later(time, std::move(call));
               }}) {
    if (!options_.log_path.empty()) log_.emplace(options_.log_path, options_.logs_texts);
}

Server::~Server() { scheduler_.stop(); }

std::uint64_t Server::memory_bytes() const { return scheduler_.memory_bytes() + service_.memory_bytes(); }

std::uint64_t Server::http_bytes() const {
    constexpr std::uint64_t kJson = 40;  // times a body's bytes, while it is read: one at a time
    const HttpLimits& limits = options_.http;
    const auto& slots = service_.slots;
    const bool hears = std::any_of(slots.begin(), slots.end(), [](auto& slot) { return slot.work == Work::speech; });
    return limits.n_connections * (limits.header_bytes + 4096 + kMostAhead + 2 * limits.send_buffer) + limits.answers +
           limits.body.all_bytes + kJson * (limits.body.bytes + kMostConversation) + kMostFormBytes * slots.size() +
           (hears ? limits.upload.all_bytes : 0) + service_.stored->most_bytes() + scheduler_.later_bytes() +
           loader_.later_bytes();
}

void Server::run(const std::function<void(std::uint16_t port)>& ready) {
    scheduler_.start();
    const std::uint16_t port = http_.listen(options_.host, options_.port);
    ready(port);
    ask_for_slices(std::chrono::microseconds(100));
    http_.run(options_.drain_time, [this] { scheduler_.stop(); });
    scheduler_.stop();
    for (const ModelSlot& slot : service_.slots)
        if (const std::uint32_t n = slot.entry ? scheduler_.worker(slot.index).n_lost_pages() : 0)
            throw host::Error(slot.name + ": pages: expected all back at the end, got " + std::to_string(n) + " fewer");
}

/// Has the request read again once its model is as it wants, which it has the use of from then on.
void Server::await(Route& route, const AwaitedModel& model) {
    route.call.use = nullptr;
    route.asked = {};  // which has no place among all bodies beside the body's own
    const auto waiting = std::make_shared<Route>(std::move(route));
    const auto gone = std::make_shared<bool>(false);
    waiting->exchange->on_gone([this, gone, request = logged(*waiting)] {
        *gone = true;
        log_gone(request);
    });
    const auto then = [this, waiting, gone, model](const Failure& failure) {
        if (*gone) return;
        waiting->exchange->on_gone(nullptr);
        if (failure.status) return refuse(*waiting, failure);
        if (model.loaded) waiting->call.use = service_.slots[model.index].use;
        try_to(*waiting, &Server::ask);
    };
    if (!loader_.await({model, waiting->call.user, waiting->call.deadline, gone, then})) refuse_full(*waiting, "1");
}

/// Has `job` prepared by a thread beside this one, then goes on with what has come of its request.
void Server::prepare(Preparer& by, const JobPtr& job, const Waiting& waiting, void (Server::*then)(Route&, Reply)) {
    job->prepared = [this, job, waiting = waiting, then](const Failure& failure) mutable {
        // Moved, since whoever has the last hold of a connection ends it, which is this thread's to do.
        http_.post([this, job, waiting = std::move(waiting), then, failure] {
            if (job->cancelled) return;
            auto& [route, reply] = *waiting;
            route.exchange->on_gone(nullptr);
            if (failure.status) return refuse(route, failure);
            (this->*then)(route, std::move(reply));
        });
    };
    waiting->first.exchange->on_gone([this, job, request = logged(waiting->first)] {
        job->cancelled = true;
        log_gone(request);
    });
    if (by.submit(job)) return;
    job->prepared = nullptr;
    refuse_full(waiting->first, retry_after(waiting->second.model));
}

/// What an endpoint makes of a request, which is kept where its model is awaited. Throws RequestError, AwaitedModel.
Reply Server::begin(Route& route) {
    Call& call = route.call;
    std::string& body = route.request.body;
    try {
        if (route.endpoint->access == Access::post) call.json = read_body(body);
        if (log_ && log_->with_texts() && !call.json.is_null()) route.asked = json_text(call.json);
        Reply reply = route.endpoint->begin(call, service_);
        if (!call.ignored.empty()) reply.headers.emplace_back("X-Fovea-Ignored", call.ignored);
        call.json = nullptr;
        body = {};
        return reply;
    } catch (...) {
        call.json = nullptr;
        throw;
    }
}

/// Has a long request read by the thread beside this one.
void Server::read(Route& route) {
    const JobPtr job = job_of(route.call);
    const auto waiting = std::make_shared<std::pair<Route, Reply>>(std::move(route), Reply{});
    job->prepare = [this, waiting]() -> Failure {
        try {
            waiting->second = begin(waiting->first);
        } catch (const AwaitedModel& model) {
            waiting->first.awaited = model;
        } catch (...) {
            return current_failure();
        }
        return {};
    };
    prepare(reader_, job, waiting, &Server::go_on);
}

/// Goes on with a request that has been read beside this thread.
void Server::go_on(Route& route, Reply reply) {
    if (const auto model = std::exchange(route.awaited, std::nullopt)) return await(route, *model);
    answer(route, std::move(reply));
    loader_.settle();
}

/// Writes that an answer is given up: its client has left, or the server ends.
void Server::log_gone(const LoggedRequest& request) {
    if (log_) log_->write(request, http_.finished() ? 503 : kClientLeft);
}

void Server::refuse_full(Route& route, const std::string& retry_after) {
    route.headers.emplace_back("Retry-After", retry_after);
    refuse(route, 429,
           "queue: expected fewer than " + std::to_string(options_.worker.queue_capacity) +
               " waiting requests, got as many; try again later",
           {}, "queue_full");
}

/// Queues the job of a reply, whose events are answered as they come.
void Server::queue(Route& route, Reply reply) {
    const JobPtr job = reply.job;
    if (const auto& taken = route.request.taken; taken && !job->recording) {  // whose bytes go when it is decoded
        const std::size_t n_kept = job->n_bytes() + reply.answer->n_kept() + route.asked.size();
        if (!taken->resize(n_kept, options_.http.body)) return refuse_http(route, 429);
        job->taken = taken;
    }
    const auto pending = std::make_shared<Pending>(
        Pending{std::move(reply.answer), route.exchange, {}, route.call.path, reply.stream, nullptr, {}, job->use});
    pending->head.headers = route.headers;
    if (log_) {
        pending->log = &*log_;
        pending->logged = logged(route);
        pending->logged.model = service_.slots[reply.model].name;
        pending->logged.stream = reply.stream;
        pending->logged.n_each = job->n_each;
    }
    job->deliver = [this, pending](std::vector<Event> events) {
        http_.post([pending, events = std::move(events)] { pending->take(events); });
    };
    if (!scheduler_.submit(reply.model, job)) {
        job->deliver = nullptr;
        return refuse_full(route, retry_after(reply.model));
    }
    route.exchange->on_gone([this, job, pending] {
        if (pending->answer->ended()) return;  // what is left is only to be sent
        job->cancelled = true;
        ++metrics_.n_cancelled;
        log_gone(pending->logged);
        scheduler_.ring();
    });
    if (!reply.stream) return;
    HttpAnswer head = pending->head;
    head.content_type = pending->answer->stream_type();
    head.headers.emplace_back("Cache-Control", "no-cache");
    if (head.content_type == "text/event-stream") head.silence = ": \n\n";
    route.exchange->begin(head, job->unsent, [this] { scheduler_.ring(); });
    route.exchange->write(pending->answer->begin());
}

std::string Server::retry_after(std::size_t model) {
    const ModelSlot& slot = service_.slots[model];
    if (!slot.entry) return "1";  // of a request that has not been read no model is known
    const ModelMetrics& metrics = metrics_.models[slot.name];
    const double seconds = metrics.request.mean() * static_cast<double>(scheduler_.worker(model).queue.size()) /
                           options_.worker.n_sequences;
    return std::to_string(std::clamp(static_cast<int>(seconds + 1), 1, 60));
}

}  // namespace fovea::serve
