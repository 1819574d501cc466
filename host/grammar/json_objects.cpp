// Schemas of objects.
#include <algorithm>

#include "host/grammar/json_rewrite.h"
#include "host/grammar/json_types.h"

namespace fovea::grammar {
namespace {

NodeId member(const SchemaScope& in, NodeId key, NodeId value) {
    Grammar& grammar = in.parts.grammar();
    return grammar.sequence({key, grammar.bytes(":"), in.parts.space(), value});
}

/// An object with as many of these members as minProperties and maxProperties say.
NodeId counted(const SchemaScope& in, const Json& given, const std::string& place, const std::vector<NodeId>& members,
               const std::string& kinds) {
    const auto n_required = static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), kRequired));
    const std::size_t min = read_size(given, "minProperties", 0, place);
    if (min > n_required + 1)
        refuse(place + "/minProperties",
               "at most one more than the " + std::to_string(n_required) + " that are required", "more: not supported");
    const bool more = kinds.ends_with(kAnyNumber);
    if (read_size(given, "maxProperties", kNoLimit, place) < (more ? std::size_t{kNoLimit} : kinds.size()))
        refuse(place + "/maxProperties",
               "at least the " + std::to_string(kinds.size() - more) + " that are named, and no others",
               "fewer: not supported");
    return in.parts.object(in.parts.members(members, kinds, min > n_required));
}

/// Names that fit a pattern, each with a schema; or, of propertyNames, names that fit a schema.
NodeId patterned(const SchemaScope& in, const Json& given, const std::string& place, std::uint32_t depth) {
    for (const char* keyword : {"properties", "required"})
        if (given.contains(keyword) && !given[keyword].empty())
            refuse(place, std::string("no ") + keyword + " beside patternProperties or a propertyNames that is no enum",
                   "it: not supported");
    NodeId key = 0, value = 0;
    if (!given.contains("patternProperties")) {
        key = name_schema(in.parts, in.references.expanded(given["propertyNames"], place + "/propertyNames"),
                          place + "/propertyNames");
        value = in.schema(others_of(given), place + "/additionalProperties", depth + 1);
    } else {
        const Json& all = given["patternProperties"];
        std::vector<NodeId> keys;
        for (const auto& [pattern, one] : all.items()) {
            if (one != *all.begin())  // a name that two patterns fit must have a value that fits both
                refuse(place + "/patternProperties", "patterns of one schema", "several schemas: not supported");
            keys.push_back(in.parts.pattern(pattern, {}, place + "/patternProperties"));
        }
        key = in.parts.grammar().choice(std::move(keys));
        value = in.schema(*all.begin(), place + "/patternProperties", depth + 1);
    }
    return counted(in, given, place, {member(in, key, value)}, std::string(1, kAnyNumber));
}

}  // namespace

NodeId object_schema(const SchemaScope& in, const Json& given, const std::string& place, std::uint32_t depth) {
    if (given.contains("propertyNames") && given["propertyNames"] != true) {
        const Json names = in.references.expanded(given["propertyNames"], place + "/propertyNames");
        if (given.contains("patternProperties"))
            refuse(place, "patternProperties or propertyNames", "both: not supported");
        if (names == false) return in.schema(with_names(given, {{"enum", Json::array()}}, place), place, depth + 1);
        if (names.contains("enum") || names.contains("const"))
            return in.schema(with_names(given, names, place), place, depth + 1);
        const bool names_some = !given.value("properties", Json::object()).empty();
        if (names_some || given.value("additionalProperties", Json(true)) != false)
            return patterned(in, given, place, depth);
    }
    if (given.contains("patternProperties") && !given["patternProperties"].empty())
        return patterned(in, given, place, depth);
    const Json properties = given.value("properties", Json::object());
    const Json required = given.value("required", Json::array());
    if (!properties.is_object()) refuse_value(place + "/properties", "an object", properties);
    // Drafts before 4 had a boolean here.
    if (!required.is_array()) refuse_value(place + "/required", "names", required);
    const bool says = given.contains("additionalProperties") || given.contains("unevaluatedProperties");
    const bool names_none = std::all_of(properties.begin(), properties.end(), [](auto& one) { return one == false; });
    const Json more = given.value("additionalProperties", Json(!says && names_none && required.empty()));
    std::vector<NodeId> members;
    std::string kinds;
    std::vector<std::string> names;
    const auto add = [&](const std::string& name, const Json& value, bool is_required) {
        const std::string here = place + "/properties/" + name;
        members.push_back(
            member(in, in.parts.grammar().bytes(json_text(Json(name))), in.schema(value, here, depth + 1)));
        kinds += is_required ? kRequired : kOptional;
        names.push_back(name);
    };
    for (const auto& [name, value] : properties.items()) {
        const bool is_required = is_among(required, name);
        if (value == false && !is_required) {
            names.push_back(name);
            continue;
        }
        add(name, value, is_required);
    }
    for (const Json& name : required) {
        if (!name.is_string()) refuse_value(place + "/required", "names", name);
        if (!properties.contains(name.get<std::string>()))
            add(name, says ? more : Json(true), true);  // not named, but required
    }
    if (more != false) {
        std::sort(names.begin(), names.end());
        const NodeId key = names.empty() ? in.parts.string() : in.parts.other_key(names);
        members.push_back(member(in, key, in.schema(more, place + "/additionalProperties", depth + 1)));
        kinds += kAnyNumber;
    }
    return counted(in, given, place, members, kinds);
}

}  // namespace fovea::grammar
