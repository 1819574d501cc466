// Calls that are forced: their form takes what the dialect's template writes, and what it takes is read as that call.
#include "host/text/forced_call.h"

#include <doctest/doctest.h>

#include <string>

#include "host/text/call_form.h"
#include "tests/support/call_checks.h"

namespace fovea::testing {
namespace {

const Json kTools = Json::parse(R"([
    {"type": "function", "function": {"name": "weather.at", "parameters": {"type": "object", "title": "At", "properties": {
        "city": {"type": "string", "description": "Where."}, "unit": {"enum": ["\u00b0C", "a <b> \"c\""]},
        "day": {"type": "string", "format": "date"}, "code": {"type": "string", "minLength": 2, "maxLength": 3},
        "days": {"type": "integer", "minimum": 1}, "exact": {"type": "boolean"}, "a\u00f1o": {"type": "integer"},
        "at": {"type": "array", "items": {"$ref": "#/$defs/place"}}, "names": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object", "properties": {"a": {"type": ["number", "null"]}, "b": {"type": "string"}}},
        "free": {"type": "object"}, "all": {"type": "object", "required": ["p", "q"]}, "any": {"type": "array", "items": {}}},
        "required": ["city", "days"], "$defs": {"place": {"type": "array", "items": {"type": "number"}}}}}},
    {"type": "function", "function": {"name": "stop-all", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "again"}}])");

const Json kCalls = Json::parse(R"([
    {"name": "weather.at", "arguments": {"city": "Bad \"Ems\"\n<b> it's & \u00fc \\n", "unit": "a <b> \"c\"", "day": "2024-02-03",
        "code": "\u00fc12", "days": 3, "exact": true, "a\u00f1o": 1, "at": [[1, -2.5], []], "names": ["x", "</a>"],
        "more": {"a": null, "b": "<"}, "free": {"x": [1, {"y-z": "w"}], "\u00fc": {}, "t": true}, "all": {"p": 1, "q": "r"}, "any": [null, "n", 2.5]}},
    {"name": "weather.at", "arguments": {"city": "", "days": 12}},
    {"name": "weather.at", "arguments": {"city": "true", "code": "12", "days": 1, "more": {}}},
    {"name": "stop-all", "arguments": {}}, {"name": "again", "arguments": {}}])");

bool is_first(const Family& family) {
    const auto same = [&](const Family& one) { return std::string_view(one.dialect) == family.dialect; };
    return &*std::find_if(families().begin(), families().end(), same) == &family;
}

}  // namespace

TEST_CASE("forced calls: in every dialect the form takes what the template writes") {
    for (const Family& family : families()) {
        CAPTURE(family.dialect);
        CallChecks checks(family);
        CHECK(checks.read_back(kTools, kCalls) == "");
        if (!is_first(family)) continue;
        for (const Json& call : kCalls)
            for (const bool in_prompt : {false, true}) {
                CHECK(checks.fits_form(kTools, call, call["name"], in_prompt) == "");
                CHECK(checks.fits_form(kTools, call, "", in_prompt) == "");
            }
    }
}

TEST_CASE("answers: reasoning that a prompt begins ends before a form, or goes on") {
    const AnswerDialect dialect = dialect_of("<think>");
    const auto begin = [&](const char* prompt, FormPlace form) {
        const BegunAnswer answer = begin_answer(dialect, TaintedText(prompt), nullptr, form);
        return answer.prompt.text() + "|" + answer.begun;
    };
    CHECK(begin("a<think>\n", FormPlace::none) == "a<think>\n|<think>");
    CHECK(begin("a<think>\n", FormPlace::after_reasoning) == "a<think>\n|<think>");
    CHECK(begin("a<think>\n", FormPlace::at_once) == "a<think>\n</think>\n\n|");
    for (const FormPlace form : {FormPlace::none, FormPlace::after_reasoning, FormPlace::at_once})
        CHECK(begin("a\n", form) == "a\n|");
}

TEST_CASE("forced calls: forms of several tools keep what is a graph in each") {
    const Json function =
        Json::parse(R"({"name": "f", "parameters": {"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "string", "not": {"pattern": "b"}},
        "b": {"type": "array", "items": {"enum": ["x", "y"]}, "uniqueItems": true}}}})");
    Json other = function;
    other["name"] = "g";
    const Json tools = Json::array({{{"function", function}}, {{"function", other}}});
    CallChecks checks(families()[0]);
    for (const char* name : {"f", "g"}) {
        const Json call = {{"name", name}, {"arguments", {{"a", "cd"}, {"b", {"y", "x"}}}}};
        CHECK(checks.fits_form(tools, call, "", false) == "");
        CHECK(checks.fits_form(tools, {{"name", name}, {"arguments", {{"a", "b"}, {"b", {"y"}}}}}, name, true) != "");
        CHECK(checks.fits_form(tools, {{"name", name}, {"arguments", {{"a", ""}, {"b", {"y", "y"}}}}}, name, true) !=
              "");
    }
}

TEST_CASE("forced calls: where a dialect's own syntax cannot keep to a schema, arguments are JSON") {
    const Dialect& tagged = *find_dialect("qwen3-coder");
    for (const char* parameters :
         {R"({"type": "object", "properties": {"a": {"type": "string", "pattern": "^b"}}})",
          R"({"type": "object", "properties": {"a": {"type": "string", "maxLength": 257}}})",
          R"({"type": "object", "properties": {"a b": {"type": "string"}}})",
          R"({"type": "object", "properties": {"a": {"$ref": "#/properties/b"}, "b": {"type": "integer"}}})",
          R"({"type": "object", "properties": {"a": {}}, "required": ["b"]})",
          R"({"type": "object", "additionalProperties": {"type": "string"}})",
          R"({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]})"}) {
        CAPTURE(parameters);
        CHECK_FALSE(has_own_form(tagged, Json::parse(parameters)));
        const Json tools = Json::array({{{"function", {{"name", "f"}, {"parameters", Json::parse(parameters)}}}}});
        CHECK(ForcedCall(tagged, tools, "", true).begun().text() == "<tool_call>\n{\"name\": \"f\", \"arguments\": ");
    }
    CHECK(has_own_form(tagged, Json::parse(R"({"type": "object", "properties": {"a": {"type": "string"}}})")));
    const Json odd = Json::parse(R"([{"function": {"name": "a b", "parameters": {"type": "object"}}}])");
    CHECK(ForcedCall(tagged, odd, "", true).begun().text() == "<tool_call>\n{\"name\": \"a b\", \"arguments\": ");
}

TEST_CASE("forced calls: a text that stands as it is has no mark in it") {
    const grammar::Grammar plain = grammar::read_text_schema(R"({"type": "string", "maxLength": 9})", "</p>");
    const fuzz::FormVocabulary& v = fuzz::FormVocabulary::get();
    const std::vector<std::byte> bytes = grammar::compile(plain, v.tokenizer, v.index);
    Constraint constraint;
    REQUIRE(open_constraint(v.tokenizer, bytes, v.index, constraint).ok());
    const auto takes = [&](std::string_view text) {
        std::vector<std::uint64_t> memory(constraint_state_bytes(constraint) / 8);
        ConstraintState state;
        REQUIRE(make_constraint_state(constraint, std::as_writable_bytes(std::span(memory)), state).ok());
        return (text.empty() || advance_bytes(*ConstraintAccess::run(state), text)) && can_end(state);
    };
    for (const char* text : {"", "a\n\"\\", "</p", "<</p", "</p </q>", "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"})
        CHECK(takes(text));
    for (const char* text : {"</p>", "a</p>b", "<</p>", "0123456789"}) CHECK_FALSE(takes(text));
}

}  // namespace fovea::testing
