// JSON's numbers that are multiples of a step.
#include <vector>

#include "host/grammar/json_merge.h"
#include "host/grammar/json_numbers.h"
#include "host/grammar/language.h"

namespace fovea::grammar {
namespace {

constexpr std::int64_t kMostRemainders = 1000;  // states, by the places behind the point

[[nodiscard]] CodeSet digit(std::int64_t d) {
    const auto code = static_cast<std::uint32_t>('0' + d);
    return {{code, code}};
}

/// Numbers by their digits' remainder: without bounds, and with any zeros before them.
Language multiples(const Decimal& step) {
    Grammar g;
    Graph graph;
    const std::int64_t n = step.value;
    std::vector<std::int64_t> scale(step.places + 1,
                                    1);  // of digits that have so many places: what is missing to all of them
    for (std::uint32_t places = step.places; places-- > 0;) scale[places] = scale[places + 1] * 10 % n;
    const auto state = [&](std::uint32_t places, std::int64_t rest) {
        return static_cast<std::uint32_t>(2 + places * n + rest);
    };
    std::vector<NodeId> digits;
    for (std::int64_t d = 0; d < 10; ++d) digits.push_back(g.set(digit(d)));
    const NodeId minus = g.bytes("-"), point = g.bytes(".");
    graph.accepts.assign(2 + static_cast<std::size_t>(n) * (step.places + 1), false);
    graph.edges.push_back({0, 1, minus});
    for (std::int64_t d = 0; d < 10; ++d)
        for (const std::uint32_t from : {0u, 1u}) graph.edges.push_back({from, state(0, d % n), digits[d]});
    for (std::uint32_t places = 0; places <= step.places; ++places)
        for (std::int64_t rest = 0; rest < n; ++rest) {
            const std::uint32_t from = state(places, rest);
            graph.accepts[from] = rest * scale[places] % n == 0;
            for (std::int64_t d = 0; d < 10; ++d) {
                const std::int64_t next = (rest * 10 + d) % n;
                if (places == 0) graph.edges.push_back({from, state(0, next), digits[d]});
                if (places > 0 && places < step.places)
                    graph.edges.push_back({from, state(places + 1, next), digits[d]});
            }
        }
    // Behind the point the first place follows at once.
    for (std::int64_t rest = 0; step.places > 0 && rest < n; ++rest) {
        const auto behind = static_cast<std::uint32_t>(graph.accepts.size());
        graph.accepts.push_back(false);
        graph.edges.push_back({state(0, rest), behind, point});
        for (std::int64_t d = 0; d < 10; ++d) graph.edges.push_back({behind, state(1, (rest * 10 + d) % n), digits[d]});
    }
    return Language::of(g, g.graph(std::move(graph))).minimal();
}

/// What a double keeps: with places, at most fifteen digits in all.
Language exact_numbers(std::uint32_t places) {
    Grammar g;
    const NodeId digits = g.set({{'0', '9'}});
    const NodeId behind = g.sequence({g.bytes("."), g.repeat(digits, 1, places)});
    return Language::of(g,
                        g.sequence({g.optional(g.bytes("-")), g.repeat(digits, 1, 15 - places), g.optional(behind)}));
}

/// Numbers of at most fifteen digits before the point.
NodeId any_number(Grammar& g, std::uint32_t places) {
    const NodeId digits = g.set({{'0', '9'}});
    const NodeId whole = g.sequence({g.optional(g.bytes("-")), g.set({{'1', '9'}}), g.repeat(digits, 0, 14)});
    const NodeId behind = g.sequence({g.bytes("."), g.repeat(digits, 1, std::max(places, 1u))});
    return g.sequence({g.choice({g.bytes("0"), whole}), g.repeat(behind, 0, places ? 1 : 0)});
}

}  // namespace

NodeId multiples_within(Grammar& grammar, const NumberBounds& bounds, const Decimal& step, bool whole,
                        const std::string& place) {
    if (step.value > kMostRemainders / (step.places + 1))
        refuse(place, "a step of at most " + std::to_string(kMostRemainders) + " by its digits",
               std::to_string(step.value));
    const Language out = at_place(place, [&] {
        Grammar g;
        const NodeId numbers = bounds.none() ? any_number(g, whole ? 0 : step.places)
                               : whole       ? whole_within(g, bounds)
                                             : number_within(g, bounds);
        const Language out = multiples(step) & Language::of(g, numbers);
        return step.places ? out & exact_numbers(step.places) : out;
    });
    return out.write(grammar, [&](const CodeSet& set) { return grammar.set(set); });
}

}  // namespace fovea::grammar
