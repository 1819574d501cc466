// Ways of oneOf of which no text fits two.
#include <algorithm>
#include <limits>

#include "host/grammar/json_types.h"

namespace fovea::grammar {
namespace {

/// Whether no text that is written for `a`, which has no parts, fits `b`: an object has only properties that its schema names.
[[nodiscard]] bool lacks_required(const Json& a, const Json& b) {
    if (!a.is_object() || !b.is_object() || types_of(a) != std::vector<std::string>{"object"}) return false;
    const auto has = [&](const char* key) { return a.contains(key); };
    constexpr const char* kOpen[] = {"additionalProperties", "patternProperties",     "propertyNames",
                                     "dependentRequired",    "unevaluatedProperties", "not"};
    const Json required = a.value("required", Json::array()), properties = a.value("properties", Json::object());
    if (has_parts(a) || std::any_of(std::begin(kOpen), std::end(kOpen), has) || !properties.is_object() ||
        !b.contains("required") || !b["required"].is_array())
        return false;
    if (required.empty() && std::all_of(properties.begin(), properties.end(), [](auto& one) { return one == false; }))
        return false;  // an object of which nothing is said
    return std::any_of(b["required"].begin(), b["required"].end(), [&](const Json& name) {
        return name.is_string() && !properties.contains(name.get<std::string>()) && !is_among(required, name);
    });
}

[[nodiscard]] bool share_a_type(const Json& a, const Json& b) {
    const bool says_a = a.contains("type") || a.contains("enum") || a.contains("const");
    const bool says_b = b.contains("type") || b.contains("enum") || b.contains("const");
    if (!says_a || !says_b) return true;  // without, every other type fits
    const std::vector<std::string> x = types_of(a), y = types_of(b);
    return std::any_of(x.begin(), x.end(), [&](const std::string& type) { return is_among(y, type); });
}

[[nodiscard]] bool share_a_number(const Json& a, const Json& b) {
    const auto only_numbers = [](const Json& s) {
        return s.contains("type") && types_of(s) == std::vector<std::string>{"number"};
    };
    if (!only_numbers(a) || !only_numbers(b)) return true;
    const auto bound = [](const Json& s, const char* key, double otherwise) {
        return s.contains(key) && s[key].is_number() ? s[key].get<double>() : otherwise;
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const auto below = [&](const Json& s, const Json& t) {
        const double high = bound(s, "maximum", kInfinity), low = bound(t, "minimum", -kInfinity);
        const double open_high = bound(s, "exclusiveMaximum", kInfinity);
        const double open_low = bound(t, "exclusiveMinimum", -kInfinity);
        return high < low || open_high <= low || high <= open_low || open_high <= open_low;
    };
    return !below(a, b) && !below(b, a);
}

/// Whether no text fits both, as far as types, constants, bounds, strings and required properties tell.
[[nodiscard]] bool are_apart(const SchemaScope& in, const Json& given_a, const Json& given_b, const std::string& place,
                             int depth = 0) {
    Json made_a, made_b;
    const Json &a = in.references.resolved(given_a, made_a, place), &b = in.references.resolved(given_b, made_b, place);
    if (depth > 8 || !a.is_object() || !b.is_object()) return a == false || b == false;
    Json one_a, one_b;
    const Json *all_a = constants_of(a, one_a), *all_b = constants_of(b, one_b);
    if (all_a && all_b)
        return std::none_of(all_a->begin(), all_a->end(), [&](const Json& value) { return is_among(*all_b, value); });
    if (!share_a_type(a, b) || !share_a_number(a, b)) return true;
    const auto are_both = [&](const char* type) {
        return types_of(a) == std::vector<std::string>{type} && types_of(b) == std::vector<std::string>{type};
    };
    if (are_both("string")) return !share_a_string(in.parts, a, b, place);
    if (!are_both("object")) return false;
    const auto lacks = [&](const Json& s, const std::string& key) {
        return !property_of(s, key) && !s.contains("patternProperties") &&
               s.value("additionalProperties", Json()) == false;
    };
    for (const Json* s : {&a, &b}) {
        const Json& other = s == &a ? b : a;
        if (!s->contains("required") || !(*s)["required"].is_array()) continue;
        for (const Json& key : (*s)["required"]) {
            if (!key.is_string()) continue;
            if (lacks(other, key)) return true;
            const Json *x = property_of(*s, key), *y = property_of(other, key);
            if (x && y && are_apart(in, *x, *y, place, depth + 1)) return true;
        }
    }
    return false;
}

}  // namespace

std::vector<std::size_t> not_apart(const SchemaScope& in, const std::vector<const Json*>& ways, std::size_t i,
                                   const std::string& place) {
    std::vector<std::size_t> out;
    for (std::size_t j = 0; j < ways.size(); ++j)
        if (j != i && !are_apart(in, *ways[i], *ways[j], place) && !lacks_required(*ways[i], *ways[j]))
            out.push_back(j);
    return out;
}

std::optional<std::string> telling_property(const SchemaScope& in, const std::vector<const Json*>& ways, std::size_t i,
                                            const std::vector<std::size_t>& others, const std::string& place) {
    static const Json kNone = Json::object();
    const Json& properties = ways[i]->is_object() ? at_or(*ways[i], "properties", kNone) : kNone;
    if (!properties.is_object()) return std::nullopt;
    for (const auto& [name, one] : properties.items()) {
        const auto is_told = [&, &key = name, &value = one](std::size_t j) {
            const Json* other = ways[j]->is_object() ? property_of(*ways[j], key) : nullptr;
            return other && are_apart(in, value, *other, place);
        };
        if (std::all_of(others.begin(), others.end(), is_told)) return name;
    }
    return std::nullopt;
}

}  // namespace fovea::grammar
