#include "host/grammar/json_rewrite.h"

#include <cmath>
#include <set>

#include "host/grammar/grammar.h"
#include "host/grammar/json_values.h"

namespace fovea::grammar {
namespace {

[[noreturn]] void refuse(const std::string& place, const std::string& expected, const Json& got) {
    throw GrammarError(place + "/not: expected " + expected + ", got " + got.dump() + ": not supported");
}

/// The types that a schema allows, in its order; a null that nullable adds among them.
std::vector<std::string> allowed_types(const Json& schema) {
    std::vector<std::string> types;
    if (!schema.contains("type")) return types_of(schema);
    const Json& type = schema["type"];
    for (const Json& name : type.is_array() ? type : Json::array({type}))
        if (name.is_string()) types.push_back(name);
    if (schema.contains("nullable") && schema["nullable"] == true) types.emplace_back("null");
    return types;
}

Json of_type(const Json& schema, const char* type) {
    Json out = schema;
    out["type"] = type;
    out.erase("nullable");
    return out;
}

bool is_whole(const Json& value) { return value.is_number() && std::floor(value.get<double>()) == value.get<double>(); }

Json without_types(const Json& rest, const Json& excluded, const std::string& place) {
    std::vector<std::string> gone;
    const Json& type = excluded["type"];
    for (const Json& name : type.is_array() ? type : Json::array({type})) gone.push_back(name);
    const auto has = [&](const char* name) { return std::find(gone.begin(), gone.end(), name) != gone.end(); };
    Json left = Json::array();
    for (const std::string& name : allowed_types(rest)) {
        if (name == "number" && has("integer") && !has("number"))
            refuse(place, "a type that is not half of number", type);
        if (!has(name.c_str()) && !(name == "integer" && has("number"))) left.push_back(name);
    }
    if (left.empty()) return false;
    Json out = rest;
    out.erase("nullable");
    out["type"] = std::move(left);
    return out;
}

/// Whole numbers but those of `values`: the ranges between them.
void add_ranges(const Json& rest, const std::vector<Json>& values, const std::string& place, Json& ways) {
    std::set<double> numbers;
    for (const Json& value : values)
        if (is_whole(value)) numbers.insert(value.get<double>());
    Json range = Json::object();
    for (const double number : numbers) {
        range["exclusiveMaximum"] = number;
        ways.push_back(merge_schemas(of_type(rest, "integer"), range, place));
        range = {{"exclusiveMinimum", number}};
    }
    ways.push_back(merge_schemas(of_type(rest, "integer"), range, place));
}

Json without_values(const Json& rest, const std::vector<Json>& values, const std::string& place) {
    const auto has = [&](const Json& value) { return std::find(values.begin(), values.end(), value) != values.end(); };
    const auto has_kind = [&](auto is_kind) { return std::any_of(values.begin(), values.end(), is_kind); };
    Json one;
    if (const Json* constants = constants_of(rest, one)) {
        Json out = rest, left = Json::array();
        for (const Json& value : *constants)
            if (!has(value)) left.push_back(value);
        out.erase("const");
        out["enum"] = std::move(left);
        return out;
    }
    Json ways = Json::array();
    for (const std::string& type : allowed_types(rest)) {
        if (type == "boolean" || type == "null") {
            for (const Json& value : {Json(true), Json(false), Json()})
                if (value.is_null() == (type == "null") && !has(value)) ways.push_back({{"const", value}});
        } else if (type == "string") {
            Json strings = Json::array(), way = of_type(rest, "string");
            for (const Json& value : values)
                if (value.is_string()) strings.push_back(value);
            if (!strings.empty()) way["not"] = {{"enum", strings}};
            ways.push_back(way);
        } else if (type == "integer") {
            add_ranges(rest, values, place, ways);
        } else {
            const bool is_number = type == "number";
            if (is_number && has_kind([](const Json& v) { return v.is_number(); }))
                refuse(place, "no number among values that a number is not", values);
            if (!is_number && has_kind([](const Json& v) { return v.is_structured(); }))
                refuse(place, "no object or array among its values", values);
            ways.push_back(of_type(rest, type.c_str()));
        }
    }
    return {{"anyOf", std::move(ways)}};
}

bool is_of_types(const Json& value, const Json& excluded) {
    const std::vector<std::string> types = allowed_types(excluded);
    const auto fits = [&](const std::string& type) {
        return (type == "string" && value.is_string()) || (type == "number" && value.is_number()) ||
               (type == "integer" && is_whole(value)) || (type == "boolean" && value.is_boolean()) ||
               (type == "null" && value.is_null()) || (type == "object" && value.is_object()) ||
               (type == "array" && value.is_array());
    };
    return std::any_of(types.begin(), types.end(), fits);
}

}  // namespace

bool excludes_strings(const Json& schema) {
    const Json& no = schema["not"];
    if (!schema.contains("type") || schema["type"] != "string" || !no.is_object() || no.size() != 1) return false;
    if (!no.contains("enum") || !no["enum"].is_array()) return false;
    return std::all_of(no["enum"].begin(), no["enum"].end(), [](const Json& value) { return value.is_string(); });
}

Json without_not(const Json& given, const Json& excluded, const std::string& place) {
    Json rest = given;
    rest.erase("not");
    if (excluded == false) return rest;
    if (excluded == true) return false;
    if (!excluded.is_object()) refuse(place, "a schema", excluded);
    bool has_meaning = false;
    for (const auto& [key, value] : excluded.items()) {
        if (is_annotation(key)) continue;
        has_meaning = true;
        if (key != "type" && key != "enum" && key != "const")
            refuse(place, "a schema of type, enum or const", excluded);
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
    Json rest = given;
    const Json all = given[keyword];
    const std::string here = place + "/" + keyword;
    if (!all.is_object()) throw GrammarError(here + ": expected an object, got " + all.dump());
    rest.erase(keyword);
    if (all.empty()) return rest;
    const std::string name = all.items().begin().key();
    const Json needed = all[name];
    if (!needed.is_array() && !needed.is_object() && !needed.is_boolean())
        throw GrammarError(here + "/" + name + ": expected names or a schema, got " + needed.dump());
    Json others = all;
    others.erase(name);
    if (!others.empty()) rest[keyword] = others;
    const bool names_any = (rest.contains("properties") && !rest["properties"].empty()) ||
                           (rest.contains("required") && !rest["required"].empty());
    if (!names_any && !rest.contains("additionalProperties") && !rest.contains("unevaluatedProperties"))
        rest["additionalProperties"] = true;
    Json with = rest, without = rest, required = rest.value("required", Json::array());
    if (!required.is_array()) throw GrammarError(place + "/required: expected names, got " + required.dump());
    const bool is_there = std::find(required.begin(), required.end(), name) != required.end();
    Json added = needed.is_array() ? needed : Json::array();
    added.push_back(name);
    for (const Json& one : added)
        if (std::find(required.begin(), required.end(), one) == required.end()) required.push_back(one);
    with["required"] = required;
    if (!needed.is_array()) with = held_together(Json::array({with, needed}));
    if (is_there) return with;
    without["properties"][name] = false;
    return {{"anyOf", Json::array({without, with})}};
}

Json with_names(const Json& given, const Json& names, const std::string& place) {
    Json one, out = given, properties = Json::object();
    const Json* all = constants_of(names, one);
    if (!all) throw GrammarError(place + "/propertyNames/enum: expected names, got " + names.dump());
    const Json values = *all;
    for (const auto& [key, value] : names.items())
        if (key == "pattern" || key == "format" || key == "not")
            throw GrammarError(place + "/propertyNames: expected no " + key +
                               " beside enum or const, got it: not supported");
    const Json more = given.value("additionalProperties", given.value("unevaluatedProperties", Json(true)));
    for (const Json& name : values) {
        if (!name.is_string() || !fits(name, names, place)) continue;
        const std::string key = name;
        const bool known = given.contains("properties") && given["properties"].contains(key);
        properties[key] = known ? given["properties"][key] : more;
    }
    for (const Json& name : given.value("required", Json::array()))
        if (name.is_string() && !properties.contains(name.get<std::string>())) return false;
    out.erase("propertyNames");
    out["properties"] = std::move(properties);
    out["additionalProperties"] = false;
    return out;
}

}  // namespace fovea::grammar
