#include "convert/grammar/json_values.h"

#include <algorithm>
#include <cmath>

#include "convert/grammar/grammar.h"

namespace fovea::grammar {

NumberBounds bounds(const Json& given, const std::string& place, bool whole) {
    NumberBounds out;
    const auto read = [&](const char* keyword, bool up) -> std::optional<std::int64_t> {
        const auto found = given.find(keyword);
        if (found == given.end() || found->is_boolean()) return std::nullopt;
        if (!found->is_number())
            throw GrammarError(place + "/" + keyword + ": expected a number, got " + found->dump());
        const double number = found->get<double>();
        if (!whole && std::floor(number) != number)
            throw GrammarError(place + "/" + keyword + ": expected a whole number, got " + found->dump() +
                               ": not supported");
        const double near = up ? std::ceil(number) : std::floor(number);
        const auto most = static_cast<double>(kMostInteger + 1);
        return static_cast<std::int64_t>(std::max(-most, std::min(most, near)));
    };
    const auto is_true = [&](const char* keyword) { return given.contains(keyword) && given[keyword] == true; };
    out.low = read("minimum", true);
    out.high = read("maximum", false);
    out.open_low = out.low && is_true("exclusiveMinimum");  // as drafts before 6 have it
    out.open_high = out.high && is_true("exclusiveMaximum");
    // A bound that is no whole number is not reached by one, open or not.
    const auto is_whole = [&](const char* keyword) {
        return std::floor(given[keyword].get<double>()) == given[keyword].get<double>();
    };
    if (const auto low = read("exclusiveMinimum", true); low && (!out.low || *low >= *out.low)) {
        out.low = low;
        out.open_low = is_whole("exclusiveMinimum");
    }
    if (const auto high = read("exclusiveMaximum", false); high && (!out.high || *high <= *out.high)) {
        out.high = high;
        out.open_high = is_whole("exclusiveMaximum");
    }
    return out;
}

bool fits(const Json& value, const Json& given, const std::string& place) {
    if (given.contains("const") && value != given["const"]) return false;
    if (given.contains("type")) {
        const Json& type = given["type"];
        bool found = false;
        for (const Json& name : type.is_array() ? type : Json::array({type}))
            found = found || is_of_type(value, name, place);
        if (!found && !(value.is_null() && given.contains("nullable") && given["nullable"] == true)) return false;
    }
    if (value.is_number()) {
        const double number = value.get<double>();
        const NumberBounds b = bounds(given, place);
        if (b.low && (number < static_cast<double>(*b.low) || (b.open_low && number == static_cast<double>(*b.low))))
            return false;
        if (b.high &&
            (number > static_cast<double>(*b.high) || (b.open_high && number == static_cast<double>(*b.high))))
            return false;
    }
    if (value.is_string()) {
        std::uint32_t n = 0;
        for (const char c : value.get_ref<const std::string&>()) n += (c & 0xc0) != 0x80;
        return n >= read_size(given, "minLength", 0, place) && n <= read_size(given, "maxLength", kNoLimit, place);
    }
    return true;
}

bool is_of_type(const Json& value, const Json& type, const std::string& place) {
    const std::string name = type.is_string() ? type.get<std::string>() : type.dump();
    if (name == "integer")
        return value.is_number_integer() ||
               (value.is_number() && std::floor(value.get<double>()) == value.get<double>());
    if (name == "number") return value.is_number();
    if (name == "string") return value.is_string();
    if (name == "boolean") return value.is_boolean();
    if (name == "null") return value.is_null();
    if (name == "object") return value.is_object();
    if (name == "array") return value.is_array();
    throw GrammarError(place + "/type: expected object, array, string, number, integer, boolean or null, got " + name);
}

std::string pointer_of(const Json& reference, const std::string& place) {
    const std::string text = reference.is_string() ? reference.get<std::string>() : reference.dump();
    if (!reference.is_string() || text.empty() || text[0] != '#' || (text.size() > 1 && text[1] != '/'))
        throw GrammarError(place + "/$ref: expected a place in the schema such as #/$defs/name, got " + text);
    return text.substr(1);
}

const Json& target_of(const Json& root, const std::string& pointer, const std::string& place) {
    std::string plain;
    for (std::size_t i = 0; i < pointer.size(); ++i) {
        if (pointer[i] == '%' && i + 2 < pointer.size()) {
            plain += static_cast<char>(std::strtoul(pointer.substr(i + 1, 2).c_str(), nullptr, 16));
            i += 2;
        } else {
            plain += pointer[i];
        }
    }
    try {
        return root.at(Json::json_pointer(plain));
    } catch (const nlohmann::json::exception&) {
        throw GrammarError(place + "/$ref: expected a place in the schema, got #" + pointer);
    }
}

std::size_t n_values(const Json& value) {
    std::size_t n = 1;
    if (value.is_structured())
        for (const Json& one : value) n += n_values(one);
    return n;
}

void check_nesting(std::string_view json, std::uint32_t most) {
    std::uint32_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (in_string && c == '\\') {
            ++i;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == '{' || c == '[')) {
            if (++depth > most)
                throw GrammarError("schema: expected at most " + std::to_string(most) +
                                   " brackets within brackets, got more");
        } else if (!in_string && (c == '}' || c == ']') && depth) {
            --depth;
        }
    }
}

}  // namespace fovea::grammar
