// Fields that say what an answer must be: OpenAI's and Ollama's, llama.cpp's server's and vLLM's.
#include <cstdio>

#include "serve/api/field_readers.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kMostPlaces = 1024;  // of a choice

/// The request's form, unless another field has said one.
void take_form(const Fields& fields, const char* name, Form form, Request& request) {
    if (request.form != Form::any)
        refuse(fields.path(name), "one form of the answer (response_format, json_schema, grammar or regex)",
               "another beside it");
    request.form = form;
    request.form_field = fields.path(name);
}

}  // namespace

void read_response_format(const Fields&, const char* name, const Json& format, Request& request) {
    const Fields f(format, name);
    const std::string type = f.one_of("type", {"text", "json_object", "json_schema"});
    if (type == "text") return;
    request.form = type == "json_schema" || f.find("schema") ? Form::schema : Form::json;
    if (type == "json_schema")
        request.schema = Fields(f.need("json_schema", "an object with a schema"), "response_format.json_schema")
                             .need("schema", "a JSON schema");
    else if (const Json* schema = f.find("schema"))  // as llama.cpp's server has it
        request.schema = *schema;
}

void read_text_format(const Fields&, const char* name, const Json& text, Request& request) {
    Fields(text, name).only("verbosity", "medium");
    const Json* format = Fields(text, name).find("format");
    if (!format) return;
    const Fields f(*format, "text.format");
    const std::string type = f.one_of("type", {"text", "json_object", "json_schema"});
    if (type == "text") return;
    request.form = type == "json_schema" ? Form::schema : Form::json;
    request.form_field = "text.format";
    if (type == "json_schema") request.schema = f.need("schema", "a JSON schema");
}

void read_output_format(const Fields& fields, const char* name, const Json& format, Request& request) {
    const Fields f(format, name);
    (void)f.one_of("type", {"json_schema"});
    take_form(fields, name, Form::schema, request);
    request.schema = f.need("schema", "a JSON schema");
}

void read_format(const Fields& fields, const char* name, const Json& format, Request& request) {
    if (format == "") return;
    if (format != "json" && !format.is_object()) fields.refuse(name, "\"json\" or a JSON schema", format);
    request.form_field = name;
    request.form = format == "json" ? Form::json : Form::schema;
    if (format.is_object()) request.schema = format;
}

/// A schema, or JSON of one in a string.
void read_schema(const Fields& fields, const char* name, const Json& given, Request& request) {
    take_form(fields, name, Form::schema, request);
    try {
        request.schema = given.is_string() ? read_body(given.get_ref<const std::string&>()) : given;
    } catch (const RequestError&) {
        fields.refuse(name, "a JSON schema", given);
    }
}

void read_grammar(const Fields& fields, const char* name, const Json&, Request& request) {
    std::string grammar = fields.text(name);
    if (grammar.empty()) return;
    take_form(fields, name, Form::grammar, request);
    request.grammar = std::move(grammar);
}

void read_regex(const Fields& fields, const char* name, const Json&, Request& request) {
    take_form(fields, name, Form::regex, request);
    request.grammar = fields.text(name);
}

/// Texts, which become a grammar's alternatives.
void read_choice(const Fields& fields, const char* name, const Json& choices, Request& request) {
    take_form(fields, name, Form::grammar, request);
    if (!choices.is_array() || choices.empty() || choices.size() > kMostPlaces)
        fields.refuse(name, "an array of 1 to " + std::to_string(kMostPlaces) + " texts", choices);
    for (const Json& choice : choices) {
        if (!choice.is_string()) fields.refuse(name, "texts", choice);
        request.grammar += request.grammar.empty() ? "root ::= \"" : " | \"";
        for (const char c : choice.get_ref<const std::string&>()) {
            char spelled[8];
            std::snprintf(spelled, sizeof spelled, "\\x%02X", static_cast<unsigned char>(c));
            const bool is_special = c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
            request.grammar += is_special ? spelled : std::string(1, c);
        }
        request.grammar += '"';
    }
}

}  // namespace fovea::serve
