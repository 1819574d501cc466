// Bytes of bodies that are there: how many all clients have, and each.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "serve/http/http.h"

namespace fovea::serve {

/// What all bodies of a kind take. From any thread.
class HeldBytes {
public:
    /// `n_all` counts the bytes, and outlives this.
    explicit HeldBytes(Counter& n_all) : n_all_(n_all) {}

    /// Whether a client may have `n` bytes more. An address has at most half of what all may have, or one longest body.
    [[nodiscard]] bool take(const std::string& peer, std::size_t n, const BodyLimits& limits);
    void give_back(const std::string& peer, std::size_t n);

private:
    std::mutex mutex_;
    Counter& n_all_;
    std::map<std::string, std::size_t> n_of_;  // by address, of those that have some
};

/// What one body takes, byte by byte as they come, then what was read of it; given back with this.
class BodyBytes {
public:
    BodyBytes(std::shared_ptr<HeldBytes> held, std::string peer) : held_(std::move(held)), peer_(std::move(peer)) {}
    ~BodyBytes() { held_->give_back(peer_, n_); }
    BodyBytes(const BodyBytes&) = delete;
    BodyBytes& operator=(const BodyBytes&) = delete;

    /// Whether it may take `n` bytes from now on, more or fewer than before.
    [[nodiscard]] bool resize(std::size_t n, const BodyLimits& limits);

private:
    const std::shared_ptr<HeldBytes> held_;  // jobs keep bodies when the server's connections have ended
    const std::string peer_;
    std::size_t n_ = 0;
};

}  // namespace fovea::serve
