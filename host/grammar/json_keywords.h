// The keywords of JSON Schema that say which texts fit. Others are annotations.
#pragma once
#include <string_view>

namespace fovea::grammar {

enum class Bound : char { none, least, most };

struct Keyword {
    std::string_view name;
    const char* type = nullptr;   ///< of the values that it speaks of, if those are of one type
    Bound bound = Bound::none;    ///< least: of two the larger holds; most: the smaller
    const char* other = nullptr;  ///< the bound that exactly the other values keep to, `step` further
    int step = 0;
    bool splits = false;  ///< into alternatives, which stay apart in schemas that hold at once
};

/// Item of a list whose items differ: what the schema reads tells it from the others. For this room alone.
inline constexpr const char* kItem = "unique item";

/// A schema that names no type has that of its first keyword here that has one.
inline constexpr Keyword kKeywords[] = {
    {"properties", "object"},
    {"required", "object"},
    {"additionalProperties", "object"},
    {"patternProperties", "object"},
    {"propertyNames", "object"},
    {.name = "dependentRequired", .type = "object", .splits = true},
    {.name = "dependencies", .type = "object", .splits = true},
    {"contains", "array"},
    {"items", "array"},
    {"prefixItems", "array"},
    {"minItems", "array", Bound::least, "maxItems", -1},
    {"maxItems", "array", Bound::most, "minItems", 1},
    {"pattern", "string"},
    {"format", "string"},
    {"minLength", "string", Bound::least, "maxLength", -1},
    {"maxLength", "string", Bound::most, "minLength", 1},
    {"minimum", "number", Bound::least, "exclusiveMaximum"},
    {"maximum", "number", Bound::most, "exclusiveMinimum"},
    {"exclusiveMinimum", "number", Bound::least, "maximum"},
    {"exclusiveMaximum", "number", Bound::most, "minimum"},
    {"multipleOf", "number"},
    {"minProperties", "object", Bound::least, "maxProperties", -1},
    {"maxProperties", "object", Bound::most, "minProperties", 1},
    {"unevaluatedProperties", "object"},
    {"uniqueItems", "array"},
    {"unevaluatedItems", "array"},
    {"additionalItems", "array"},
    {.name = "anyOf", .splits = true},
    {.name = "oneOf", .splits = true},
    {.name = "dependentSchemas", .splits = true},
    {"$ref"},
    {"$dynamicRef"},
    {"$recursiveRef"},
    {"allOf"},
    {"const"},
    {"else"},
    {"enum"},
    {"if"},
    {"maxContains"},
    {"minContains"},
    {"not"},
    {"nullable"},
    {"then"},
    {"type"},
    {kItem},
};

/// The keyword of this name, or null.
[[nodiscard]] constexpr const Keyword* find_keyword(std::string_view name) noexcept {
    for (const Keyword& keyword : kKeywords)
        if (keyword.name == name) return &keyword;
    return nullptr;
}

}  // namespace fovea::grammar
