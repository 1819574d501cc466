// Vectors whose elements begin where kernels and files want them.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace fovea {

template<class T>
struct Aligned64 {
    using value_type = T;
    Aligned64() = default;
    template<class U>
    Aligned64(const Aligned64<U>&) noexcept {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete (p, std::align_val_t{64}); }
    bool operator==(const Aligned64&) const = default;
};
/// Bytes aligned as open_model and make_session want them.
using AlignedBytes = std::vector<std::byte, Aligned64<std::byte>>;

}  // namespace fovea
