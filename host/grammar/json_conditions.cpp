#include "host/grammar/json_conditions.h"

#include <algorithm>
#include <set>

#include "host/base/words.h"
#include "host/grammar/grammar.h"
#include "host/grammar/json_keywords.h"
#include "host/grammar/json_rewrite.h"

namespace fovea::grammar {
namespace {

[[nodiscard]] Json no(const Json& schema) { return {{"not", schema}}; }

[[nodiscard]] Json of_property(const std::string& name, const Json& schema, bool is_there) {
    Json out = {{"type", "object"}, {"properties", {{name, schema}}}};
    if (is_there) out["required"] = Json::array({name});
    return out;
}

/// A type or values, which rewriting of `not` says in place; nothing else beside them.
[[nodiscard]] bool is_plain(const Json& excluded) {
    if (!excluded.is_object()) return true;
    for (const auto& [key, value] : excluded.items())
        if (key != "type" && key != "enum" && key != "const" && !is_annotation(key)) return false;
    return true;
}
[[nodiscard]] bool is_values(const Json& excluded) {
    return excluded.is_object() && (excluded.contains("enum") || excluded.contains("const"));
}

constexpr std::size_t kMostExcluded = 4000;  // references may lead to the same schemas again and again

/// The schemas of which none may fit.
void flatten(const Json& excluded, const Resolve& resolve, const std::string& place, std::vector<Json>& out,
             int depth = 0) {
    const Json resolved = resolve(excluded), one = covers_parts(resolved) ? resolved : closed(resolved, place + "/not");
    if (depth < 32 && one.is_object() && one.contains("anyOf") && one["anyOf"].is_array()) {
        if (!has_meaning(without(one, {"anyOf"}))) {
            for (const Json& way : one["anyOf"]) flatten(way, resolve, place, out, depth + 1);
            return;
        }
    }
    if (out.size() == kMostExcluded)
        refuse(place + "/not", "at most " + std::to_string(kMostExcluded) + " schemas that are excluded", "more");
    out.push_back(one);
}

/// The count or bound beside a keyword's that leaves exactly the others.
bool add_other_side(const std::string& key, const Json& excluded, const std::string& place, std::vector<Json>& ways) {
    const Json& value = excluded[key];
    const Keyword* keyword = find_keyword(key);
    if (!value.is_number() || !keyword || keyword->bound == Bound::none) return false;
    const int step = keyword->step;
    const Json bound = step ? Json(std::int64_t{read_size(excluded, key.c_str(), 0, place)} + step) : value;
    if (!step || bound >= 0) ways.push_back({{"type", keyword->type}, {keyword->other, bound}});
    return true;
}

/// Objects with a property that an excluded schema does not name, and that does not fit its rule for those: of the names that
/// are written, which are those of `rest`.
void add_other_names(const Json& excluded, const Json& rest, const std::string& place, std::vector<Json>& ways) {
    refuse_any(excluded, {"patternProperties"}, place + "/not", " in what is excluded");
    const Json& rule = excluded["additionalProperties"];
    Json names = rest.value("required", Json::array());
    const Json properties = rest.value("properties", Json::object());
    for (const auto& [name, schema] : properties.items()) names.push_back(name);
    std::set<std::string> seen;
    for (const Json& name : names)
        if (rule != true && !property_of(excluded, name) && seen.insert(name).second)
            ways.push_back(of_property(name, no(rule), true));
}

/// The schemas that fit if one keyword does not hold.
void add_ways(const std::string& key, const Json& excluded, const Json& rest, const std::string& place,
              std::vector<Json>& ways) {
    const Json& value = excluded[key];
    if (key == "format") return;  // a validator may take it for an annotation, which all texts keep to
    if (is_annotation(key) || key == "then" || key == "else" || add_other_side(key, excluded, place, ways)) return;
    if (key == "type") {
        ways.push_back(no({{"type", value}}));
    } else if (key == "enum" || key == "const") {
        ways.push_back(no({{key, value}}));
    } else if (key == "pattern") {
        ways.push_back({{"type", "string"}, {"not", {{key, value}}}});
    } else if (key == "properties" && value.is_object()) {
        for (const auto& [name, schema] : value.items())
            if (schema != true) ways.push_back(of_property(name, no(schema), true));
    } else if (key == "required" && value.is_array()) {
        for (const Json& name : value)
            if (name.is_string()) ways.push_back(of_property(name, false, false));
    } else if (key == "items" && !value.is_array() && !excluded.contains("prefixItems")) {
        ways.push_back({{"type", "array"}, {"contains", no(value)}});
    } else if (key == "contains" && !excluded.contains("minContains") && !excluded.contains("maxContains")) {
        ways.push_back({{"type", "array"}, {"items", no(value)}});
    } else if (key == "anyOf" && value.is_array()) {
        Json all = Json::array();
        for (const Json& way : value) all.push_back(no(way));
        ways.push_back({{"allOf", all}});
    } else if (key == "allOf" && value.is_array()) {
        for (const Json& one : value) ways.push_back(no(one));
    } else if (key == "not") {
        ways.push_back(value);
    } else if (key == "additionalProperties") {
        add_other_names(excluded, rest, place, ways);
    } else if (key == "oneOf" && value.is_array()) {  // none, or two
        ways.push_back({{"not", {{"anyOf", value}}}});
        for (std::size_t i = 0; i < value.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) ways.push_back({{"allOf", Json::array({value[j], value[i]})}});
    } else if (key == "prefixItems" && value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i) {
            Json first(i, Json(true));
            first.push_back(no(value[i]));
            ways.push_back({{"type", "array"}, {"minItems", i + 1}, {"prefixItems", first}});
        }
    } else if ((key == "dependentRequired" || key == "dependentSchemas" || key == "dependencies") &&
               value.is_object()) {
        for (const auto& [name, needed] : value.items()) {
            const Json is_there = of_property(name, true, true);
            if (!needed.is_array()) ways.push_back(held_together(Json::array({is_there, no(needed)})));
            for (std::size_t i = 0; needed.is_array() && i < needed.size(); ++i)
                ways.push_back(held_together(Json::array({is_there, of_property(needed[i], false, false)})));
        }
    } else if (key == "if") {
        const Json holds = excluded.value("then", Json(true)), fails = excluded.value("else", Json(true));
        if (holds != true) ways.push_back(held_together(Json::array({value, no(holds)})));
        if (fails != true) ways.push_back(held_together(Json::array({no(value), no(fails)})));
    } else {
        refuse(place + "/not/" + key, "no " + key + " in what is excluded", "it: not supported");
    }
}

[[nodiscard]] Json joined(const Json& rest, const std::vector<Json>& excluded) {
    Json out = rest;
    if (excluded.size() == 1) out["not"] = excluded[0];
    if (excluded.size() > 1) out["not"] = {{"anyOf", excluded}};
    return out;
}

}  // namespace

Json without_if(const Json& given) {
    const Json rest = without(given, {"if", "then", "else"});
    if (!given.contains("then") && !given.contains("else")) return rest;
    const Json holds = Json::array({rest, given["if"], given.value("then", Json(true))});
    const Json fails = Json::array({rest, no(given["if"]), given.value("else", Json(true))});
    return {{"anyOf", Json::array({held_together(holds), held_together(fails)})}};
}

Json split_not(const Json& given, const Resolve& resolve, const std::string& place) {
    std::vector<Json> all;
    flatten(given["not"], resolve, place, all);
    const Json rest = without(given, {"not"});
    Json out = Json::array({rest});
    std::vector<Json> plain;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (is_plain(all[i])) {
            plain.push_back(all[i]);
            continue;
        }
        std::vector<Json> ways;
        for (const auto& [key, value] : all[i].items()) add_ways(key, all[i], rest, place, ways);
        if (ways.empty()) return Json(false);
        if (ways.size() == 1) {
            out.push_back(ways[0]);  // and the next: many conditions that fail are one step, not one each
            continue;
        }
        plain.insert(plain.end(), all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end());
        out[0] = joined(rest, plain);
        Json alternatives = Json::array();
        for (const Json& way : ways) {
            Json both = out;
            both.push_back(way);
            alternatives.push_back(held_together(std::move(both)));
        }
        return {{"anyOf", alternatives}};
    }
    if (out.size() > 1) {
        out[0] = joined(rest, plain);
        return held_together(std::move(out));
    }
    if (all.empty()) return rest;
    if (all.size() == 1) return without_not(given, all[0], place);
    // Types one after the other, values together.
    const auto type = std::find_if(all.begin(), all.end(), [](const Json& one) { return !is_values(one); });
    if (type != all.end()) {
        std::iter_swap(all.begin(), type);
        const Json first = all[0];
        all.erase(all.begin());
        const Json left = without_not(joined(rest, {first}), first, place);
        return left == false ? left : held_together(Json::array({left, joined(Json::object(), all)}));
    }
    Json values = Json::array();
    for (const Json& one : all) {
        if (one.contains("type") || (one.contains("enum") && one.contains("const")))
            refuse(place + "/not", "values without a type beside them where several are excluded",
                   json_text(one) + ": not supported");
        Json only;
        const Json* found = constants_of(one, only);
        if (found == nullptr) refuse_value(place + "/not/enum", "values", one["enum"]);
        for (const Json& value : *found) values.push_back(value);
    }
    return joined(rest, std::vector<Json>(1, Json{{"enum", values}}));
}

bool is_impossible(const Json& schema, int depth) {
    if (!schema.is_object() || depth > 4) return schema == false;
    for (const char* key : {"enum", "type"})
        if (schema.contains(key) && schema[key].is_array() && schema[key].empty()) return true;
    Json one, other;
    if (const Json* values = constants_of(schema, one)) {
        const Json* gone = schema.contains("not") && is_plain(schema["not"]) && schema["not"].is_object() &&
                                   !schema["not"].contains("type")
                               ? constants_of(schema["not"], other)
                               : nullptr;
        if (values->is_array() && gone && gone->is_array() &&
            std::all_of(values->begin(), values->end(), [&](const Json& value) { return is_among(*gone, value); }))
            return true;
    }
    const bool is_object = schema.contains("type") && schema["type"] == "object";
    if (!is_object || !schema.contains("required") || !schema["required"].is_array()) return false;
    return std::any_of(schema["required"].begin(), schema["required"].end(), [&](const Json& name) {
        const Json* property = name.is_string() ? property_of(schema, name) : nullptr;
        return property && is_impossible(*property, depth + 1);
    });
}

bool splits_twice(const Json& given, const Resolve& resolve) {
    const Json all = given.value("allOf", Json());
    if (!all.is_array()) return false;
    const auto both_split = [&](const std::string& key) {
        return given.contains(key) && std::any_of(all.begin(), all.end(), [&](const Json& one) {
                   const Json schema = resolve(one);
                   return schema.is_object() && schema.contains(key);
               });
    };
    return both_split("if") || std::any_of(std::begin(kKeywords), std::end(kKeywords), [&](const Keyword& keyword) {
               return keyword.splits && both_split(std::string(keyword.name));
           });
}

}  // namespace fovea::grammar
