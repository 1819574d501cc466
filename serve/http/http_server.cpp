// Listening, accepting, and the way to the end.
#include <sys/resource.h>

#include <algorithm>

#include "host/base/error.h"
#include "host/base/words.h"
#include "serve/http/connection.h"

namespace fovea::serve {
namespace {

/// So many connections, and what else the process has open. Throws host::Error where the system gives fewer.
void allow_open_files(std::uint32_t n_connections) {
    constexpr std::uint32_t kOthers = 64;
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const rlim_t wanted = n_connections + kOthers;
    if (limit.rlim_cur >= wanted) return;
    limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
        throw host::Error("--connections: expected at most " + std::to_string(limit.rlim_cur - kOthers) +
                          " (the system's limit of open files, ulimit -n), got " + std::to_string(n_connections));
}

}  // namespace

HttpServer::HttpServer(const HttpLimits& limits, Metrics& metrics, Handler handler, Admits admits)
    : state_(std::make_unique<State>(limits, metrics, std::move(handler), std::move(admits))) {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::listen(const std::string& host, std::uint16_t port) {
    State& s = *state_;
    allow_open_files(s.limits.n_connections);
    beast::error_code error;
    const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
    if (error)
        throw host::ArgumentError("--host: expected an IP address such as 127.0.0.1, 0.0.0.0 or ::1, got " + host);
    const tcp::endpoint endpoint(address, port);
    s.acceptor.open(endpoint.protocol(), error);
    if (!error) s.acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) s.acceptor.bind(endpoint, error);
    if (!error) s.acceptor.listen(4096, error);
    if (error == boost::system::errc::address_not_available)
        throw host::Error("--host: expected an address of this machine, got " + host);
    if (error)
        throw host::Error("--port: expected one that is free, got " + host + " port " + std::to_string(port) + ": " +
                          system_error(error.value()));
    return s.acceptor.local_endpoint().port();
}

/// Takes the next connection, where there is a place for it.
void HttpServer::State::accept() {
    if (finished || accepting || draining || !acceptor.is_open() || all.size() >= limits.n_connections) return;
    accepting = true;
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
        accepting = false;
        if (error == asio::error::operation_aborted) return;
        if (!error) {
            const auto connection = std::make_shared<Connection>(*this, std::move(socket));
            connection->await_request();
            make_room(connection.get());
        }
        accept();
    });
}

/// Keeps a place free for who comes next: the connection whose request has been awaited longest gives its own, but not the
/// newest.
void HttpServer::State::make_room(const Connection* newest) {
    if (all.size() >= limits.n_connections && !idle.empty() && idle.front() != newest) idle.front()->close();
}

/// Clients that do not read keep so many bytes of answers at most.
void HttpServer::State::bound_answers() {
    const auto sum = [&](auto&& counts) {
        std::size_t n = 0;
        for (const Connection* one : answering)
            if (counts(*one)) n += one->n_whole_;
        return n;
    };
    while (answering.size() > 1 && sum([](const Connection&) { return true; }) > limits.answers) {
        const auto of_its_address = [&](const Connection* one) {
            return sum([&](const Connection& other) { return other.peer_ == one->peer_; });
        };
        (*std::ranges::max_element(answering, {}, of_its_address))->give_up();
    }
}

void HttpServer::State::drain(std::chrono::seconds time, const std::function<void()>& out_of_time) {
    constexpr std::chrono::seconds kLastWords{2};
    if (draining) return context.stop();  // the second signal
    draining = true;
    shows_draining = true;
    acceptor.close();
    for (Connection* connection : std::list<Connection*>(idle)) connection->close();
    drain_timer.expires_after(time);
    drain_timer.async_wait([this, kLastWords, out_of_time](beast::error_code error) {
        if (error) return;
        out_of_time();
        drain_timer.expires_after(kLastWords);
        drain_timer.async_wait([this](beast::error_code ended) {
            if (!ended) context.stop();
        });
    });
    await_signal(time, out_of_time);
    end_if_drained();
}

void HttpServer::State::await_signal(std::chrono::seconds time, const std::function<void()>& out_of_time) {
    signals.async_wait([this, time, out_of_time](beast::error_code error, int) {
        if (!error) drain(time, out_of_time);
    });
}

void HttpServer::State::end_if_drained() {
    if (!finished && draining && all.empty()) context.stop();
}

void HttpServer::run(std::chrono::seconds drain_time, const std::function<void()>& out_of_time) {
    State& s = *state_;
    s.signals.add(SIGTERM);
    s.signals.add(SIGINT);
    s.await_signal(drain_time, out_of_time);
    s.accept();
    s.context.run();
    s.finished = true;
    for (Connection* connection : std::list<Connection*>(s.all)) connection->give_up();
}

bool HttpServer::draining() const { return state_->shows_draining; }
bool HttpServer::finished() const { return state_->finished; }

void HttpServer::post(std::function<void()> call) { asio::post(state_->context, std::move(call)); }

void HttpServer::post_later(std::chrono::milliseconds time, std::function<void()> call) {
    const auto timer = std::make_shared<asio::steady_timer>(state_->context, time);
    timer->async_wait([timer, call = std::move(call)](beast::error_code error) {
        if (!error) call();
    });
}

}  // namespace fovea::serve
