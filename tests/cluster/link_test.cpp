// Connections between a program and a worker: what comes in pieces, late, or never.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cluster/link.h"

using namespace fovea::cluster;
using namespace std::chrono_literals;

namespace {

[[nodiscard]] Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// Both ends of a connection on this machine.
struct Ends {
    Listener listener{"127.0.0.1", 0};
    std::string from;
    Link near = Link::connect("127.0.0.1:" + std::to_string(listener.port()));
    Link far = listener.accept(from);
};

}  // namespace

TEST_CASE("a link carries messages whole, however they come") {
    Ends ends;
    std::vector<std::byte> sent(3'000'000), got(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7);
    std::thread sender([&] {
        const std::span<const std::byte> all(sent);
        CHECK(ends.near.send(all.first(1), in(10s)));
        std::this_thread::sleep_for(20ms);
        CHECK(ends.near.send(all.subspan(1), in(10s)));
    });
    CHECK(ends.far.receive(got, in(10s)));
    sender.join();
    CHECK(sent == got);
}

TEST_CASE("a link gives up on a side that does not answer, or does not read, and says why") {
    Ends ends;
    std::array<std::byte, 8> some{};
    const auto start = std::chrono::steady_clock::now();
    CHECK_FALSE(ends.near.receive(some, in(50ms)));
    CHECK(ends.near.why() == "no answer");
    CHECK_FALSE(ends.near.closed());
    const std::vector<std::byte> much(64'000'000);
    CHECK_FALSE(ends.near.send(much, in(50ms)));
    CHECK(ends.near.why() == "no answer");
    CHECK(std::chrono::steady_clock::now() - start < 20s);
}

TEST_CASE("a link says that the other side closed it") {
    Ends ends;
    { const Link gone = std::move(ends.far); }
    std::array<std::byte, 8> some{};
    CHECK_FALSE(ends.near.receive(some, in(10s)));
    CHECK(ends.near.closed());
    CHECK(ends.near.why() == "the connection was closed");
}

TEST_CASE("a link that is closed here ends there, and takes nothing more") {
    Ends ends;
    ends.near.close();
    std::array<std::byte, 8> some{};
    CHECK_FALSE(ends.far.receive(some, in(10s)));
    CHECK(ends.far.closed());
    CHECK_FALSE(ends.near.send(some, in(10s)));
    CHECK_FALSE(ends.near.receive(some, in(10s)));
}

TEST_CASE("addresses are a host and a port") {
    CHECK(Address("a.example:80").host == "a.example");
    CHECK(Address("[::1]:80").host == "::1");
    CHECK(Address("10.0.0.2:65535").port == "65535");
    for (const char* text : {"", ":", "a", "a:", ":1", "a:0", "a:65536", "a:1x", "::1:80", "a:999999"})
        CHECK_THROWS_AS(Address{text}, Error);
}
