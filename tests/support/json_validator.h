// Whether a JSON value fits a schema, only by the standard's words: the answers of forms are checked with it. It knows
// the keywords that the test schemas have; formats and patterns are for Python's validator.
#pragma once
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace fovea::testing {

class JsonValidator {
public:
    using Json = nlohmann::ordered_json;
    explicit JsonValidator(const Json& root) : root_(root) {}

    [[nodiscard]] bool fits(const Json& value) const { return fits(value, root_); }

private:
    [[nodiscard]] bool fits(const Json& value, const Json& schema) const {
        if (schema.is_boolean()) return schema.get<bool>();
        for (const auto& [key, rule] : schema.items())
            if (!keeps(value, schema, key, rule)) return false;
        return true;
    }

    [[nodiscard]] bool keeps(const Json& value, const Json& schema, const std::string& key, const Json& rule) const {
        if (key == "$ref") return fits(value, root_.at(Json::json_pointer(rule.get<std::string>().substr(1))));
        if (key == "type") return is_one_of_types(value, rule);
        if (key == "const") return value == rule;
        if (key == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
        if (key == "allOf") return count(value, rule) == rule.size();
        if (key == "anyOf") return count(value, rule) > 0;
        if (key == "oneOf") return count(value, rule) == 1;
        if (key == "not") return !fits(value, rule);
        if (key == "if") return fits(value, schema.value(fits(value, rule) ? "then" : "else", Json(true)));
        if (value.is_number()) return keeps_number(value.get<double>(), key, rule);
        if (value.is_string()) return keeps_string(value.get<std::string>(), key, rule);
        if (value.is_array()) return keeps_array(value, schema, key, rule);
        if (value.is_object()) return keeps_object(value, schema, key, rule);
        return true;
    }

    [[nodiscard]] std::size_t count(const Json& value, const Json& schemas) const {
        std::size_t n = 0;
        for (const Json& schema : schemas) n += fits(value, schema);
        return n;
    }

    static bool is_one_of_types(const Json& value, const Json& types) {
        if (!types.is_array()) return is_of_type(value, types);
        for (const Json& type : types)
            if (is_of_type(value, type)) return true;
        return false;
    }
    static bool is_of_type(const Json& value, const std::string& type) {
        return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
               (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
               (type == "null" && value.is_null()) || (type == "number" && value.is_number()) ||
               (type == "integer" && value.is_number() && std::floor(value.get<double>()) == value.get<double>());
    }

    static bool keeps_number(double value, const std::string& key, const Json& rule) {
        if (key == "minimum") return value >= rule.get<double>();
        if (key == "maximum") return value <= rule.get<double>();
        if (key == "exclusiveMinimum") return value > rule.get<double>();
        if (key == "exclusiveMaximum") return value < rule.get<double>();
        return true;
    }
    static bool keeps_string(const std::string& value, const std::string& key, const Json& rule) {
        std::size_t n = 0;
        bool ascii = true;
        for (const char c : value) {
            n += (c & 0xc0) != 0x80;
            ascii = ascii && (c & 0x80) == 0;
        }
        if (key == "minLength") return n >= rule.get<std::size_t>();
        if (key == "maxLength") return n <= rule.get<std::size_t>();
        if (key == "pattern" && ascii) return std::regex_search(value, std::regex(rule.get<std::string>()));
        return true;
    }
    [[nodiscard]] bool keeps_array(const Json& value, const Json& schema, const std::string& key,
                                   const Json& rule) const {
        if (key == "minItems") return value.size() >= rule.get<std::size_t>();
        if (key == "maxItems") return value.size() <= rule.get<std::size_t>();
        if (key == "uniqueItems" && rule == true) {
            for (std::size_t i = 0; i < value.size(); ++i)
                if (std::find(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(i), value[i]) !=
                    value.begin() + static_cast<std::ptrdiff_t>(i))
                    return false;
            return true;
        }
        if (key == "contains") {
            const auto n = static_cast<std::size_t>(
                std::count_if(value.begin(), value.end(), [&](const Json& item) { return fits(item, rule); }));
            return n >= schema.value("minContains", std::size_t{1}) && n <= schema.value("maxContains", value.size());
        }
        const std::size_t n_first = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
        for (std::size_t i = 0; i < value.size(); ++i) {
            if (key == "prefixItems" && i < n_first && !fits(value[i], rule[i])) return false;
            if (key == "items" && i >= n_first && !fits(value[i], rule)) return false;
        }
        return true;
    }
    [[nodiscard]] bool keeps_object(const Json& value, const Json& schema, const std::string& key,
                                    const Json& rule) const {
        if (key == "required") {
            for (const Json& name : rule)
                if (!value.contains(name.get<std::string>())) return false;
            return true;
        }
        if (key == "dependentRequired") {
            for (const auto& [name, needed] : rule.items())
                for (const Json& other : needed)
                    if (value.contains(name) && !value.contains(other.get<std::string>())) return false;
            return true;
        }
        if (key == "dependentSchemas" || key == "dependencies") {
            for (const auto& [name, needed] : rule.items())
                if (value.contains(name) && !fits(value, needed.is_array() ? Json{{"required", needed}} : needed))
                    return false;
            return true;
        }
        if (key == "maxProperties") return value.size() <= rule.get<std::size_t>();
        if (key == "minProperties") return value.size() >= rule.get<std::size_t>();
        const Json named = schema.value("properties", Json::object());
        for (const auto& [name, member] : value.items()) {
            if (key == "properties" && named.contains(name) && !fits(member, named[name])) return false;
            if (key == "propertyNames" && !fits(name, rule)) return false;
            if (key == "patternProperties")
                for (const auto& [pattern, one] : rule.items())
                    if (std::regex_search(name, std::regex(pattern)) && !fits(member, one)) return false;
            if (key == "additionalProperties" && !named.contains(name) && !is_patterned(name, schema) &&
                !fits(member, rule))
                return false;
        }
        return true;
    }

    static bool is_patterned(const std::string& name, const Json& schema) {
        const Json patterns = schema.value("patternProperties", Json::object());
        for (const auto& [pattern, one] : patterns.items())
            if (std::regex_search(name, std::regex(pattern))) return true;
        return false;
    }

    const Json& root_;
};

}  // namespace fovea::testing
