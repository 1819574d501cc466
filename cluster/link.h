// A TCP connection between a program and a worker: whole messages, and an end where the other side is gone.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace fovea::cluster {

/// What the command line says in one line.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// HOST:PORT, [ADDRESS]:PORT of IPv6. Throws Error.
struct Address {
    std::string host, port;
    explicit Address(const std::string& text);
};

/// Movable. A machine that stops answering for ten seconds, though it was asked, counts as gone.
class Link {
public:
    /// Throws Error.
    [[nodiscard]] static Link connect(const std::string& address);

    Link(Link&& other) noexcept;
    Link& operator=(Link&& other) noexcept;
    ~Link();

    /// Sends the buffers one after another. False: the other side is gone, and why() says how.
    [[nodiscard]] bool send(std::span<const std::span<const std::byte>> buffers) noexcept;
    /// Fills the buffer.
    [[nodiscard]] bool receive(std::span<std::byte> buffer) noexcept;
    /// Whether something to receive comes within that time.
    [[nodiscard]] bool comes_within(std::chrono::milliseconds time) noexcept;
    [[nodiscard]] std::string why() const;

    template<class Struct>
    [[nodiscard]] bool send_one(const Struct& value) noexcept {
        const std::span<const std::byte> bytes = std::as_bytes(std::span(&value, 1));
        return send({&bytes, 1});
    }
    template<class Struct>
    [[nodiscard]] bool receive_one(Struct& value) noexcept {
        return receive(std::as_writable_bytes(std::span(&value, 1)));
    }

private:
    friend class Listener;
    struct State;
    explicit Link(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// A port that programs connect to.
class Listener {
public:
    /// Throws Error. Port 0: one that the system chooses.
    Listener(const std::string& host, std::uint16_t port);
    ~Listener();

    [[nodiscard]] std::uint16_t port() const;
    /// Waits for the next program; `from` becomes its address. Throws Error.
    [[nodiscard]] Link accept(std::string& from);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fovea::cluster
