// exp and log from +, −, ·, / alone, so that a conversion gives the same bytes whatever the host's C library is.
// Compiled without contraction. Both are within 4e-16 of the true value, relatively (log near 1: absolutely).
#pragma once
#include <bit>
#include <cstdint>

namespace fovea {

/// Natural logarithm of a normal, positive number: x = m·2^e with m near 1, ln m = 2·artanh((m − 1)/(m + 1)).
[[nodiscard]] constexpr double exact_log(double x) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    auto e = static_cast<std::int64_t>(bits >> 52) - 1023;
    double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);  // [1, 2)
    if (m > 1.4142135623730951) {
        m *= 0.5;
        ++e;
    }
    const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double sum = 0.0;
    for (int k = 27; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;  // |s| < 0.172: the next term is below 2^-70
    constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
    return static_cast<double>(e) * kLn2High + (2.0 * s * sum + static_cast<double>(e) * kLn2Low);
}

/// e^x for |x| < 700: x = k·ln 2 + r, the Taylor series of e^r, and k into the exponent.
[[nodiscard]] constexpr double exact_exp(double x) noexcept {
    constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
    const double scaled = x / (kLn2High + kLn2Low);
    const auto k = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    const double r = (x - static_cast<double>(k) * kLn2High) - static_cast<double>(k) * kLn2Low;
    double sum = 1.0;
    for (int i = 17; i >= 1; --i) sum = 1.0 + sum * r / i;
    return sum * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

}  // namespace fovea
