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

#include "fovea/plan.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// When the system hands over an arena's pages: at once, for they are zeroed, or each at its first use.
enum class Pages { at_once, at_use };

/// Bytes at an address that kArenaAlignment divides, released when it ends. Movable: the bytes stay where they are,
/// so a session in them goes on.
class Arena {
public:
    /// From here on an arena begins where a large page does, as systems have them.
    static constexpr std::uint64_t kLargeBytes = 4 << 20;

    Arena() = default;
    /// Takes exactly n_bytes. If the system has no such memory, the arena is empty, and make_… in it returns
    /// arena_too_small.
    /// Pages::at_use leaves those of a large arena to their first use; a small one is always zeroed.
    explicit Arena(std::uint64_t n_bytes, Pages pages = Pages::at_once) noexcept
        : bytes_(take(n_bytes)), size_(bytes_ ? static_cast<std::size_t>(n_bytes) : 0) {
        if (bytes_ && (pages == Pages::at_once || n_bytes <= kLargeBytes)) std::memset(bytes_.get(), 0, size_);
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
    struct Release {
        std::align_val_t alignment;
        Release() noexcept : Release(kArenaAlignment) {}
        explicit Release(std::size_t n) noexcept : alignment{n} {}
        void operator()(std::byte* bytes) const noexcept { ::operator delete(bytes, alignment); }
    };
    using Bytes = std::unique_ptr<std::byte[], Release>;
    static Bytes take(std::uint64_t n) noexcept {
        constexpr std::size_t kLargePage = 2 << 20;
        if (n == 0 || n > std::numeric_limits<std::size_t>::max() / 2) return Bytes();
        const Release release(n <= kLargeBytes ? kArenaAlignment : kLargePage);
        return Bytes(
            static_cast<std::byte*>(::operator new(static_cast<std::size_t>(n), release.alignment, std::nothrow)),
            release);
    }

    Bytes bytes_;
    std::size_t size_ = 0;
};

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
