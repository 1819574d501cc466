// Constants that keep to what stands beside them: a validator of values, which a schema has few of.
#include <algorithm>
#include <set>

#include "host/grammar/json_keywords.h"
#include "host/grammar/json_values.h"
#include "host/grammar/regex.h"

namespace fovea::grammar {
namespace {

class Validator {
public:
    Validator(References& references, const std::string& place) : references_(references), place_(place) {}

    /// Texts that dialects of expressions differ on do not fit.
    [[nodiscard]] bool fits(const Json& value, const Json& given, Dialects dialects = Dialects::all, int depth = 0) {
        if (given.is_boolean()) return given.get<bool>();
        if (!given.is_object()) refuse_value(place_, "a schema", given);
        if (depth > kMostDepth) refuse(place_, "a schema at its end beside enum or const", "ever more references");
        const Json schema = references_.expanded(given, place_);
        if (!schema.is_object()) return schema == true;
        if (!grammar::fits(value, schema, place_)) return false;
        const auto is_kept = [&](const auto& item) {
            const std::string& key = item.key();
            const auto part = [&](const Json& one) { return fits(value, one, dialects, depth + 1); };
            const Json& rule = item.value();
            if (key == "allOf") return std::all_of(rule.begin(), rule.end(), part);
            if (key == "anyOf") return std::any_of(rule.begin(), rule.end(), part);
            if (key == "enum") return is_among(rule, value);
            if (key == "pattern")
                return !value.is_string() ||
                       language_of_regex(rule.get<std::string>(), dialects).has(value.get<std::string>());
            if (key == "multipleOf") {
                const std::string at = place_ + "/" + key;
                const Decimal step = step_of(rule, at);
                return !value.is_number() || is_multiple(value.get<double>(), step, at);
            }
            if (key == "not")
                return !fits(value, rule, dialects == Dialects::all ? Dialects::any : Dialects::all, depth + 1);
            if (value.is_array()) return keeps_array(value, schema, key, rule, dialects, depth);
            if (value.is_object()) return keeps_object(value, schema, key, rule, dialects, depth);
            return unread_or_of_another_type(key, "");
        };
        return std::all_of(schema.items().begin(), schema.items().end(), is_kept);
    }

private:
    static constexpr int kMostDepth = 64;

    [[noreturn]] bool unread(const std::string& key) const {
        refuse(place_ + "/" + key, "no " + key + " beside enum or const", "it: not supported");
    }

    bool keeps_array(const Json& value, const Json& schema, const std::string& key, const Json& rule, Dialects dialects,
                     int depth) {
        const auto part = [&](const Json& item, const Json& one) { return fits(item, one, dialects, depth + 1); };
        if (key == "minItems" || key == "maxItems") {
            const SizeBounds b = size_bounds(schema, "minItems", "maxItems", place_);
            return value.size() >= b.min && value.size() <= b.max;
        }
        if (key == "uniqueItems") {
            for (auto item = value.begin(); rule == true && item != value.end(); ++item)
                if (std::find(value.begin(), item, *item) != item) return false;
            return true;
        }
        if (key == "items" || key == "prefixItems" || key == "additionalItems") {
            const auto [first, rest] = items_of(schema, place_);
            for (std::size_t i = 0; i < value.size(); ++i)
                if (!part(value[i], i < first.size() ? first[i] : rest)) return false;
            return true;
        }
        return unread_or_of_another_type(key, "array");
    }

    bool keeps_object(const Json& value, const Json& schema, const std::string& key, const Json& rule,
                      Dialects dialects, int depth) {
        const auto part = [&](const Json& one, const Json& of) { return fits(one, of, dialects, depth + 1); };
        if (key == "minProperties" || key == "maxProperties") {
            const SizeBounds b = size_bounds(schema, "minProperties", "maxProperties", place_);
            return value.size() >= b.min && value.size() <= b.max;
        }
        if (key == "required")
            return std::all_of(rule.begin(), rule.end(), [&](const Json& name) {
                return name.is_string() && value.contains(name.get<std::string>());
            });
        if (key == "additionalProperties" && schema.contains("patternProperties")) return unread(key);
        for (const auto& [name, one] : value.items()) {
            const Json* known = property_of(schema, name);
            if (key == "properties" && known && !part(one, *known)) return false;
            if (key == "additionalProperties" && !known && !part(one, rule)) return false;
            if (key == "propertyNames" && !part(Json(name), rule)) return false;
        }
        return key == "properties" || key == "additionalProperties" || key == "propertyNames" ||
               unread_or_of_another_type(key, "object");
    }

    bool unread_or_of_another_type(const std::string& key, std::string_view type) {
        const Keyword* keyword = find_keyword(key);
        if (!keyword || key == "type" || key == "const" || key == "nullable") return true;
        return keyword->type && keyword->type != type ? true : unread(key);
    }

    References& references_;
    const std::string& place_;
};

}  // namespace

std::vector<Json> constant_values(const Json& given, References& references, const std::string& place) {
    Json one;
    const Json* all = constants_of(given, one);
    if (all == nullptr) refuse_value(place + "/enum", "values", given["enum"]);
    const Json beside = given.contains("const") ? given : without(given, {"enum"});  // of thousands, each is among them
    Validator validator(references, place);
    std::vector<Json> values;
    std::set<Json> seen;
    for (const Json& value : *all)
        if (validator.fits(value, beside) && seen.insert(value).second) values.push_back(value);
    return values;
}

}  // namespace fovea::grammar
