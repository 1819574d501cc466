// Schemas of objects.
#include <algorithm>

#include "host/grammar/json_keywords.h"
#include "host/grammar/json_rewrite.h"
#include "host/grammar/json_types.h"
#include "host/grammar/json_values.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostKinds = 64;  // of names that patterns tell apart

NodeId member(const SchemaScope& in, NodeId key, NodeId value) {
    Grammar& grammar = in.parts.grammar();
    return grammar.sequence({key, grammar.bytes(":"), in.parts.space(), value});
}

/// An object with as many of these members as minProperties and maxProperties say.
NodeId counted(const SchemaScope& in, const Json& given, const std::string& place, const std::vector<NodeId>& members,
               const std::string& kinds) {
    const SizeBounds b = size_bounds(given, "minProperties", "maxProperties", place);
    const auto n_required = static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), kRequired));
    const bool all_fit = !kinds.ends_with(kAnyNumber) && b.max >= kinds.size();
    if (b.max == kNoLimit || all_fit) {
        if (b.min <= n_required + 1) return in.parts.object(in.parts.members(members, kinds, b.min > n_required));
    }
    // Names that no property has may come twice, so only the first of them is sure to be one more.
    if (b.min > kinds.size())
        refuse(place + "/minProperties",
               "at most " + std::to_string(kinds.size()) + ", which is one more than are named",
               std::to_string(b.min) + ": not supported");
    const auto list = in.parts.counted_list(members, kinds, b.min, b.max);
    if (!list) refuse(place, "fewer properties beside minProperties or maxProperties", std::to_string(kinds.size()));
    return in.parts.object(*list);
}

/// A pattern of patternProperties: names that it matches in every dialect, and in any, with their schema.
struct Pattern {
    Language sure, perhaps;
    Json schema;
    std::string place;
};

std::vector<Pattern> patterns_of(const Json& given, const std::string& place) {
    std::vector<Pattern> out;
    const Json all = given.value("patternProperties", Json::object());
    for (const auto& [pattern, schema] : all.items()) {
        const std::string here = within(place + "/patternProperties", pattern);
        out.push_back(at_place(here, [&, &text = pattern, &one = schema] {
            return Pattern{language_of_regex(text, Dialects::all), language_of_regex(text, Dialects::any), one, here};
        }));
    }
    return out;
}

/// Properties that are named beside rules for names: patterns of them, a schema, or both.
class Names {
public:
    Names(const SchemaScope& in, const Json& given, const std::string& place, std::uint32_t depth)
        : in_(in), given_(given), place_(place), depth_(depth), patterns_(patterns_of(given, place)) {
        for (const Pattern& pattern : patterns_) in.parts.count_work(pattern.perhaps, pattern.place);
        if (!given.contains("propertyNames")) return;
        const std::string here = place + "/propertyNames";
        allowed_ = language_of_names(in.parts, in.references.expanded(given["propertyNames"], here), here);
    }

    NodeId read() {
        const Json properties = given_.value("properties", Json::object());
        const Json required = given_.value("required", Json::array());
        for (const auto& [name, schema] : properties.items()) add(name, schema, is_among(required, name));
        for (const Json& name : required)
            if (!properties.contains(name.get<std::string>())) add(name, std::nullopt, true);
        at_place(place_ + "/patternProperties", [&] {
            add_others(allowed_ - Language::of_texts(names_), 0, Json::array(), place_ + "/additionalProperties");
        });
        if (!others_.empty()) {
            members_.push_back(in_.parts.grammar().choice(std::move(others_)));
            kinds_ += kAnyNumber;
        }
        return counted(in_, given_, place_, members_, kinds_);
    }

private:
    /// What a property's value keeps to: these, or the rule for others if there are none.
    [[nodiscard]] Json value_of(const Json& schemas, bool unless_said) const {
        if (schemas.empty()) return given_.value("additionalProperties", Json(unless_said));
        return schemas.size() == 1 ? schemas[0] : Json{{"allOf", schemas}};
    }

    void add(const std::string& name, const std::optional<Json>& schema, bool is_required) {
        names_.push_back(name);
        Json schemas = Json::array();
        if (schema) schemas.push_back(*schema);
        for (const Pattern& pattern : patterns_) {
            if (!pattern.perhaps.has(name)) continue;
            if (!pattern.sure.has(name) && schemas.empty()) schemas.push_back(value_of(schemas, true));
            schemas.push_back(pattern.schema);
        }
        const Json value = allowed_.has(name) ? value_of(schemas, true) : Json(false);
        if (value == false && !is_required) return;
        Grammar& grammar = in_.parts.grammar();
        members_.push_back(member(in_, grammar.bytes(json_text(Json(name))),
                                  in_.schema(value, within(place_ + "/properties", name), depth_ + 1)));
        kinds_ += is_required ? kRequired : kOptional;
    }

    /// Other names, told apart by the patterns from `first` on.
    void add_others(const Language& names, std::size_t first, const Json& schemas, const std::string& here) {
        if (names.empty()) return;
        in_.parts.count_work(names, here);
        if (first < patterns_.size()) {
            const Pattern& pattern = patterns_[first];
            Json more = schemas;
            more.push_back(pattern.schema);
            add_others(names & pattern.sure, first + 1, more, pattern.place);
            add_others(names - pattern.perhaps, first + 1, schemas, here);
            return;
        }
        const Json value = value_of(schemas, patterns_.empty());
        if (value == false) return;
        if (others_.size() == kMostKinds)
            refuse(here, "patterns that tell at most " + std::to_string(kMostKinds) + " kinds of names apart", "more");
        others_.push_back(member(in_, in_.parts.texts(names, {}, here), in_.schema(value, here, depth_ + 1)));
    }

    const SchemaScope& in_;
    const Json& given_;
    const std::string& place_;
    std::uint32_t depth_;
    std::vector<Pattern> patterns_;
    Language allowed_ = Language::all();
    std::vector<std::string> names_;
    std::vector<NodeId> members_, others_;
    std::string kinds_;
};

/// Names that fit a pattern, each with a schema; or, of propertyNames, names that fit a schema.
NodeId patterned(const SchemaScope& in, const Json& given, const std::string& place, std::uint32_t depth) {
    const auto has = [&](const char* keyword) { return given.contains(keyword) && !given[keyword].empty(); };
    const Json all = given.value("patternProperties", Json::object());
    const bool alike = std::all_of(all.begin(), all.end(), [&](const Json& one) { return one == *all.begin(); });
    const bool by_both = has("patternProperties") &&
                         (given.contains("propertyNames") || given.value("additionalProperties", Json(false)) != false);
    if (has("properties") || has("required") || !alike || by_both) return Names(in, given, place, depth).read();
    NodeId key = 0, value = 0;
    if (all.empty()) {
        key = name_schema(in.parts, in.references.expanded(given["propertyNames"], place + "/propertyNames"),
                          place + "/propertyNames");
        value = in.schema(others_of(given), place + "/additionalProperties", depth + 1);
    } else {
        std::vector<NodeId> keys;
        for (const auto& [pattern, one] : all.items())
            keys.push_back(in.parts.pattern(pattern, {}, within(place + "/patternProperties", pattern)));
        key = in.parts.grammar().choice(std::move(keys));
        value = in.schema(*all.begin(), within(place + "/patternProperties", all.items().begin().key()), depth + 1);
    }
    return counted(in, given, place, {member(in, key, value)}, std::string(1, kAnyNumber));
}

/// An object that tells an item from others by a string that it must have.
Json told_by_property(const SchemaScope& in, Json given, const std::string& place) {
    const Json item = {{kItem, given[kItem]}};
    given.erase(kItem);
    const Json required = given.value("required", Json::array());
    for (const char* may_have : {"minLength", "pattern"})  // rather one without a pattern
        for (const Json& name : required) {
            const Json* property = name.is_string() ? property_of(given, name) : nullptr;
            const Json value = property ? in.references.expanded(*property, place) : Json();
            if (!value.is_object() || value.value("type", Json()) != "string") continue;
            if (has_meaning(without(value, {"type", "minLength", may_have}))) continue;
            given["properties"][name.get<std::string>()] = merge_schemas(value, item, place);
            return given;
        }
    return given;
}

}  // namespace

NodeId object_schema(const SchemaScope& in, const Json& given, const std::string& place, std::uint32_t depth) {
    if (given.contains(kItem)) return object_schema(in, told_by_property(in, given, place), place, depth);
    const Json properties = given.value("properties", Json::object());
    const Json required = given.value("required", Json::array());
    if (!properties.is_object()) refuse_value(place + "/properties", "an object", properties);
    // Drafts before 4 had a boolean here.
    if (!required.is_array()) refuse_value(place + "/required", "names", required);
    for (const Json& name : required)
        if (!name.is_string()) refuse_value(place + "/required", "names", name);
    if (given.contains("patternProperties") && !given["patternProperties"].empty())
        return patterned(in, given, place, depth);
    if (given.contains("propertyNames") && given["propertyNames"] != true) {
        const std::string here = place + "/propertyNames";
        const Json names = in.references.expanded(given["propertyNames"], here);
        if (names == false) return in.schema(with_names(given, {}), place, depth + 1);
        if (names.contains("enum") || names.contains("const"))
            return in.schema(with_names(given, constant_values(names, in.references, here)), place, depth + 1);
        if (!properties.empty() || given.value("additionalProperties", Json(true)) != false)
            return patterned(in, given, place, depth);
    }
    const bool says = given.contains("additionalProperties");
    const bool names_none = std::all_of(properties.begin(), properties.end(), [](auto& one) { return one == false; });
    const Json more = given.value("additionalProperties", Json(!says && names_none && required.empty()));
    std::vector<NodeId> members;
    std::string kinds;
    std::vector<std::string> names;
    const auto add = [&](const std::string& name, const Json& value, bool is_required) {
        const std::string here = within(place + "/properties", name);
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
