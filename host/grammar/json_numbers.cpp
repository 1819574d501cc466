#include "host/grammar/json_numbers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace fovea::grammar {
namespace {

constexpr std::uint32_t kMostDigits = 15;  // behind a point

/// From `low` to `high` units of 10^-places.
struct Range {
    std::int64_t low, high;
    bool open_low, open_high;
    std::uint32_t places;
};

/// In units of 10^-places. Numbers beyond kMostInteger become kMostInteger + 1.
std::int64_t in_units(const Decimal& decimal, std::uint32_t places) {
    std::int64_t value = decimal.value;
    for (std::uint32_t i = decimal.places; i < places && std::abs(value) <= kMostInteger; ++i) value *= 10;
    return std::clamp(value, -kMostInteger - 1, kMostInteger + 1);
}

Range range_of(const NumberBounds& bounds) {
    const auto places_of = [](const std::optional<Decimal>& d) { return d ? d->places : 0; };
    const std::uint32_t places = std::max(places_of(bounds.low), places_of(bounds.high));
    Range range{-kMostInteger, kMostInteger, bounds.open_low, bounds.open_high, places};
    if (bounds.low) range.low = std::max(range.low, in_units(*bounds.low, places));
    if (bounds.high) range.high = std::min(range.high, in_units(*bounds.high, places));
    return range;
}

class Numbers {
public:
    explicit Numbers(Grammar& grammar) : g(grammar) {}

    /// Numbers of the range with `places` places, which are fewer than the range's unless it has none.
    NodeId with_places(const Range& range, std::uint32_t places) {
        std::int64_t step = 1;
        for (std::uint32_t i = places; i < range.places; ++i) step *= 10;
        std::int64_t low = range.low / step, high = range.high / step;  // towards zero
        if (low * step < range.low || (range.open_low && low * step == range.low)) ++low;
        if (high * step > range.high || (range.open_high && high * step == range.high)) --high;
        std::vector<NodeId> ways;
        if (low <= high && high >= 0) ways.push_back(decimals(std::max<std::int64_t>(low, 0), high, places));
        if (low <= high && low < 0)
            ways.push_back(g.sequence({g.bytes("-"), decimals(std::max<std::int64_t>(-high, 1), -low, places)}));
        return g.choice(std::move(ways));
    }

    /// Numbers with a point and all of the range's places, or more.
    NodeId with_all_places(const Range& r) {
        std::vector<NodeId> ways;
        if (r.high >= 0)
            ways.push_back(
                between({std::max<std::int64_t>(r.low, 0), r.high, r.open_low && r.low >= 0, r.open_high, r.places}));
        if (r.low < 0)
            ways.push_back(g.sequence({g.bytes("-"), between({std::max<std::int64_t>(-r.high, 0), -r.low,
                                                              r.open_high && r.high <= 0, r.open_low, r.places})}));
        return g.choice(std::move(ways));
    }

private:
    NodeId digit(char from, char to) {
        return g.set({{static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)}});
    }
    NodeId digits(std::uint32_t min, std::uint32_t max) { return g.repeat(digit('0', '9'), min, max); }

    /// n digits of any kind, the last `places` of them behind a point.
    NodeId any_digits(std::uint32_t n, std::uint32_t places) {
        if (places == 0 || n < places) return digits(n, n);
        return g.sequence({digits(n - places, n - places), g.bytes("."), digits(places, places)});
    }

    /// Digits from `low` to `high`, which have the same length; the last `places` of them behind a point.
    NodeId same_length(const std::string& low, const std::string& high, std::uint32_t places) {
        const auto n = static_cast<std::uint32_t>(low.size());
        if (n == 0) return g.bytes("");
        if (n == places) return g.sequence({g.bytes("."), same_length(low, high, 0)});
        const std::string zeros(n - 1, '0'), nines(n - 1, '9'), low_rest = low.substr(1), high_rest = high.substr(1);
        if (low[0] == high[0]) return g.sequence({digit(low[0], low[0]), same_length(low_rest, high_rest, places)});
        std::vector<NodeId> ways;
        char from = low[0], to = high[0];
        if (low_rest != zeros) {
            ways.push_back(g.sequence({digit(from, from), same_length(low_rest, nines, places)}));
            ++from;
        }
        if (high_rest != nines) {
            ways.push_back(g.sequence({digit(to, to), same_length(zeros, high_rest, places)}));
            --to;
        }
        if (from <= to) ways.push_back(g.sequence({digit(from, to), any_digits(n - 1, places)}));
        return g.choice(std::move(ways));
    }

    /// From `low` to `high` units of 10^-places, 0 <= low <= high, with that many places.
    NodeId decimals(std::int64_t low, std::int64_t high, std::uint32_t places) {
        const auto padded = [&](std::int64_t number) {
            std::string text = std::to_string(number);
            return text.size() > places ? text : std::string(places + 1 - text.size(), '0') + text;
        };
        std::vector<NodeId> ways;
        std::string first = padded(low);
        const std::string last = padded(high);
        while (first.size() < last.size()) {
            ways.push_back(same_length(first, std::string(first.size(), '9'), places));
            first = "1" + std::string(first.size(), '0');
        }
        ways.push_back(same_length(first, last, places));
        return g.choice(std::move(ways));
    }

    /// Numbers with a point and the range's places or more, 0 <= low.
    NodeId between(const Range& r) {
        if (r.low > r.high || (r.low == r.high && (r.open_low || r.open_high))) return g.choice({});
        const auto these = [&](std::int64_t low, std::int64_t high) { return decimals(low, high, r.places); };
        std::vector<NodeId> ways;
        if (!r.open_high) {
            const NodeId zeros = g.repeat(digit('0', '0'), r.places == 0, kMostDigits - r.places);
            ways.push_back(g.sequence({these(r.high, r.high), point(r.places), zeros}));
        }
        if (r.high - r.low == 1) {
            ways.push_back(g.sequence({these(r.low, r.low), fraction(r.high, r.open_low, r.open_high, r.places)}));
            return g.choice(std::move(ways));
        }
        if (r.open_low) ways.push_back(g.sequence({these(r.low, r.low), fraction(r.low + 1, true, false, r.places)}));
        if (r.open_high)
            ways.push_back(g.sequence({these(r.high - 1, r.high - 1), fraction(r.high, false, true, r.places)}));
        if (const std::int64_t first = r.low + r.open_low, last = r.high - 1 - r.open_high; first <= last)
            ways.push_back(g.sequence({these(first, last), fraction(r.high, false, false, r.places)}));
        return g.choice(std::move(ways));
    }

    NodeId point(std::uint32_t places) { return g.bytes(places ? "" : "."); }

    /// The digits that may follow `places` places of a number below `above` units, with a point before them if there
    /// are no places. `not_whole`: the number is so far above its first digits that a reader does not round it to them;
    /// `not_next`: it is as far below one unit more. The larger a double, the fewer digits it has behind the point.
    NodeId fraction(std::int64_t above, bool not_whole, bool not_next, std::uint32_t places) {
        const std::uint32_t most = kMostDigits - places;
        if (!not_whole && !not_next) return g.sequence({point(places), digits(places == 0, most)});
        const double largest = static_cast<double>(above) * std::pow(10.0, -static_cast<double>(places));
        std::uint32_t n = most;  // places of the digits that differ
        while (n > 0 && std::pow(10.0, -static_cast<double>(places + n)) < std::nextafter(largest, HUGE_VAL) - largest)
            --n;
        const NodeId rest = digits(0, most - 1);
        std::vector<NodeId> ways;
        if (!not_whole && places > 0) ways.push_back(g.bytes(""));
        // Digits that begin with `edge`: all or, where only that digit repeated is too near, those in which another follows.
        const auto from_edge = [&](char edge, bool is_too_near, char low, char high) {
            if (!is_too_near)
                ways.push_back(g.sequence({digit(edge, edge), rest}));
            else if (n > 1)
                ways.push_back(g.sequence({g.repeat(digit(edge, edge), 1, n - 1), digit(low, high), rest}));
        };
        if (n > 0) {
            ways.push_back(g.sequence({digit('1', '8'), rest}));
            from_edge('0', not_whole, '1', '9');
            if (not_next) ways.push_back(g.repeat(digit('9', '9'), 1, n));
            from_edge('9', not_next, '0', '8');
        }
        return g.sequence({point(places), g.choice(std::move(ways))});
    }

    Grammar& g;
};

}  // namespace

NodeId whole_within(Grammar& grammar, const NumberBounds& bounds) {
    return Numbers(grammar).with_places(range_of(bounds), 0);
}

NodeId number_within(Grammar& grammar, const NumberBounds& bounds) {
    const Range range = range_of(bounds);
    Numbers numbers(grammar);
    std::vector<NodeId> ways;
    for (std::uint32_t places = 0; places < std::max(range.places, 1u); ++places)
        ways.push_back(numbers.with_places(range, places));
    ways.push_back(numbers.with_all_places(range));
    return grammar.choice(std::move(ways));
}

}  // namespace fovea::grammar
