// `fovea serve`: models behind HTTP. One thread speaks HTTP and reads requests, one computes (fovea/workspace.h's threads
// beside it); jobs go one way and events the other.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/api/endpoint.h"
#include "serve/api/model_loader.h"
#include "serve/http/http.h"
#include "serve/http/request_log.h"
#include "serve/jobs/forms.h"
#include "serve/jobs/preparer.h"
#include "serve/jobs/scheduler.h"

namespace fovea::serve {

struct ServerOptions {
    std::string host = "127.0.0.1";
    std::uint16_t port = 8080;  ///< 0: one that the system chooses
    WorkerOptions worker;
    HttpLimits http;
    std::vector<std::string> api_keys;  ///< empty: none is asked for
    std::vector<std::string> origins;   ///< whose pages may ask; "*": all
    std::vector<std::string>
        hosts;  ///< names by which clients may call this server beside this machine's own and addresses
    DefaultSeed seed;
    std::uint64_t stored_bytes = 64 << 20;  ///< of responses that are kept
    std::chrono::seconds time{600};         ///< from a request's arrival to its end
    std::chrono::seconds drain_time{30};
    std::string log_path;               ///< of the request log; empty: there is none
    bool logs_texts = false;            ///< it has requests and answers, too
    std::vector<OfferedModel> offered;  ///< models that are loaded when they are asked for,
    std::uint64_t models_bytes = 0;     ///< and what all that are loaded may take together, the others too
};

/// Whether only this machine's programs can reach what listens on this address.
[[nodiscard]] bool is_this_machine(std::string_view host);
/// Host and port as a URL has them.
[[nodiscard]] std::string address_words(const std::string& host, std::uint16_t port);

class Server {
public:
    /// Takes all the memory of the engine. Throws host::Error. `models` must outlive it.
    Server(const std::vector<host::Opened>& models, ServerOptions options);
    ~Server();

    /// Listens, says where by `ready`, and serves until a signal. Throws host::Error.
    void run(const std::function<void(std::uint16_t port)>& ready);
    /// What is taken at the start, exactly: work, caches, generators, reading prompts.
    [[nodiscard]] std::uint64_t memory_bytes() const;
    /// How many models are on offer, and what all that are loaded may take together, with their files.
    [[nodiscard]] std::size_t n_offered() const { return options_.offered.size(); }
    [[nodiscard]] std::uint64_t models_bytes() const { return options_.models_bytes; }
    /// What HTTP may take beside that, at most.
    [[nodiscard]] std::uint64_t http_bytes() const;

private:
    /// One request while it is routed.
    struct Route {
        HttpRequest request;
        ExchangePtr exchange;
        Call call{};
        const Endpoint* endpoint = nullptr;
        Headers headers{};                      ///< of every answer to it
        std::string refusal{};                  ///< why it is refused
        std::string asked{};                    ///< the request's JSON, where texts are logged
        std::optional<AwaitedModel> awaited{};  ///< as it has been read beside the HTTP thread
    };
    /// A request that another thread prepares, with what comes of it.
    using Waiting = std::shared_ptr<std::pair<Route, Reply>>;
    void handle(HttpRequest request, const ExchangePtr& exchange, int refused);
    void handle(Route& route);
    void try_to(Route& route, void (Server::*step)(Route&));
    void ask(Route& route);
    void await(Route& route, const AwaitedModel& model);
    void check_allowed(Route& route);
    [[nodiscard]] BodyKind admits(const HttpRequest& headers);
    void answer_options(Route& route);
    void answer(Route& route, Reply reply);
    [[nodiscard]] Reply begin(Route& route);
    void read(Route& route);
    void go_on(Route& route, Reply reply);
    void prepare(Preparer& by, const JobPtr& job, const Waiting& waiting, void (Server::*then)(Route&, Reply));
    void queue(Route& route, Reply reply);
    [[nodiscard]] LoggedRequest logged(const Route& route) const;
    void log_gone(const LoggedRequest& request);
    void refuse(Route& route, int status, const std::string& message, const std::string& param = {},
                const std::string& code = {});
    void refuse(Route& route, const Failure& failure) {
        refuse(route, failure.status, failure.message, failure.param, failure.code);
    }
    void refuse_http(Route& route, int status);
    void refuse_full(Route& route, const std::string& retry_after);
    [[nodiscard]] std::string retry_after(std::size_t model);

    const ServerOptions options_;
    Metrics metrics_;
    Scheduler scheduler_;
    Service service_;
    std::optional<RequestLog> log_;
    HttpServer http_;
    Preparer reader_, preparer_;
    std::uint64_t n_requests_ = 0;
    ModelLoader loader_;
};

}  // namespace fovea::serve
