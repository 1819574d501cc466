#include "convert/writer/crc_join.h"

namespace fovea {
namespace {

// Polynomials over two elements, modulo CRC-32C's; bit 31 is the coefficient of x^0.
constexpr std::uint32_t kPolynomial = 0x82f63b78, kOne = 0x80000000, kByte = kOne >> 8;  // kByte: x^8

std::uint32_t product(std::uint32_t a, std::uint32_t b) noexcept {
    std::uint32_t sum = 0;
    for (; a; a <<= 1) {
        if (a & kOne) sum ^= b;
        b = b >> 1 ^ (b & 1 ? kPolynomial : 0);  // times x
    }
    return sum;
}

}  // namespace

// b_bytes zeros behind a multiply its remainder by x^(8·b_bytes); the rest is b's own, for remainders add up, and the
// inversions before and after cancel.
std::uint32_t joined_crc32c(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t b_bytes) noexcept {
    std::uint32_t shifted = crc_a;
    for (std::uint32_t power = kByte; b_bytes; b_bytes >>= 1, power = product(power, power))
        if (b_bytes & 1) shifted = product(power, shifted);
    return shifted ^ crc_b;
}

}  // namespace fovea
