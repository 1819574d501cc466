#include "cluster/link.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstdint>

namespace fovea::cluster {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr int kGoneSeconds = 10;

void set(tcp::socket& socket, int level, int option, int value) noexcept {
    (void)setsockopt(socket.native_handle(), level, option, &value, sizeof value);  // a wish
}

/// Small messages go at once, and a machine that is switched off is noticed.
void settle(tcp::socket& socket) {
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
#ifdef TCP_KEEPIDLE
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kGoneSeconds / 2);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, kGoneSeconds / 2);
#endif
}

}  // namespace

Address::Address(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    const auto refuse = [&] { return Error("worker: expected HOST:PORT, got " + (text.empty() ? "nothing" : text)); };
    if (colon == text.npos || colon == 0 || colon + 1 == text.size()) throw refuse();
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.size() > 5 || port.find_first_not_of("0123456789") != port.npos || std::stoul(port) - 1 > 65534)
        throw refuse();
    if (host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != host.npos)
        throw refuse();
}

struct Link::State {
    asio::io_context context;
    tcp::socket socket{context};
    error_code error;
};

Link::Link(std::unique_ptr<State> state) : state_(std::move(state)) {}
Link::Link(Link&& other) noexcept = default;
Link& Link::operator=(Link&& other) noexcept = default;
Link::~Link() = default;

Link Link::connect(const std::string& text) {
    const Address address(text);
    auto state = std::make_unique<State>();
    error_code error;
    tcp::resolver resolver(state->context);
    const auto found = resolver.resolve(address.host, address.port, error);
    if (error) throw Error("worker " + text + ": expected a host that has an address, got " + error.message());
    error = asio::error::host_not_found;
    for (const auto& entry : found) {
        error_code ignored;
        state->socket.close(ignored);
        state->socket.open(entry.endpoint().protocol(), error);
        if (error) continue;
        settle(state->socket);
        Link link(std::move(state));
        if (link.reach(entry.endpoint())) return link;
        state = std::move(link.state_);
        error = state->error;
    }
    throw Error("worker " + text + ": expected one that listens (fovea worker MODEL), got " + error.message());
}

template<class Endpoint>
bool Link::reach(const Endpoint& endpoint) noexcept {
    const int socket = state_->socket.native_handle();
    const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kGoneSeconds);
    int failed = ::connect(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 ? 0 : errno;
    if (failed == EINPROGRESS || failed == EINTR) {
        if (!ready(POLLOUT, deadline)) return false;
        socklen_t size = sizeof failed;
        if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &failed, &size) != 0) failed = errno;
    }
    state_->error = error_code(failed, boost::system::system_category());
    return failed == 0;
}

/// Waits until the socket can be read or written.
bool Link::ready(short event, Deadline deadline) noexcept {
    if (!state_->socket.is_open()) {
        state_->error = asio::error::not_connected;
        return false;
    }
    pollfd wanted{state_->socket.native_handle(), event, 0};
    for (;;) {
        int time = -1;
        if (deadline != kForEver) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
            time = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
        }
        const int n = poll(&wanted, 1, time);
        if (n > 0) return true;
        if (n < 0 && errno == EINTR) continue;
        state_->error =
            n == 0 ? error_code(asio::error::timed_out) : error_code(errno, boost::system::system_category());
        return false;
    }
}

bool Link::send(std::span<const std::byte> bytes, Deadline deadline) noexcept {
    while (!bytes.empty()) {
        if (!ready(POLLOUT, deadline)) return false;
        const std::size_t n = state_->socket.write_some(asio::buffer(bytes.data(), bytes.size()), state_->error);
        if (state_->error == asio::error::would_block) continue;
        if (state_->error) return false;
        bytes = bytes.subspan(n);
    }
    return true;
}

bool Link::receive(std::span<std::byte> buffer, Deadline deadline) noexcept {
    while (!buffer.empty()) {
        if (!ready(POLLIN, deadline)) return false;
        const std::size_t n = state_->socket.read_some(asio::buffer(buffer.data(), buffer.size()), state_->error);
        if (state_->error == asio::error::would_block) continue;
        if (state_->error) return false;
        buffer = buffer.subspan(n);
    }
    return true;
}

std::string Link::why() const {
    if (state_->error == asio::error::eof) return "the connection was closed";
    if (state_->error == asio::error::timed_out) return "no answer";
    return state_->error ? state_->error.message() : "an answer that is none";
}

void Link::close() noexcept {
    error_code ignored;
    state_->socket.close(ignored);
}

bool Link::closed() const noexcept { return state_->error == asio::error::eof; }

struct Listener::State {
    asio::io_context context;
    tcp::acceptor acceptor{context};
};

Listener::Listener(const std::string& host, std::uint16_t port) : state_(std::make_unique<State>()) {
    error_code error;
    const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
    if (error) throw Error("--host: expected an IP address such as 127.0.0.1, 0.0.0.0 or ::1, got " + host, true);
    const tcp::endpoint endpoint(address, port);
    tcp::acceptor& acceptor = state_->acceptor;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(16, error);
    if (error)
        throw Error("--port: expected an address and port that are free, got " + host + " port " +
                    std::to_string(port) + ": " + error.message());
}
Listener::~Listener() = default;

std::uint16_t Listener::port() const { return state_->acceptor.local_endpoint().port(); }

Link Listener::accept(std::string& from) {
    auto link = std::make_unique<Link::State>();
    error_code error;
    tcp::endpoint peer;
    state_->acceptor.accept(link->socket, peer, error);
    if (error) throw Error("listening: expected a connection, got " + error.message());
    settle(link->socket);
    const std::string host = peer.address().to_string();
    from = (peer.address().is_v6() ? '[' + host + ']' : host) + ":" + std::to_string(peer.port());
    return Link(std::move(link));
}

}  // namespace fovea::cluster
