// Memory for arenas, for programs that have a heap. The engine does not use it: a board hands over memory of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "fovea/export.h"
#include "fovea/plan.h"

namespace fovea FOVEA_API {

/// Zeroed bytes at an address that kArenaAlignment divides, released when it ends. Movable: the bytes stay where they are,
/// so a session in them goes on.
class Arena {
public:
    Arena() = default;
    /// Exactly n_bytes. Where the system has no such memory it is empty, and what is made in it says arena_too_small.
    explicit Arena(std::uint64_t n_bytes) noexcept : bytes_(take(n_bytes)), size_(bytes_ ? as_size(n_bytes) : 0) {
        if (bytes_) std::memset(bytes_.get(), 0, size_);
    }
    Arena(Arena&& other) noexcept : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
    Arena& operator=(Arena other) noexcept {
        bytes_.swap(other.bytes_);
        std::swap(size_, other.size_);
        return *this;
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::span<std::byte> bytes() noexcept { return {bytes_.get(), size_}; }
    operator std::span<std::byte>() noexcept { return bytes(); }  // as make_session and tokenize ask for it

private:
    static constexpr std::align_val_t kAlignment{kArenaAlignment};
    struct Release {
        void operator()(std::byte* bytes) const noexcept { ::operator delete(bytes, kAlignment); }
    };
    static constexpr std::size_t as_size(std::uint64_t n) noexcept { return static_cast<std::size_t>(n); }
    static std::byte* take(std::uint64_t n) noexcept {
        if (n == 0 || n > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
        return static_cast<std::byte*>(::operator new(as_size(n), kAlignment, std::nothrow));
    }

    std::unique_ptr<std::byte[], Release> bytes_;
    std::size_t size_ = 0;
};

}  // namespace FOVEA_API
