#include "host/grammar/json_merge.h"

#include <numeric>
#include <span>

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
[[nodiscard]] const Json& unnamed(const Json& schema) {
    static const Json kAny = true;
    return at_or(schema, "additionalProperties", kAny);
}

/// Takes the properties of `a`.
void merge_properties(Json& a, const Json& b, Json& out, const std::string& place) {
    Json all = Json::object();
    const auto merged = [&](Json schema, const Json& beside, const std::string& key) {
        return beside == true ? schema : merge_schemas(std::move(schema), beside, within(place + "/properties", key));
    };
    if (a.contains("properties"))
        for (auto& [key, schema] : a["properties"].items()) {
            const Json* named = property_of(b, key);
            all[key] = merged(std::move(schema), named ? *named : unnamed(b), key);
        }
    if (b.contains("properties"))
        for (const auto& [key, schema] : b["properties"].items())
            if (!all.contains(key)) all[key] = merged(schema, unnamed(a), key);
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

constexpr const char* kCondition[] = {"if", "then", "else"};
constexpr const char* kUnevaluated[] = {"unevaluatedProperties", "unevaluatedItems"};
constexpr const char* kParts[] = {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies"};

/// Moves keywords from a schema to one of their own.
[[nodiscard]] Json take(Json& schema, std::span<const char* const> keywords) {
    Json taken = Json::object();
    for (const char* key : keywords) {
        if (!schema.contains(key)) continue;
        taken[key] = schema[key];
        schema.erase(key);
    }
    return taken;
}

/// Adds to what a schema's `not` says.
void exclude(Json& schema, const Json& excluded) {
    schema["not"] = schema.contains("not") ? Json{{"anyOf", Json::array({schema["not"], excluded})}} : excluded;
}

/// A schema beside which another holds that is no part of it: what stands within `not` evaluates nothing.
[[nodiscard]] Json with_beside(Json schema, const Json& other) {
    exclude(schema, {{"not", other}});
    return schema;
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
    } else if (key == "patternProperties" && a.is_object() && b.is_object()) {
        out[key] = a;
        for (const auto& [pattern, schema] : b.items())
            out[key][pattern] =
                a.contains(pattern) ? merge_schemas(a[pattern], schema, within(place + "/" + key, pattern)) : schema;
    } else if (key == "propertyNames") {
        out[key] = {{"allOf", Json::array({a, b})}};
    } else if (key == "pattern") {  // what is not excluded holds, too
        exclude(out, {{"not", {{key, b}}}});
        out[key] = a;
    } else if (key == "multipleOf" && a.is_number_integer() && b.is_number_integer() && a > 0 && b > 0) {
        out[key] = std::lcm(a.get<std::int64_t>(), b.get<std::int64_t>());
    } else if (key == "not") {
        exclude(out, {{"anyOf", Json::array({a, b})}});
    } else if (const Keyword* keyword = find_keyword(key); key == "$ref" || (keyword && keyword->splits)) {
        out["allOf"].push_back(Json{{key, b}});
        out[key] = a;
    } else if (!merge_bound(key, a, b, out)) {
        refuse(place, key + " once among schemas that hold together", "it twice");
    }
}

/// One schema's rule for names that it does not name holds for those that the other's patterns name; this is not worked out.
void check_names(const Json& a, const Json& b, const std::string& place) {
    static const Json kNone;
    const bool same = at_or(a, "patternProperties", kNone) == at_or(b, "patternProperties", kNone);
    if (!same && a.contains("patternProperties") && (unnamed(a) != true || unnamed(b) != true))
        refuse(place + "/additionalProperties",
               "no additionalProperties where patternProperties hold together with another schema",
               "it: not supported");
}

}  // namespace

void refuse(const std::string& place, const std::string& wanted, const std::string& got) {
    throw Refusal(place, ": expected " + wanted + ", got " + got);
}

std::string within(const std::string& place, std::string name) {
    for (std::size_t i = 0; i < name.size(); ++i)
        if (name[i] == '~' || name[i] == '/') name.replace(i, 1, name[i] == '~' ? "~0" : "~1"), ++i;
    return place + "/" + name;
}

void refuse_value(const std::string& place, const std::string& wanted, const Json& got) {
    refuse(place, wanted, json_text(got));
}

void refuse_any(const Json& schema, std::initializer_list<std::string> keywords, const std::string& place,
                const std::string& beside) {
    for (const std::string& keyword : keywords)
        if (schema.contains(keyword)) refuse(place + "/" + keyword, "no " + keyword + beside, "it: not supported");
}

bool is_true(const Json& schema, const char* keyword) { return schema.contains(keyword) && schema[keyword] == true; }

const Json& at_or(const Json& schema, const char* keyword, const Json& otherwise) {
    const auto found = schema.find(keyword);
    return found == schema.end() ? otherwise : *found;
}

Json list_of(const Json& value) { return value.is_array() ? value : Json::array({value}); }

const Json* property_of(const Json& schema, const std::string& name) {
    const auto all = schema.find("properties");
    if (all == schema.end() || !all->is_object()) return nullptr;
    const auto found = all->find(name);
    return found == all->end() ? nullptr : &*found;
}

Json others_of(const Json& schema) { return schema.value("additionalProperties", Json(true)); }

Json without(const Json& schema, std::initializer_list<std::string> keywords) {
    if (!schema.is_object()) return schema;
    Json out = Json::object();
    for (const auto& [key, value] : schema.items())
        if (!is_among(keywords, key)) out.get_ref<Json::object_t&>().push_back({key, value});
    return out;
}

bool is_annotation(const std::string& keyword) { return !find_keyword(keyword); }

Json merge_schemas(Json a, const Json& given_b, const std::string& place) {
    if (a == true || given_b == false) return given_b;
    if (given_b == true || a == false) return a;
    if (!a.is_object() || !given_b.is_object()) refuse_value(place, "a schema", a.is_object() ? given_b : a);
    if (covers_parts(given_b)) return has_meaning(a) ? with_beside(given_b, a) : given_b;
    if (covers_parts(a)) return has_meaning(given_b) ? with_beside(std::move(a), given_b) : a;
    if (says_unevaluated(a)) a = closed(std::move(a), place);
    Json closed_b;
    const Json& b = says_unevaluated(given_b) ? closed_b = closed(given_b, place) : given_b;
    const bool conditional = a.contains("if") && b.contains("if");
    const auto has_orphan = [](const Json& s) {
        return !s.contains("if") && (s.contains("then") || s.contains("else"));
    };
    if (conditional || has_orphan(a) || has_orphan(b)) {
        Json second = b, left = Json::object();
        if (has_orphan(a)) (void)take(a, kCondition);
        if (has_orphan(b) || conditional) left = take(second, kCondition);
        Json out = merge_schemas(std::move(a), second, place);
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
    for (auto& [key, value] : a.items())
        if (!b.contains(key) && !is_property(key) && !is_annotation(key)) out[key] = std::move(value);
    for (const auto& [key, value] : a.items())
        if (b.contains(key) && !is_property(key) && !is_annotation(key)) merge_keyword(key, value, b[key], out, place);
    for (const auto& [key, value] : b.items()) {
        if (a.contains(key) || is_property(key) || is_annotation(key)) continue;
        if (key == "allOf" && out.contains(key))
            for (const Json& schema : value) out[key].push_back(schema);
        else if (key == "not")
            exclude(out, value);
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
    static const Json kNone = Json::array(), kAny = true;
    const Json& items = at_or(schema, "items", kAny);
    const bool is_list = items.is_array();  // as drafts before 2020-12 have it
    const Json& first = is_list ? items : at_or(schema, "prefixItems", kNone);
    if (!first.is_array()) refuse_value(place + "/prefixItems", "schemas", first);
    return {first, is_list ? at_or(schema, "additionalItems", kAny) : items};
}

bool says_unevaluated(const Json& schema) {
    return std::any_of(std::begin(kUnevaluated), std::end(kUnevaluated),
                       [&](const char* key) { return schema.contains(key); });
}

bool has_parts(const Json& schema) {
    return std::any_of(std::begin(kParts), std::end(kParts), [&](const char* key) { return schema.contains(key); });
}

bool covers_parts(const Json& schema) { return schema.is_object() && says_unevaluated(schema) && has_parts(schema); }

Json take_unevaluated(Json& schema) { return take(schema, kUnevaluated); }

Json covered(Json schema, const Json& rules) {
    if (schema.is_object())
        for (const auto& [key, rule] : rules.items())
            if (!schema.contains(key)) schema[key] = rule;
    return schema;
}

Json closed(Json schema, const std::string& place) {
    if (!schema.is_object()) return schema;
    const Json rules = take(schema, kUnevaluated);
    if (rules.contains("unevaluatedProperties") && !schema.contains("additionalProperties"))
        schema["additionalProperties"] = rules["unevaluatedProperties"];
    if (rules.value("unevaluatedItems", Json(true)) == true) return schema;
    refuse_any(schema, {"contains"}, place, " beside unevaluatedItems");
    const bool by_list = schema.contains("items") && schema["items"].is_array();
    if (const char* rest = by_list ? "additionalItems" : "items"; !schema.contains(rest))
        schema[rest] = rules["unevaluatedItems"];
    return schema;
}

Json held_together(Json all) {
    Json out = all[0].is_object() ? take(all[0], kUnevaluated) : Json::object();
    out["allOf"] = std::move(all);
    return out;
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
        if (keyword.type && schema.contains(std::string(keyword.name))) return {keyword.type};
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

SizeBounds size_bounds(const Json& schema, const char* least, const char* most, const std::string& place) {
    SizeBounds out{read_size(schema, least, 0, place), read_size(schema, most, kNoLimit, place)};
    if (out.min > kMostRepeats)
        refuse(place + "/" + least, "at most " + std::to_string(kMostRepeats), std::to_string(out.min));
    if (out.max != kNoLimit) out.max = std::min(out.max, kMostRepeats);
    return out;
}

const Json* constants_of(const Json& schema, Json& one) {
    if (schema.contains("enum") && schema["enum"].is_array()) return &schema["enum"];
    if (!schema.contains("const")) return nullptr;
    one = Json::array({schema["const"]});
    return &one;
}

}  // namespace fovea::grammar
