// Keywords that exclude and imply: not, patternProperties, propertyNames, contains, dependentRequired. What they allow is
// written, what they forbid is not, and what is not kept is refused by name.
#include <doctest/doctest.h>

#include "host/base/json.h"
#include "tests/support/form_cases.h"
#include "tests/support/json_validator.h"
#include "tests/support/sanitized.h"

namespace fovea::testing {
namespace {

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
    CHECK(allows(R"({"type":"string","not":{"pattern":"^a"}})", "\"b\""));
    CHECK_FALSE(allows(R"({"type":"string","not":{"pattern":"^a"}})", "\"ab\""));
    CHECK(allows(R"({"type":"number","not":{"const":1.5}})", "1.25"));
    CHECK_FALSE(allows(R"({"type":"number","not":{"const":1.5}})", "1.50"));
    CHECK(refused(R"({"type":"array","not":{"const":[]}})").find("schema/not: expected no object or array") == 0);
    CHECK(refused(R"({"type":"number","not":{"type":"integer"}})").find("not half of number") != std::string::npos);
    CHECK(allows(R"({"type":"string","maxLength":3,"not":{"const":"a"}})", "\"ab\""));
    CHECK_FALSE(allows(R"({"type":"string","maxLength":3,"not":{"const":"a"}})", "\"a\""));
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
    CHECK(refused(R"({"patternProperties":{"(":{}}})").find("patternProperties") != std::string::npos);
    CHECK(refused(R"({"enum":"integer"})").find("/enum: expected values, got \"integer\"") != std::string::npos);
    CHECK(refused(R"({"allOf":[{"not":{"enum":3}},{"not":{"enum":4}}]})").find("enum: expected values, got 3") !=
          std::string::npos);
    CHECK(refused(R"({"propertyNames":{"enum":3}})").find("/propertyNames/enum: expected values") != std::string::npos);
    CHECK(refused(R"({"allOf":[{"patternProperties":{"^a":{"type":"null"}}},{"additionalProperties":false}]})")
              .find("where patternProperties hold together with another schema") != std::string::npos);
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
    CHECK(refused(R"({"contains":{},"maxItems":2})").find("expected no maxItems beside contains") != std::string::npos);
    const char* const needs =
        R"({"properties":{"a":{"type":"null"},"b":{"type":"null"}},"dependentRequired":{"a":["b"]}})";
    CHECK(allows(needs, R"({})"));
    CHECK(allows(needs, R"({"b":null})"));
    CHECK(allows(needs, R"({"a":null,"b":null})"));
    CHECK_FALSE(allows(needs, R"({"a":null})"));
    CHECK(refused(R"({"dependencies":{"a":3}})").find("/dependencies/a: expected names or a schema") !=
          std::string::npos);
    const char* const one = R"({"items":{"enum":["r","g"]},"contains":{"const":"r"},"maxContains":1})";
    CHECK(allows(one, R"(["g","r","g"])"));
    CHECK_FALSE(allows(one, R"(["r","r"])"));
    CHECK_FALSE(allows(one, R"(["g"])"));
    CHECK(refused(R"({"contains":{},"minContains":3,"maxContains":2})").find("at least one text") != std::string::npos);
    CHECK(refused(R"({"contains":{"multipleOf":2},"maxContains":2})")
              .find("expected no multipleOf in what is excluded") != std::string::npos);
    const char* const needs_more =
        R"({"properties":{"a":{"type":"null"},"b":{"type":"integer"}},"dependentSchemas":{"a":{"properties":{"b":{"minimum":5}},"required":["b"]}}})";
    CHECK(allows(needs_more, R"({"b":1})"));
    CHECK(allows(needs_more, R"({"a":null,"b":7})"));
    CHECK_FALSE(allows(needs_more, R"({"a":null,"b":1})"));
    CHECK_FALSE(allows(needs_more, R"({"a":null})"));
    CHECK(refused(R"({"dependentRequired":[]})").find("/dependentRequired: expected an object") != std::string::npos);
}

TEST_CASE("schemas: if, then and else") {
    const char* const kind =
        R"({"type":"object","properties":{"kind":{"enum":["a","b"]},"n":{"type":"integer"}},"required":["kind"],
            "if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["n"]},"else":{"properties":{"n":{"minimum":5}}}})";
    CHECK(allows(kind, R"({"kind":"a","n":1})"));
    CHECK_FALSE(allows(kind, R"({"kind":"a"})"));
    CHECK(allows(kind, R"({"kind":"b"})"));
    CHECK(allows(kind, R"({"kind":"b","n":5})"));
    CHECK_FALSE(allows(kind, R"({"kind":"b","n":1})"));
    const char* const bare = R"({"type":"integer","if":{"minimum":10},"then":{"maximum":12}})";
    for (int i = 0; i < 20; ++i) CHECK(allows(bare, std::to_string(i)) == (i <= 12));
    CHECK(allows(R"({"type":"integer","then":{"maximum":3},"else":false})", "7"));  // without if they say nothing
    CHECK(allows(R"({"type":"integer","allOf":[{"then":false}],"if":true})", "7"));
    CHECK(refused(R"({"type":"integer","if":true,"then":false})").find("at least one text") != std::string::npos);
    CHECK(refused(R"({"type":"integer","if":{"multipleOf":3},"then":{"title":"t"}})")
              .find("expected no multipleOf in what is excluded, got it: not supported") != std::string::npos);
    const char* const dated = R"({"if":{"type":"string","format":"date"},"then":{"title":"t"},"else":{"const":3}})";
    CHECK(allows(dated, R"("2020-01-01")"));
    CHECK(allows(dated, "3"));
    CHECK_FALSE(allows(dated, R"("a")"));
}

TEST_CASE("schemas: thirty conditions on one property take no more than thirty ways") {
    Json schema = {
        {"type", "object"}, {"required", {"kind"}}, {"allOf", Json::array()}, {"additionalProperties", false}};
    for (int i = 0; i < 30; ++i) {
        const std::string kind = "k" + std::to_string(i), field = "f" + std::to_string(i);
        schema["properties"]["kind"]["enum"].push_back(kind);
        schema["properties"][field] = {{"type", "integer"}};
        schema["allOf"].push_back(
            {{"if", {{"properties", {{"kind", {{"const", kind}}}}}}}, {"then", {{"required", {field}}}}});
    }
    const Form form(grammar::read_json_schema(schema.dump(), {.compact = true}), byte_level());
    CHECK(fits(form, R"({"kind":"k17","f17":1})"));
    CHECK_FALSE(fits(form, R"({"kind":"k17"})"));
    CHECK_FALSE(fits(form, R"({"kind":"k17","f16":1})"));
    CHECK(fits(form, R"({"kind":"k29","f3":1,"f29":1})"));
}

TEST_CASE("schemas: conditions that may all hold together are refused before they have doubled too often" *
          doctest::skip(kSanitized)) {
    Json schema = {{"type", "object"}, {"allOf", Json::array()}};
    for (int i = 0; i < 40; ++i) {
        const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
        schema["properties"][a] = schema["properties"][b] = {{"type", "boolean"}};
        schema["allOf"].push_back({{"if", {{"required", {a}}}}, {"then", {{"required", {b}}}}});
    }
    schema["properties"]["none"] = false;  // so that no way leaves a rule, by which ways are counted otherwise
    schema["allOf"].push_back({{"if", true}, {"then", {{"required", {"none"}}}}});
    CHECK(refused(schema.dump().c_str()).find("conditions lead to more than 2000000 values") != std::string::npos);
}

TEST_CASE("schemas: ways of oneOf are told apart by the strings that a property may be") {
    const char* const shapes = R"({"oneOf":[
        {"properties":{"kind":{"type":"string","pattern":"^circle$"},"r":{"type":"integer"}},"required":["kind","r"]},
        {"properties":{"kind":{"type":"string","pattern":"^(square|cube)$"},"a":{"type":"integer"}},"required":["kind","a"]},
        {"properties":{"kind":{"const":"line"},"a":{"type":"integer"}},"required":["kind","a"]},
        {"properties":{"kind":{"type":"string","minLength":8},"a":{"type":"integer"}},"required":["kind","a"]}]})";
    CHECK(allows(shapes, R"({"kind":"circle","r":1})"));
    CHECK(allows(shapes, R"({"kind":"cube","a":1})"));
    CHECK(allows(shapes, R"({"kind":"line","a":1})"));
    CHECK(allows(shapes, R"({"kind":"dodecahedron","a":1})"));
    CHECK_FALSE(allows(shapes, R"({"kind":"circle","a":1})"));
    CHECK_FALSE(allows(R"({"oneOf":[{"type":"string","pattern":"^a"},{"type":"string","pattern":"b$"}]})", R"("ab")"));
}

TEST_CASE("schemas: the time for thousands of values grows with them") {
    Json schema = {{"type", "string"}, {"enum", Json::array()}};
    for (int i = 0; i < 20'000; ++i) schema["enum"].push_back("value " + std::to_string(i % 10'000));
    const Form form(grammar::read_json_schema(schema.dump(), {.compact = true}), byte_level());
    CHECK(fits(form, R"("value 9999")"));
    CHECK_FALSE(fits(form, R"("value 10000")"));
}

/// A schema of few words, so that conditions meet: objects of three properties, and what holds for them.
class RandomSchema {
public:
    explicit RandomSchema(std::uint32_t seed) : random_(seed) {}
    Json root() {
        Json out = {{"type", "object"}, {"additionalProperties", false}};
        for (const char* name : {"a", "b", "c"}) out["properties"][name] = value();
        if (random_() % 2) out["required"] = {"a"};
        for (std::uint32_t n = 1 + random_() % 2; n; --n) add(out);
        return out;
    }

private:
    [[nodiscard]] Json value() {
        switch (random_() % 5) {
            case 0: return {{"type", "integer"}, {"minimum", 0}, {"maximum", 9}};
            case 1: return {{"enum", {"x", "y", 3}}};
            case 2: return {{"type", {"boolean", "null"}}};
            case 3: return {{"type", "string"}, {"maxLength", 4}};
            default: return {{"type", "array"}, {"items", {{"enum", {"x", "y"}}}}, {"maxItems", 3}};
        }
    }
    [[nodiscard]] Json part() {
        switch (random_() % 7) {
            case 0: return {{"const", random_() % 2 ? Json("x") : Json(3)}};
            case 1: return {{"type", random_() % 2 ? "string" : "integer"}};
            case 2: return {{"minimum", 1 + random_() % 8}};
            case 3: return {{"maxLength", random_() % 3}};
            case 4: return {{"enum", {"y", 3, nullptr}}};
            case 5: return {{"minItems", 1 + random_() % 2}};
            default: return {{"type", {"integer", "boolean", "array"}}};
        }
    }
    [[nodiscard]] std::string name() { return std::string(1, static_cast<char>('a' + random_() % 3)); }
    /// What may hold for the object.
    [[nodiscard]] Json condition(int depth = 0) {
        switch (random_() % (depth < 2 ? 6 : 2)) {
            case 0: return {{"required", {name()}}};
            case 1: return {{"properties", {{name(), part()}}}};
            case 2: return {{"properties", {{name(), part()}}}, {"required", {name()}}};
            case 3: return {{"not", condition(depth + 1)}};
            case 4: return {{"anyOf", Json::array({condition(depth + 1), condition(depth + 1)})}};
            default: return {{"allOf", Json::array({condition(depth + 1), condition(depth + 1)})}};
        }
    }
    void add(Json& out) {
        Json given = Json::object();
        switch (random_() % 5) {
            case 0: given["dependentSchemas"] = {{name(), condition()}}; break;
            case 1: given["not"] = condition(); break;
            case 2: given["dependencies"] = {{name(), condition()}, {name(), {name()}}}; break;
            default:
                given["if"] = condition();
                if (random_() % 4) given["then"] = condition();
                if (random_() % 2) given["else"] = condition();
        }
        out["allOf"].push_back(given);
    }
    std::mt19937 random_;
};

TEST_CASE("schemas: every answer of 300 drawn schemas with conditions validates") {
    std::mt19937 random(5);
    std::size_t n_read = 0, n_complete = 0;
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        const Json schema = RandomSchema(seed).root();
        const std::string text = schema.dump();
        CAPTURE(text);
        if (const std::string why = refused(text.c_str()); !why.empty()) {
            CHECK((why.find("not supported") != why.npos || why.find("at least one text") != why.npos));
            continue;
        }
        ++n_read;
        const Form form(grammar::read_json_schema(text, {.compact = true}), byte_level());
        FormState s(form.constraint());
        for (int i = 0; i < 4; ++i) {
            restart(s.state);
            const Answer answer = draw(form, s, random, 100);
            if (!answer.complete) continue;
            ++n_complete;
            CAPTURE(answer.text);
            REQUIRE(JsonValidator(schema).fits(Json::parse(answer.text, nullptr, false)));
        }
    }
    CHECK(n_read >= 200);
    CHECK(n_complete >= 600);
}

TEST_CASE("schemas: what not excludes may be objects, bounds and several at once") {
    const char* const pair = R"({"properties":{"x":{"type":"null"},"y":{"type":"null"}},"not":{"required":["x","y"]}})";
    CHECK(allows(pair, R"({"x":null})"));
    CHECK(allows(pair, R"({})"));
    CHECK_FALSE(allows(pair, R"({"x":null,"y":null})"));
    const char* const others = R"({"type":"object","not":{"required":["a"]}})";
    CHECK(allows(others, R"({"b":1})"));
    CHECK_FALSE(allows(others, R"({"a":1})"));
    const char* const bounds =
        R"({"type":"integer","not":{"anyOf":[{"minimum":10},{"enum":[3]},{"const":4},{"maximum":0}]}})";
    for (int i = -3; i < 14; ++i) CHECK(allows(bounds, std::to_string(i)) == (i > 0 && i < 10 && i != 3 && i != 4));
    const char* const both =
        R"({"type":["integer","string","null"],"allOf":[{"not":{"type":"string"}},{"not":{"const":3}}]})";
    CHECK(allows(both, "null"));
    CHECK(allows(both, "4"));
    CHECK_FALSE(allows(both, "3"));
    CHECK_FALSE(allows(both, R"("a")"));
    CHECK(allows(R"({"type":"integer","not":{"not":{"minimum":3}}})", "3"));
    CHECK_FALSE(allows(R"({"type":"integer","not":{"not":{"minimum":3}}})", "2"));
    CHECK(allows(R"({"not":{"maxLength":2}})", R"("abc")"));
    CHECK_FALSE(allows(R"({"not":{"maxLength":2}})", R"("ab")"));
    for (const char* length : {"9223372036854775807", "18446744073709551615", "1e300", "2.5"})
        CHECK_THROWS_AS((void)grammar::read_json_schema(R"({"not":{"maxLength":)" + std::string(length) + "}}"),
                        grammar::GrammarError);
}

TEST_CASE("schemas: one property more than are required must be there") {
    const char* const some = R"({"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["b"],
        "minProperties":2,"additionalProperties":false})";
    for (const char* fits : {R"({"a":1,"b":2})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"})
        CHECK(allows(some, fits));
    for (const char* few : {"{}", R"({"b":2})", R"({"a":1})", R"({"a":1,"c":3})"}) CHECK_FALSE(allows(some, few));
    const char* const others =
        R"({"properties":{"a":{"const":1}},"additionalProperties":{"const":0},"minProperties":1})";
    for (const char* fits : {R"({"a":1})", R"({"x":0})", R"({"x":0,"y":0})", R"({"a":1,"x":0})"})
        CHECK(allows(others, fits));
    CHECK_FALSE(allows(others, "{}"));
    CHECK(allows(R"({"type":"object","patternProperties":{"^[a-z]$":{"const":0}},"minProperties":1})", R"({"x":0})"));
    CHECK_FALSE(allows(R"({"type":"object","patternProperties":{"^[a-z]$":{"const":0}},"minProperties":1})", "{}"));
}

TEST_CASE("schemas: a reference within itself may have others beside it") {
    const char* const chain = R"({"next":{"next":{}}})";
    for (const char* inner :
         {R"({"allOf":[{"$ref":"#/$defs/N"}]})", R"({"allOf":[{"$ref":"#/$defs/N"}],"description":"one"})",
          R"({"$ref":"#/$defs/N","x-order":1})", R"({"$ref":"#/$defs/N","type":"object"})",
          R"({"$ref":"#/$defs/N","nullable":true})",
          R"({"type":["object","null"],"anyOf":[{"$ref":"#/$defs/N"},{"type":"null"}]})"}) {
        CAPTURE(inner);
        const std::string schema =
            std::string(R"({"$ref":"#/$defs/N","$defs":{"N":{"type":"object","properties":{"next":)") + inner + "}}}}";
        CHECK(allows(schema.c_str(), chain));
        CHECK_FALSE(allows(schema.c_str(), R"({"next":{"next":3}})"));
    }
}

TEST_CASE("schemas: keywords that nobody knows say nothing") {
    CHECK(allows(R"({"type":"string","enum":["a","b"],"x-enum-varnames":["A","B"]})", R"("b")"));
    CHECK(allows(R"({"allOf":[{"type":"integer","x-order":1},{"x-order":2}]})", "7"));
    CHECK(refused(R"({"enum":["a"],"pattern":"b"})").find("at least one text") != std::string::npos);
    CHECK(allows(R"({"enum":["a",{"b":[1,2]}],"items":false,"properties":{"b":{"minItems":2}}})", R"({"b":[1,2]})"));
    CHECK(refused(R"({"enum":[{"b":[1]}],"properties":{"b":{"contains":{}}}})")
              .find("expected no contains beside enum or const") != std::string::npos);
}

TEST_CASE("schemas: items of schemas that hold together") {
    const char* const first = R"({"allOf":[{"type":"array","prefixItems":[{"type":"integer"},{"minimum":3}]},
                                           {"items":{"type":["integer","string"]}}]})";
    CHECK(allows(first, R"([1,4,"a",5])"));
    CHECK_FALSE(allows(first, R"(["a"])"));
    CHECK_FALSE(allows(first, "[1,2]"));
    CHECK_FALSE(allows(first, "[1,4,null]"));
    const char* const both = R"({"allOf":[{"prefixItems":[{"enum":[1,2]}],"items":false},
                                          {"items":[{"enum":[2,3]},{"type":"null"}],"additionalItems":{"const":9}}]})";
    CHECK(allows(both, "[2]"));
    CHECK_FALSE(allows(both, "[1]"));
    CHECK_FALSE(allows(both, "[2,null]"));
}

TEST_CASE("schemas: names and unevaluated properties are kept or refused") {
    const char* const listed =
        R"({"properties":{"foo":{},"bar":{}},"additionalProperties":false,"propertyNames":{"pattern":"^b"}})";
    CHECK(allows(listed, R"({"bar":1})"));
    CHECK_FALSE(allows(listed, R"({"foo":1})"));
    const char* const some = R"({"propertyNames":{"anyOf":[{"maxLength":1},{"pattern":"^x"}],"not":{"const":"y"}}})";
    for (const char* text : {R"({"a":1})", R"({"xyz":1})", "{}"}) CHECK(allows(some, text));
    for (const char* text : {R"({"y":1})", R"({"ab":1})"}) CHECK_FALSE(allows(some, text));
    CHECK(allows(R"({"type":"object","propertyNames":{"type":"integer"}})", "{}"));
    CHECK(refused(R"({"type":"object","propertyNames":{"oneOf":[{"maxLength":3}]}})")
              .find("/propertyNames: expected names by length") != std::string::npos);
    CHECK(allows(R"({"type":"object","properties":{},"unevaluatedProperties":false})", "{}"));
    CHECK_FALSE(allows(R"({"type":"object","properties":{},"unevaluatedProperties":false})", R"({"a":1})"));
    CHECK(allows(R"({"unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]})",
                 R"({"a":1,"b":2})"));
    const char* const chosen = R"({"properties":{"kind":{"enum":["a","b"]}},"required":["kind"],
        "if":{"properties":{"kind":{"const":"a"}}},"then":{"properties":{"x":{"type":"integer"}},"required":["x"]},
        "unevaluatedProperties":false})";
    CHECK(allows(chosen, R"({"kind":"a","x":1})"));
    CHECK(allows(chosen, R"({"kind":"b"})"));
    CHECK_FALSE(allows(chosen, R"({"kind":"a"})"));
    CHECK_FALSE(allows(chosen, R"({"kind":"a","x":1,"y":1})"));
    const char* const dependent = R"({"dependentSchemas":{"a":{"properties":{"b":{"type":"null"}},"required":["b"]}},
        "properties":{"a":{"type":"integer"}},"anyOf":[{"properties":{"c":{}}},{"required":["a"]}],
        "unevaluatedProperties":false})";
    CHECK(allows(dependent, R"({"a":1,"b":null})"));
    CHECK_FALSE(allows(dependent, R"({"a":1,"d":null})"));
    CHECK(allows(R"({"propertyNames":{"enum":["a","b"],"pattern":"b"}})", R"({"b":1})"));
    CHECK_FALSE(allows(R"({"propertyNames":{"enum":["a","b"],"pattern":"b"}})", R"({"a":1})"));
    const char* const none = R"({"type":"object","propertyNames":{"enum":["a"]},"unevaluatedProperties":false})";
    CHECK(allows(none, "{}"));
    CHECK_FALSE(allows(none, R"({"a":1})"));
    const char* const inner =
        R"({"allOf":[{"properties":{"a":{}},"unevaluatedProperties":false},{"properties":{"b":{}}}]})";
    CHECK(allows(inner, R"({"a":1})"));
    CHECK_FALSE(allows(inner, R"({"b":1})"));
}

TEST_CASE("schemas: items that come once") {
    const char* const days = R"({"items":{"enum":["mon","tue","wed"]},"uniqueItems":true,"minItems":1})";
    CHECK(allows(days, R"(["tue","mon"])"));
    CHECK(allows(days, R"(["wed","mon","tue"])"));
    CHECK_FALSE(allows(days, R"(["mon","mon"])"));
    CHECK_FALSE(allows(days, R"(["mon","tue","mon"])"));
    CHECK_FALSE(allows(days, "[]"));
    CHECK(allows(R"({"items":{"enum":[1,1.0]},"uniqueItems":true})", "[1]"));
    CHECK_FALSE(allows(R"({"items":{"enum":[1,1.0]},"uniqueItems":true})", "[1,1.0]"));
    CHECK(allows(R"({"items":{"type":"string"},"uniqueItems":true,"maxItems":1})", R"(["a"])"));
    CHECK(refused(R"({"items":{"enum":[1,2]},"contains":{"const":1},"uniqueItems":true})")
              .find("expected no uniqueItems beside contains") != std::string::npos);
    CHECK(refused(R"({"items":{"type":"integer"},"uniqueItems":true})")
              .find("schema/uniqueItems: expected no uniqueItems but of items that are an enum") == 0);
    const char* const digits =
        R"({"items":{"enum":[0,1,2,3,4,5,6,7,8,9]},"uniqueItems":true,"maxItems":3})";  // in this order
    for (const char* text : {"[]", "[0,3,9]", "[7]"}) CHECK(allows(digits, text));
    for (const char* text : {"[3,3]", "[4,3]", "[1,2,3,4]"}) CHECK_FALSE(allows(digits, text));
    CHECK(allows(R"({"items":{"type":"boolean"},"uniqueItems":true})", "[true,false]"));
}

TEST_CASE("schemas: strings that come once, and objects that differ in one") {
    const char* const names = R"({"items":{"type":"string"},"uniqueItems":true,"maxItems":4})";
    for (const char* text : {"[]", R"(["a"])", R"(["a","b","ab","aa"])", R"(["\"","\\"])", R"(["]","],","\",\""])"})
        CHECK(allows(names, text));
    for (const char* text : {R"(["a","a"])", R"(["b","a","b"])", R"(["a","b","c","d","e"])", R"(["\n","\n"])",
                             R"([""])", R"(["a","\u0061"])", R"(["a",])"})
        CHECK_FALSE(allows(names, text));
    const char* const ends =
        R"({"items":{"$ref":"#/$defs/n"},"uniqueItems":true,"minItems":2,"$defs":{"n":{"pattern":"^a+b*$"}}})";
    CHECK(allows(ends, R"(["a","ab","aa"])"));
    for (const char* text : {R"(["a"])", R"(["ab","ab"])", R"(["b","a"])"}) CHECK_FALSE(allows(ends, text));
    const char* const people = R"({"items":{"properties":{"id":{"type":"string"},"age":{"type":"integer"}},
        "required":["age","id"]},"uniqueItems":true})";
    CHECK(allows(people, R"([{"id":"a","age":1},{"id":"b","age":1}])"));
    CHECK_FALSE(allows(people, R"([{"id":"a","age":1},{"id":"a","age":2}])"));
    const char* const either =
        R"({"items":{"anyOf":[{"type":"string","minLength":2},{"type":"object","properties":{"n":{"type":"string"}},
        "required":["n"]}]},"uniqueItems":true})";
    CHECK(allows(either, R"(["ab",{"n":"a"},"abc"])"));
    CHECK_FALSE(allows(either, R"([{"n":"x"},"ab",{"n":"x"}])"));
    const char* const lists =
        R"({"properties":{"x":{"$ref":"#/$defs/l"},"y":{"type":"array","items":{"type":"object","properties":
        {"l":{"$ref":"#/$defs/l"}},"required":["l"]}}},"$defs":{"l":{"items":{"type":"string"},"uniqueItems":true}}})";
    CHECK(allows(lists, R"({"x":["a","b"],"y":[{"l":["a","c"]},{"l":["b","a"]}]})"));
    CHECK_FALSE(allows(lists, R"({"x":["a","b"],"y":[{"l":["a","c"]},{"l":["b","b"]}]})"));
}

TEST_CASE("schemas: items that nothing tells apart are refused by their place") {
    const std::string wanted = "schema/properties/p/uniqueItems: expected no uniqueItems but of items that are an enum";
    for (const char* items :
         {R"({"type":["string","null"]})", R"({"type":"object"})",
          R"({"properties":{"n":{"type":"string"}},"required":[]})", R"({"$ref":"#"})", R"({"type":"array"})",
          R"({"properties":{"n":{"type":"string"},"p":{"$ref":"#/properties/p"}},"required":["n"]})",
          R"({"properties":{"n":{"type":"string"},"q":{"$ref":"#"}},"required":["n"]})", "true"}) {
        CAPTURE(items);
        const std::string schema = R"({"properties":{"p":{"uniqueItems":true,"items":)" + std::string(items) + "}}}";
        CHECK(refused(schema).find(wanted) == 0);
    }
    CHECK(refused(R"({"uniqueItems":true,"items":{"type":"string","maxLength":9}})").find("schema/items/maxLength: ") ==
          0);
    CHECK(refused(R"({"uniqueItems":true,"items":{"pattern":"^ab?$"}})").find("schema/items: expected strings that ") ==
          0);
    CHECK(refused(R"({"uniqueItems":true,"items":{"anyOf":[{"type":"string"},{"const":"a"}]}})")
              .find("schema/items/anyOf/1: unique item: expected no unique item beside enum or const") == 0);
    CHECK(refused(R"({"uniqueItems":true,"minItems":200,"items":{"type":"string"}})") ==
          "schema/minItems: expected at most 128 beside uniqueItems, got 200");
    CHECK(refusal([] { return grammar::read_json_schema(R"({"uniqueItems":true,"items":{"type":"string"}})"); },
                  {.own_index = true})
              .find("expected no uniqueItems of strings or objects in a form for a board") == 0);
}

}  // namespace
}  // namespace fovea::testing
