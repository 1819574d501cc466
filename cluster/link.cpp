#include "cluster/link.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <vector>

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
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
#ifdef TCP_KEEPIDLE
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kGoneSeconds / 2);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, kGoneSeconds / 2);
#endif
#ifdef TCP_USER_TIMEOUT
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kGoneSeconds * 1000);
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
        state->socket.connect(entry.endpoint(), error);
        if (!error) return Link(std::move(state));
    }
    throw Error("worker " + text + ": expected one that listens (fovea worker MODEL), got " + error.message());
}

bool Link::send(std::span<const std::span<const std::byte>> buffers) noexcept {
    constexpr std::size_t kMostBuffers = 4;
    std::array<asio::const_buffer, kMostBuffers> all;
    if (buffers.size() > kMostBuffers) return false;
    for (std::size_t i = 0; i < buffers.size(); ++i) all[i] = asio::buffer(buffers[i].data(), buffers[i].size());
    asio::write(state_->socket, all, state_->error);
    return !state_->error;
}

bool Link::receive(std::span<std::byte> buffer) noexcept {
    asio::read(state_->socket, asio::buffer(buffer.data(), buffer.size()), state_->error);
    return !state_->error;
}

bool Link::comes_within(std::chrono::milliseconds time) noexcept {
    pollfd wanted{state_->socket.native_handle(), POLLIN, 0};
    return poll(&wanted, 1, static_cast<int>(time.count())) == 1;
}

std::string Link::why() const {
    if (state_->error == asio::error::eof) return "the connection was closed";
    return state_->error ? state_->error.message() : "an answer that is none";
}

struct Listener::State {
    asio::io_context context;
    tcp::acceptor acceptor{context};
};

Listener::Listener(const std::string& host, std::uint16_t port) : state_(std::make_unique<State>()) {
    error_code error;
    const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
    if (error) throw Error("--host: expected an IP address such as 127.0.0.1, 0.0.0.0 or ::1, got " + host);
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
    from = peer.address().to_string() + ":" + std::to_string(peer.port());
    return Link(std::move(link));
}

}  // namespace fovea::cluster
