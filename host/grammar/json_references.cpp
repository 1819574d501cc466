#include "host/grammar/json_references.h"

#include <algorithm>
#include <map>

#include "host/base/ascii.h"
#include "host/grammar/grammar.h"

namespace fovea::grammar {
namespace {

constexpr std::size_t kMostLooks = 20'000;  // for a place

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

References::References(const Json& root) : root_(root), top_(root.is_object() ? Json::object() : root) {
    if (root.is_object())
        for (const auto& [key, value] : root.items())
            if (!is_annotation(key)) top_.get_ref<Json::object_t&>().push_back({key, value});
}

const Json& References::target(const std::string& pointer, const std::string& place) const {
    if (pointer.empty()) return top_;
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

/// A search for the place of steps: how many of them led where, and where it looked for how many of the parts that are left.
struct References::Search {
    std::span<const std::string> steps;
    std::size_t n_found = 0;
    std::string found = "schema";
    std::map<std::pair<const Json*, std::size_t>, int> looked = {};
};

/// Follows the steps from `i` on from a schema, each in itself or in a part of it that holds with it. True: all led somewhere.
bool References::find(const Json& at, std::size_t i, const std::string& place, int n_parts, Search& search) const {
    if (i == search.steps.size()) return true;
    if (search.looked.size() == kMostLooks) return false;
    const auto [known, is_new] = search.looked.try_emplace({&at, i}, n_parts);
    if (!is_new && known->second >= n_parts) return false;
    known->second = n_parts;
    const auto reach = [&](std::size_t n, const std::string& there) {
        if (n > search.n_found) search.n_found = n, search.found = there;
    };
    const auto take = [&](const std::string& where, const Json& there, std::size_t next, int n_left) {
        reach(next, where);
        return find(there, next, where, n_left, search);
    };
    const std::string& step = search.steps[i];
    if (at.is_array()) {
        const std::size_t n = std::strtoul(step.c_str(), nullptr, 10);
        return n < at.size() && take(within(place, step), at[n], i + 1, n_parts);
    }
    if (!at.is_object()) return false;
    if (at.contains(step) && take(within(place, step), at[step], i + 1, n_parts)) return true;
    if (step == "not" && take(place, at, i + 1, n_parts)) return true;  // one that oneOf or `if` made
    const bool has_more = search.steps.size() - i > 2;
    const bool is_part = step == "allOf" || step == "anyOf" || step == "oneOf";
    if (is_part && has_more && find(at, i + 2, place, n_parts, search)) return true;  // of what stands beside the part
    if (n_parts == 0) return false;
    const auto take_part = [&](const std::string& key, const Json& part, std::size_t next) {
        return take(place + "/" + key, part, next, n_parts - 1);
    };
    const auto take_named = [&](const char* key, std::size_t next) {
        if (!at.contains(key) || !at[key].is_object()) return false;
        return std::any_of(at[key].items().begin(), at[key].items().end(), [&](const auto& one) {
            return take(within(place + "/" + key, one.key()), one.value(), next, n_parts - 1);
        });
    };
    if (step == "properties" && has_more && take_named("patternProperties", i + 2)) return true;
    for (const char* key : {"allOf", "anyOf", "oneOf"})
        for (std::size_t n = 0; at.contains(key) && at[key].is_array() && n < at[key].size(); ++n)
            if (take_part(key + ("/" + std::to_string(n)), at[key][n], i)) return true;
    for (const char* key : {"if", "then", "else", "not", "contains"})
        if (at.contains(key) && take_part(key, at[key], i)) return true;
    for (const char* key : {"dependentSchemas", "dependencies"})
        if (take_named(key, i)) return true;
    if (!at.contains("$ref")) return false;
    try {
        const std::string pointer = pointer_of(at["$ref"], place);
        return find(target(pointer, place), i, "schema" + pointer, n_parts - 1, search);
    } catch (const GrammarError&) {  // it leads nowhere
        return false;
    }
}

std::string References::place_of(const std::string& place) const {
    constexpr int kMostParts = 8;
    std::vector<std::string> steps;
    std::string left = place;
    for (std::size_t slash; (slash = left.rfind('/')) != left.npos; left.resize(slash))
        steps.insert(steps.begin(), named(left.substr(slash + 1)));
    Search search{steps};
    (void)find(root_, 0, "schema", kMostParts, search);
    const bool is_word = search.n_found < steps.size() && !is_digit(steps.back()[0]);
    return search.found + (is_word ? ": " + steps.back() : "");
}

void References::count_copied(const Json& schema, const std::string& place) { count(n_values(schema), place); }

void References::count(std::size_t n, const std::string& place) {
    n_copied_ += n;
    if (n_copied_ > most_copied_)
        refuse(place, "a smaller schema, or fewer conditions that may hold together",
               "one whose references and conditions lead to more than " + std::to_string(most_copied_) + " values");
}

const Json& References::resolved(const Json& given, Json& made, const std::string& place) {
    const Json* at = &given;
    for (int i = 0; at->is_object() && at->contains("$ref"); ++i) {
        if (i == 32) refuse(place + "/$ref", "a schema at its end", "ever more references");
        const Json& there = target(pointer_of((*at)["$ref"], place), place);
        Json beside = without(*at, {"$ref"});
        if (!has_meaning(beside)) {
            count(1 + there.size(), place);
            at = &there;
            continue;
        }
        count_copied(there, place);
        const Json rules = take_unevaluated(beside);
        made = covered(merge_schemas(there, beside, place), rules);
        at = &made;
    }
    return *at;
}

Json References::expanded(const Json& given, const std::string& place) {
    Json made;
    return resolved(given, made, place);
}

}  // namespace fovea::grammar
