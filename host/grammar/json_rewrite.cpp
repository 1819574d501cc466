#include "host/grammar/json_rewrite.h"

#include <cmath>
#include <set>

#include "host/grammar/grammar.h"
#include "host/grammar/json_values.h"

namespace fovea::grammar {
namespace {

[[noreturn]] void refuse_not(const std::string& place, const std::string& expected, const Json& got) {
    refuse(place + "/not", expected, json_text(got) + ": not supported");
}

Json of_type(const Json& schema, const Json& type) {
    Json out = without(schema, {"nullable"});
    out["type"] = type;
    return out;
}

Json without_types(const Json& rest, const Json& excluded, const std::string& place) {
    const Json& type = excluded["type"];
    const std::vector<std::string> gone = list_of(type);
    const auto has = [&](const std::string& name) { return is_among(gone, name); };
    Json left = Json::array();
    for (const std::string& name : allowed_types(rest)) {
        if (name == "number" && has("integer") && !has("number"))
            refuse_not(place, "a type that is not half of number", type);
        if (!has(name) && !(name == "integer" && has("number"))) left.push_back(name);
    }
    return left.empty() ? Json(false) : of_type(rest, left);
}

/// Numbers of a type but those of `values`: the ranges between them.
void add_ranges(const Json& rest, const std::string& type, const std::vector<Json>& values, const std::string& place,
                Json& ways) {
    std::set<double> numbers;
    for (const Json& value : values)
        if (has_type(value, type) == true) numbers.insert(value.get<double>());
    Json range = Json::object();
    for (const double number : numbers) {
        range["exclusiveMaximum"] = number;
        ways.push_back(merge_schemas(of_type(rest, type), range, place));
        range = {{"exclusiveMinimum", number}};
    }
    ways.push_back(merge_schemas(of_type(rest, type), range, place));
}

Json without_values(const Json& rest, const std::vector<Json>& values, const std::string& place) {
    const auto has_kind = [&](auto is_kind) { return std::any_of(values.begin(), values.end(), is_kind); };
    Json one;
    if (const Json* constants = constants_of(rest, one)) {
        Json out = without(rest, {"const"}), left = Json::array();
        for (const Json& value : *constants)
            if (!is_among(values, value)) left.push_back(value);
        out["enum"] = std::move(left);
        return out;
    }
    Json ways = Json::array();
    for (const std::string& type : allowed_types(rest)) {
        if (type == "boolean" || type == "null") {
            for (const Json& value : {Json(true), Json(false), Json()})
                if (value.is_null() == (type == "null") && !is_among(values, value)) ways.push_back({{"const", value}});
        } else if (type == "string") {
            Json strings = Json::array(), way = of_type(rest, "string");
            for (const Json& value : values)
                if (value.is_string()) strings.push_back(value);
            if (!strings.empty()) way["not"] = {{"enum", strings}};
            ways.push_back(way);
        } else if (type == "integer" || type == "number") {
            add_ranges(rest, type, values, place, ways);
        } else {
            if (has_kind([&](const Json& value) { return has_type(value, type) == true; }))
                refuse_not(place, "no object or array among its values", values);
            ways.push_back(of_type(rest, type));
        }
    }
    return {{"anyOf", std::move(ways)}};
}

bool is_of_types(const Json& value, const Json& excluded) {
    const std::vector<std::string> types = allowed_types(excluded);
    return std::any_of(types.begin(), types.end(),
                       [&](const std::string& type) { return has_type(value, type).value_or(false); });
}

}  // namespace

std::vector<std::string> allowed_types(const Json& schema) {
    if (!schema.contains("type")) return types_of(schema);
    std::vector<std::string> types;
    for (const Json& name : list_of(schema["type"]))
        if (name.is_string()) types.push_back(name);
    if (is_true(schema, "nullable")) types.emplace_back("null");
    return types;
}

bool speaks_of_strings(const Json& schema) {
    if (!schema.is_object()) return schema.is_boolean();
    return std::all_of(schema.items().begin(), schema.items().end(), [](const auto& item) {
        const std::string& key = item.key();
        const Json& value = item.value();
        if (key == "not") return speaks_of_strings(value);
        if (key == "anyOf" || key == "allOf")
            return value.is_array() && std::all_of(value.begin(), value.end(), speaks_of_strings);
        if (key == "enum") return value.is_array();
        return key == "pattern" || key == "minLength" || key == "maxLength" || key == "const" || key == "type" ||
               is_annotation(key);
    });
}

bool excludes_strings(const Json& schema) {
    return schema.contains("type") && schema["type"] == "string" && !is_true(schema, "nullable") &&
           speaks_of_strings(schema["not"]);
}

Json without_not(const Json& given, const Json& excluded, const std::string& place) {
    const Json rest = without(given, {"not"});
    if (excluded == false) return rest;
    if (excluded == true) return false;
    if (!excluded.is_object()) refuse_not(place, "a schema", excluded);
    bool has_meaning = false;
    for (const auto& [key, value] : excluded.items()) {
        if (is_annotation(key)) continue;
        has_meaning = true;
        if (key != "type" && key != "enum" && key != "const")
            refuse_not(place, "a schema of type, enum or const", excluded);
    }
    if (!has_meaning) return false;
    Json one;
    const Json* constants = constants_of(excluded, one);
    if (!constants) return excluded.contains("type") ? without_types(rest, excluded, place) : rest;
    std::vector<Json> values;
    for (const Json& value : *constants) {
        const bool both = !excluded.contains("const") || !excluded.contains("enum") || value == excluded["const"];
        if (both && (!excluded.contains("type") || is_of_types(value, excluded))) values.push_back(value);
    }
    return without_values(rest, values, place);
}

Json without_dependency(const Json& given, const char* keyword, const std::string& place) {
    Json rest = without(given, {keyword});
    const Json all = given[keyword];
    const std::string here = place + "/" + keyword;
    if (!all.is_object()) refuse_value(here, "an object", all);
    if (all.empty()) return rest;
    const std::string name = all.items().begin().key();
    const Json needed = all[name];
    if (!needed.is_array() && !needed.is_object() && !needed.is_boolean())
        refuse_value(within(here, name), "names or a schema", needed);
    if (all.size() > 1) rest[keyword] = without(all, {name});
    const bool names_any = (rest.contains("properties") && !rest["properties"].empty()) ||
                           (rest.contains("required") && !rest["required"].empty());
    if (!names_any && !rest.contains("additionalProperties") && !rest.contains("unevaluatedProperties"))
        rest["additionalProperties"] = true;
    Json with = rest, without = rest, required = rest.value("required", Json::array());
    if (!required.is_array()) refuse_value(place + "/required", "names", required);
    const bool is_there = is_among(required, name);
    Json added = needed.is_array() ? needed : Json::array();
    added.push_back(name);
    for (const Json& one : added)
        if (!is_among(required, one)) required.push_back(one);
    with["required"] = required;
    if (!needed.is_array()) with = held_together(Json::array({with, needed}));
    if (is_there) return with;
    without["properties"][name] = false;
    return {{"anyOf", Json::array({without, with})}};
}

Json with_names(const Json& given, const std::vector<Json>& names) {
    Json out = without(given, {"propertyNames"}), properties = Json::object();
    const Json more = others_of(given);
    for (const Json& name : names) {
        if (!name.is_string()) continue;
        const Json* known = property_of(given, name);
        properties[name.get<std::string>()] = known ? *known : more;
    }
    for (const Json& name : given.value("required", Json::array()))
        if (name.is_string() && !properties.contains(name.get<std::string>())) return false;
    out["properties"] = std::move(properties);
    out["additionalProperties"] = false;
    return out;
}

}  // namespace fovea::grammar
