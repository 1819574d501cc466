#include "host/grammar/json_merge.h"

#include <limits>

#include "host/grammar/grammar.h"
#include "host/grammar/json_keywords.h"

namespace fovea::grammar {
namespace {

constexpr const char* kAllTypes[] = {"object", "array", "string", "number", "boolean", "null"};

[[nodiscard]] bool is_number_type(const std::string& type) { return type == "number" || type == "integer"; }

/// The types of both; integers count as numbers.
[[nodiscard]] Json common_types(const Json& a, const Json& b) {
    Json out = Json::array();
    for (const Json& x : list_of(a))
        for (const Json& y : list_of(b)) {
            if (x == y)
                out.push_back(x);
            else if (x.is_string() && y.is_string() && is_number_type(x) && is_number_type(y))
                out.push_back("integer");
        }
    return out;
}

[[nodiscard]] Json common_values(const Json& a, const Json& b) {
    Json out = Json::array();
    for (const Json& x : a)
        if (is_among(b, x)) out.push_back(x);
    return out;
}

/// A schema's rule for a property that it does not name: nothing, a schema, or false.
[[nodiscard]] Json unnamed(const Json& schema) {
    const auto found = schema.find("additionalProperties");
    return found == schema.end() ? Json(true) : *found;
}

void merge_properties(const Json& a, const Json& b, Json& out, const std::string& place) {
    Json all = Json::object();
    for (const Json* s : {&a, &b}) {
        const Json& other = s == &a ? b : a;
        if (!s->contains("properties")) continue;
        for (const auto& [key, schema] : (*s)["properties"].items()) {
            if (all.contains(key)) continue;
            const bool both = other.contains("properties") && other["properties"].contains(key);
            const Json beside = both ? other["properties"][key] : unnamed(other);
            all[key] = beside == true ? schema : merge_schemas(schema, beside, place + "/properties/" + key);
        }
    }
    if (!all.empty()) out["properties"] = std::move(all);
    if (a.contains("additionalProperties") || b.contains("additionalProperties"))
        out["additionalProperties"] = merge_schemas(unnamed(a), unnamed(b), place + "/additionalProperties");
}

[[nodiscard]] bool says_items(const Json& schema) {
    return schema.contains("items") || schema.contains("prefixItems") || schema.contains("additionalItems");
}

void merge_items(const Json& a, const Json& b, Json& out, const std::string& place) {
    const Items x = items_of(a, place), y = items_of(b, place);
    Json first = Json::array();
    for (std::size_t i = 0; i < std::max(x.first.size(), y.first.size()); ++i)
        first.push_back(merge_schemas(i < x.first.size() ? x.first[i] : x.rest,
                                      i < y.first.size() ? y.first[i] : y.rest,
                                      place + "/prefixItems/" + std::to_string(i)));
    if (!first.empty()) out["prefixItems"] = std::move(first);
    if (Json rest = merge_schemas(x.rest, y.rest, place + "/items"); rest != true) out["items"] = std::move(rest);
}

/// Keywords of which the larger, or the smaller, holds.
[[nodiscard]] bool merge_bound(const std::string& key, const Json& a, const Json& b, Json& out) {
    const Keyword* keyword = find_keyword(key);
    if (!a.is_number() || !b.is_number() || !keyword || keyword->bound == Bound::none) return false;
    out[key] = (a < b) == (keyword->bound == Bound::least) ? b : a;
    return true;
}

/// Moves `if`, with `then` and `else`, from a schema to one beside it.
[[nodiscard]] Json take_condition(Json& schema) {
    Json condition = Json::object();
    for (const char* key : {"if", "then", "else"}) {
        if (!schema.contains(key)) continue;
        condition[key] = schema[key];
        schema.erase(key);
    }
    return condition;
}

void merge_keyword(const std::string& key, const Json& a, const Json& b, Json& out, const std::string& place) {
    if (a == b) {
        out[key] = a;
    } else if (key == "type") {
        out[key] = common_types(a, b);
    } else if (key == "enum" && a.is_array() && b.is_array()) {
        out[key] = common_values(a, b);
    } else if (key == "const") {
        out["enum"] = Json::array();
    } else if (key == "required" && a.is_array() && b.is_array()) {
        out[key] = a;
        for (const Json& name : b)
            if (!is_among(a, name)) out[key].push_back(name);
    } else if (key == "allOf") {
        out[key] = a;
        for (const Json& schema : b) out[key].push_back(schema);
    } else if (key == "not") {
        out[key] = {{"anyOf", Json::array({a, b})}};
    } else if (const Keyword* keyword = find_keyword(key); key == "$ref" || (keyword && keyword->splits)) {
        out["allOf"].push_back(Json{{key, b}});
        out[key] = a;
    } else if (!is_annotation(key) && !merge_bound(key, a, b, out)) {
        refuse(place, key + " once among schemas that hold together", "it twice");
    }
}

/// One schema's rules for names by a pattern hold for the names of the other, too; this is not worked out.
void check_names(const Json& a, const Json& b, const std::string& place) {
    for (const char* keyword : {"patternProperties", "propertyNames"})
        for (const char* other :
             {"properties", "required", "additionalProperties", "patternProperties", "propertyNames"})
            if (a.contains(keyword) && b.contains(other) && a.value(other, Json()) != b[other])
                refuse(place, std::string("no ") + other + " in a schema that holds together with " + keyword,
                       "it: not supported");
}

}  // namespace

void refuse(const std::string& place, const std::string& wanted, const std::string& got) {
    throw GrammarError(place + ": expected " + wanted + ", got " + got);
}

void refuse_value(const std::string& place, const std::string& wanted, const Json& got) {
    refuse(place, wanted, json_text(got));
}

void refuse_any(const Json& schema, std::initializer_list<std::string> keywords, const std::string& place,
                const std::string& beside) {
    for (const std::string& keyword : keywords)
        if (schema.contains(keyword)) refuse(place, "no " + keyword + beside, "it: not supported");
}

bool is_true(const Json& schema, const char* keyword) { return schema.contains(keyword) && schema[keyword] == true; }

Json list_of(const Json& value) { return value.is_array() ? value : Json::array({value}); }

const Json* property_of(const Json& schema, const std::string& name) {
    const auto all = schema.find("properties");
    if (all == schema.end() || !all->is_object()) return nullptr;
    const auto found = all->find(name);
    return found == all->end() ? nullptr : &*found;
}

Json others_of(const Json& schema) {
    return schema.value("additionalProperties", schema.value("unevaluatedProperties", Json(true)));
}

Json without(Json schema, std::initializer_list<std::string> keywords) {
    for (const std::string& keyword : keywords) schema.erase(keyword);
    return schema;
}

bool is_annotation(const std::string& keyword) { return !find_keyword(keyword); }

Json merge_schemas(const Json& a, const Json& b, const std::string& place) {
    if (a == true || b == false) return b;
    if (b == true || a == false) return a;
    if (!a.is_object() || !b.is_object()) refuse_value(place, "a schema", a.is_object() ? b : a);
    const bool conditional = a.contains("if") && b.contains("if");
    const auto has_orphan = [](const Json& s) {
        return !s.contains("if") && (s.contains("then") || s.contains("else"));
    };
    if (conditional || has_orphan(a) || has_orphan(b)) {
        Json first = a, second = b, left = Json::object();
        if (has_orphan(a)) (void)take_condition(first);
        if (has_orphan(b) || conditional) left = take_condition(second);
        Json out = merge_schemas(first, second, place);
        if (conditional && out.is_object()) out["allOf"].push_back(left);
        return out;
    }
    check_names(a, b, place);
    check_names(b, a, place);
    Json out = Json::object();
    const bool both_say_items = says_items(a) && says_items(b);
    const auto is_property = [&](const std::string& key) {  // or an item: merged by what it stands for
        if (key == "items" || key == "prefixItems" || key == "additionalItems") return both_say_items;
        return key == "properties" || key == "additionalProperties";
    };
    for (const auto& [key, value] : a.items())
        if (!b.contains(key) && !is_property(key)) out[key] = value;
    for (const auto& [key, value] : a.items())
        if (b.contains(key) && !is_property(key)) merge_keyword(key, value, b[key], out, place);
    for (const auto& [key, value] : b.items()) {
        if (a.contains(key) || is_property(key)) continue;
        if (key == "allOf" && out.contains(key))
            for (const Json& schema : value) out[key].push_back(schema);
        else
            out[key] = value;
    }
    merge_properties(a, b, out, place);
    if (both_say_items) merge_items(a, b, out, place);
    // A constant of one and a list of the other.
    if (out.contains("const") && out.contains("enum")) {
        out["enum"] = common_values(out["enum"], Json::array({out["const"]}));
        out.erase("const");
    }
    return out;
}

Items items_of(const Json& schema, const std::string& place) {
    Items items;
    items.first = schema.value("prefixItems", Json::array());
    items.rest = schema.value("items", Json(true));
    if (items.rest.is_array()) {  // as drafts before 2020-12 have it
        items.first = items.rest;
        items.rest = schema.value("additionalItems", Json(true));
    }
    if (!items.first.is_array()) refuse_value(place + "/prefixItems", "schemas", items.first);
    return items;
}

Json held_together(Json all) {
    Json out = Json::object();
    if (all[0].is_object() && all[0].contains("unevaluatedProperties")) {
        out["unevaluatedProperties"] = all[0]["unevaluatedProperties"];
        all[0].erase("unevaluatedProperties");
    }
    out["allOf"] = std::move(all);
    return out;
}

Json as_inner(Json schema, const std::string& place) {
    if (!schema.is_object() || schema.value("unevaluatedProperties", Json(true)) != false) return schema;
    refuse_any(schema, {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies"}, place,
               " beside unevaluatedProperties in a schema that holds together with another");
    schema.erase("unevaluatedProperties");
    if (!schema.contains("additionalProperties")) schema["additionalProperties"] = false;
    return schema;
}

std::vector<std::string> types_of(const Json& schema) {
    std::vector<std::string> out;
    const auto add = [&](std::string type) {
        if (type == "integer") type = "number";
        if (!is_among(out, type)) out.push_back(std::move(type));
    };
    if (schema.contains("type")) {
        for (const Json& one : list_of(schema["type"]))
            if (one.is_string()) add(one);
        return out;
    }
    Json one;
    if (const Json* values = constants_of(schema, one)) {
        for (const Json& value : *values)
            add(value.is_object()    ? "object"
                : value.is_array()   ? "array"
                : value.is_string()  ? "string"
                : value.is_number()  ? "number"
                : value.is_boolean() ? "boolean"
                                     : "null");
        return out;
    }
    for (const Keyword& keyword : kKeywords)
        if (keyword.type && keyword.tells_type && schema.contains(std::string(keyword.name))) return {keyword.type};
    for (const char* type : kAllTypes) out.emplace_back(type);
    return out;
}

bool has_meaning(const Json& schema) {
    for (const auto& [key, value] : schema.items())
        if (!is_annotation(key)) return true;
    return false;
}

std::uint32_t read_size(const Json& schema, const char* keyword, std::uint32_t otherwise, const std::string& place) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return otherwise;
    if (found->is_number() && found->get<double>() >= 0 && found->get<double>() <= 4e9 &&
        found->get<double>() == static_cast<double>(static_cast<std::uint32_t>(found->get<double>())))
        return static_cast<std::uint32_t>(found->get<double>());
    refuse_value(place + "/" + keyword, "a whole number", *found);
}

const Json* constants_of(const Json& schema, Json& one) {
    if (schema.contains("enum") && schema["enum"].is_array()) return &schema["enum"];
    if (!schema.contains("const")) return nullptr;
    one = Json::array({schema["const"]});
    return &one;
}

bool share_a_type(const Json& a, const Json& b) {
    const bool says_a = a.contains("type") || a.contains("enum") || a.contains("const");
    const bool says_b = b.contains("type") || b.contains("enum") || b.contains("const");
    if (!says_a || !says_b) return true;  // without, every other type fits
    const std::vector<std::string> x = types_of(a), y = types_of(b);
    return std::any_of(x.begin(), x.end(), [&](const std::string& type) { return is_among(y, type); });
}

bool share_a_number(const Json& a, const Json& b) {
    const auto only_numbers = [](const Json& s) {
        return s.contains("type") && types_of(s) == std::vector<std::string>{"number"};
    };
    if (!only_numbers(a) || !only_numbers(b)) return true;
    const auto bound = [](const Json& s, const char* key, double otherwise) {
        return s.contains(key) && s[key].is_number() ? s[key].get<double>() : otherwise;
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const auto below = [&](const Json& s, const Json& t) {
        const double high = bound(s, "maximum", kInfinity), low = bound(t, "minimum", -kInfinity);
        const double open_high = bound(s, "exclusiveMaximum", kInfinity);
        const double open_low = bound(t, "exclusiveMinimum", -kInfinity);
        return high < low || open_high <= low || high <= open_low || open_high <= open_low;
    };
    return !below(a, b) && !below(b, a);
}

}  // namespace fovea::grammar
