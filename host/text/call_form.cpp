#include "host/text/call_form.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>

#include "host/chat/known_tools.h"
#include "host/chat/literal.h"
#include "host/grammar/json_keywords.h"

namespace fovea {
namespace {

using grammar::NodeId;

constexpr std::uint32_t kMostTextLength =
    256;                                  // that is counted: an automaton has as many states, or some times as many
constexpr std::size_t kMostDefined = 32;  // properties beside definitions, which each is read with
constexpr int kMostDepth = 20;            // of values in a syntax that is not JSON

/// Whether of all keywords a schema has only these.
bool says_only(const Json& schema, std::initializer_list<std::string_view> keywords) {
    return std::all_of(schema.items().begin(), schema.items().end(), [&](const auto& item) {
        return !grammar::find_keyword(item.key()) ||
               std::find(keywords.begin(), keywords.end(), item.key()) != keywords.end();
    });
}

bool is_small(const Json& schema, const char* keyword) {
    const auto found = schema.find(keyword);
    return found == schema.end() || (found->is_number_unsigned() && found->get<std::uint64_t>() <= kMostTextLength);
}

/// Whether texts that stand as they are can keep to a schema of texts.
bool is_plain_text(const Json& schema) {
    return says_only(schema, {"type", "enum", "const", "format", "minLength", "maxLength"}) &&
           is_small(schema, "minLength") && is_small(schema, "maxLength");
}

bool is_plain_object(const Json& schema) {
    if (!schema.is_object() || schema.value("type", Json("object")) != "object") return false;
    if (schema.value("additionalProperties", Json(false)) != false) return false;
    if (!says_only(schema, {"type", "properties", "required", "additionalProperties"})) return false;
    const Json properties = schema.value("properties", Json::object()),
               required = schema.value("required", Json::array());
    if (!properties.is_object() || !required.is_array()) return false;
    for (const auto& [name, value] : properties.items())
        if (!is_plain_name(name) || !value.is_object()) return false;
    return std::all_of(required.begin(), required.end(), [&](const Json& name) {
        return name.is_string() && properties.contains(name.get<std::string>());
    });
}

bool is_plain_array(const Json& schema) {
    return schema.is_object() && schema.value("type", Json()) == "array" && says_only(schema, {"type", "items"}) &&
           schema.value("items", Json::object()).is_object();
}

/// An object's schema with the properties that it only requires.
Json with_names(Json schema) {
    if (!schema.contains("properties"))
        for (const Json& name : schema.value("required", Json::array()))
            if (name.is_string()) schema["properties"][name.get<std::string>()] = Json::object();
    return schema;
}

/// Whether an object's members are not named.
bool is_free_object(const Json& schema) {
    return schema.value("type", Json()) == "object" && schema.value("additionalProperties", Json(true)) == true &&
           says_only(schema, {"type", "additionalProperties"});
}

/// Whether references lead to definitions alone, which go with each property.
bool has_near_references(const Json& schema) {
    if (schema.is_array()) return std::all_of(schema.begin(), schema.end(), has_near_references);
    if (!schema.is_object()) return true;
    for (const auto& [name, value] : schema.items()) {
        if (name == "$id" || name == "$anchor" || name == "$dynamicRef" || name == "$recursiveRef") return false;
        if (name == "$ref" &&
            (!value.is_string() || (!value.get_ref<const std::string&>().starts_with("#/$defs/") &&
                                    !value.get_ref<const std::string&>().starts_with("#/definitions/"))))
            return false;
        if (!has_near_references(value)) return false;
    }
    return true;
}

class OwnForm {
public:
    OwnForm(grammar::Grammar& grammar, const Dialect& dialect, const Json& parameters,
            const grammar::SchemaOptions& options)
        : grammar_(grammar), dialect_(dialect), parameters_(parameters), options_(options) {}

    NodeId arguments() {
        if (dialect_.syntax == CallSyntax::members) return members(parameters_, 0);
        if (dialect_.syntax == CallSyntax::python)
            return listed(parameters_, comma(), [&](auto& name, auto& schema) {
                return grammar_.sequence({grammar_.bytes(name + "="), json(schema)});
            });
        return grammar_.sequence(
            {line(), listed(parameters_, line(), [&](auto& name, auto& schema) { return tagged(name, schema); }),
             line()});
    }

private:
    NodeId line() { return grammar_.optional(grammar_.bytes("\n")); }
    NodeId comma() { return grammar_.sequence({grammar_.bytes(","), grammar_.optional(grammar_.bytes(" "))}); }

    /// The properties of a plain object in their order, each as `write` has it.
    template<class Write>
    NodeId listed(const Json& object, NodeId separator, Write&& write) {
        const Json properties = object.value("properties", Json::object());
        const Json required = object.value("required", Json::array());
        std::vector<NodeId> items;
        std::string kinds;
        for (const auto& [name, schema] : properties.items()) {
            const bool is_required = std::find(required.begin(), required.end(), Json(name)) != required.end();
            items.push_back(write(name, schema));
            kinds += is_required ? grammar::kRequired : grammar::kOptional;
        }
        return items.empty() ? grammar_.bytes("") : grammar_.list(std::move(items), std::move(kinds), separator);
    }

    NodeId tagged(const std::string& name, const Json& schema) {
        const Dialect& d = dialect_;
        const bool is_text = is_of_text(schema);
        const std::string key = std::string(d.key_open) + name + std::string(d.key_close);
        const std::string mark = d.has_lines ? "\n" : "", close = mark + std::string(d.value_close);
        const NodeId between = d.has_kinds            ? grammar_.bytes(is_text ? "true" : "false")
                               : d.value_open.empty() ? grammar_.bytes("")
                                                      : line();
        return grammar_.sequence(
            {grammar_.bytes(key), between, grammar_.bytes(std::string(d.value_open) + mark),
             is_text ? text(schema, d.value_close, close) : grammar_.sequence({json(schema), grammar_.bytes(close)})});
    }

    NodeId members(const Json& object, int depth) {
        const NodeId inside = listed(object, comma(), [&](auto& name, auto& schema) {
            return grammar_.sequence({grammar_.bytes(name + ":"), member(schema, depth)});
        });
        return grammar_.sequence({grammar_.bytes("{"), inside, grammar_.bytes("}")});
    }
    NodeId member(const Json& schema, int depth) {
        const std::string_view quote = dialect_.quote;
        if (depth == kMostDepth) return json(schema);
        if (is_of_text(schema) && is_plain_text(schema))
            return grammar_.sequence({grammar_.bytes(quote), text(schema, quote, quote)});
        if (says_only(schema, {})) return anything();
        if (is_free_object(schema)) return any_object();
        if (const Json named = with_names(schema); is_plain_object(named)) return members(named, depth + 1);
        return is_plain_array(schema) ? array(member(schema.value("items", Json::object()), depth + 1)) : json(schema);
    }
    NodeId array(NodeId item) { return any_number("[", item, "]"); }
    NodeId any_object() {
        const grammar::CodeSet marks = {{0, ' '},   {'"', '"'}, {'\'', '\''}, {',', ','},
                                        {':', ':'}, {'<', '<'}, {'[', ']'},   {'{', '}'}};
        const NodeId letter = grammar_.set(grammar::complement(grammar::normalize(marks)));
        const NodeId name = grammar_.repeat(letter, 1, grammar::kNoLimit);
        return any_number("{", grammar_.sequence({name, grammar_.bytes(":"), anything()}), "}");
    }
    NodeId any_number(const char* open, NodeId item, const char* close) {
        return grammar_.sequence({grammar_.bytes(open),
                                  grammar_.list({item}, std::string(1, grammar::kAnyNumber), comma()),
                                  grammar_.bytes(close)});
    }
    /// A value of any kind, with values in it.
    NodeId anything() {
        const auto [known, is_new] = rules_.try_emplace("anything", 0);
        if (!is_new) return grammar_.rule(known->second);
        const grammar::RuleId rule = known->second = grammar_.add_rule("anything");
        const NodeId text = member({{"type", "string"}}, 0), others = json({{"type", {"number", "boolean", "null"}}});
        const NodeId body = grammar_.choice({text, others, array(grammar_.rule(rule)), any_object()});
        grammar_.rules[rule].body = body;
        return grammar_.rule(rule);
    }

    /// A value, of which there is one rule for all that say the same of it.
    template<class Make>
    NodeId once(const Json& schema, const std::string& kind, Make&& make) {
        Json said = Json::object();
        for (const auto& [name, value] : schema.items())
            if (grammar::find_keyword(name)) said[name] = value;
        const auto [known, is_new] = rules_.try_emplace(kind + json_text(said), 0);
        if (is_new) {
            for (const char* definitions : {"$defs", "definitions"})
                if (parameters_.contains(definitions)) said[definitions] = parameters_[definitions];
            known->second = make(json_text(said));
        }
        return grammar_.rule(known->second);
    }
    NodeId json(const Json& schema) {
        return once(schema, "json", [&](const std::string& said) {
            return grammar_.add_all(grammar::read_json_schema(said, options_));
        });
    }
    /// A text as it is, without `mark`, and what stands behind it.
    NodeId text(const Json& schema, std::string_view mark, std::string_view close) {
        return once(schema, "text", [&](const std::string& said) {
            const NodeId words = grammar_.rule(grammar_.add_all(grammar::read_text_schema(said, mark)));
            return grammar_.add_rule("text", grammar_.sequence({words, grammar_.bytes(close)}));
        });
    }

    grammar::Grammar& grammar_;
    const Dialect& dialect_;
    const Json& parameters_;
    const grammar::SchemaOptions& options_;
    std::map<std::string, grammar::RuleId> rules_;
};

}  // namespace

bool is_plain_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), is_name_byte);
}

bool has_own_form(const Dialect& dialect, const Json& parameters) {
    const bool is_tagged = dialect.syntax == CallSyntax::tagged;
    if (!is_tagged && dialect.syntax != CallSyntax::python && dialect.syntax != CallSyntax::members) return false;
    if (!is_plain_object(parameters) || !has_near_references(parameters)) return false;
    const Json properties = parameters.value("properties", Json::object());
    if (properties.size() > kMostDefined && (parameters.contains("$defs") || parameters.contains("definitions")))
        return false;
    return !is_tagged || std::all_of(properties.begin(), properties.end(),
                                     [](const Json& schema) { return !is_of_text(schema) || is_plain_text(schema); });
}

NodeId add_own_form(grammar::Grammar& grammar, const Dialect& dialect, const Json& parameters,
                    const grammar::SchemaOptions& options) {
    return OwnForm(grammar, dialect, parameters, options).arguments();
}

}  // namespace fovea
