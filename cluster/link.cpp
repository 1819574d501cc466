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

std::string address_words(const std::string& host, std::uint16_t port) {
    return (host.find(':') == host.npos ? host : '[' + host + ']') + ":" + std::to_string(port);
}

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

    /// Connects to an endpoint.
    bool reach(const tcp::endpoint& endpoint) noexcept {
        const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kGoneSeconds);
        const int handle = socket.native_handle();
        int failed = ::connect(handle, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 ? 0 : errno;
        if (failed == EINPROGRESS || failed == EINTR) {
            if (!ready(POLLOUT, deadline)) return false;
            socklen_t size = sizeof failed;
            if (getsockopt(handle, SOL_SOCKET, SO_ERROR, &failed, &size) != 0) failed = errno;
        }
        error = error_code(failed, boost::system::system_category());
        return failed == 0;
    }

    /// Waits until the socket can be read or written.
    bool ready(short event, Deadline deadline) noexcept {
        if (!socket.is_open()) {
            error = asio::error::not_connected;
            return false;
        }
        pollfd wanted{socket.native_handle(), event, 0};
        for (;;) {
            int time = -1;
            if (deadline != kForEver) {
                const auto left =
                    std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
                time = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
            }
            const int n = poll(&wanted, 1, time);
            if (n > 0) return true;
            if (n < 0 && errno == EINTR) continue;
            error = n == 0 ? error_code(asio::error::timed_out) : error_code(errno, boost::system::system_category());
            return false;
        }
    }

    /// Moves all bytes, as many at a time as `some` does.
    template<class Bytes, class Some>
    bool move(Bytes bytes, short event, Deadline deadline, Some some) noexcept {
        while (!bytes.empty()) {
            if (!ready(event, deadline)) return false;
            const std::size_t n = some(asio::buffer(bytes.data(), bytes.size()));
            if (error == asio::error::would_block) continue;
            if (error) return false;
            bytes = bytes.subspan(n);
        }
        return true;
    }
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
        if (state->reach(entry.endpoint())) return Link(std::move(state));
        error = state->error;
    }
    throw Error("worker " + text + ": expected one that listens (fovea worker MODEL), got " + error.message());
}

bool Link::send(std::span<const std::byte> bytes, Deadline deadline) noexcept {
    return state_->move(bytes, POLLOUT, deadline,
                        [&](auto buffer) { return state_->socket.write_some(buffer, state_->error); });
}

bool Link::receive(std::span<std::byte> buffer, Deadline deadline) noexcept {
    return state_->move(buffer, POLLIN, deadline,
                        [&](auto part) { return state_->socket.read_some(part, state_->error); });
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
    from = address_words(peer.address().to_string(), peer.port());
    return Link(std::move(link));
}

}  // namespace fovea::cluster
