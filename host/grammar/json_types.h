// Schemas of one type as expressions: strings, objects and arrays. All throw GrammarError, naming the keyword that is not kept.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/grammar/json_parts.h"
#include "host/grammar/json_references.h"

namespace fovea::grammar {

/// Lists of which no item comes twice: what their items are, each with its array's place.
struct ItemLists {
    std::vector<std::pair<NodeId, std::string>> items;
    bool inside = false;  ///< of an item that is being read
};

/// What objects and arrays are made of: the parts of JSON, and the schemas within a schema.
struct SchemaScope {
    JsonParts& parts;
    References& references;
    ItemLists& lists;  ///< for check_lists once all rules are made
    /// The expression of a schema at `place`, `depth` schemas deep.
    std::function<NodeId(const Json& given, const std::string& place, std::uint32_t depth)> schema;
};

/// Those of a oneOf's ways that a text written for way `i` might fit, too. No way is a reference.
[[nodiscard]] std::vector<std::size_t> not_apart(const SchemaScope& in, const std::vector<const Json*>& ways,
                                                 std::size_t i, const std::string& place);
/// A property of way `i` of which no value fits any of the others: an object that has it fits none of them.
[[nodiscard]] std::optional<std::string> telling_property(const SchemaScope& in, const std::vector<const Json*>& ways,
                                                          std::size_t i, const std::vector<std::size_t>& others,
                                                          const std::string& place);
[[nodiscard]] NodeId string_schema(JsonParts& parts, const Json& given, const std::string& place);
/// The names that fit a schema, which speaks of strings alone. Throws if it says more, or too many states would tell them apart.
[[nodiscard]] Language language_of_names(JsonParts& parts, const Json& names, const std::string& place);
/// Whether some string may fit both of two schemas of strings; formats are left out.
[[nodiscard]] bool share_a_string(JsonParts& parts, const Json& a, const Json& b, const std::string& place);
/// A property's name that fits a schema of strings without references at its top.
[[nodiscard]] NodeId name_schema(JsonParts& parts, const Json& names, const std::string& place);
[[nodiscard]] NodeId object_schema(const SchemaScope& in, const Json& given, const std::string& place,
                                   std::uint32_t depth);
/// Refuses lists whose items do not all differ in one string each, which no others of the kind surround.
void check_lists(const Grammar& grammar, const ItemLists& lists);
[[nodiscard]] NodeId array_schema(const SchemaScope& in, const Json& given, const std::string& place,
                                  std::uint32_t depth);

}  // namespace fovea::grammar
