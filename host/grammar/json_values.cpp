#include "host/grammar/json_values.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "host/grammar/grammar.h"

namespace fovea::grammar {

namespace {

/// The bounds of a number as they stand in a schema.
struct Ends {
    double low = -HUGE_VAL, high = HUGE_VAL;
    bool open_low = false, open_high = false;
};

Ends ends_of(const Json& given, const std::string& place) {
    const auto read = [&](const char* keyword) -> std::optional<double> {
        const auto found = given.find(keyword);
        if (found == given.end() || found->is_boolean()) return std::nullopt;
        if (!found->is_number())
            throw GrammarError(place + "/" + keyword + ": expected a number, got " + found->dump());
        return found->get<double>();
    };
    const auto is_true = [&](const char* keyword) { return given.contains(keyword) && given[keyword] == true; };
    Ends ends;
    if (const auto low = read("minimum")) ends.low = *low, ends.open_low = is_true("exclusiveMinimum");  // as drafts
    if (const auto high = read("maximum")) ends.high = *high, ends.open_high = is_true("exclusiveMaximum");  // before 6
    if (const auto low = read("exclusiveMinimum"); low && *low >= ends.low) ends.low = *low, ends.open_low = true;
    if (const auto high = read("exclusiveMaximum"); high && *high <= ends.high)
        ends.high = *high, ends.open_high = true;
    return ends;
}

/// A number of JSON by the digits that it is written with.
Decimal decimal_of(double number, const std::string& place) {
    const auto most = static_cast<double>(kMostInteger + 1);
    if (std::floor(number) == number) return {static_cast<std::int64_t>(std::clamp(number, -most, most)), 0};
    const std::string text = Json(number).dump();  // "-0.125", "1.5e-07"
    const std::size_t e = text.find('e'), point = std::min(text.find('.'), e);
    const std::string places = point < text.size() && text[point] == '.' ? text.substr(point + 1, e - point - 1) : "";
    const auto n_places =
        static_cast<std::int64_t>(places.size()) - (e == text.npos ? 0 : std::stoi(text.substr(e + 1)));
    const std::string digits = text.substr(0, std::min(point, text.size())) + places;
    if (n_places > kMostPlaces || digits.size() > 16)  // a sign and fifteen digits, which kMostInteger has
        throw GrammarError(place + ": expected a bound of at most 15 digits, " + std::to_string(kMostPlaces) +
                           " of them behind the point, got " + text + ": not supported");
    return {std::stoll(digits), static_cast<std::uint32_t>(n_places)};
}

}  // namespace

NumberBounds bounds(const Json& given, const std::string& place, bool whole) {
    const Ends ends = ends_of(given, place);
    // A bound that is no whole number is not reached by one, open or not.
    const double low = whole ? std::ceil(ends.low) : ends.low, high = whole ? std::floor(ends.high) : ends.high;
    NumberBounds out;
    out.open_low = ends.open_low && low == ends.low;
    out.open_high = ends.open_high && high == ends.high;
    if (ends.low != -HUGE_VAL) out.low = decimal_of(low, place + (ends.open_low ? "/exclusiveMinimum" : "/minimum"));
    if (ends.high != HUGE_VAL) out.high = decimal_of(high, place + (ends.open_high ? "/exclusiveMaximum" : "/maximum"));
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
        const Ends e = ends_of(given, place);
        if (number < e.low || (e.open_low && number == e.low)) return false;
        if (number > e.high || (e.open_high && number == e.high)) return false;
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

std::vector<Json> constant_values(const Json& given, const std::string& place) {
    static const std::set<std::string> kBeside{
        "type",   "enum",      "const",    "nullable", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "format", "minLength", "maxLength"};
    for (const auto& [key, value] : given.items())
        if (!kBeside.contains(key) && !is_annotation(key))
            throw GrammarError(place + ": expected no " + key + " beside enum or const, got it: not supported");
    Json one;
    const Json* all = constants_of(given, one);
    if (all == nullptr) throw GrammarError(place + "/enum: expected values, got " + given["enum"].dump());
    std::vector<Json> values;
    for (const Json& value : *all)
        if (fits(value, given, place) && std::find(values.begin(), values.end(), value) == values.end())
            values.push_back(value);
    return values;
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
