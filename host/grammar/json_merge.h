// Schemas that hold at once, as one.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "host/base/json.h"

namespace fovea::grammar {

/// Throws GrammarError: "PLACE: expected WANTED, got GOT".
[[noreturn]] void refuse(const std::string& place, const std::string& wanted, const std::string& got);
[[noreturn]] void refuse_value(const std::string& place, const std::string& wanted, const Json& got);
/// Refuses the keywords that a schema has of these, for what it has beside them.
void refuse_any(const Json& schema, std::initializer_list<std::string> keywords, const std::string& place,
                const std::string& beside);

[[nodiscard]] bool is_true(const Json& schema, const char* keyword);
/// A list as it is, and another value as the one of a list.
[[nodiscard]] Json list_of(const Json& value);
[[nodiscard]] bool is_among(const auto& list, const auto& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}
/// The schema of the property of this name, or null.
[[nodiscard]] const Json* property_of(const Json& schema, const std::string& name);
/// The rule for properties that a schema does not name.
[[nodiscard]] Json others_of(const Json& schema);
/// A schema that lacks these keywords.
[[nodiscard]] Json without(Json schema, std::initializer_list<std::string> keywords);

/// A schema that a text fits if it fits both. Throws GrammarError, naming the keyword, if no single schema can say
/// that.
[[nodiscard]] Json merge_schemas(const Json& a, const Json& b, const std::string& place);

/// A schema that is one of several that hold at once. Its unevaluatedProperties looks only at its own properties, as
/// additionalProperties does. Throws GrammarError if it has keywords whose schemas might name properties, too.
[[nodiscard]] Json as_inner(Json schema, const std::string& place);

/// A schema that says what all of these do. The first has the others as parts, and its rule for unevaluated properties
/// covers all.
[[nodiscard]] Json held_together(Json all);

/// The schemas of an array's items: one for each of the first, then one for the rest.
struct Items {
    Json first = Json::array(), rest = true;
};
[[nodiscard]] Items items_of(const Json& schema, const std::string& place);

/// Whether no text fits both, as far as types, constants, bounds and required properties tell. `resolve` follows references.
template<class Resolve>
[[nodiscard]] bool are_apart(const Json& a, const Json& b, const Resolve& resolve, int depth = 0);

/// The types that a schema names or, if it names none, the types of its keywords; integer counts as number.
[[nodiscard]] std::vector<std::string> types_of(const Json& schema);

/// Keywords that say nothing about which texts fit, unknown ones among them.
[[nodiscard]] bool is_annotation(const std::string& keyword);
/// Whether a schema has a keyword of another kind.
[[nodiscard]] bool has_meaning(const Json& schema);
/// A length or count of a keyword. Throws if it is none.
[[nodiscard]] std::uint32_t read_size(const Json& schema, const char* keyword, std::uint32_t otherwise,
                                      const std::string& place);

// ---- what are_apart is made of -------------------------------------------------------------------------------------

/// The values of enum or const, or nothing.
[[nodiscard]] const Json* constants_of(const Json& schema, Json& one);
[[nodiscard]] bool share_a_type(const Json& a, const Json& b);
[[nodiscard]] bool share_a_number(const Json& a, const Json& b);

template<class Resolve>
bool are_apart(const Json& given_a, const Json& given_b, const Resolve& resolve, int depth) {
    const Json a = resolve(given_a), b = resolve(given_b);
    if (depth > 8 || !a.is_object() || !b.is_object()) return a == false || b == false;
    Json one_a, one_b;
    const Json *all_a = constants_of(a, one_a), *all_b = constants_of(b, one_b);
    if (all_a && all_b) {
        for (const Json& x : *all_a)
            for (const Json& y : *all_b)
                if (x == y) return false;
        return true;
    }
    if (!share_a_type(a, b) || !share_a_number(a, b)) return true;
    const auto is_object = [](const Json& s) { return types_of(s) == std::vector<std::string>{"object"}; };
    if (!is_object(a) || !is_object(b)) return false;
    const auto lacks = [&](const Json& s, const std::string& key) {
        return !property_of(s, key) && s.contains("additionalProperties") && s["additionalProperties"] == false;
    };
    for (const Json* s : {&a, &b}) {
        const Json& other = s == &a ? b : a;
        if (!s->contains("required") || !(*s)["required"].is_array()) continue;
        for (const Json& key : (*s)["required"]) {
            if (!key.is_string()) continue;
            if (lacks(other, key)) return true;
            const Json *x = property_of(*s, key), *y = property_of(other, key);
            if (x && y && are_apart(*x, *y, resolve, depth + 1)) return true;
        }
    }
    return false;
}

}  // namespace fovea::grammar
