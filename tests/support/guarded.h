// Buffers between inaccessible pages, so that one byte read or written outside is a crash, and equality of bits.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

namespace fovea::testing {

/// Which end of the accessible pages the data touches. Tests use both: neither alone sees every stray access.
enum class Flush { begin, end };

/// n elements flush against an inaccessible page; all bytes start as 0xff (for floats: NaN). With an alignment above
/// the element's, Flush::end may leave a gap of less than it.
template<class T>
class Guarded {
public:
    explicit Guarded(std::size_t n, Flush flush = Flush::end, std::size_t alignment = alignof(T)) : n_(n) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t inner = (n * sizeof(T) + page) / page * page;
        mapped_ = inner + 2 * page;
        void* place = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED) std::abort();
        base_ = static_cast<std::byte*>(place);
        if (mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) != 0) std::abort();
        std::memset(base_ + page, 0xff, inner);
        const std::size_t gap = flush == Flush::begin ? 0 : (inner - n * sizeof(T)) / alignment * alignment;
        data_ = reinterpret_cast<T*>(base_ + page + gap);
    }
    ~Guarded() {
        if (base_) munmap(base_, mapped_);
    }
    Guarded(Guarded&& other) noexcept
        : base_(std::exchange(other.base_, nullptr)), mapped_(other.mapped_), data_(other.data_), n_(other.n_) {}
    Guarded& operator=(Guarded&&) = delete;

    [[nodiscard]] T* data() { return data_; }
    [[nodiscard]] const T* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return n_; }
    [[nodiscard]] T* begin() { return data_; }
    [[nodiscard]] T* end() { return data_ + n_; }
    [[nodiscard]] const T* begin() const { return data_; }
    [[nodiscard]] const T* end() const { return data_ + n_; }
    [[nodiscard]] T& operator[](std::size_t i) { return data_[i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const { return data_[i]; }
    operator std::span<const T>() const { return {data_, n_}; }

private:
    std::byte* base_;
    std::size_t mapped_;
    T* data_;
    std::size_t n_;
};

/// Whether two buffers hold the same bytes.
template<class T>
[[nodiscard]] bool same_bits(const Guarded<T>& a, const Guarded<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// The same, but any NaN equals any other: for the engine's internal results, whose NaN have no fixed bits.
[[nodiscard]] inline bool same_bits_or_nan(const Guarded<float>& a, const Guarded<float>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]) && !(a[i] != a[i] && b[i] != b[i]))
            return false;
    return true;
}

}  // namespace fovea::testing
