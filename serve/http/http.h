// HTTP/1.1 over TCP: one thread, any number of connections up to a bound, every one with a deadline for all it does.
//
// The bounds: connections; bytes of a request's line and headers; bytes of a body; bytes of all bodies together, of which an address
// has at most half. They are taken as they come and given back once a body is read. Uploads have bounds of their own. A request's
// headers and body must arrive in a given time, however small the pieces they come in. What the system sends of an answer ahead of
// its client is bounded too, and whole answers together: the oldest of the address that has most of them is closed where they are
// more. Where all connections are in use, the one whose request has been awaited longest is closed for a new one.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/jobs/metrics.h"

namespace fovea::serve {

class BodyBytes;  // serve/http/held_bytes.h

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
    std::string method, path, query;  ///< the path without a '/' at its end; what follows '?', as it came
    Headers headers;                  ///< names in lower case
    std::string body;
    std::string peer;                       ///< the client's address
    std::shared_ptr<BodyBytes> taken = {};  ///< while it is kept, the body's bytes count among those of all bodies

    /// The first header of this name (in lower case); empty: there is none.
    [[nodiscard]] std::string_view header(std::string_view name) const;
};

struct HttpAnswer {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
    Headers headers = {};
    std::string silence = {};  ///< what an answer in pieces has where nothing else comes for a while; empty: nothing
};

/// One request and the answer to it. All calls by the server's thread.
class Exchange {
public:
    virtual ~Exchange() = default;
    /// The whole answer.
    virtual void answer(HttpAnswer answer) = 0;
    /// An answer in pieces: its head, then any number of writes, then end. What comes after the client is gone is dropped.
    /// In `unsent` the bytes are counted that were written and not yet sent; `call` says that some were sent.
    virtual void begin(const HttpAnswer& head, std::shared_ptr<std::atomic<std::size_t>> unsent,
                       std::function<void()> call) = 0;
    virtual void write(std::string_view bytes) = 0;
    virtual void end() = 0;
    /// The client has gone without its answer, or the server has ended: called once, and not after the answer's end.
    virtual void on_gone(std::function<void()> call) = 0;
};
using ExchangePtr = std::shared_ptr<Exchange>;

/// What a request may have for a body. Files that are uploaded are longer, and leave room for others.
enum class BodyKind { none, ordinary, upload };

struct BodyLimits {
    std::size_t bytes, all_bytes;    ///< of one, of all that are there
    std::chrono::milliseconds time;  ///< in which it comes
};

/// Bytes of an answer that a connection keeps for its client: what a job may be ahead of it, twice. A whole one may be longer.
inline constexpr std::size_t kMostAhead = 128 << 10;

struct HttpLimits {
    std::size_t header_bytes = 16 << 10;
    BodyLimits body{1 << 20, 64 << 20, std::chrono::seconds{30}};
    BodyLimits upload{25 << 20, 100 << 20, std::chrono::seconds{120}};
    std::uint32_t n_connections = 2048;
    std::size_t send_buffer = 64 << 10;  ///< bytes that the system keeps for a connection's client
    std::size_t answers = 64 << 20;      ///< bytes of whole answers that wait for their clients, if several do
    std::chrono::milliseconds header_time{10'000};   ///< from a request's first byte, or a connection's start
    std::chrono::milliseconds idle_time{30'000};     ///< between requests
    std::chrono::milliseconds write_time{30'000};    ///< in which a client must take at least a byte
    std::chrono::milliseconds silence_time{10'000};  ///< of an answer in pieces, before HttpAnswer::silence

    [[nodiscard]] const BodyLimits& of(BodyKind kind) const { return kind == BodyKind::upload ? upload : body; }
};

/// The words that go with a status.
[[nodiscard]] std::string_view status_words(int status);

class HttpServer {
public:
    /// Answers a request, at once or later. `refused`: a status that HTTP itself has for it, 0 for none; the request is
    /// then what could be read of it.
    using Handler = std::function<void(HttpRequest request, ExchangePtr exchange, int refused)>;

    /// What body a request may have, by its headers: none where it may not come at all.
    using Admits = std::function<BodyKind(const HttpRequest& headers)>;

    HttpServer(const HttpLimits& limits, Metrics& metrics, Handler handler, Admits admits);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    /// Listens; returns the port, which the system chooses for 0. Throws host::Error.
    [[nodiscard]] std::uint16_t listen(const std::string& host, std::uint16_t port);
    /// Until a signal (SIGTERM, SIGINT) and the last answer after it, or a second signal. After `drain_time` calls
    /// `out_of_time`, which ends what is under way; what that has to say is sent for two seconds more.
    void run(std::chrono::seconds drain_time, const std::function<void()>& out_of_time);
    /// A signal has come: no request that arrives now is begun.
    [[nodiscard]] bool draining() const;
    /// It has ended, and gives up all answers under way. Known to the server's thread.
    [[nodiscard]] bool finished() const;
    /// Has `call` called by the server's thread. From any thread.
    void post(std::function<void()> call);
    /// The same after a time. By the server's thread.
    void post_later(std::chrono::milliseconds time, std::function<void()> call);

private:
    friend class Connection;
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fovea::serve
