#include "host/grammar/json_values.h"

#include <algorithm>
#include <cmath>

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
        if (!found->is_number()) refuse_value(place + "/" + keyword, "a number", *found);
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
    const std::string text = json_text(Json(number));  // "-0.125", "1.5e-07"
    const std::size_t e = text.find('e'), point = std::min(text.find('.'), e);
    const std::string places = point < text.size() && text[point] == '.' ? text.substr(point + 1, e - point - 1) : "";
    const auto n_places =
        static_cast<std::int64_t>(places.size()) - (e == text.npos ? 0 : std::stoi(text.substr(e + 1)));
    const std::string digits = text.substr(0, std::min(point, text.size())) + places;
    if (n_places > kMostPlaces || digits.size() > 16)  // a sign and fifteen digits, which kMostInteger has
        refuse(place, "a bound of at most 15 digits, " + std::to_string(kMostPlaces) + " of them behind the point",
               text + ": not supported");
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

Decimal step_of(const Json& given, const std::string& place) {
    const double step = given.is_number() ? given.get<double>() : 0;
    if (!(step > 0)) refuse_value(place, "a number above 0", given);
    return decimal_of(step, place);
}

bool is_multiple(double number, const Decimal& step, const std::string& place) {
    const Decimal d = decimal_of(number, place);
    if (d.value == 0 || d.places > step.places) return d.value == 0;  // the last of its places is no zero
    std::int64_t rest = d.value % step.value;
    for (std::uint32_t i = d.places; i < step.places; ++i) rest = rest * 10 % step.value;
    return rest == 0;
}

bool fits(const Json& value, const Json& given, const std::string& place) {
    if (given.contains("const") && value != given["const"]) return false;
    if (given.contains("type")) {
        bool found = false;
        for (const Json& name : list_of(given["type"])) found = found || is_of_type(value, name, place);
        if (!found && !(value.is_null() && is_true(given, "nullable"))) return false;
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

std::optional<bool> has_type(const Json& value, std::string_view type) {
    if (type == "integer") return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    return std::nullopt;
}

bool is_of_type(const Json& value, const Json& type, const std::string& place) {
    const std::string name = type.is_string() ? type.get<std::string>() : json_text(type);
    const std::optional<bool> has = has_type(value, name);
    if (!has) refuse(place + "/type", "object, array, string, number, integer, boolean or null", name);
    return *has;
}

void check_nesting(std::string_view json, std::uint32_t most) {
    if (json_depth(json) > most)
        refuse("schema", "at most " + std::to_string(most) + " brackets within brackets", "more");
}

}  // namespace fovea::grammar
