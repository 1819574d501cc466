// JSON: its text to values and back. What the library's parser, serializer and copies are made of is compiled in json.cpp alone.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fovea {

/// A value whose objects keep the order of their members, in which templates print them and answers have them.
using Json = nlohmann::ordered_json;
/// A value whose objects have their members by name: of models' folders, where one has a hundred thousand.
using SortedJson = nlohmann::json;

/// Where a text stops being JSON, and why. Byte 0: it has a number that no double can hold.
struct JsonFault {
    std::size_t byte = 0;
    std::string words;  ///< "expected X, got Y"
};

/// What a text may hold. What copies or prints a value calls itself for each level.
struct JsonBounds {
    std::size_t depth = 2000;               ///< arrays and objects in each other
    std::size_t members = std::size_t(-1);  ///< of one object
};

/// The value that a text is; one that is_discarded(), and `fault`, where it is none. A member that comes twice has the last value.
/// The time grows with the text's bytes, whatever they are. keep(depth, event, part) is asked of each part that begins or ends, and
/// may take it; false leaves it out. With `keep` each object's end costs time by what was kept beside it: read_wanted has no such cost.
[[nodiscard]] Json read_json(std::string_view text, JsonFault* fault = nullptr, const JsonBounds& bounds = {});
[[nodiscard]] SortedJson read_sorted_json(std::string_view text, JsonFault* fault = nullptr,
                                          const SortedJson::parser_callback_t& keep = nullptr);

/// Tells a reader of a text's parts in their order, until it returns false. What is no JSON is its parse_error.
void follow_json(std::string_view text, nlohmann::json_sax<Json>& reader);

/// A value on one line. Bytes that are no UTF-8 become U+FFFD. `ascii`: all other characters are escaped.
[[nodiscard]] std::string json_text(const Json& value, bool ascii = false);
[[nodiscard]] std::string json_text(const SortedJson& value, bool ascii = false);

/// How deep brackets stand within brackets. What copies or prints a value calls itself for each level.
[[nodiscard]] std::size_t json_depth(std::string_view text);

}  // namespace fovea

#define FOVEA_JSON_MEMBERS(prefix, Value)                                                                    \
    prefix template fovea::Value::basic_json(const fovea::Value&);                                           \
    prefix template fovea::Value::basic_json(fovea::Value::initializer_list_t, bool, fovea::Value::value_t); \
    prefix template void fovea::Value::json_value::destroy(fovea::Value::value_t);                           \
    prefix template std::string fovea::Value::dump(int, char, bool, fovea::Value::error_handler_t) const;
FOVEA_JSON_MEMBERS(extern, Json)
FOVEA_JSON_MEMBERS(extern, SortedJson)
