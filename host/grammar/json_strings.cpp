// Schemas of strings, and of the names of properties.
#include <set>

#include "host/grammar/json_keywords.h"
#include "host/grammar/json_rewrite.h"
#include "host/grammar/json_types.h"

namespace fovea::grammar {
namespace {

std::string pattern_of(const Json& given, const std::string& place) {
    if (!given.is_string()) refuse_value(place, "an expression", given);
    return given;
}

/// The strings among the values of enum or const.
std::vector<std::string> strings_of(const Json& values) {
    std::vector<std::string> strings;
    for (const Json& value : list_of(values))
        if (value.is_string()) strings.push_back(value);
    return strings;
}

/// The strings that fit a schema of which speaks_of_strings holds.
Language strings_that_fit(JsonParts& parts, const Json& schema, Dialects dialects, const std::string& place) {
    if (schema == false) return {};
    Language out = Language::all();
    if (!schema.is_object()) return out;
    for (const auto& [key, value] : schema.items()) {
        const std::string here = place + "/" + key;
        parts.count_work(out, here);
        const auto part = [&](const Json& one) { return strings_that_fit(parts, one, dialects, here); };
        if (key == "pattern") out = out & language_of_regex(pattern_of(value, here), dialects);
        if (key == "enum" || key == "const")
            out = out & Language::of_texts(strings_of(key == "const" ? Json::array({value}) : value));
        if (key == "type" && !is_among(list_of(value), Json("string"))) out = {};
        if (key == "not")
            out = out - strings_that_fit(parts, value, dialects == Dialects::all ? Dialects::any : Dialects::all, here);
        if (key == "allOf")
            for (const Json& one : value) parts.count_work(out = out & part(one), here);
        if (key == "anyOf") {
            Language any;
            for (const Json& one : value) parts.count_work(any = any | part(one), here);
            out = out & any;
        }
    }
    const SizeBounds b = size_bounds(schema, "minLength", "maxLength", place);
    return b.min == 0 && b.max == kNoLimit ? out : out & Language::of_lengths(b.min, b.max);
}

/// Strings that `not` does not list, where nothing else is said of them.
NodeId other_string(JsonParts& parts, const Json& given) {
    const std::vector<std::string> names = strings_of(given["not"]["enum"]);
    const std::set<std::string> sorted(names.begin(), names.end());
    return parts.other_key({sorted.begin(), sorted.end()});
}

}  // namespace

Language language_of_names(JsonParts& parts, const Json& names, const std::string& place) {
    if (!speaks_of_strings(without(names, {"format"})))
        refuse(place, "names by length, pattern, format, values, or anyOf, allOf and not of those",
               json_text(names) + ": not supported");
    return at_place(place, [&] {
        const Language out = strings_that_fit(parts, without(names, {"format"}), Dialects::all, place);
        const auto format = names.find("format");
        const char* pattern =
            format == names.end() || names.contains("pattern") ? nullptr : pattern_of_format(*format, place);
        return pattern ? out & language_of_regex(pattern, Dialects::all) : out;
    });
}

bool share_a_string(JsonParts& parts, const Json& a, const Json& b, const std::string& place) {
    const Json one = without(a, {"format"}), other = without(b, {"format"});
    if (!speaks_of_strings(one) || !speaks_of_strings(other)) return true;
    try {
        const auto those_of = [&](const Json& s) { return strings_that_fit(parts, s, Dialects::any, place); };
        return !(those_of(one) & those_of(other)).empty();
    } catch (const GrammarError&) {  // an expression that is not read, or too many states
        return true;
    }
}

NodeId string_schema(JsonParts& parts, const Json& given, const std::string& place) {
    const SizeBounds b = size_bounds(given, "minLength", "maxLength", place);
    if (b.min > b.max) return parts.grammar().choice({});
    const char* format = nullptr;
    if (given.contains("format") && !given.contains("pattern"))  // beside a pattern it is an annotation
        format = pattern_of_format(given["format"], place + "/format");
    const auto language = [&] {
        Json all = Json::object();  // other keywords say nothing of strings
        for (const char* key : {"pattern", "format", "enum", "const", "not"})
            if (given.contains(key)) all[key] = given[key];
        return language_of_names(parts, all, place);
    };
    if (given.contains(kItem)) {
        if (b.max != kNoLimit)
            refuse(place + "/maxLength", "no maxLength of items that come once", "it: not supported");
        const Language texts =
            at_place(place, [&] { return language() & Language::of_lengths(std::max(b.min, 1u), kNoLimit); });
        return parts.item(texts, given[kItem].get<Item>(), json_text(without(given, {kItem})), place);
    }
    if (given.contains("not")) {
        const Json& no = given["not"];
        const bool lists = no.size() == 1 && no.contains("enum") && no["enum"].is_array();
        if (lists && !has_meaning(without(given, {"type", "not"}))) return other_string(parts, given);
        return parts.texts(language(), b, place);
    }
    if (given.contains("pattern"))
        return parts.pattern(pattern_of(given["pattern"], place + "/pattern"), b, place + "/pattern");
    return format ? parts.pattern(format, b, place + "/format") : parts.string(b);
}

NodeId name_schema(JsonParts& parts, const Json& names, const std::string& place) {
    const Json more = without(names, {"minLength", "maxLength", "pattern", "format", "type"});
    const bool by_name = names.value("type", Json("string")) == "string" && !has_meaning(more);
    return by_name ? string_schema(parts, names, place)
                   : parts.texts(language_of_names(parts, names, place), {}, place);
}

}  // namespace fovea::grammar
