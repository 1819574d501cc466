// Keywords that exclude and imply: not, patternProperties, propertyNames, contains, dependentRequired. What they allow is
// written, what they forbid is not, and what is not kept is refused by name.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "form_cases.h"
#include "json_validator.h"

namespace fovea::testing {
namespace {

using Json = nlohmann::ordered_json;

bool allows(const char* schema, std::string_view text) {
    return fits(Form(grammar::read_json_schema(schema, {.compact = true}), byte_level()), text);
}

std::string refused(const char* schema) {
    try {
        (void)grammar::compile(grammar::read_json_schema(schema), byte_level().tokenizer(), byte_level().index);
    } catch (const grammar::GrammarError& error) {
        return error.what();
    }
    return "";
}

TEST_CASE("schemas by hand: every complete answer validates, and each has some") {
    const Json all = Json::parse(golden_text("schemas_by_hand.json"));
    std::mt19937 random(3);
    for (const Json& schema : all) {
        const std::string text = schema.dump();
        CAPTURE(text);
        const Form form(grammar::read_json_schema(text, {.compact = random() % 2 == 0}), byte_level());
        FormState s(form.constraint());
        int n_complete = 0;
        for (int i = 0; i < 12; ++i) {
            restart(s.state);
            const Answer answer = draw(form, s, random, 300);
            if (!answer.complete) continue;
            ++n_complete;
            CAPTURE(answer.text);
            const Json value = Json::parse(answer.text, nullptr, false);
            REQUIRE(!value.is_discarded());
            REQUIRE(JsonValidator(schema).fits(value));
        }
        CHECK(n_complete >= 4);
    }
}

TEST_CASE("schemas: not takes out values and types") {
    const char* const strings = R"({"type":"string","not":{"enum":["yes","no"]}})";
    CHECK(allows(strings, "\"maybe\""));
    CHECK(allows(strings, "\"yess\""));
    CHECK(allows(strings, "\"ye\""));
    CHECK_FALSE(allows(strings, "\"yes\""));
    CHECK_FALSE(allows(strings, "\"no\""));
    const char* const numbers = R"({"type":"integer","minimum":0,"maximum":12,"not":{"enum":[3,7]}})";
    for (int i = -1; i <= 13; ++i) CHECK(allows(numbers, std::to_string(i)) == (i >= 0 && i <= 12 && i != 3 && i != 7));
    const char* const types = R"({"type":["integer","string","null"],"not":{"type":["string","null"]}})";
    CHECK(allows(types, "5"));
    CHECK_FALSE(allows(types, "null"));
    CHECK_FALSE(allows(types, "\"a\""));
    CHECK(allows(R"({"not":{"type":"string"}})", "[1]"));
    CHECK_FALSE(allows(R"({"not":{"type":"string"}})", "\"a\""));
    const char* const listed = R"({"enum":["a","b",3,null],"not":{"enum":["b",null]}})";
    CHECK(allows(listed, "\"a\""));
    CHECK(allows(listed, "3"));
    CHECK_FALSE(allows(listed, "\"b\""));
    CHECK_FALSE(allows(listed, "null"));
    CHECK(allows(R"({"type":"boolean","not":false})", "true"));
    CHECK_FALSE(allows(R"({"$ref":"#/$defs/a","not":{"const":1},"$defs":{"a":{"type":"integer"}}})", "1"));
    CHECK(allows(R"({"$ref":"#/$defs/a","not":{"const":1},"$defs":{"a":{"type":"integer"}}})", "2"));
    CHECK(refused(R"({"type":"boolean","not":true})").find("at least one text") != std::string::npos);
    CHECK(refused(R"({"type":"object","not":{"required":["a"]}})")
              .find("/not: expected a schema of type, enum or const") != std::string::npos);
    CHECK(refused(R"({"type":"number","not":{"const":1.5}})").find("schema/not: expected no number") == 0);
    CHECK(refused(R"({"type":"array","not":{"const":[]}})").find("schema/not: expected no object or array") == 0);
    CHECK(refused(R"({"type":"number","not":{"type":"integer"}})").find("not half of number") != std::string::npos);
    CHECK(refused(R"({"type":"string","maxLength":3,"not":{"const":"a"}})").find("expected no maxLength beside not") !=
          std::string::npos);
}

TEST_CASE("schemas: names by pattern, by schema and by list") {
    const char* const pattern = R"({"type":"object","patternProperties":{"^x-[a-z]+$":{"type":"integer"}}})";
    CHECK(allows(pattern, R"({})"));
    CHECK(allows(pattern, R"({"x-a":1,"x-bc":2})"));
    CHECK_FALSE(allows(pattern, R"({"x-a":"1"})"));
    CHECK_FALSE(allows(pattern, R"({"y":1})"));
    const char* const names = R"({"type":"object","propertyNames":{"pattern":"^[A-Z]{2}$"}})";
    CHECK(allows(names, R"({"AB":[1,2]})"));
    CHECK_FALSE(allows(names, R"({"ab":1})"));
    const char* const list = R"({"properties":{"a":{"type":"integer"}},"propertyNames":{"enum":["a","b"]}})";
    CHECK(allows(list, R"({"a":1,"b":"any"})"));
    CHECK_FALSE(allows(list, R"({"a":"1"})"));
    CHECK_FALSE(allows(list, R"({"c":1})"));
    CHECK(allows(R"({"type":"object","propertyNames":false})", "{}"));
    CHECK_FALSE(allows(R"({"type":"object","propertyNames":false})", R"({"a":1})"));
    CHECK(refused(R"({"required":["z"],"propertyNames":{"enum":["a"]}})").find("at least one text") !=
          std::string::npos);
    CHECK(refused(R"({"properties":{"a":{}},"patternProperties":{"^a":{}}})").find("expected no properties beside") !=
          std::string::npos);
    CHECK(refused(R"({"patternProperties":{"a":{"type":"null"},"b":{"type":"string"}}})").find("of one schema") !=
          std::string::npos);
    CHECK(refused(R"({"patternProperties":{"(":{}}})").find("patternProperties") != std::string::npos);
    CHECK(refused(R"({"propertyNames":{"enum":3}})").find("/propertyNames/enum: expected names") != std::string::npos);
    CHECK(refused(R"({"allOf":[{"patternProperties":{"^a":{"type":"null"}}},{"properties":{"a":{}}}]})")
              .find("in a schema that holds together with patternProperties") != std::string::npos);
}

TEST_CASE("schemas: contains, and names that need others") {
    const char* const some = R"({"items":{"enum":["r","g","b"]},"contains":{"const":"b"}})";
    CHECK(allows(some, R"(["b"])"));
    CHECK(allows(some, R"(["r","b","b","g"])"));
    CHECK_FALSE(allows(some, R"([])"));
    CHECK_FALSE(allows(some, R"(["r","g"])"));
    const char* const two = R"({"items":{"type":"integer"},"contains":{"minimum":90},"minContains":2})";
    CHECK(allows(two, "[1,95,2,90]"));
    CHECK_FALSE(allows(two, "[1,95,2]"));
    CHECK(refused(R"({"contains":{},"maxContains":2})").find("expected no maxContains beside contains") !=
          std::string::npos);
    CHECK(refused(R"({"contains":{},"maxItems":2})").find("expected no maxItems beside contains") != std::string::npos);
    const char* const needs =
        R"({"properties":{"a":{"type":"null"},"b":{"type":"null"}},"dependentRequired":{"a":["b"]}})";
    CHECK(allows(needs, R"({})"));
    CHECK(allows(needs, R"({"b":null})"));
    CHECK(allows(needs, R"({"a":null,"b":null})"));
    CHECK_FALSE(allows(needs, R"({"a":null})"));
    CHECK(refused(R"({"dependencies":{"a":{"required":["b"]}}})").find("/dependencies/a: expected names") !=
          std::string::npos);
    CHECK(refused(R"({"dependentRequired":[]})").find("/dependentRequired: expected an object") != std::string::npos);
}

}  // namespace
}  // namespace fovea::testing
