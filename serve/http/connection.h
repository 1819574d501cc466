// One client's connection, request after request. See http.h for what bounds it.
#pragma once
#include <list>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "serve/http/held_bytes.h"
#include "serve/http/http_message.h"

namespace fovea::serve {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

class Connection;

struct HttpServer::State {
    State(const HttpLimits& limits_, Metrics& metrics_, Handler handler_, Admits admits_)
        : limits(limits_),
          metrics(metrics_),
          handler(std::move(handler_)),
          admits(std::move(admits_)),
          bodies(std::make_shared<HeldBytes>(metrics_.n_body_bytes)),
          uploads(std::make_shared<HeldBytes>(metrics_.n_upload_bytes)) {}

    void accept();
    void make_room(const Connection* newest);
    void drain(std::chrono::seconds time, const std::function<void()>& out_of_time);
    void await_signal(std::chrono::seconds time, const std::function<void()>& out_of_time);
    void end_if_drained();
    void bound_answers();

    const HttpLimits limits;
    Metrics& metrics;
    const Handler handler;
    const Admits admits;
    const std::shared_ptr<HeldBytes> bodies, uploads;
    std::list<Connection*> all;        // that exist
    std::list<Connection*> idle;       // of those, the ones whose next request is not there in full, the longest first
    std::list<Connection*> answering;  // whose whole answers are sent, the oldest first
    bool accepting = false, draining = false, finished = false;
    std::atomic<bool> shows_draining{false};
    asio::io_context context{1};  // its end is that of connections, which leave the lists above
    tcp::acceptor acceptor{context};
    asio::signal_set signals{context};
    asio::steady_timer drain_timer{context};
};

class Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
public:
    Connection(HttpServer::State& server, tcp::socket socket);
    ~Connection() override;

    void await_request();
    void close();
    /// Its answer has no client any more, or no server.
    void give_up();

    void answer(HttpAnswer answer) override;
    void begin(const HttpAnswer& head, std::shared_ptr<std::atomic<std::size_t>> unsent,
               std::function<void()> call) override;
    void write(std::string_view bytes) override;
    void end() override;
    void on_gone(std::function<void()> call) override { gone_ = std::move(call); }

private:
    void set_idle(bool idle);
    void await_bytes();
    void read_headers();
    void read_body();
    void read_piece(const BodyLimits& limits);
    void refuse(int status);
    void handle(HttpRequest request, int refused);
    void watch();
    void look_again();
    void await_silence();
    void add_head(const HttpAnswer& answer, std::string_view framing);
    void send();
    void send_piece();
    void answered();
    void linger();
    void forget_answer();
    friend struct HttpServer::State;

    HttpServer::State& server_;
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    std::optional<Parser> parser_;
    HttpRequest head_;  // of the request whose body is being read
    std::list<Connection*>::iterator place_, idle_place_;
    std::size_t n_whole_ = 0;               // bytes of a whole answer that is sent
    std::string peer_, waiting_, sending_;  // bytes to send: not yet begun, begun
    std::size_t n_sent_ = 0;                // of sending_
    std::shared_ptr<BodyBytes> taken_;      // of all bodies' bytes, for a body that is being read
    asio::steady_timer glance_;             // when a client that has sent more is looked at again
    asio::steady_timer silence_;            // when a stream that has nothing to say says so
    std::string silence_words_;
    bool first_ = true, idle_ = false, busy_ = false, writing_ = false, ends_ = false;
    bool keeps_alive_ = false, in_chunks_ = false, head_only_ = false, broken_ = false;
    std::function<void()> gone_, sent_;
    std::shared_ptr<Connection> kept_;  // itself, while an answer is awaited and nothing else may hold it
    std::shared_ptr<std::atomic<std::size_t>> unsent_;
};

}  // namespace fovea::serve
