#include "host/grammar/json_references.h"

#include "host/base/ascii.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostCopied = 2'000'000;  // values of schemas that references and merging lead to

/// Values within a value, itself included.
std::size_t n_values(const Json& value) {
    std::size_t n = 1;
    if (value.is_structured())
        for (const Json& one : value) n += n_values(one);
    return n;
}

/// A step of a JSON pointer as the name that it stands for.
std::string named(std::string step) {
    for (std::size_t i = 0; (i = step.find('~', i)) != step.npos; ++i)
        step.replace(i, 2, step.substr(i, 2) == "~1" ? "/" : "~");
    return step;
}

}  // namespace

std::string pointer_of(const Json& reference, const std::string& place) {
    const std::string text = reference.is_string() ? reference.get<std::string>() : json_text(reference);
    if (!reference.is_string() || text.empty() || text[0] != '#' || (text.size() > 1 && text[1] != '/'))
        refuse(place + "/$ref", "a place in the schema such as #/$defs/name", text);
    return text.substr(1);
}

const Json& References::target(const std::string& pointer, const std::string& place) const {
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
        return root_.at(Json::json_pointer(plain));
    } catch (const nlohmann::json::exception&) {
        refuse(place + "/$ref", "a place in the schema", "#" + pointer);
    }
}

/// Follows steps from a schema, each in itself or in a part of it that holds with it; adds the steps that are taken.
bool References::find(const Json& at, std::span<const std::string> steps, std::string& place, int n_parts,
                      int& n_looks) const {
    if (steps.empty()) return true;
    if (n_looks-- <= 0) return false;
    const std::size_t length = place.size();
    const auto take = [&](const std::string& step, const Json& there, std::span<const std::string> left, int n_left) {
        place = within(place, step);
        if (find(there, left, place, n_left, n_looks)) return true;
        place.resize(length);
        return false;
    };
    if (at.is_array()) {
        const std::size_t i = std::strtoul(steps[0].c_str(), nullptr, 10);
        return i < at.size() && take(steps[0], at[i], steps.subspan(1), n_parts);
    }
    if (!at.is_object()) return false;
    if (at.contains(steps[0]) && take(steps[0], at[steps[0]], steps.subspan(1), n_parts)) return true;
    if (steps[0] == "not" && find(at, steps.subspan(1), place, n_parts, n_looks))
        return true;  // one that oneOf or `if` made
    const bool is_part = steps.size() > 2 && (steps[0] == "allOf" || steps[0] == "anyOf" || steps[0] == "oneOf");
    if (is_part && find(at, steps.subspan(2), place, n_parts, n_looks)) return true;  // of what stands beside the part
    if (n_parts == 0) return false;
    if (steps[0] == "properties" && steps.size() > 2 && at.contains("patternProperties"))
        for (const auto& [pattern, one] : at["patternProperties"].items()) {
            place += "/patternProperties";
            if (take(pattern, one, steps.subspan(2), n_parts - 1)) return true;
            place.resize(length);
        }
    for (const char* key : {"allOf", "anyOf", "oneOf"})
        for (std::size_t i = 0; at.contains(key) && at[key].is_array() && i < at[key].size(); ++i) {
            place += std::string("/") + key;
            if (take(std::to_string(i), at[key][i], steps, n_parts - 1)) return true;
            place.resize(length);
        }
    for (const char* key : {"if", "then", "else", "not", "contains"})
        if (at.contains(key) && take(key, at[key], steps, n_parts - 1)) return true;
    for (const char* key : {"dependentSchemas", "dependencies"})
        if (at.contains(key) && at[key].is_object())
            for (const auto& [name, one] : at[key].items()) {
                place += std::string("/") + key;
                if (take(name, one, steps, n_parts - 1)) return true;
                place.resize(length);
            }
    if (!at.contains("$ref")) return false;
    try {
        const std::string pointer = pointer_of(at["$ref"], place);
        std::string there = "schema" + pointer;
        if (!find(target(pointer, place), steps, there, n_parts - 1, n_looks)) return false;
        place = there;
        return true;
    } catch (const GrammarError&) {  // it leads nowhere
        return false;
    }
}

std::string References::place_of(const std::string& place) const {
    constexpr int kMostParts = 8, kMostLooks = 100'000;
    std::vector<std::string> steps;
    std::string left = place;
    for (std::size_t slash; (slash = left.rfind('/')) != left.npos; left.resize(slash))
        steps.insert(steps.begin(), named(left.substr(slash + 1)));
    for (std::size_t n = steps.size();; --n) {
        std::string found = "schema";
        int n_looks = kMostLooks;
        if (find(root_, std::span(steps).first(n), found, kMostParts, n_looks))
            return found + (n < steps.size() && !is_digit(steps.back()[0]) ? ": " + steps.back() : "");
    }
}

void References::count_copied(const Json& schema, const std::string& place) {
    n_copied_ += n_values(schema);
    if (n_copied_ > kMostCopied)
        refuse(place, "a smaller schema",
               "one whose references and conditions lead to more than " + std::to_string(kMostCopied) + " values");
}

Json References::expanded(Json given, const std::string& place) {
    for (int i = 0; given.is_object() && given.contains("$ref"); ++i) {
        if (i == 32) refuse(place + "/$ref", "a schema at its end", "ever more references");
        const Json& there = target(pointer_of(given["$ref"], place), place);
        count_copied(there, place);
        given.erase("$ref");
        const Json rules = take_unevaluated(given);
        given = has_meaning(given) || !rules.empty() ? covered(merge_schemas(there, given, place), rules) : there;
    }
    return given;
}

}  // namespace fovea::grammar
