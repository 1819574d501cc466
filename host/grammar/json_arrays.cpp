// Schemas of arrays.
#include "host/grammar/json_types.h"
#include "host/grammar/json_values.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostUnique = 9;  // values of items that come once: a rule for each set of them

/// Items of which some fit another schema, too: so many of those, and any number of other items around each. If
/// their number is limited, the other items must not fit that schema.
NodeId containing(const SchemaScope& in, const Json& given, std::uint32_t n, const std::string& place,
                  std::uint32_t depth) {
    Grammar& grammar = in.parts.grammar();
    refuse_any(given, {"prefixItems", "additionalItems", "maxItems"}, place, " beside contains");
    if (is_true(given, "uniqueItems")) refuse(place, "no uniqueItems beside contains", "it: not supported");
    const Json rest = given.value("items", Json(true));
    if (rest.is_array()) refuse(place, "one schema of items beside contains", "several: not supported");
    constexpr std::uint32_t kMost = 64;
    const bool bounded = given.contains("maxContains");
    const std::uint32_t most = read_size(given, "maxContains", n, place);
    if (n > kMost || most > kMost || read_size(given, "minItems", 0, place) > n)
        refuse(place, "minContains of at least minItems, at most 64", "others: not supported");
    if (most < n) return grammar.choice({});
    const Json both = merge_schemas(in.references.expanded(rest, place),
                                    in.references.expanded(given["contains"], place), place + "/contains");
    const Json other =
        bounded ? merge_schemas(in.references.expanded(rest, place), {{"not", given["contains"]}}, place) : rest;
    const NodeId item = grammar.shared(in.schema(other, place + "/items", depth + 1), "item");
    const NodeId wanted = grammar.shared(in.schema(both, place + "/contains", depth + 1), "wanted");
    std::vector<NodeId> items{item};
    std::string kinds(1, kAnyNumber);
    for (std::uint32_t i = 0; i < most; ++i) {
        items.insert(items.end(), {wanted, item});
        kinds += {i < n ? kRequired : kOptional, kAnyNumber};
    }
    const NodeId list = grammar.list(std::move(items), std::move(kinds), in.parts.comma());
    return grammar.sequence({grammar.bytes("["), in.parts.space(), list, in.parts.space(), grammar.bytes("]")});
}

/// Items of a few values, each once. The next item depends on all before it, so there may be only a few.
NodeId unique(const SchemaScope& in, const Json& given, const Json& first, const Json& item, const std::string& place) {
    const bool has_values = item.contains("enum") || item.contains("const");
    std::vector<std::string> texts;
    if (has_values && first.empty())
        for (const Json& value : constant_values(item, place + "/items")) texts.push_back(json_text(value));
    if (!has_values || !first.empty() || texts.size() > kMostUnique)
        refuse(place,
               "no uniqueItems but of items that are an enum of at most " + std::to_string(kMostUnique) + " values",
               "it: not supported");
    return in.parts.unique_array(texts, read_size(given, "minItems", 0, place),
                                 read_size(given, "maxItems", kNoLimit, place));
}

}  // namespace

NodeId array_schema(const SchemaScope& in, const Json& given, const std::string& place, std::uint32_t depth) {
    if (given.contains("contains")) {
        const std::uint32_t n = read_size(given, "minContains", 1, place);
        if (n || given.contains("maxContains")) return containing(in, given, n, place, depth);
    }
    const auto [first, rest] = items_of(given, place);
    if (is_true(given, "uniqueItems") && read_size(given, "maxItems", 2, place) > 1)
        return unique(in, given, first, in.references.expanded(rest, place), place);
    const std::uint32_t min = read_size(given, "minItems", 0, place);
    const std::uint32_t max = read_size(given, "maxItems", kNoLimit, place);
    if (min > max || (rest == false && min > first.size())) return in.parts.grammar().choice({});
    std::vector<NodeId> items;
    for (const Json& one : first)
        items.push_back(in.schema(one, place + "/prefixItems/" + std::to_string(items.size()), depth + 1));
    std::optional<NodeId> item;
    if (rest != false && max > items.size()) item = in.schema(rest, place + "/items", depth + 1);
    return in.parts.array(items, item, min, max);
}

}  // namespace fovea::grammar
