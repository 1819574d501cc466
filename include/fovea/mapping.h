// A file mapped read-only, for programs with an operating system. Everything else in the library takes bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/status.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// Bytes of a file, and where they lie in a mapping of its parts.
struct MappedPart {
    std::uint64_t in_file = 0, in_mapping = 0, bytes = 0;
};
/// Both places of a part are multiples of it, where a page begins on any machine.
inline constexpr std::uint64_t kPartAlignment = 65536;

/// Owns a read-only mapping; movable. An empty file gives empty bytes. Replace a mapped file by renaming another over it:
/// if it is shortened in place, its pages go away, and reading them ends the process.
class Mapping {
public:
    Mapping() noexcept = default;
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping();
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

private:
    friend Status map_file(const char* path, Mapping& mapping) noexcept;
    friend Status map_parts(const char* path, std::span<const MappedPart> parts, std::size_t size,
                            Mapping& mapping) noexcept;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Maps the regular file at `path`. Errors, `mapping` unchanged: io_error with the system's error number in `had`,
/// `what` saying which step failed ("open", "read the size", "not a regular file", "map").
[[nodiscard]] Status map_file(const char* path, Mapping& mapping) noexcept;

/// Maps parts of the regular file at `path` into `size` bytes, which are zero elsewhere and take no memory there. The parts lie in the
/// file and in the mapping. Errors: as map_file's, bad_argument; unsupported on Windows.
[[nodiscard]] Status map_parts(const char* path, std::span<const MappedPart> parts, std::size_t size,
                               Mapping& mapping) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
