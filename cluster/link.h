// A TCP connection between a program and a worker: whole messages, and an end if the other side is gone.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace fovea::cluster {

/// An error that the command line prints as one line.
struct Error : std::runtime_error {
    explicit Error(const std::string& line, bool usage = false) : std::runtime_error(line), of_usage(usage) {}
    bool of_usage;  ///< an option is wrong, and nothing was tried
};

/// The time until which a message must be received or sent. kForEver: a machine that is switched off is noticed all the
/// same.
using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kForEver = Deadline::max();

/// HOST:PORT, [ADDRESS]:PORT of IPv6.
[[nodiscard]] std::string address_words(const std::string& host, std::uint16_t port);

/// The parts of such an address. Throws Error.
struct Address {
    std::string host, port;
    explicit Address(const std::string& text);
};

/// Movable.
class Link {
public:
    /// Throws Error; after ten seconds too.
    [[nodiscard]] static Link connect(const std::string& address);

    Link(Link&& other) noexcept;
    Link& operator=(Link&& other) noexcept;
    ~Link();

    /// Sends the bytes. False: the other side is gone, or takes nothing, and why() says which.
    [[nodiscard]] bool send(std::span<const std::byte> bytes, Deadline deadline) noexcept;
    /// Fills the buffer; the same.
    [[nodiscard]] bool receive(std::span<std::byte> buffer, Deadline deadline) noexcept;
    [[nodiscard]] std::string why() const;
    /// Whether the other side closed it.
    [[nodiscard]] bool closed() const noexcept;
    void close() noexcept;

    template<class Struct>
    [[nodiscard]] bool send_one(const Struct& value, Deadline deadline) noexcept {
        return send(std::as_bytes(std::span(&value, 1)), deadline);
    }
    template<class Struct>
    [[nodiscard]] bool receive_one(Struct& value, Deadline deadline) noexcept {
        return receive(std::as_writable_bytes(std::span(&value, 1)), deadline);
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
