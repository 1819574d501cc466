#include "host/grammar/json_parts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "engine/format/utf8.h"
#include "host/grammar/json_merge.h"

namespace fovea::grammar {
namespace {

const CodeSet kPlain{{' ', '!'}, {'#', '['}, {']', kLastCode}};  // what a string has as it is (RFC 8259, section 7)

struct Format {
    const char *name, *pattern;
};
// February ends on the 28th, so that every date is one.
#define FOVEA_DATE \
    "[12]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))"
#define FOVEA_TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define FOVEA_HOST "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?){0,4}"
#define FOVEA_SITE "(https?|ftp)://" FOVEA_HOST "(:[1-9]\\d{0,3})?"
#define FOVEA_MAIL "[A-Za-z0-9]{1,32}([._+-][A-Za-z0-9]{1,32}){0,4}@" FOVEA_HOST "\\.[a-z]{2,12}"
#define FOVEA_URI FOVEA_SITE "(/[/A-Za-z0-9._~-]*)?(\\?[A-Za-z0-9._~=&-]*)?"
#define FOVEA_PATH "/?([A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*/?)?(\\?[A-Za-z0-9._~=&-]*)?(#[A-Za-z0-9._~/-]*)?"
#define FOVEA_UNITS "(([A-Za-z0-9 _:;,<>=!@#%&'/.-]|\\\\[dDsSwW.\\\\+*?()|^$]|\\[\\^?(a-z|A-Z|0-9|[_ .])+\\])[*+?]?)+"
#define FOVEA_POINTER "(/[A-Za-z0-9._%+@ -]*)*"
#define FOVEA_OCTET "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
constexpr Format kFormats[] = {
    {"date", "^" FOVEA_DATE "$"},
    {"time", "^" FOVEA_TIME "$"},
    {"date-time", "^" FOVEA_DATE "T" FOVEA_TIME "$"},
    {"duration", "^P(\\d{1,4}D|T\\d{1,4}[HMS]|\\d{1,4}W|\\d{1,4}Y)$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"email", "^" FOVEA_MAIL "$"},
    {"idn-email", "^" FOVEA_MAIL "$"},
    {"hostname", "^" FOVEA_HOST "$"},
    {"idn-hostname", "^[a-z0-9]{1,15}(-[a-z0-9]{1,15}){0,3}(\\.[a-z0-9]{1,15}(-[a-z0-9]{1,15}){0,3}){0,4}$"},
    {"ipv4", "^" FOVEA_OCTET "(\\." FOVEA_OCTET "){3}$"},
    {"ipv6", "^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}$"},
    {"uri", "^" FOVEA_URI "$"},
    {"iri", "^" FOVEA_URI "$"},
    {"uri-reference", "^(" FOVEA_URI "|" FOVEA_PATH ")$"},
    {"iri-reference", "^(" FOVEA_URI "|" FOVEA_PATH ")$"},
    {"uri-template", "^" FOVEA_SITE "(/([A-Za-z0-9._~-]|\\{[A-Za-z0-9_]+\\})*)*$"},
    {"json-pointer", "^" FOVEA_POINTER "$"},
    {"relative-json-pointer", "^(0|[1-9]\\d{0,3})(#|" FOVEA_POINTER ")$"},
    {"regex", "^\\^?(" FOVEA_UNITS "|\\(" FOVEA_UNITS "(\\|" FOVEA_UNITS ")*\\)[*+?]?)*\\$?$"},
};
#undef FOVEA_SITE
#undef FOVEA_MAIL
#undef FOVEA_URI
#undef FOVEA_PATH
#undef FOVEA_UNITS
#undef FOVEA_POINTER
#undef FOVEA_DATE
#undef FOVEA_TIME
#undef FOVEA_HOST
#undef FOVEA_OCTET

}  // namespace

const char* pattern_of_format(const Json& name, const std::string& place) {
    if (!name.is_string()) refuse_value(place, "a name", name);
    for (const Format& format : kFormats)
        if (name == format.name) return format.pattern;
    return nullptr;
}

JsonParts::JsonParts(Grammar& grammar, bool compact) : grammar_(grammar) {
    Grammar& g = grammar_;
    const auto shared = [&](const char* name, NodeId body) {
        const RuleId rule = g.add_rule(name, body);
        g.rules[rule].shared = true;
        return rule;
    };
    const NodeId line = g.sequence({g.bytes("\n"), g.repeat(g.set({{' ', ' '}, {'\t', '\t'}}), 0, 20)});
    space_ = shared("space", compact ? g.bytes("") : g.choice({g.bytes(""), g.bytes(" "), line}));
    g.rules[space_].shared = !compact;

    const NodeId hex = g.set({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
    const NodeId low = g.set({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});  // no surrogates: those are
    const NodeId d = g.sequence({g.set({{'D', 'D'}, {'d', 'd'}}), g.set({{'0', '7'}})});     // halves of characters
    const NodeId unit = g.sequence({g.choice({g.sequence({low, hex}), d}), hex, hex});
    const NodeId named =
        g.set({{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}});
    const NodeId escape = g.sequence({g.bytes("\\"), g.choice({named, g.sequence({g.bytes("u"), unit})})});
    character_ = g.choice({g.set(kPlain), escape});
    string_ = shared("string", quoted(g.repeat(character_, 0, kNoLimit)));

    other_ = shared("name", g.repeat(g.set(kPlain), 1, kNoLimit));

    const NodeId whole = g.choice({g.bytes("0"), g.sequence({g.set({{'1', '9'}}), digits(0, 14)})});
    const NodeId minus = g.optional(g.bytes("-"));
    integer_ = shared("integer", g.choice({g.bytes("0"), g.sequence({minus, g.set({{'1', '9'}}), digits(0, 14)})}));
    const NodeId fraction = g.sequence({g.bytes("."), digits(1, 15)});
    const NodeId exponent =
        g.sequence({g.set({{'E', 'E'}, {'e', 'e'}}), g.optional(g.set({{'+', '+'}, {'-', '-'}})), digits(1, 2)});
    number_ = shared("number", g.sequence({minus, whole, g.optional(fraction), g.optional(exponent)}));

    value_ = shared("value", 0);
    const NodeId member = g.sequence({g.rule(string_), g.bytes(":"), space(), g.rule(value_)});
    const NodeId members = object(g.list({member}, std::string(1, kAnyNumber), comma()));
    const NodeId body = g.choice({members, array({}, g.rule(value_), 0, kNoLimit), g.rule(string_), g.rule(number_),
                                  g.bytes("true"), g.bytes("false"), g.bytes("null")});
    g.rules[value_].body = body;
}

NodeId JsonParts::comma() { return grammar_.sequence({grammar_.bytes(","), space()}); }
NodeId JsonParts::quoted(NodeId inside) {
    return grammar_.sequence({grammar_.bytes("\""), inside, grammar_.bytes("\"")});
}
NodeId JsonParts::digits(std::uint32_t min, std::uint32_t max) {
    return grammar_.repeat(grammar_.set({{'0', '9'}}), min, max);
}

NodeId JsonParts::object(NodeId members) {
    return grammar_.sequence({grammar_.bytes("{"), space(), members, space(), grammar_.bytes("}")});
}

NodeId JsonParts::members(const std::vector<NodeId>& all, const std::string& kinds, bool one_more) {
    Grammar& g = grammar_;
    if (!one_more) return g.list(all, kinds, comma());
    std::vector<NodeId> members, ways;
    for (const NodeId member : all) members.push_back(g.shared(member, "member"));
    for (std::size_t first = 0; first < all.size(); ++first) {  // the first optional one present
        if (kinds[first] == kRequired) continue;
        std::vector<NodeId> items;
        std::string kinds_here;
        const auto add = [&](std::size_t i, char kind) {
            items.push_back(members[i]);
            kinds_here += kind;
        };
        for (std::size_t i = 0; i < first; ++i)
            if (kinds[i] == kRequired) add(i, kRequired);
        add(first, kRequired);
        for (std::size_t i = first + (kinds[first] == kOptional); i < all.size(); ++i) add(i, kinds[i]);
        ways.push_back(g.list(std::move(items), std::move(kinds_here), comma()));
    }
    return g.choice(std::move(ways));
}

std::optional<NodeId> JsonParts::counted_list(const std::vector<NodeId>& all, const std::string& kinds,
                                              std::uint32_t min, std::uint32_t max) {
    constexpr std::size_t kMostEdges = 20'000;
    struct Place {
        std::size_t next;           // of `all`
        std::uint32_t n, n_others;  // that are there, those of any number apart
        auto operator<=>(const Place&) const = default;
    };
    Graph graph;
    std::map<Place, std::uint32_t> numbers;
    std::vector<Place> places;
    const auto number_of = [&](Place place) {
        if (max == kNoLimit) {
            place.n = std::min(place.n, std::max(min, 1u));  // more make no difference
            place.n_others = std::min(place.n_others, 1u);
        }
        const auto [known, is_new] = numbers.try_emplace(place, static_cast<std::uint32_t>(places.size()));
        if (is_new) places.push_back(place);
        return known->second;
    };
    std::vector<NodeId> first, further;
    for (const NodeId one : all) {
        first.push_back(grammar_.shared(one, "member"));
        further.push_back(grammar_.sequence({comma(), first.back()}));
    }
    const NodeId nothing = grammar_.bytes("");
    (void)number_of({0, 0, 0});
    for (std::uint32_t at = 0; at < places.size(); ++at) {
        const Place here = places[at];
        const auto left = kinds.begin() + static_cast<std::ptrdiff_t>(here.next);
        graph.accepts.push_back(std::find(left, kinds.end(), kRequired) == kinds.end() &&
                                here.n + std::min(here.n_others, 1u) >= min);
        if (here.next == all.size()) continue;
        const std::size_t i = here.next;
        const bool again = kinds[i] == kAnyNumber;
        if (max == kNoLimit || here.n + here.n_others < max) {
            const Place there{again ? i : i + 1, here.n + !again, here.n_others + again};
            graph.edges.push_back({at, number_of(there), here.n + here.n_others ? further[i] : first[i]});
        }
        if (kinds[i] != kRequired) graph.edges.push_back({at, number_of({i + 1, here.n, here.n_others}), nothing});
        if (graph.edges.size() > kMostEdges) return std::nullopt;
    }
    return grammar_.graph(std::move(graph));
}

NodeId JsonParts::array(const std::vector<NodeId>& first, std::optional<NodeId> item, std::uint32_t min,
                        std::uint32_t max) {
    Grammar& g = grammar_;
    std::vector<NodeId> items;
    std::string kinds;
    for (std::size_t i = 0; i < first.size() && i < max; ++i) {
        items.push_back(first[i]);
        kinds += i < min ? kRequired : kOptional;
    }
    // An optional item is left out only with all that follow it: what follows is nested.
    NodeId rest = g.bytes("");
    const auto n_first = static_cast<std::uint32_t>(items.size());
    if (item && max > n_first) {
        const std::uint32_t least = min > n_first ? min - n_first : 0,
                            most = max == kNoLimit ? kNoLimit : max - n_first;
        if (n_first == 0) {
            const NodeId one = g.shared(*item, "item"), next = g.sequence({comma(), one});
            rest = g.sequence({one, g.repeat(next, least ? least - 1 : 0, most == kNoLimit ? kNoLimit : most - 1)});
            if (least == 0) rest = g.optional(rest);
        } else {
            rest = g.repeat(g.sequence({comma(), *item}), least, most);
        }
    }
    for (std::size_t i = items.size(); i-- > 0;) {
        rest = g.sequence({items[i], rest});
        if (i > 0) rest = g.sequence({comma(), rest});
        if (kinds[i] == kOptional) rest = g.optional(rest);
    }
    return g.sequence({g.bytes("["), space(), rest, space(), g.bytes("]")});
}

NodeId JsonParts::unique_array(const std::vector<std::string>& texts, std::uint32_t min, std::uint32_t max) {
    Grammar& g = grammar_;
    const auto n = static_cast<std::uint32_t>(texts.size());
    if (min > n || min > max) return g.choice({});
    // The continuation after each set of texts so far; bit i stands for texts[i].
    std::vector<NodeId> after(std::size_t{1} << n, 0);
    for (std::size_t set = after.size(); set-- > 0;) {
        const auto n_there = static_cast<std::uint32_t>(std::popcount(set));
        std::vector<NodeId> ways;
        if (n_there >= min) ways.push_back(g.bytes(""));
        for (std::uint32_t i = 0; i < n && n_there < max; ++i) {
            if (set >> i & 1) continue;
            const NodeId next = g.sequence({g.bytes(texts[i]), after[set | std::size_t{1} << i]});
            ways.push_back(set ? g.sequence({comma(), next}) : next);
        }
        after[set] = g.rule(g.add_rule("items", g.choice(std::move(ways))));
    }
    return g.sequence({g.bytes("["), space(), after[0], space(), g.bytes("]")});
}

// ---- strings -------------------------------------------------------------------------------------------------------

/// The rule of strings of a kind: one that comes again is a rule of its own, so that its masks are made once.
NodeId JsonParts::kind(const std::string& pattern, const SizeBounds& bounds, const std::function<NodeId()>& make) {
    const auto [known, is_new] = kinds_.try_emplace({pattern, bounds.min, bounds.max}, 0);
    if (is_new)
        known->second = grammar_.add_rule("string", make());
    else
        grammar_.rules[known->second].shared = true;
    return grammar_.rule(known->second);
}

NodeId JsonParts::string(const SizeBounds& bounds) {
    if (bounds.min == 0 && bounds.max == kNoLimit) return grammar_.rule(string_);
    return kind("", bounds, [&] { return quoted(grammar_.repeat(character_, bounds.min, bounds.max)); });
}

NodeId JsonParts::write_set(const CodeSet& set) {
    Grammar& g = grammar_;
    std::vector<NodeId> ways;
    if (CodeSet plain = intersect(set, kPlain); !plain.empty()) ways.push_back(g.set(std::move(plain)));
    for (const CodeRange& range : intersect(set, CodeSet{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}))
        for (std::uint32_t code = range.low; code <= range.high; ++code) {
            static constexpr std::string_view kCodes = "\"\\\b\f\n\r\t", kNames = "\"\\bfnrt";
            char escaped[8];
            const std::size_t named = kCodes.find(static_cast<char>(code));
            if (named != kCodes.npos)
                std::snprintf(escaped, sizeof escaped, "\\%c", kNames[named]);
            else
                std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(code));
            ways.push_back(g.bytes(escaped));
        }
    return g.choice(std::move(ways));
}

NodeId JsonParts::pattern(const std::string& pattern, const SizeBounds& bounds, const std::string& place) {
    return kind("^" + pattern, bounds, [&] {
        const RegexPart part = at_place(place, [&] { return add_regex(grammar_, pattern, "", write_set_, true); });
        const bool has_bounds = part.min_length >= bounds.min && part.max_length <= bounds.max;
        return quoted(has_bounds ? part.node : narrowed(pattern, part, bounds, place));
    });
}

/// A pattern with lengths. Exactly so if one repetition makes all the difference, or if few states tell them apart; else each of
/// several repetitions has a share of what is left.
NodeId JsonParts::narrowed(const std::string& pattern, const RegexPart& part, const SizeBounds& bounds,
                           const std::string& place) {
    Grammar& g = grammar_;
    const bool fixed = part.fixed_length == part.min_length, long_enough = part.min_length >= bounds.min;
    if (part.repeats.size() == 1 && fixed && (long_enough || part.one_way)) {
        Node& repeat = g.nodes[part.repeats[0]];
        const std::uint64_t others = part.fixed_length - repeat.min;
        if (part.fixed_length > bounds.max) return g.choice({});
        const std::uint64_t min = std::max<std::uint64_t>(part.min_length, bounds.min) - others;
        if (bounds.max != kNoLimit)
            repeat.max = static_cast<std::uint32_t>(std::min<std::uint64_t>(repeat.max, bounds.max - others));
        if (min > repeat.max) return g.choice({});
        repeat.min = static_cast<std::uint32_t>(min);
        return part.node;
    }
    const Language language = at_place(place, [&] { return language_of_regex(pattern, Dialects::all); });
    count_work(language, place);
    if (const auto exact = of_lengths(language, bounds, place)) return exact->write(g, write_set_);
    if (part.repeats.empty() || !long_enough || part.fixed_length > bounds.max)
        return shorter(language, bounds, place).write(g, write_set_);
    std::vector<NodeId> repeats = part.repeats;
    const auto room = [&](NodeId id) { return g.nodes[id].max - g.nodes[id].min; };
    std::sort(repeats.begin(), repeats.end(), [&](NodeId a, NodeId b) { return room(a) < room(b); });
    auto left = static_cast<std::uint32_t>(bounds.max - part.fixed_length);
    for (std::size_t i = 0; i < repeats.size(); ++i) {  // those that need less leave more
        const std::uint32_t more = std::min(room(repeats[i]), left / static_cast<std::uint32_t>(repeats.size() - i));
        g.nodes[repeats[i]].max = g.nodes[repeats[i]].min + more;
        left -= more;
    }
    return part.node;
}

std::optional<Language> JsonParts::of_lengths(const Language& language, const SizeBounds& bounds,
                                              const std::string& place) {
    constexpr std::size_t kMostCost = 6000;
    constexpr std::uint32_t kMostLength = 4000;
    if (bounds.min == 0 && bounds.max == kNoLimit) return language;
    if ((bounds.max == kNoLimit ? bounds.min : bounds.max) > kMostLength) return std::nullopt;
    auto out = language.within(bounds.min, bounds.max, kMostCost);
    if (!out) count_work(8 * kMostCost, place);
    return out;
}

Language JsonParts::shorter(const Language& language, SizeBounds bounds, const std::string& place) {
    bounds.max = std::min(bounds.max, std::max(bounds.min, 1024u));
    for (;; bounds.max /= 2) {
        if (bounds.max < bounds.min || bounds.max == 0)
            refuse(place, "a pattern whose texts of these lengths a few thousand states tell apart", "another");
        if (const auto out = of_lengths(language, bounds, place); out && !out->empty()) return *out;
    }
}

void JsonParts::count_work(const Language& language, const std::string& place) {
    count_work(language.cost() + 100, place);
}

void JsonParts::count_work(std::size_t n_states, const std::string& place) {
    constexpr std::size_t kMostWork = 1'000'000;
    work_ += n_states;
    if (work_ > kMostWork) refuse(place, "a smaller schema", "one whose patterns and lengths take too many states");
}

NodeId JsonParts::texts(const Language& language, const SizeBounds& bounds, const std::string& place) {
    count_work(language, place);
    const auto exact = of_lengths(language, bounds, place);
    return quoted((exact ? *exact : shorter(language, bounds, place)).write(grammar_, write_set_));
}

NodeId JsonParts::item(const Language& texts, Item item, const std::string& name, const std::string& place) {
    count_work(texts, place);
    if (!texts.is_endless()) refuse(place, "strings that may go on without end as items that come once", "others");
    const auto [known, is_new] = items_.try_emplace(name, 0);
    if (is_new) known->second = grammar_.add_rule("item", texts.write(grammar_, write_set_));
    return quoted(grammar_.rule(known->second, item));
}

NodeId JsonParts::other_key(const std::vector<std::string>& names) {
    Grammar& g = grammar_;
    const NodeId any = g.repeat(g.set(kPlain), 0, kNoLimit);
    // `depth` characters are shared by all of `names`, which are sorted.
    const auto rest = [&](const auto& self, const std::vector<std::string>& left, std::uint32_t depth) -> NodeId {
        std::map<std::uint32_t, std::vector<std::string>> next;
        bool is_name = false;
        for (const std::string& name : left) {
            if (name.empty()) {
                is_name = true;
                continue;
            }
            const Character c = first_character(name);
            next[c.code].push_back(name.substr(c.bytes));
        }
        std::vector<NodeId> ways;
        if (!is_name) ways.push_back(g.bytes(""));
        CodeSet taken;
        for (const auto& [code, names_left] : next) {
            taken.push_back({code, code});
            const CodeSet one{{code, code}};
            if (intersect(one, kPlain).empty()) continue;  // written with an escape
            if (depth < 100) ways.push_back(g.sequence({g.set(one), self(self, names_left, depth + 1)}));
        }
        ways.push_back(g.sequence({g.set(intersect(complement(normalize(taken)), kPlain)), any}));
        return g.choice(std::move(ways));
    };
    const NodeId other = g.other(other_, names, rest(rest, names, 0));
    return quoted(is_among(names, "") ? other : g.optional(other));
}

NodeId JsonParts::integer(const NumberBounds& bounds) {
    return bounds.none() ? grammar_.rule(integer_) : whole_within(grammar_, bounds);
}

NodeId JsonParts::number(const NumberBounds& bounds) {
    return bounds.none() ? grammar_.rule(number_) : number_within(grammar_, bounds);
}

}  // namespace fovea::grammar
