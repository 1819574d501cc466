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
    explicit Error(const std::string& line, bool usage = false) : std::runtime_error(line), of_usage(usage) {}
    bool of_usage;  ///< an option is wrong, and nothing was tried
};

/// How long nothing may come or go within a message. for_ever: a machine that is gone is noticed all the same.
using Patience = std::chrono::milliseconds;
inline constexpr Patience kForEver = Patience::max();

/// HOST:PORT, [ADDRESS]:PORT of IPv6. Throws Error.
struct Address {
    std::string host, port;
    explicit Address(const std::string& text);
};

/// Movable.
class Link {
public:
    /// Throws Error.
    [[nodiscard]] static Link connect(const std::string& address);

    Link(Link&& other) noexcept;
    Link& operator=(Link&& other) noexcept;
    ~Link();

    /// Sends the bytes. False: the other side is gone, or takes nothing, and why() says which.
    [[nodiscard]] bool send(std::span<const std::byte> bytes, Patience patience) noexcept;
    /// Fills the buffer; the same.
    [[nodiscard]] bool receive(std::span<std::byte> buffer, Patience patience) noexcept;
    [[nodiscard]] std::string why() const;
    /// Whether the other side closed it, and between two messages as far as this side knows.
    [[nodiscard]] bool closed() const noexcept;

    template<class Struct>
    [[nodiscard]] bool send_one(const Struct& value, Patience patience) noexcept {
        return send(std::as_bytes(std::span(&value, 1)), patience);
    }
    template<class Struct>
    [[nodiscard]] bool receive_one(Struct& value, Patience patience) noexcept {
        return receive(std::as_writable_bytes(std::span(&value, 1)), patience);
    }

private:
    friend class Listener;
    [[nodiscard]] bool ready(short event, Patience patience) noexcept;
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
