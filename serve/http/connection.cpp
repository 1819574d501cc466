#include "serve/http/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <charconv>

namespace fovea::serve {
namespace {

constexpr std::size_t kPiece = 64 << 10;     // bytes of one write, for which a client has write_time
constexpr std::size_t kLingered = 32 << 20;  // bytes of a refused request that are read before the connection closes
constexpr std::chrono::seconds kLingerTime{2};

constexpr std::chrono::milliseconds kGlance{50};

/// Whether the other side has closed. Bytes of a next request may wait to be read before that.
bool has_left(int socket) {
#ifdef POLLRDHUP
    pollfd end{.fd = socket, .events = POLLRDHUP, .revents = 0};
    return ::poll(&end, 1, 0) > 0;
#else
    char byte = 0;
    const ssize_t n = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
#endif
}

/// The connection has ended, or is to end, within a message.
bool is_over(const beast::error_code& error) {
    return (error && error.category() == asio::error::get_system_category()) || error == beast::error::timeout ||
           error == http::error::partial_message || error == asio::error::eof ||
           error == asio::error::operation_aborted;
}

}  // namespace

Connection::Connection(HttpServer::State& server, tcp::socket socket)
    : server_(server),
      stream_(std::move(socket)),
      buffer_(server.limits.header_bytes + 4096),
      glance_(stream_.get_executor()),
      silence_(stream_.get_executor()) {
    place_ = server_.all.insert(server_.all.end(), this);
    beast::error_code error;
    const auto endpoint = stream_.socket().remote_endpoint(error);
    if (!error) peer_ = endpoint.address().to_string();
    stream_.socket().set_option(tcp::no_delay(true), error);
    stream_.socket().set_option(asio::socket_base::send_buffer_size(static_cast<int>(server.limits.send_buffer)),
                                error);
    server_.metrics.n_connections = server_.all.size();
}

Connection::~Connection() {
    set_idle(false);
    forget_answer();
    server_.all.erase(place_);
    server_.metrics.n_connections = server_.all.size();
    server_.accept();  // there is a place again
    server_.end_if_drained();
}

void Connection::close() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
}

void Connection::set_idle(bool idle) {
    if (idle == idle_) return;
    idle_ = idle;
    if (idle)
        idle_place_ = server_.idle.insert(server_.idle.end(), this);
    else
        server_.idle.erase(idle_place_);
}

void Connection::await_request() {
    if (server_.draining && !first_) return close();
    parser_.emplace();
    prepare(*parser_, server_.limits);
    head_only_ = ends_ = in_chunks_ = keeps_alive_ = false;
    set_idle(true);
    stream_.expires_after(first_ ? server_.limits.header_time : server_.limits.idle_time);
    if (!std::exchange(first_, false) && !buffer_.size()) server_.make_room(nullptr);
    await_bytes();
}

/// The first byte of a request. Empty lines before it are none (RFC 9112, section 2.2).
void Connection::await_bytes() {
    for (; buffer_.size(); buffer_.consume(1)) {
        const char next = *static_cast<const char*>(buffer_.data().data());
        if (next != '\r' && next != '\n') return read_headers();
    }
    buffer_.shrink_to_fit();
    stream_.async_read_some(buffer_.prepare(2048), [self = shared_from_this()](beast::error_code error, std::size_t n) {
        if (error) return self->close();
        self->buffer_.commit(n);
        self->await_bytes();
    });
}

void Connection::read_headers() {
    stream_.expires_after(server_.limits.header_time);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                                if (!error) return self->read_body();
                                if (error == http::error::end_of_stream || is_over(error)) return self->close();
                                self->refuse(refusal_of(error));
                            });
}

/// Whether a body may come, and how long; then reads it. What its trailer says later is none of the request's (RFC 9110, 6.5.1).
void Connection::read_body() {
    if (const int status = refusal_of(parser_->get(), parser_->chunked())) return refuse(status);
    head_ = request_of(parser_->get());
    head_.peer = peer_;
    keeps_alive_ = parser_->get().keep_alive();
    in_chunks_ = parser_->get().version() >= 11;
    const std::uint64_t length = parser_->content_length().value_or(0);
    const bool has_body = length || parser_->chunked();
    BodyKind kind = BodyKind::ordinary;
    if (has_body) {
        kind = server_.admits(head_);
        broken_ = kind == BodyKind::none;
        if (broken_) return handle(std::move(head_), 0);
    }
    const BodyLimits& limits = server_.limits.of(kind);
    if (length > limits.bytes) return refuse(413);
    taken_ = std::make_shared<BodyBytes>(kind == BodyKind::upload ? server_.uploads : server_.bodies, peer_);
    parser_->body_limit(limits.bytes);
    parser_->eager(true);
    stream_.expires_after(limits.time);
    const auto expect = parser_->get()[http::field::expect];
    if (!beast::iequals(expect, "100-continue") || !has_body) return read_piece(limits);
    static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kGoOn),
                      [self = shared_from_this(), &limits](beast::error_code error, std::size_t) {
                          if (error) return self->close();
                          self->read_piece(limits);
                      });
}

/// What has come of a body counts; the rest is read until it is whole.
void Connection::read_piece(const BodyLimits& limits) {
    if (!taken_->resize(parser_->get().body().size(), limits)) return refuse(429);
    if (!parser_->is_done())
        return http::async_read_some(stream_, buffer_, *parser_,
                                     [self = shared_from_this(), &limits](beast::error_code error, std::size_t) {
                                         if (error == http::error::body_limit) return self->refuse(413);
                                         if (is_over(error)) return self->close();
                                         if (error) return self->refuse(refusal_of(error));
                                         self->read_piece(limits);
                                     });
    head_.body = std::move(parser_->get().body());
    handle(std::move(head_), 0);
}

/// What cannot be read in full: its connection ends with the answer.
void Connection::refuse(int status) {
    broken_ = true;
    HttpRequest request;
    if (parser_->is_header_done()) request = request_of(parser_->get());
    handle(std::move(request), status);
}

void Connection::handle(HttpRequest request, int refused) {
    set_idle(false);
    request.peer = peer_;
    request.taken = std::exchange(taken_, nullptr);
    head_only_ = request.method == "HEAD";
    busy_ = true;
    stream_.expires_never();
    parser_.reset();
    kept_ = shared_from_this();
    const auto self = kept_;
    if (!broken_) watch();
    server_.handler(std::move(request), self, refused);
}

/// Learns that the client hangs up while it waits. More bytes of it are the next request's, and stay where they are.
void Connection::watch() {
    stream_.socket().async_wait(tcp::socket::wait_read, [weak = weak_from_this()](beast::error_code error) {
        if (const auto self = weak.lock(); self && !error) self->look_again();
    });
}

/// Waiting for bytes ends at once while there are some, so a client that has sent more is looked at from time to time.
void Connection::look_again() {
    if (!busy_) return;
    if (has_left(stream_.socket().native_handle())) return give_up();
    glance_.expires_after(kGlance);
    glance_.async_wait([weak = weak_from_this()](beast::error_code error) {
        if (const auto self = weak.lock(); self && !error) self->look_again();
    });
}

void Connection::forget_answer() {
    if (std::exchange(n_whole_, 0)) server_.answering.remove(this);
}

void Connection::give_up() {
    const auto self = shared_from_this();
    busy_ = false;
    forget_answer();
    waiting_.clear();
    if (auto call = std::exchange(gone_, nullptr)) call();
    sent_ = nullptr;
    unsent_ = nullptr;
    close();
    kept_ = nullptr;
}

void Connection::add_head(const HttpAnswer& answer, std::string_view framing) {
    if (server_.draining || broken_) keeps_alive_ = false;
    server_.metrics.count_answer(answer.status);
    waiting_ += "HTTP/1.1 " + std::to_string(answer.status) + ' ';
    waiting_ += status_words(answer.status);
    waiting_ += "\r\n";
    if (!answer.content_type.empty()) waiting_ += "Content-Type: " + answer.content_type + "\r\n";
    for (const auto& [name, value] : answer.headers) waiting_ += name + ": " + value + "\r\n";
    waiting_ += framing;
    waiting_ += keeps_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
}

void Connection::answer(HttpAnswer answer) {
    if (!busy_) return;
    add_head(answer, "Content-Length: " + std::to_string(answer.body.size()) + "\r\n");
    if (!head_only_) waiting_ += answer.body;
    ends_ = true;
    const bool is_large = waiting_.size() > kMostAhead;
    if (is_large) {
        n_whole_ = waiting_.size();
        server_.answering.push_back(this);
    }
    send();
    if (is_large) server_.bound_answers();
}

void Connection::begin(const HttpAnswer& head, std::shared_ptr<std::atomic<std::size_t>> unsent,
                       std::function<void()> call) {
    if (!busy_) return;
    unsent_ = std::move(unsent);
    sent_ = std::move(call);
    if (!in_chunks_) keeps_alive_ = false;  // HTTP/1.0: the answer ends with the connection
    add_head(head, in_chunks_ ? "Transfer-Encoding: chunked\r\n" : "");
    silence_words_ = head.silence;
    await_silence();
    send();
}

/// Proxies and clients give up answers of which nothing comes.
void Connection::await_silence() {
    if (silence_words_.empty()) return;
    silence_.expires_after(server_.limits.silence_time);  // ends the wait before it
    silence_.async_wait([weak = weak_from_this()](beast::error_code error) {
        const auto self = weak.lock();
        if (self && !error && self->busy_ && !self->ends_) self->write(self->silence_words_);
    });
}

void Connection::write(std::string_view bytes) {
    if (!busy_ || bytes.empty()) return;
    await_silence();
    char size[20];
    const auto [end, error] = std::to_chars(size, size + sizeof size, bytes.size(), 16);
    if (in_chunks_) waiting_.append(size, end).append("\r\n");
    waiting_ += bytes;
    if (in_chunks_) waiting_ += "\r\n";
    send();
}

void Connection::end() {
    if (!busy_) return;
    if (in_chunks_) waiting_ += "0\r\n\r\n";
    ends_ = true;
    send();
}

void Connection::send() {
    if (unsent_) *unsent_ = waiting_.size() + sending_.size() - n_sent_;
    if (writing_) return;
    if (waiting_.empty()) return ends_ ? answered() : void();
    sending_.swap(waiting_);
    waiting_.clear();
    n_sent_ = 0;
    writing_ = true;
    send_piece();
}

void Connection::send_piece() {
    stream_.expires_after(server_.limits.write_time);
    const auto piece = asio::buffer(sending_.data() + n_sent_, std::min(kPiece, sending_.size() - n_sent_));
    stream_.async_write_some(piece, [self = shared_from_this()](beast::error_code error, std::size_t n) {
        if (!self->busy_) return;
        if (error) return self->give_up();
        self->n_sent_ += n;
        if (self->unsent_) *self->unsent_ = self->waiting_.size() + self->sending_.size() - self->n_sent_;
        if (self->sent_) self->sent_();
        if (self->n_sent_ < self->sending_.size()) return self->send_piece();
        self->writing_ = false;
        self->n_sent_ = 0;
        self->sending_.clear();
        self->stream_.expires_never();
        self->send();
    });
}

void Connection::answered() {
    const auto self = std::exchange(kept_, nullptr);
    busy_ = false;
    gone_ = nullptr;
    sent_ = nullptr;
    unsent_ = nullptr;
    forget_answer();
    std::string().swap(waiting_);
    std::string().swap(sending_);
    beast::error_code ignored;
    stream_.socket().cancel(ignored);  // of watch
    glance_.cancel();
    silence_.cancel();
    silence_words_.clear();
    if (keeps_alive_) return await_request();
    stream_.expires_after(kLingerTime);  // for all of it, however few bytes come at a time
    linger();
}

/// Closing at once would take the answer from a client that still sends: its bytes are read for a while.
void Connection::linger() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (!broken_ || n_sent_ >= kLingered) return close();
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](beast::error_code error, std::size_t n) {
        self->n_sent_ += n;
        if (error) return self->close();
        self->linger();
    });
}

}  // namespace fovea::serve
