// JSON schemas as grammars. Text that a keyword forbids is never written; a keyword that no grammar can keep is refused
// by its name.
#include <map>
#include <set>

#include "host/grammar/json_conditions.h"
#include "host/grammar/json_rewrite.h"
#include "host/grammar/json_types.h"
#include "host/grammar/json_values.h"

namespace fovea::grammar {
namespace {

constexpr std::uint32_t kMostSchemaDepth = 200;  // schemas within schemas
constexpr std::size_t kMostNodes = 1'000'000;    // of the grammar

class SchemaReader {
public:
    SchemaReader(const Json& root, const SchemaOptions& options)
        : references_(root), parts_(grammar_, options.compact) {}

    Grammar read() {
        const RuleId rule = grammar_.add_rule("root");
        rules_[""] = rule;
        try {
            const NodeId body = schema(references_.target("", "schema"), "schema", 0);
            grammar_.rules[rule].body = body;
            check_lists(grammar_, lists_);
        } catch (const Refusal& refusal) {
            throw GrammarError(references_.place_of(refusal.place) + refusal.words);
        }
        grammar_.root = rule;
        return std::move(grammar_);
    }

private:
    // ---- references ------------------------------------------------------------------------------------------------

    NodeId reference(const std::string& pointer, const std::string& place, std::uint32_t depth) {
        if (const auto known = rules_.find(pointer); known != rules_.end()) return grammar_.rule(known->second);
        const std::string name = pointer.substr(pointer.rfind('/') + 1);
        const RuleId rule = grammar_.add_rule(name);
        rules_[pointer] = rule;
        const NodeId body = schema(references_.target(pointer, place), "schema" + pointer, depth);
        grammar_.rules[rule].body = body;
        return grammar_.rule(rule);
    }

    // ---- any schema ------------------------------------------------------------------------------------------------

    NodeId schema(const Json& given, const std::string& place, std::uint32_t depth) {
        if (depth > kMostSchemaDepth)
            refuse(place.substr(0, 200), "schemas at most " + std::to_string(kMostSchemaDepth) + " deep within schemas",
                   "more");
        if (grammar_.nodes.size() > kMostNodes) refuse(place, "a smaller schema", "one too large");
        if (given == true) return parts_.any_value();
        if (given == false) return grammar_.choice({});
        if (!given.is_object()) refuse_value(place, "a schema", given);
        refuse_any(given, {"$dynamicRef", "$recursiveRef"}, place, "");
        if (given.contains("$ref")) {
            if (!has_meaning(without(given, {"$ref"})))
                return reference(pointer_of(given["$ref"], place), place, depth + 1);
            return once(references_.expanded(given, place), place, depth);
        }
        const Resolve resolve = [&](const Json& one) { return references_.expanded(one, place); };
        if (given.contains("allOf") && !splits_twice(given, resolve)) return all_of(given, place, depth);
        if (given.contains("if")) return rewritten(without_if(given), place, depth);
        for (const char* keyword : {"anyOf", "oneOf"})
            if (given.contains(keyword)) return any_of(given, keyword, place, depth);
        for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"})
            if (given.contains(keyword)) return rewritten(without_dependency(given, keyword, place), place, depth);
        return says_unevaluated(given) ? plain(closed(given, place), place, depth) : plain(given, place, depth);
    }

    /// A schema without parts or rules for what is unevaluated.
    NodeId plain(const Json& given, const std::string& place, std::uint32_t depth) {
        if (given.contains("not") && !excludes_strings(given)) return excluding(given, place, depth);
        const bool has_values = given.contains("enum") || given.contains("const");
        if (has_values && !given.contains("not"))
            return constants(given, place);  // else strings that `not` excludes some of
        if (is_true(given, "nullable") && !given.contains("type"))
            return grammar_.choice({schema(without(given, {"nullable"}), place, depth + 1), grammar_.bytes("null")});
        return typed(given, place, depth);
    }

    NodeId excluding(const Json& given, const std::string& place, std::uint32_t depth) {
        const Resolve resolve = [&](const Json& one) { return references_.expanded(one, place); };
        return rewritten(split_not(given, resolve, place), place, depth);
    }

    /// A schema that was made of several. One that comes again within itself is a rule that calls itself.
    NodeId once(const Json& made, const std::string& place, std::uint32_t depth) {
        const auto [known, is_new] = made_.try_emplace(json_text(made), 0);
        if (!is_new) return grammar_.rule(known->second);
        const RuleId rule = known->second = grammar_.add_rule("merged");
        const NodeId body = schema(made, place, depth + 1);
        grammar_.rules[rule].body = body;
        return grammar_.rule(rule);
    }

    /// An equivalent of the schema at `place`: itself, or alternatives, which keep the place that a reader knows.
    /// Conditions that do not exclude one another double the alternatives, so they are counted.
    NodeId rewritten(const Json& given, const std::string& place, std::uint32_t depth) {
        references_.count_rewritten(place);
        if (!given.is_object() || given.size() != 1 || !given.contains("anyOf")) return schema(given, place, depth + 1);
        std::vector<NodeId> nodes;
        for (const Json& way : given["anyOf"])
            if (!is_impossible(way)) nodes.push_back(schema(way, place, depth + 1));
        return grammar_.choice(std::move(nodes));
    }

    NodeId all_of(const Json& given, const std::string& place, std::uint32_t depth) {
        Json out = without(given, {"allOf"});
        const Json& all = given["allOf"];
        if (!all.is_array() || all.empty()) refuse_value(place + "/allOf", "schemas", all);
        if (all.size() == 1 && !has_meaning(out)) return schema(all[0], place + "/allOf/0", depth + 1);
        const Json rules = take_unevaluated(out);
        for (const Json& one : all) {
            Json made;
            const Json& part = references_.resolved(one, made, place);
            out = merge_schemas(std::move(out), part, place);
            references_.count_copied(out, place);
        }
        out = covered(std::move(out), rules);
        return is_impossible(out) ? grammar_.choice({}) : once(out, place, depth);
    }

    NodeId any_of(const Json& given, const char* keyword, const std::string& place, std::uint32_t depth) {
        const Json& all = given[keyword];
        if (!all.is_array() || all.empty()) refuse_value(place + "/" + keyword, "schemas", all);
        Json beside = without(given, {keyword});
        const bool alone = !has_meaning(beside);
        const Json rules = take_unevaluated(beside);
        std::vector<Json> merged(alone ? 0 : all.size());
        for (std::size_t i = 0; i < merged.size(); ++i) {
            Json made;
            const Json& one = references_.resolved(all[i], made, place);
            merged[i] = covered(merge_schemas(beside, one, place), rules);
            references_.count_copied(merged[i], place);
        }
        const auto way = [&](std::size_t i) -> const Json& { return alone ? all[i] : merged[i]; };
        const bool only_one = std::string_view(keyword) == "oneOf";
        std::vector<Json> made(only_one ? all.size() : 0);
        std::vector<const Json*> resolved;
        for (std::size_t i = 0; i < made.size(); ++i) resolved.push_back(&references_.resolved(way(i), made[i], place));
        std::vector<NodeId> nodes;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (is_impossible(way(i))) continue;
            const std::string here = place + "/" + keyword + "/" + std::to_string(i);
            if (const std::vector<std::size_t> others =
                    only_one ? not_apart(scope_, resolved, i, place) : std::vector<std::size_t>();
                !others.empty())
                nodes.push_back(without_others(resolved, i, others, place, depth));
            else
                nodes.push_back(alone ? schema(all[i], here, depth + 1) : once(merged[i], here, depth));
        }
        return grammar_.choice(std::move(nodes));
    }

    /// A way of oneOf without the texts that fit others. If those take too much to tell apart, texts that have a property that does.
    NodeId without_others(const std::vector<const Json*>& ways, std::size_t i, const std::vector<std::size_t>& others,
                          const std::string& place, std::uint32_t depth) {
        constexpr std::size_t kFewCopied = 5'000;  // values that all ways may be copied to together
        const std::string here = place + "/oneOf/" + std::to_string(i);
        Json excluded = Json::array();
        for (const std::size_t j : others) excluded.push_back(*ways[j]);
        const Json apart = held_together(Json::array({*ways[i], {{"not", {{"anyOf", excluded}}}}}));
        const std::optional<std::string> property = telling_property(scope_, ways, i, others, place);
        const std::size_t n_rules = grammar_.rules.size(), n_lists = lists_.items.size();
        const bool inside = lists_.inside;
        const std::size_t most = property ? references_.limit_copied(kFewCopied / others.size()) : 0;
        try {
            const NodeId node = once(apart, here, depth);
            if (property) references_.set_limit(most);
            return node;
        } catch (const Refusal& why) {
            if (property) {  // nothing that was made on the way is whole
                references_.set_limit(most);
                const auto is_new = [&](const auto& one) { return one.second >= n_rules; };
                std::erase_if(rules_, is_new);
                std::erase_if(made_, is_new);
                lists_.items.resize(n_lists);
                lists_.inside = inside;
                const Json has_it = {{"type", "object"}, {"required", Json::array({*property})}};
                return once(held_together(Json::array({*ways[i], has_it})), here, depth);
            }
            refuse(place + "/oneOf",
                   "schemas of which no text fits two (by type, constant, bounds or a required property)",
                   std::to_string(i) + " and " + std::to_string(others[0]) + " (" + references_.place_of(why.place) +
                       why.words + "); anyOf takes them");
        }
    }

    // ---- constants -------------------------------------------------------------------------------------------------

    NodeId constants(const Json& given, const std::string& place) {
        std::vector<NodeId> nodes;
        for (const Json& value : constant_values(given, references_, place))
            nodes.push_back(grammar_.bytes(json_text(value)));
        return grammar_.choice(std::move(nodes));
    }

    // ---- types -----------------------------------------------------------------------------------------------------

    NodeId typed(const Json& given, const std::string& place, std::uint32_t depth) {
        const bool names_types = given.contains("type");
        if (names_types)
            for (const Json& name : list_of(given["type"])) {
                if (!name.is_string()) refuse_value(place + "/type", "a type or a list of types", name);
                (void)is_of_type(nullptr, name, place);
            }
        const std::vector<std::string> types = allowed_types(given);
        if (!names_types && types.size() == 6) return parts_.any_value();
        std::vector<NodeId> nodes;
        std::set<std::string> seen;
        for (const std::string& type : types)
            if (seen.insert(type).second) nodes.push_back(of_type(type, given, place, depth));
        return grammar_.choice(std::move(nodes));
    }

    NodeId of_type(const std::string& type, const Json& given, const std::string& place, std::uint32_t depth) {
        if (type == "object") return object_schema(scope_, given, place, depth);
        if (type == "array") return array_schema(scope_, given, place, depth);
        if (type == "string") return string_schema(parts_, given, place);
        if (type == "boolean") return grammar_.choice({grammar_.bytes("true"), grammar_.bytes("false")});
        if (type == "null") return grammar_.bytes("null");
        Json step = given.value("multipleOf", Json(1));
        const bool whole = type == "integer" || (given.contains("multipleOf") && has_type(step, "integer") == true);
        const NumberBounds b = bounds(given, place, whole);
        if (step != 1)
            return multiples_within(grammar_, b, step_of(step, place + "/multipleOf"), whole, place + "/multipleOf");
        return whole ? parts_.integer(b) : parts_.number(b);
    }

    Grammar grammar_;
    References references_;
    JsonParts parts_;
    ItemLists lists_;
    const SchemaScope scope_{parts_, references_, lists_,
                             [this](const Json& given, const std::string& place, std::uint32_t depth) {
                                 return schema(given, place, depth);
                             }};
    std::map<std::string, RuleId> rules_;  // by pointer
    std::map<std::string, RuleId> made_;   // by the schema's text
};

}  // namespace

Grammar read_json_schema(std::string_view json, const SchemaOptions& options) {
    check_nesting(json, 2 * kMostSchemaDepth);
    JsonFault fault;
    Json root = read_json(json, &fault);
    if (root.is_discarded())
        throw GrammarError(fault.byte ? "schema: expected JSON, got what is none at byte " + std::to_string(fault.byte)
                                      : "schema: expected numbers that a double can hold, got a larger one");
    try {
        root = with_plain_references(std::move(root));
        return SchemaReader(root, options).read();
    } catch (const nlohmann::json::exception& error) {  // a keyword's value is of another type
        const std::string_view words = error.what();    // behind the library's own name for it in brackets
        refuse("schema", "keywords whose values are of their types",
               "one whose " + std::string(words.substr(std::min(words.find("] ") + 2, words.size()))));
    }
}

Grammar read_text_schema(std::string_view json, std::string_view mark) {
    Grammar grammar;
    JsonParts parts(grammar, true);
    const NodeId any = grammar.repeat(grammar.set(complement({})), 0, kNoLimit);
    const Language marked = Language::of(grammar, grammar.sequence({any, grammar.bytes(mark), any}));
    const Language texts = language_of_names(parts, read_json(json), "schema") - marked;
    const WriteSet as_it_is = [&](const CodeSet& set) { return grammar.set(set); };
    grammar.root = grammar.add_rule("text", texts.minimal().write(grammar, as_it_is));
    return grammar;
}

Grammar behind(std::string_view mark, Grammar grammar) {
    constexpr std::uint32_t kMostBlanks = 4;
    Grammar all;
    const NodeId text = all.rule(all.add_all(read_text_schema(R"({"type": "string"})", mark)));
    const NodeId blanks = all.repeat(all.set(normalize({{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}})), 0, kMostBlanks);
    const NodeId rest = all.rule(all.add_all(std::move(grammar)));
    all.root = all.add_rule("root", all.sequence({text, all.bytes(mark), blanks, rest}));
    return all;
}

}  // namespace fovea::grammar
