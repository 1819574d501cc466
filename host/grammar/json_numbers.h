// JSON's numbers between bounds, as expressions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "host/grammar/grammar.h"

namespace fovea::grammar {

/// value / 10^places
struct Decimal {
    std::int64_t value = 0;
    std::uint32_t places = 0;  ///< at most kMostPlaces
};
inline constexpr std::int64_t kMostInteger = 999'999'999'999'999;  // what every reader of JSON keeps exactly
inline constexpr std::uint32_t kMostPlaces = 14;                   // one digit is left behind those of the bounds

/// Bounds of a number, if any; `open` ones are not reached.
struct NumberBounds {
    std::optional<Decimal> low, high;
    bool open_low = false, open_high = false;

    [[nodiscard]] bool none() const { return !low && !high; }
};

/// Whole numbers within bounds, of at most fifteen digits.
[[nodiscard]] NodeId whole_within(Grammar& grammar, const NumberBounds& bounds);
/// Numbers within bounds, without an exponent. If a bound has places, at most fifteen digits count.
[[nodiscard]] NodeId number_within(Grammar& grammar, const NumberBounds& bounds);

/// Numbers within bounds that are a multiple of `step`; `whole`: without a point. Throws if it takes too many states.
[[nodiscard]] NodeId multiples_within(Grammar& grammar, const NumberBounds& bounds, const Decimal& step, bool whole,
                                      const std::string& place);

}  // namespace fovea::grammar
