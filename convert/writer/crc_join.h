// Checksums of parts, made by several threads, joined to that of the whole.
#pragma once
#include <cstdint>

namespace fovea {

/// The CRC-32C of a followed by b, of their checksums and b's length: what crc32c(b, crc32c(a)) is.
[[nodiscard]] std::uint32_t joined_crc32c(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t b_bytes) noexcept;

}  // namespace fovea
