// What an answer must be, in the fields of llama.cpp's server and of vLLM's.
#include "serve/api/fields.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kMostPlaces = 1024;  // of a choice

/// What one server calls the forms. Null: it has none of this kind.
struct FormNames {
    const char *schema, *grammar, *regex, *choice;
};
constexpr FormNames kLlamaCpp{"json_schema", "grammar", "regex", nullptr};
constexpr FormNames kGuided{"guided_json", "guided_grammar", "guided_regex", "guided_choice"};
constexpr FormNames kStructured{"json", "grammar", "regex", "choice"};  // members of structured_outputs

/// The texts as a grammar's alternatives.
std::string grammar_of(const Fields& fields, const char* name, const Json& choices) {
    if (!choices.is_array() || choices.empty() || choices.size() > kMostPlaces)
        fields.refuse(name, ("an array of 1 to " + std::to_string(kMostPlaces) + " texts").c_str(), choices);
    std::string grammar;
    for (const Json& choice : choices) {
        if (!choice.is_string()) fields.refuse(name, "texts", choice);
        grammar += grammar.empty() ? "root ::= \"" : " | \"";
        for (const char c : choice.get_ref<const std::string&>()) {
            char spelled[8];
            std::snprintf(spelled, sizeof spelled, "\\x%02X", static_cast<unsigned char>(c));
            const bool is_special = c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
            grammar += is_special ? spelled : std::string(1, c);
        }
        grammar += '"';
    }
    return grammar;
}

/// A schema, or JSON of one in a string.
Json schema_of(const Fields& fields, const char* name, const Json& given) {
    if (!given.is_string()) return given;
    try {
        return read_json(given.get_ref<const std::string&>());
    } catch (const RequestError&) {
        fields.refuse(name, "a JSON schema", given);
    }
}

void read(const Fields& fields, const FormNames& names, Request& request) {
    const auto take = [&](Form form, const char* name) {
        if (request.form != Form::any)
            throw RequestError(400,
                               fields.path(name) +
                                   ": expected one form of the answer (response_format, json_schema, grammar or "
                                   "regex), got another beside it",
                               fields.path(name));
        request.form = form;
        request.form_field = fields.path(name);
    };
    if (const Json* schema = fields.find(names.schema)) {
        take(Form::schema, names.schema);
        request.schema = schema_of(fields, names.schema, *schema);
    }
    if (std::string grammar = fields.text(names.grammar); !grammar.empty()) {
        take(Form::grammar, names.grammar);
        request.grammar = std::move(grammar);
    }
    if (fields.find(names.regex)) {
        take(Form::regex, names.regex);
        request.grammar = fields.text(names.regex);
    }
    if (const Json* choices = names.choice ? fields.find(names.choice) : nullptr) {
        take(Form::grammar, names.choice);
        request.grammar = grammar_of(fields, names.choice, *choices);
    }
}

}  // namespace

void read_forms(const Fields& fields, Request& request) {
    read(fields, kLlamaCpp, request);
    read(fields, kGuided, request);
    fields.only("guided_whitespace_pattern", "");
    const Json* structured = fields.find("structured_outputs");
    if (!structured) return;
    const Fields members(*structured, "structured_outputs");
    read(members, kStructured, request);
    for (const char* name : {"structural_tag", "whitespace_pattern"}) members.only(name, "");
    members.only("json_object", false);
}

}  // namespace fovea::serve
