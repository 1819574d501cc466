// Schemas of strings, and of the names of properties.
#include <set>

#include "host/grammar/json_rewrite.h"
#include "host/grammar/json_types.h"

namespace fovea::grammar {
namespace {

/// A string that `not` does not list.
NodeId other_string(JsonParts& parts, const Json& given, const std::string& place) {
    refuse_any(given, {"pattern", "format", "minLength", "maxLength"}, place, " beside not");
    std::set<std::string> names;
    for (const Json& value : given["not"]["enum"]) names.insert(value.get<std::string>());
    return parts.other_key({names.begin(), names.end()});
}

}  // namespace

NodeId string_schema(JsonParts& parts, const Json& given, const std::string& place) {
    const StringBounds b{read_size(given, "minLength", 0, place), read_size(given, "maxLength", kNoLimit, place)};
    if (b.min > b.max) return parts.grammar().choice({});
    if (given.contains("not")) return other_string(parts, given, place);
    const bool has_pattern = given.contains("pattern"), has_format = given.contains("format");
    if (has_pattern && has_format) refuse(place, "pattern or format", "both: not supported");
    if (has_pattern) {
        if (!given["pattern"].is_string()) refuse_value(place + "/pattern", "an expression", given["pattern"]);
        return parts.pattern(given["pattern"], b, place + "/pattern");
    }
    if (!has_format) return parts.string(b);
    if (!given["format"].is_string()) refuse_value(place + "/format", "a name", given["format"]);
    return parts.format(given["format"], b, place + "/format");
}

NodeId name_schema(JsonParts& parts, const Json& names, const std::string& place) {
    for (const auto& [key, value] : names.items()) {
        const bool is_kept = key == "minLength" || key == "maxLength" || key == "pattern" || key == "format" ||
                             (key == "type" && value == "string") || (key == "not" && excludes_strings(names));
        if (!is_kept && !is_annotation(key))
            refuse(place, "names by length, pattern, format or enum", key + ": not supported");
    }
    return string_schema(parts, names, place);
}

}  // namespace fovea::grammar
