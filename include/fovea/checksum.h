// The checksum of a Fovea file's sections, public for programs that write files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// CRC-32C (Castagnoli et al. 1993; polynomial 0x1edc6f41, reflected, inverted before and after; RFC 3720, appendix
/// B.4). Composes: crc32c(b, crc32c(a)) is the checksum of a followed by b, so a stream needs no buffer.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
