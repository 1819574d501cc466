#include "fovea/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace fovea {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41 with its bits reversed
#if defined(__OPTIMIZE_SIZE__)
constexpr int kBits = 4;           // of a table's index: two steps for a byte, 64 bytes of tables, if flash is short
constexpr std::size_t kSlice = 1;  // bytes per step
#else
constexpr int kBits = 8;
constexpr std::size_t kSlice = 8;  // 8 KiB of tables, half of a small L1
#endif
constexpr std::size_t kEntries = std::size_t{1} << kBits;

using ByteTables = std::array<std::array<std::uint32_t, kEntries>, kSlice>;

/// tables[k][b]: the change that byte b makes to the remainder when k more bytes follow it (Kounavis and Berry 2005).
constexpr ByteTables make_tables() {
    ByteTables tables{};
    for (std::uint32_t b = 0; b < kEntries; ++b) {
        std::uint32_t remainder = b;
        for (int bit = 0; bit < kBits; ++bit) remainder = (remainder >> 1) ^ (remainder & 1 ? kPolynomial : 0);
        tables[0][b] = remainder;
    }
    for (std::size_t k = 1; k < kSlice; ++k)
        for (std::size_t b = 0; b < kEntries; ++b)
            tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xff];
    return tables;
}

constexpr ByteTables kByteTables = make_tables();
static_assert(std::endian::native == std::endian::little, "words are read as the file has them");

[[maybe_unused]] std::uint32_t load32(const std::byte* p) noexcept {
    std::uint32_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
    const ByteTables& t = kByteTables;
    const std::byte* p = bytes.data();
    std::size_t n = bytes.size();
    std::uint32_t crc = ~seed;
#if !defined(__OPTIMIZE_SIZE__)
    for (; n >= kSlice; p += kSlice, n -= kSlice) {
        const std::uint32_t low = load32(p) ^ crc, high = load32(p + 4);
        // The half that does not wait for the previous step comes first.
        crc = t[3][high & 0xff] ^ t[2][(high >> 8) & 0xff] ^ t[1][(high >> 16) & 0xff] ^ t[0][high >> 24] ^
              t[7][low & 0xff] ^ t[6][(low >> 8) & 0xff] ^ t[5][(low >> 16) & 0xff] ^ t[4][low >> 24];
    }
#endif
    for (; n; ++p, --n) {
        crc ^= std::to_integer<std::uint32_t>(*p);
        for (int bit = 0; bit < 8; bit += kBits) crc = (crc >> kBits) ^ t[0][crc & (kEntries - 1)];
    }
    return ~crc;
}

}  // namespace fovea
