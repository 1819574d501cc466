// Schemas of arrays.
#include <map>
#include <set>
#include <utility>

#include "engine/format/constraint_format.h"
#include "host/grammar/json_keywords.h"
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

[[noreturn]] void refuse_unique(const std::string& place) {
    refuse(place + "/uniqueItems",
           "no uniqueItems but of items that are an enum, strings of any length, or objects that require one",
           "it: not supported");
}

/// Items that differ in a string, by which they are told apart while the answer is written.
NodeId told_apart(const SchemaScope& in, const Json& given, const Json& item, const std::string& place,
                  std::uint32_t depth) {
    const auto [min, max] = size_bounds(given, "minItems", "maxItems", place);
    if (min > max) return in.parts.grammar().choice({});
    if (min > kMostItems)
        refuse(place + "/minItems", "at most " + std::to_string(kMostItems) + " beside uniqueItems",
               std::to_string(min));
    if (std::exchange(in.lists.inside, true)) refuse_unique(place);
    const auto schema_of = [&](Item which) {
        const NodeId node =
            in.schema(merge_schemas(item, {{kItem, which}}, place + "/items"), place + "/items", depth + 1);
        in.lists.items.emplace_back(node, place);
        return node;
    };
    const NodeId first = schema_of(Item::first), further = schema_of(Item::further);
    in.lists.inside = false;
    return in.parts.array({first}, further, min, std::min(max, kMostItems));
}

/// Items of some values, each once. The next item depends on all before it: of few values in any order, of more in the schema's.
NodeId unique(const SchemaScope& in, const Json& given, const Items& items, const std::string& place,
              std::uint32_t depth) {
    const Json item = in.references.expanded(items.rest, place);
    Json values = item;
    if (item.is_object() && (item.value("type", Json()) == "boolean" || item.value("type", Json()) == "null"))
        values["enum"] = {true, false, nullptr};
    if (!items.first.empty() || !item.is_object()) refuse_unique(place);
    if (!values.contains("enum") && !values.contains("const")) return told_apart(in, given, items.rest, place, depth);
    std::vector<std::string> texts;
    for (const Json& value : constant_values(values, in.references, place + "/items"))
        texts.push_back(json_text(value));
    const auto [min, max] = size_bounds(given, "minItems", "maxItems", place);
    if (min > max || min > texts.size()) return in.parts.grammar().choice({});
    if (texts.size() <= kMostUnique) return in.parts.unique_array(texts, min, max);
    Grammar& grammar = in.parts.grammar();
    std::vector<NodeId> nodes;
    for (const std::string& text : texts) nodes.push_back(grammar.bytes(text));
    const auto list = in.parts.counted_list(nodes, std::string(nodes.size(), kOptional), min, max);
    if (!list) refuse(place + "/uniqueItems", "fewer values of unique items", std::to_string(nodes.size()));
    return grammar.sequence({grammar.bytes("["), in.parts.space(), *list, in.parts.space(), grammar.bytes("]")});
}

/// How often a call that tells an item apart is passed on each way through a node.
class ItemCounter {
public:
    static constexpr int kVaries = 2, kNoWay = -1;

    explicit ItemCounter(const Grammar& grammar) : grammar_(grammar) {}

    int of_node(NodeId id, std::uint32_t depth = 0) {
        constexpr std::uint32_t kMostDepth = 2000;  // as automata are made of
        if (depth > kMostDepth) return kVaries;
        const Node& node = grammar_.nodes[id];
        if (node.kind == NodeKind::rule) return node.item != Item::none ? 1 : of_rule(node.rule, depth);
        if (const auto known = nodes_.find(id); known != nodes_.end()) return known->second;
        int n = node.kind == NodeKind::choice ? kNoWay : 0;
        for (std::size_t i = 0; i < node.children.size(); ++i) {
            const int one = of_node(node.children[i], depth + 1);
            const bool is_there = node.kind == NodeKind::sequence ||
                                  (node.kind == NodeKind::list && i < node.text.size() && node.text[i] == kRequired) ||
                                  (node.kind == NodeKind::repeat && node.min == 1 && node.max == 1);
            if (node.kind == NodeKind::choice)
                n = n == kNoWay || n == one ? one : one == kNoWay ? n : kVaries;
            else if (is_there)
                n = n == kNoWay || one == kNoWay ? kNoWay : std::min(n + one, kVaries);
            else if (one > 0)
                n = kVaries;
        }
        return nodes_[id] = n;
    }

private:
    int of_rule(RuleId rule, std::uint32_t depth) {
        const auto [known, is_new] = rules_.try_emplace(rule, kOpen);
        if (!is_new) return known->second == kOpen ? (again_.insert(rule), 0) : known->second;
        const int n = of_node(grammar_.rules[rule].body, depth + 1);
        return rules_[rule] = n > 0 && again_.contains(rule) ? kVaries : n;
    }

    static constexpr int kOpen = -2;
    const Grammar& grammar_;
    std::map<NodeId, int> nodes_;
    std::map<RuleId, int> rules_;
    std::set<RuleId> again_;  // that come again within themselves
};

}  // namespace

void check_lists(const Grammar& grammar, const ItemLists& lists) {
    ItemCounter counter(grammar);
    for (const auto& [item, place] : lists.items)
        if (counter.of_node(item) != 1) refuse_unique(place);
}

NodeId array_schema(const SchemaScope& in, const Json& given, const std::string& place, std::uint32_t depth) {
    if (given.contains("contains")) {
        const std::uint32_t n = read_size(given, "minContains", 1, place);
        if (n || given.contains("maxContains")) return containing(in, given, n, place, depth);
    }
    const Items all = items_of(given, place);
    const auto& [first, rest] = all;
    if (is_true(given, "uniqueItems") && read_size(given, "maxItems", 2, place) > 1)
        return unique(in, given, all, place, depth);
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
