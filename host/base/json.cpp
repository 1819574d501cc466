#include "host/base/json.h"

#include <algorithm>

FOVEA_JSON_MEMBERS(, Json)
FOVEA_JSON_MEMBERS(, SortedJson)

namespace fovea {
namespace {

template<class Value>
Value read(std::string_view text, JsonFault* fault) {
    if (!fault) return Value::parse(text, nullptr, false);
    try {
        return Value::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        fault->byte = error.byte;
    } catch (const nlohmann::json::out_of_range&) {  // of parsing, a number's alone
        fault->byte = 0;
    }
    return Value::value_t::discarded;
}

}  // namespace

Json read_json(std::string_view text, JsonFault* fault) { return read<Json>(text, fault); }
SortedJson read_sorted_json(std::string_view text, JsonFault* fault) { return read<SortedJson>(text, fault); }

std::string json_text(const Json& value, bool ascii) {
    return value.dump(-1, ' ', ascii, Json::error_handler_t::replace);
}
std::string json_text(const SortedJson& value, bool ascii) {
    return value.dump(-1, ' ', ascii, SortedJson::error_handler_t::replace);
}

std::size_t json_depth(std::string_view text) {
    std::size_t depth = 0, most = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string && c == '\\')
            ++i;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            most = std::max(most, ++depth);
        else if (!in_string && (c == '}' || c == ']') && depth)
            --depth;
    }
    return most;
}

}  // namespace fovea
