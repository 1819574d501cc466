// JSON schemas as grammars. What a keyword forbids is never written; what no grammar can keep is refused by its name.
#include <cmath>
#include <map>
#include <set>

#include "host/grammar/json_conditions.h"
#include "host/grammar/json_merge.h"
#include "host/grammar/json_parts.h"
#include "host/grammar/json_rewrite.h"
#include "host/grammar/json_values.h"

namespace fovea::grammar {
namespace {

constexpr std::uint32_t kMostDepth = 200;      // schemas within schemas
constexpr std::size_t kMostNodes = 1'000'000;  // of the grammar
constexpr std::size_t kMostRewritten = 4'000;
constexpr std::size_t kMostCopied = 20'000'000;  // values of schemas that references and merging lead to
constexpr std::size_t kMostUnique = 9;           // values of items that come once: a rule for each set of them

/// Keywords that ask for what is not kept.
constexpr const char* kUnsupported[] = {"unevaluatedItems", "$dynamicRef", "$recursiveRef"};

class SchemaReader {
public:
    SchemaReader(const Json& root, const SchemaOptions& options) : root_(root), parts_(grammar_, options.compact) {}

    Grammar read() {
        const RuleId rule = grammar_.add_rule("root");
        references_[""] = rule;
        const NodeId body = schema(root_, "schema", 0);
        grammar_.rules[rule].body = body;
        grammar_.root = rule;
        return std::move(grammar_);
    }

private:
    // ---- references ------------------------------------------------------------------------------------------------

    /// References may lead to the same schemas again and again, each time twice as many: what that takes is bounded.
    void count_copied(const Json& schema, const std::string& place) const {
        n_copied_ += n_values(schema);
        if (n_copied_ > kMostCopied)
            throw GrammarError(
                place + ": expected a smaller schema, got one whose references and conditions lead to more than " +
                std::to_string(kMostCopied) + " values");
    }

    /// A schema without references at its top.
    [[nodiscard]] Json expanded(Json given, const std::string& place) const {
        for (int i = 0; given.is_object() && given.contains("$ref"); ++i) {
            if (i == 32) throw GrammarError(place + "/$ref: expected a schema at its end, got ever more references");
            const Json& target = target_of(root_, pointer_of(given["$ref"], place), place);
            count_copied(target, place);
            given.erase("$ref");
            given = has_meaning(given) ? merge_schemas(as_inner(target, place), given, place) : target;
        }
        return given;
    }
    [[nodiscard]] static bool has_meaning(const Json& schema) {
        for (const auto& [key, value] : schema.items())
            if (!is_annotation(key)) return true;
        return false;
    }

    NodeId reference(const std::string& pointer, const std::string& place, std::uint32_t depth) {
        if (const auto known = references_.find(pointer); known != references_.end())
            return grammar_.rule(known->second);
        const std::string name = pointer.substr(pointer.rfind('/') + 1);
        const RuleId rule = grammar_.add_rule(name);
        references_[pointer] = rule;
        const NodeId body = schema(target_of(root_, pointer, place), "schema#" + pointer, depth);
        grammar_.rules[rule].body = body;
        return grammar_.rule(rule);
    }

    // ---- any schema ------------------------------------------------------------------------------------------------

    NodeId schema(const Json& given, const std::string& place, std::uint32_t depth) {
        if (depth > kMostDepth)
            throw GrammarError(place.substr(0, 200) + ": expected schemas at most " + std::to_string(kMostDepth) +
                               " deep within schemas, got more");
        if (grammar_.nodes.size() > kMostNodes)
            throw GrammarError(place + ": expected a smaller schema, got one too large");
        if (given == true) return parts_.any_value();
        if (given == false) return grammar_.choice({});
        if (!given.is_object()) throw GrammarError(place + ": expected a schema, got " + given.dump());
        check_keywords(given, place);
        if (given.contains("$ref")) {
            Json beside = given;
            beside.erase("$ref");
            if (!has_meaning(beside)) return reference(pointer_of(given["$ref"], place), place, depth + 1);
            return once(expanded(given, place), place, depth);
        }
        const Resolve resolve = [&](const Json& one) { return expanded(one, place); };
        if (given.contains("allOf") && !splits_twice(given, resolve)) return all_of(given, place, depth);
        if (given.contains("if")) return rewritten(without_if(given), place, depth);
        for (const char* keyword : {"anyOf", "oneOf"})
            if (given.contains(keyword)) return any_of(given, keyword, place, depth);
        for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"})
            if (given.contains(keyword)) return rewritten(without_dependency(given, keyword, place), place, depth);
        if (given.contains("not") && !excludes_strings(given)) {
            if (const auto split = split_not(given, resolve, place)) return rewritten(*split, place, depth);
            return rewritten(without_not(given, expanded(given["not"], place), place), place, depth);
        }
        if (given.contains("enum") || given.contains("const")) return constants(given, place);
        if (given.contains("nullable") && given["nullable"] == true && !given.contains("type")) {
            Json rest = given;
            rest.erase("nullable");
            return grammar_.choice({schema(rest, place, depth + 1), grammar_.bytes("null")});
        }
        return typed(given, place, depth);
    }

    /// A schema that was made of several. One that comes again within itself is a rule that calls itself.
    NodeId once(const Json& made, const std::string& place, std::uint32_t depth) {
        const auto [known, is_new] = made_.try_emplace(made.dump(), 0);
        if (!is_new) return grammar_.rule(known->second);
        const RuleId rule = known->second = grammar_.add_rule("merged");
        const NodeId body = schema(made, place, depth + 1);
        grammar_.rules[rule].body = body;
        return grammar_.rule(rule);
    }

    /// What says the same as the schema at `place`: that, or alternatives, which keep the place that a reader knows. Conditions
    /// that do not exclude one another double them, so they are counted.
    NodeId rewritten(const Json& given, const std::string& place, std::uint32_t depth) {
        if (++n_rewritten_ > kMostRewritten)
            throw GrammarError(place + ": expected fewer conditions that may hold together, got more than " +
                               std::to_string(kMostRewritten) + " combinations");
        if (!given.is_object() || given.size() != 1 || !given.contains("anyOf")) return schema(given, place, depth + 1);
        std::vector<NodeId> nodes;
        for (const Json& way : given["anyOf"])
            if (!is_impossible(way)) nodes.push_back(schema(way, place, depth + 1));
        return grammar_.choice(std::move(nodes));
    }

    void check_keywords(const Json& given, const std::string& place) const {
        for (const char* keyword : kUnsupported)
            if (given.contains(keyword))
                throw GrammarError(place + ": expected no " + keyword + ", got it: not supported");
        if (given.contains("unevaluatedProperties") && given["unevaluatedProperties"] != false)
            throw GrammarError(place + ": expected no unevaluatedProperties but false, got it: not supported");
    }

    NodeId all_of(const Json& given, const std::string& place, std::uint32_t depth) {
        Json out = given;
        const Json all = given["allOf"];
        out.erase("allOf");
        if (!all.is_array() || all.empty()) throw GrammarError(place + "/allOf: expected schemas, got " + all.dump());
        if (all.size() == 1 && !has_meaning(out)) return schema(all[0], place + "/allOf/0", depth + 1);
        for (const Json& one : all) {
            out = merge_schemas(out, as_inner(expanded(one, place), place), place);
            count_copied(out, place);
        }
        return is_impossible(out) ? grammar_.choice({}) : once(out, place, depth);
    }

    NodeId any_of(const Json& given, const char* keyword, const std::string& place, std::uint32_t depth) {
        const Json all = given[keyword];
        if (!all.is_array() || all.empty())
            throw GrammarError(place + "/" + keyword + ": expected schemas, got " + all.dump());
        Json beside = given;
        beside.erase(keyword);
        const bool alone = !has_meaning(beside);
        std::vector<Json> ways;
        for (const Json& one : all) {
            ways.push_back(alone ? one : merge_schemas(beside, as_inner(expanded(one, place), place), place));
            count_copied(ways.back(), place);
        }
        if (std::string_view(keyword) == "oneOf") check_apart(ways, place);
        std::vector<NodeId> nodes;
        for (std::size_t i = 0; i < ways.size(); ++i) {
            if (is_impossible(ways[i])) continue;
            const std::string here = place + "/" + keyword + "/" + std::to_string(i);
            nodes.push_back(alone ? schema(ways[i], here, depth + 1) : once(ways[i], here, depth));
        }
        return grammar_.choice(std::move(nodes));
    }

    /// One of oneOf, and no other, must fit.
    void check_apart(const std::vector<Json>& ways, const std::string& place) const {
        const auto resolve = [&](const Json& given) { return expanded(given, place); };
        for (std::size_t i = 0; i < ways.size(); ++i)
            for (std::size_t j = i + 1; j < ways.size(); ++j)
                if (!are_apart(ways[i], ways[j], resolve))
                    throw GrammarError(place +
                                       "/oneOf: expected schemas of which no text fits two (by type, constant, " +
                                       "bounds or a required property), got " + std::to_string(i) + " and " +
                                       std::to_string(j) + "; anyOf takes them");
    }

    // ---- constants -------------------------------------------------------------------------------------------------

    std::vector<Json> constant_values(const Json& given, const std::string& place) const {
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

    NodeId constants(const Json& given, const std::string& place) {
        std::vector<NodeId> nodes;
        for (const Json& value : constant_values(given, place)) nodes.push_back(grammar_.bytes(value.dump()));
        return grammar_.choice(std::move(nodes));
    }

    // ---- types -----------------------------------------------------------------------------------------------------

    NodeId typed(const Json& given, const std::string& place, std::uint32_t depth) {
        std::vector<std::string> types;
        if (given.contains("type")) {
            const Json& type = given["type"];
            for (const Json& name : type.is_array() ? type : Json::array({type})) {
                if (!name.is_string())
                    throw GrammarError(place + "/type: expected a type or a list of types, got " + name.dump());
                (void)is_of_type(nullptr, name, place);
                types.push_back(name);
            }
            if (given.contains("nullable") && given["nullable"] == true) types.emplace_back("null");
        } else {
            types = types_of(given);
            if (types.size() == 6) return parts_.any_value();
        }
        std::vector<NodeId> nodes;
        std::set<std::string> seen;
        for (const std::string& type : types)
            if (seen.insert(type).second) nodes.push_back(of_type(type, given, place, depth));
        return grammar_.choice(std::move(nodes));
    }

    NodeId of_type(const std::string& type, const Json& given, const std::string& place, std::uint32_t depth) {
        if (type == "object") return object(given, place, depth);
        if (type == "array") return array(given, place, depth);
        if (type == "string") return string(given, place);
        if (type == "boolean") return grammar_.choice({grammar_.bytes("true"), grammar_.bytes("false")});
        if (type == "null") return grammar_.bytes("null");
        bool whole = type == "integer";
        if (given.contains("multipleOf")) {
            if (given["multipleOf"] != 1)
                throw GrammarError(place + "/multipleOf: expected 1, got " + given["multipleOf"].dump() +
                                   ": not supported");
            whole = true;
        }
        const NumberBounds b = bounds(given, place, whole);
        return whole ? parts_.integer(b) : parts_.number(b);
    }

    NodeId string(const Json& given, const std::string& place) {
        const StringBounds b{read_size(given, "minLength", 0, place), read_size(given, "maxLength", kNoLimit, place)};
        if (b.min > b.max) return grammar_.choice({});
        if (given.contains("not")) return other_string(given, place);
        const bool has_pattern = given.contains("pattern"), has_format = given.contains("format");
        if (has_pattern && has_format)
            throw GrammarError(place + ": expected pattern or format, got both: not supported");
        if (has_pattern) {
            if (!given["pattern"].is_string())
                throw GrammarError(place + "/pattern: expected an expression, got " + given["pattern"].dump());
            return parts_.pattern(given["pattern"], b, place + "/pattern");
        }
        if (!has_format) return parts_.string(b);
        if (!given["format"].is_string())
            throw GrammarError(place + "/format: expected a name, got " + given["format"].dump());
        return parts_.format(given["format"], b, place + "/format");
    }

    /// A string that is none of those of `not`.
    NodeId other_string(const Json& given, const std::string& place) {
        for (const char* keyword : {"pattern", "format", "minLength", "maxLength"})
            if (given.contains(keyword))
                throw GrammarError(place + ": expected no " + keyword + " beside not, got it: not supported");
        std::set<std::string> names;
        for (const Json& value : given["not"]["enum"]) names.insert(value.get<std::string>());
        return parts_.other_key({names.begin(), names.end()});
    }

    // ---- objects and arrays ----------------------------------------------------------------------------------------

    NodeId member(NodeId key, NodeId value) {
        return grammar_.sequence({key, grammar_.bytes(":"), parts_.space(), value});
    }

    /// A name that fits a schema of strings.
    NodeId name_of(const Json& names, const std::string& place) {
        for (const auto& [key, value] : names.items()) {
            const bool is_kept = key == "minLength" || key == "maxLength" || key == "pattern" || key == "format" ||
                                 (key == "type" && value == "string") || (key == "not" && excludes_strings(names));
            if (!is_kept && !is_annotation(key))
                throw GrammarError(place + ": expected names by length, pattern, format or enum, got " + key +
                                   ": not supported");
        }
        return string(names, place);
    }

    /// Names that fit a pattern, each with a schema; or, of propertyNames, names that fit a schema.
    NodeId patterned(const Json& given, const std::string& place, std::uint32_t depth) {
        for (const char* keyword : {"properties", "required"})
            if (given.contains(keyword) && !given[keyword].empty())
                throw GrammarError(
                    place + ": expected no " + keyword +
                    " beside patternProperties or a propertyNames that is no enum, got it: not supported");
        NodeId key = 0, value = 0;
        if (!given.contains("patternProperties")) {
            key = name_of(expanded(given["propertyNames"], place + "/propertyNames"), place + "/propertyNames");
            const Json more = given.value("additionalProperties", given.value("unevaluatedProperties", Json(true)));
            value = schema(more, place + "/additionalProperties", depth + 1);
        } else {
            const Json& all = given["patternProperties"];
            std::vector<NodeId> keys;
            for (const auto& [pattern, one] : all.items()) {
                if (one != *all.begin())  // a name that two patterns fit must have a value that fits both
                    throw GrammarError(
                        place +
                        "/patternProperties: expected patterns of one schema, got several schemas: " + "not supported");
                keys.push_back(parts_.pattern(pattern, {}, place + "/patternProperties"));
            }
            key = grammar_.choice(std::move(keys));
            value = schema(*all.begin(), place + "/patternProperties", depth + 1);
        }
        return counted(given, place, {member(key, value)}, std::string(1, kAnyNumber));
    }

    NodeId object(const Json& given, const std::string& place, std::uint32_t depth) {
        if (given.contains("propertyNames") && given["propertyNames"] != true) {
            const Json names = expanded(given["propertyNames"], place + "/propertyNames");
            if (given.contains("patternProperties"))
                throw GrammarError(place + ": expected patternProperties or propertyNames, got both: not supported");
            if (names == false) return schema(with_names(given, {{"enum", Json::array()}}, place), place, depth + 1);
            if (names.contains("enum") || names.contains("const"))
                return schema(with_names(given, names, place), place, depth + 1);
            const bool names_some = !given.value("properties", Json::object()).empty();
            if (names_some || given.value("additionalProperties", Json(true)) != false)
                return patterned(given, place, depth);
        }
        if (given.contains("patternProperties") && !given["patternProperties"].empty())
            return patterned(given, place, depth);
        const Json properties = given.value("properties", Json::object());
        const Json required = given.value("required", Json::array());
        if (!properties.is_object())
            throw GrammarError(place + "/properties: expected an object, got " + properties.dump());
        // Drafts before 4 had a boolean here.
        if (!required.is_array()) throw GrammarError(place + "/required: expected names, got " + required.dump());
        const bool says = given.contains("additionalProperties") || given.contains("unevaluatedProperties");
        const bool names_none =
            std::all_of(properties.begin(), properties.end(), [](auto& one) { return one == false; });
        const Json more = given.value("additionalProperties", Json(!says && names_none && required.empty()));
        std::vector<NodeId> members;
        std::string kinds;
        std::vector<std::string> names;
        const auto add = [&](const std::string& name, const Json& value, bool is_required) {
            const std::string here = place + "/properties/" + name;
            members.push_back(member(grammar_.bytes(Json(name).dump()), schema(value, here, depth + 1)));
            kinds += is_required ? kRequired : kOptional;
            names.push_back(name);
        };
        for (const auto& [name, value] : properties.items()) {
            const bool is_required = std::find(required.begin(), required.end(), name) != required.end();
            if (value == false && !is_required) {
                names.push_back(name);
                continue;
            }
            add(name, value, is_required);
        }
        for (const Json& name : required) {
            if (!name.is_string()) throw GrammarError(place + "/required: expected names, got " + name.dump());
            if (!properties.contains(name.get<std::string>()))
                add(name, says ? more : Json(true), true);  // not named, but it must be there
        }
        if (more != false) {
            std::sort(names.begin(), names.end());
            const NodeId key = names.empty() ? parts_.string() : parts_.other_key(names);
            members.push_back(member(key, schema(more, place + "/additionalProperties", depth + 1)));
            kinds += kAnyNumber;
        }
        return counted(given, place, members, kinds);
    }

    /// An object of so many of these members as minProperties and maxProperties say.
    NodeId counted(const Json& given, const std::string& place, const std::vector<NodeId>& members,
                   const std::string& kinds) {
        const auto n_required = static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), kRequired));
        const std::size_t min = read_size(given, "minProperties", 0, place);
        if (min > n_required + 1)
            throw GrammarError(place + "/minProperties: expected at most one more than the " +
                               std::to_string(n_required) + " that are required, got more: not supported");
        const bool more = kinds.ends_with(kAnyNumber);
        if (read_size(given, "maxProperties", kNoLimit, place) < (more ? std::size_t{kNoLimit} : kinds.size()))
            throw GrammarError(place + "/maxProperties: expected at least the " + std::to_string(kinds.size() - more) +
                               " that are named, and no others, got fewer: not supported");
        return parts_.object(parts_.members(members, kinds, min > n_required));
    }

    /// Items of which some fit another schema too: so many of those, and any number of others around each. Where there is a
    /// most, the others are none of those.
    NodeId containing(const Json& given, std::uint32_t n, const std::string& place, std::uint32_t depth) {
        for (const char* keyword : {"prefixItems", "additionalItems", "maxItems"})
            if (given.contains(keyword))
                throw GrammarError(place + ": expected no " + keyword + " beside contains, got it: not supported");
        if (given.value("uniqueItems", Json(false)) == true)
            throw GrammarError(place + ": expected no uniqueItems beside contains, got it: not supported");
        const Json rest = given.value("items", Json(true));
        if (rest.is_array())
            throw GrammarError(place + ": expected one schema of items beside contains, got several: not supported");
        constexpr std::uint32_t kMost = 64;
        const bool bounded = given.contains("maxContains");
        const std::uint32_t most = read_size(given, "maxContains", n, place);
        if (n > kMost || most > kMost || read_size(given, "minItems", 0, place) > n)
            throw GrammarError(place +
                               ": expected minContains of at least minItems, at most 64, got others: not supported");
        if (most < n) return grammar_.choice({});
        const Json both = merge_schemas(expanded(rest, place), expanded(given["contains"], place), place + "/contains");
        const Json other = bounded ? merge_schemas(expanded(rest, place), {{"not", given["contains"]}}, place) : rest;
        const NodeId item = grammar_.shared(schema(other, place + "/items", depth + 1), "item");
        const NodeId wanted = grammar_.shared(schema(both, place + "/contains", depth + 1), "wanted");
        std::vector<NodeId> items{item};
        std::string kinds(1, kAnyNumber);
        for (std::uint32_t i = 0; i < most; ++i) {
            items.insert(items.end(), {wanted, item});
            kinds += {i < n ? kRequired : kOptional, kAnyNumber};
        }
        const NodeId list = grammar_.list(std::move(items), std::move(kinds), parts_.comma());
        return grammar_.sequence({grammar_.bytes("["), parts_.space(), list, parts_.space(), grammar_.bytes("]")});
    }

    /// Items of a few values, each once: what comes next depends on which came, so only of a few.
    NodeId unique(const Json& given, const Json& first, const Json& item, const std::string& place) {
        const bool has_values = item.contains("enum") || item.contains("const");
        std::vector<std::string> texts;
        if (has_values && first.empty())
            for (const Json& value : constant_values(item, place + "/items")) texts.push_back(value.dump());
        if (!has_values || !first.empty() || texts.size() > kMostUnique)
            throw GrammarError(place + ": expected no uniqueItems but of items that are an enum of at most " +
                               std::to_string(kMostUnique) + " values, got it: not supported");
        return parts_.unique_array(texts, read_size(given, "minItems", 0, place),
                                   read_size(given, "maxItems", kNoLimit, place));
    }

    NodeId array(const Json& given, const std::string& place, std::uint32_t depth) {
        if (given.contains("contains")) {
            const std::uint32_t n = read_size(given, "minContains", 1, place);
            if (n || given.contains("maxContains")) return containing(given, n, place, depth);
        }
        const auto [first, rest] = items_of(given, place);
        if (given.value("uniqueItems", Json(false)) == true && read_size(given, "maxItems", 2, place) > 1)
            return unique(given, first, expanded(rest, place), place);
        const std::uint32_t min = read_size(given, "minItems", 0, place);
        const std::uint32_t max = read_size(given, "maxItems", kNoLimit, place);
        if (min > max || (rest == false && min > first.size())) return grammar_.choice({});
        std::vector<NodeId> items;
        for (const Json& one : first)
            items.push_back(schema(one, place + "/prefixItems/" + std::to_string(items.size()), depth + 1));
        std::optional<NodeId> item;
        if (rest != false && max > items.size()) item = schema(rest, place + "/items", depth + 1);
        return parts_.array(items, item, min, max);
    }

    Json root_;
    Grammar grammar_;
    JsonParts parts_;
    std::map<std::string, RuleId> references_;  // by pointer
    std::map<std::string, RuleId> made_;        // by the schema's text
    std::size_t n_rewritten_ = 0;
    mutable std::size_t n_copied_ = 0;
};

}  // namespace

Grammar read_json_schema(std::string_view json, const SchemaOptions& options) {
    check_nesting(json, 2 * kMostDepth);
    Json root;
    try {
        root = Json::parse(json);
    } catch (const nlohmann::json::parse_error& error) {
        throw GrammarError("schema: expected JSON, got what is none at byte " + std::to_string(error.byte));
    } catch (const nlohmann::json::out_of_range&) {  // of parsing, a number's alone
        throw GrammarError("schema: expected numbers that a double can hold, got a larger one");
    }
    try {
        return SchemaReader(root, options).read();
    } catch (const nlohmann::json::exception& error) {  // a keyword's value is of another type
        const std::string_view words = error.what();    // behind the library's own name for it in brackets
        throw GrammarError("schema: expected keywords whose values are of their types, got one whose " +
                           std::string(words.substr(std::min(words.find("] ") + 2, words.size()))));
    }
}

}  // namespace fovea::grammar
