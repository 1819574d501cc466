// exp and log from +, −, ·, / alone, so that a conversion gives the same bytes whatever the host's C library is.
// Compiled without contraction. Both are within 4e-16 of the true value, relatively (log near 1: absolutely).
#pragma once
#include <array>
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

/// The same, within 1e-15, where many are wanted: no division, and no step that waits for more than a few.
[[nodiscard]] constexpr double quick_exp(double x) noexcept {
    constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45, kLog2E = 1.4426950408889634;
    constexpr auto kFactorials = [] {  // 1/n!
        std::array<double, 14> inverse{1.0};
        for (int n = 1; n < 14; ++n) inverse[n] = inverse[n - 1] / n;
        return inverse;
    }();
    const double k = (x * kLog2E + 0x1.8p52) - 0x1.8p52;
    const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| < 0.35: the next term is below 2^-57
    double sum = kFactorials[13];
    for (int n = 12; n >= 0; --n) sum = sum * r + kFactorials[n];
    return sum * std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(k) + 1023) << 52);
}

}  // namespace fovea
