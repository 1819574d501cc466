// Schemas of arrays.
#include "host/grammar/json_types.h"
#include "host/grammar/json_values.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostUnique = 9;  // values of items that come once in any order: a rule for each set of them

/// Items of which some fit another schema, too: so many of those, and any number of other items around each. If
/// their number is limited, the other items must not fit that schema.
NodeId containing(const SchemaScope& in, const Json& given, std::uint32_t n, const std::string& place,
                  std::uint32_t depth) {
    Grammar& grammar = in.parts.grammar();
    refuse_any(given, {"prefixItems", "additionalItems", "maxItems"}, place, " beside contains");
    if (is_true(given, "uniqueItems"))
        refuse(place + "/uniqueItems", "no uniqueItems beside contains", "it: not supported");
    const Json rest = given.value("items", Json(true));
    if (rest.is_array()) refuse(place + "/items", "one schema of items beside contains", "several: not supported");
    constexpr std::uint32_t kMost = 64;
    const bool bounded = given.contains("maxContains");
    const std::uint32_t most = read_size(given, "maxContains", n, place);
    if (n > kMost || most > kMost || read_size(given, "minItems", 0, place) > n)
        refuse(place + "/contains", "minContains of at least minItems, at most 64", "others: not supported");
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

/// Items of some values, each once. The next item depends on all before it: of few values in any order, of more in the schema's.
NodeId unique(const SchemaScope& in, const Json& given, const Json& first, const Json& item, const std::string& place) {
    Json values = item;
    if (item.is_object() && (item.value("type", Json()) == "boolean" || item.value("type", Json()) == "null"))
        values["enum"] = {true, false, nullptr};
    const bool has_values = values.is_object() && (values.contains("enum") || values.contains("const"));
    if (!has_values || !first.empty())
        refuse(place + "/uniqueItems", "no uniqueItems but of items that are an enum", "it: not supported");
    std::vector<std::string> texts;
    for (const Json& value : constant_values(values, in.references, place + "/items"))
        texts.push_back(json_text(value));
    const auto [min, max] = size_bounds(given, "minItems", "maxItems", place);
    if (min > max || min > texts.size()) return in.parts.grammar().choice({});
    if (texts.size() <= kMostUnique) return in.parts.unique_array(texts, min, max);
    Grammar& grammar = in.parts.grammar();
    std::vector<NodeId> items;
    for (const std::string& text : texts) items.push_back(grammar.bytes(text));
    const std::string kinds(items.size(), kOptional);
    const auto list = in.parts.counted_list(items, kinds, min, max);
    if (!list) refuse(place + "/uniqueItems", "fewer values of unique items", std::to_string(items.size()));
    return grammar.sequence({grammar.bytes("["), in.parts.space(), *list, in.parts.space(), grammar.bytes("]")});
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
    const auto [min, max] = size_bounds(given, "minItems", "maxItems", place);
    if (min > max || (rest == false && min > first.size())) return in.parts.grammar().choice({});
    std::vector<NodeId> items;
    for (const Json& one : first)
        items.push_back(in.schema(one, place + "/prefixItems/" + std::to_string(items.size()), depth + 1));
    std::optional<NodeId> item;
    if (rest != false && max > items.size()) item = in.schema(rest, place + "/items", depth + 1);
    return in.parts.array(items, item, min, max);
}

}  // namespace fovea::grammar
