// How many and how long: lengths beside patterns, counts of properties, multiples, and what of more than one rule for names.
#include <doctest/doctest.h>

#include <regex>

#include "host/base/json.h"
#include "tests/support/form_cases.h"

namespace fovea::testing {
namespace {

TEST_CASE("schemas: lengths beside a pattern") {
    const char* const name = R"({"type":"string","minLength":2,"maxLength":5,"pattern":"^[A-Z][a-z]+$"})";
    for (const char* text : {"\"Ab\"", "\"Abcde\""}) CHECK(allows(name, text));
    for (const char* text : {"\"A\"", "\"Abcdef\"", "\"ab\""}) CHECK_FALSE(allows(name, text));
    const char* const ways = R"({"pattern":"^a|bc$","maxLength":2})";
    for (const char* text : {"\"a\"", "\"ax\"", "\"bc\""}) CHECK(allows(ways, text));
    for (const char* text : {"\"b\"", "\"abc\"", "\"xbc\""}) CHECK_FALSE(allows(ways, text));
    const char* const label = R"({"pattern":"^[a-z]([-a-z]*[a-z])?$","maxLength":4,"minLength":3})";
    for (const char* text : {"\"a-b\"", "\"abcd\""}) CHECK(allows(label, text));
    for (const char* text : {"\"ab\"", "\"abc-\"", "\"abcde\""}) CHECK_FALSE(allows(label, text));
    const char* const two = R"({"pattern":"^a+$","allOf":[{"pattern":"aa"},{"not":{"pattern":"aaaa"}}]})";
    for (const char* text : {"\"aa\"", "\"aaa\""}) CHECK(allows(two, text));
    for (const char* text : {"\"a\"", "\"aaaa\""}) CHECK_FALSE(allows(two, text));
    // Long ones are not told apart state by state: each repetition has its share.
    const std::string address = R"({"type":"string","format":"uri","minLength":1,"maxLength":2083})";
    CHECK(allows(address.c_str(),
                 "\"https://example.com/" + std::string(900, 'a') + "?q=" + std::string(900, 'b') + "\""));
    CHECK_FALSE(allows(address.c_str(), "\"https://example.com/" + std::string(2083, 'a') + "\""));
    CHECK(allows(R"({"type":"string","maxLength":100000})", "\"a\""));
    CHECK(refused(R"({"properties":{"a":{"minLength":70000}}})") ==
          "schema/properties/a/minLength: expected at most 65534, got 70000");
}

TEST_CASE("schemas: anchors in groups at a pattern's ends, beside the standard library's expressions") {
    for (const char* pattern :
         {"(^a|^b)", "(^a$|b)", "^(a$|b$)", "(^a|b$)", "x|(^a|b)c", "c(a$|b)", "(^$)|(^ab+$)", "((^a)|b)c",
          "(^a|b)(c|a$)", "(?:^|c)b", "a(?:$|c)", "(^|c)a(c|$)", "^(^a)", "(b|a$|c)", "(\\\\^a|[$^]b$)"}) {
        CAPTURE(pattern);
        const Form form(grammar::read_json_schema(R"({"type":"string","pattern":")" + std::string(pattern) + "\"}"),
                        byte_level());
        const Json plain = Json::parse("\"" + std::string(pattern) + "\"");
        const std::regex expected(plain.get<std::string>());
        for (int i = 0; i < 1 + 5 + 25 + 125; ++i) {  // all texts of up to three characters
            std::string text;
            for (int n = i < 1 ? 0 : i < 6 ? 1 : i < 31 ? 2 : 3, rest = i; n > 0; --n, rest /= 5)
                text += "abc^$"[rest % 5];
            CAPTURE(text);
            CHECK(fits(form, "\"" + text + "\"") == std::regex_search(text, expected));
        }
    }
    CHECK(refused(R"({"pattern":"(^a){2}"})") ==
          "schema/pattern, column 2: expected ^ at the expression's start alone, got ^");
    CHECK(refused(R"({"pattern":"(a$)b"})") ==
          "schema/pattern, column 3: expected $ at the expression's end alone, got $");
}

TEST_CASE("schemas: all of JSON Schema's formats") {
    const std::pair<const char*, const char*> texts[] = {
        {"regex", "^(ab+|[a-z]?)*\\\\d$"}, {"iri", "https://a.org/b?c=d"},     {"uri-reference", "../a/b#c"},
        {"iri-reference", "a/b?c"},        {"uri-template", "http://a.b/{c}"}, {"json-pointer", "/a/0/b c"},
        {"relative-json-pointer", "1/a"},  {"idn-email", "a.b@c.de"},          {"idn-hostname", "a-b.example"}};
    for (const auto& one : texts) {
        CAPTURE(one.first);
        const std::string schema = R"({"type":"string","format":")" + std::string(one.first) + "\"}";
        CHECK(allows(schema.c_str(), "\"" + std::string(one.second) + "\""));
        CHECK_FALSE(allows(schema.c_str(), "\"[ {\""));
    }
}

TEST_CASE("schemas: a format beside a pattern is an annotation") {
    for (const char* format : {"email", "date", "iri", "starts_with"}) {
        const std::string schema = R"({"type":"string","pattern":"^ab.*","format":")" + std::string(format) + "\"}";
        CHECK(allows(schema.c_str(), "\"abc\""));
        CHECK_FALSE(allows(schema.c_str(), "\"2020-01-01\""));
    }
}

TEST_CASE("schemas: multiples") {
    for (const char* bounds : {"", R"(,"minimum":-20,"maximum":33)", R"(,"exclusiveMinimum":7)"})
        for (const int step : {1, 2, 5, 7, 30, 1000}) {
            const Json schema = Json::parse(R"({"type":"integer","multipleOf":)" + std::to_string(step) + bounds + "}");
            const Form form(grammar::read_json_schema(schema.dump(), {.compact = true}), byte_level());
            CAPTURE(schema.dump());
            for (int i = -40; i <= 2000; i += i < 60 ? 1 : 97)
                REQUIRE(fits(form, std::to_string(i)) ==
                        (i % step == 0 && i >= schema.value("minimum", -100) && i <= schema.value("maximum", 9999) &&
                         i > schema.value("exclusiveMinimum", -100)));
        }
    const char* const quarters = R"({"type":"number","multipleOf":0.25,"minimum":-1.5})";
    for (const char* text : {"0", "1", "0.5", "0.50", "12.75", "-0.25", "-1.5"}) CHECK(allows(quarters, text));
    for (const char* text : {"0.3", "0.251", "-1.75", "1.", "01"}) CHECK_FALSE(allows(quarters, text));
    CHECK(allows(R"({"type":"integer","multipleOf":2.5})", "15"));
    CHECK_FALSE(allows(R"({"type":"integer","multipleOf":2.5})", "7"));
    CHECK(allows(R"({"allOf":[{"multipleOf":4},{"multipleOf":6}]})", "12"));
    CHECK_FALSE(allows(R"({"allOf":[{"multipleOf":4},{"multipleOf":6}]})", "18"));
    const char* const cents = R"({"type":"number","multipleOf":0.01,"minimum":0})";
    for (const char* text : {"0", "19.99", "0.29", "1.1", "7.50", "1000"}) CHECK(allows(cents, text));
    for (const char* text : {"19.999", "0.001", "-1"}) CHECK_FALSE(allows(cents, text));
    CHECK(allows(R"({"type":"number","multipleOf":0.03})", "0.21"));
    CHECK_FALSE(allows(R"({"type":"number","multipleOf":0.03})", "0.2"));
    CHECK(allows(R"({"enum":[0.29,0.295],"multipleOf":0.01})", "0.29"));
    CHECK_FALSE(allows(R"({"enum":[0.29,0.295],"multipleOf":0.01})", "0.295"));
    CHECK(refused(R"({"properties":{"p":{"multipleOf":1234.5}}})")
              .find("schema/properties/p/multipleOf: expected a step of at most 1000") == 0);
    CHECK(refused(R"({"multipleOf":-1})") == "schema/multipleOf: expected a number above 0, got -1");
}

TEST_CASE("schemas: so many properties") {
    const std::string names = R"("properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}})";
    const auto count = [](const std::string& text) { return std::count(text.begin(), text.end(), ':'); };
    const char* const objects[] = {"{}",
                                   R"({"a":1})",
                                   R"({"b":2})",
                                   R"({"a":1,"b":2})",
                                   R"({"a":1,"c":3})",
                                   R"({"b":2,"c":3})",
                                   R"({"a":1,"b":2,"c":3})"};
    for (int min = 0; min <= 3; ++min)
        for (int max = min; max <= 3; ++max)
            for (const char* required : {"", R"(,"required":["b"])"}) {
                const std::string schema = "{" + names + R"(,"minProperties":)" + std::to_string(min) +
                                           R"(,"maxProperties":)" + std::to_string(max) + required + "}";
                CAPTURE(schema);
                if (*required && max == 0) continue;
                for (const std::string text : objects) {
                    const bool has_all = !*required || text.find("\"b\"") != text.npos;
                    CHECK(allows(schema.c_str(), text) == (has_all && count(text) >= min && count(text) <= max));
                }
            }
    const char* const open =
        R"({"properties":{"a":{"const":1}},"additionalProperties":{"const":0},"minProperties":2,"maxProperties":3})";
    for (const char* text : {R"({"a":1,"x":0})", R"({"a":1,"x":0,"y":0})"}) CHECK(allows(open, text));
    for (const char* text : {R"({"a":1})", R"({"x":0,"y":0})", R"({"a":1,"x":0,"y":0,"z":0})"})
        CHECK_FALSE(allows(open, text));
    CHECK(refused(R"({"required":["p"],"properties":{"p":{"minProperties":3}}})") ==
          "schema/properties/p/minProperties: expected at most 1, which is one more than are named, got 3: not "
          "supported");
}

TEST_CASE("schemas: keywords that tell the type of a schema that names none") {
    CHECK(allows(R"({"maxProperties":0})", "{}"));
    CHECK_FALSE(allows(R"({"maxProperties":0})", R"({"a":1})"));
    CHECK_FALSE(allows(R"({"minProperties":1})", "{}"));
    CHECK(allows(R"({"unevaluatedProperties":false})", "{}"));
    CHECK_FALSE(allows(R"({"unevaluatedProperties":false})", R"({"a":1})"));
    CHECK_FALSE(allows(R"({"unevaluatedItems":false})", "[1]"));
    CHECK(refused(R"({"properties":{"p":{"uniqueItems":true}}})")
              .find("schema/properties/p/uniqueItems: expected no uniqueItems") == 0);
}

TEST_CASE("schemas: named properties beside patterns of names") {
    const char* const both =
        R"({"properties":{"a":{"type":"integer"},"x-b":{"minimum":3}},"patternProperties":{"^x-":{"type":"integer"},
        "z$":{"const":7}},"propertyNames":{"maxLength":4},"required":["a"]})";
    for (const char* text : {R"({"a":1})", R"({"a":1,"x-b":3})", R"({"a":1,"x-c":1,"z":7,"x-z":7})"})
        CHECK(allows(both, text));
    for (const char* text : {R"({"x-b":3})", R"({"a":1,"x-b":2})", R"({"a":1,"x-c":"1"})", R"({"a":1,"x-z":1})",
                             R"({"a":1,"c":1})", R"({"a":1,"x-ccc":1})"})
        CHECK_FALSE(allows(both, text));
    const char* const others =
        R"({"patternProperties":{"^a":{"const":1},"^b":{"const":2}},"additionalProperties":{"const":3}})";
    for (const char* text : {R"({"a":1,"bc":2,"d":3})", R"({"":3})"}) CHECK(allows(others, text));
    for (const char* text : {R"({"ab":3})", R"({"c":1})"}) CHECK_FALSE(allows(others, text));
    const char* const held =
        R"({"allOf":[{"patternProperties":{"^a":{"maximum":4}}},{"properties":{"a":{"type":"integer"}}}]})";
    CHECK(allows(held, R"({"a":4})"));
    CHECK_FALSE(allows(held, R"({"a":5})"));
}

TEST_CASE("schemas: alternatives of which one alone fits") {
    const char* const keys =
        R"({"oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},
                {"properties":{"b":{"type":"string"}},"required":["b"]}]})";
    CHECK(allows(keys, R"({"a":""})"));
    CHECK(allows(keys, R"({"b":""})"));
    CHECK_FALSE(allows(keys, R"({"a":"","b":""})"));
    const char* const numbers = R"({"oneOf":[{"type":"integer","minimum":3},{"type":"integer","maximum":5}]})";
    for (int i = 0; i < 9; ++i) CHECK(allows(numbers, std::to_string(i)) == (i < 3 || i > 5));
    const char* const patterns = R"({"type":"string","oneOf":[{"pattern":"^a"},{"pattern":"b$"}]})";
    for (const char* text : {"\"a\"", "\"b\"", "\"ac\""}) CHECK(allows(patterns, text));
    for (const char* text : {"\"ab\"", "\"c\""}) CHECK_FALSE(allows(patterns, text));
    CHECK(refused(R"({"items":{"oneOf":[{"type":"integer"},{"type":"number"}]}})")
              .find("schema/items/oneOf: expected schemas of which") == 0);
    const char* const by_pattern =
        R"({"oneOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
                {"type":"object","patternProperties":{"^a":{"type":"integer"}},"additionalProperties":false}]})";
    CHECK(refused(by_pattern).find("of which no text fits two") != std::string::npos);  // {"a":1} fits both
}

TEST_CASE(
    "schemas: ways of oneOf that no property must tell apart are written with one that does, where all others are too "
    "many") {
    Json ways = Json::array();
    for (int i = 0; i < 24; ++i) {
        const std::string country = "country " + std::to_string(i);
        Json way = {{"properties", {{"country", {{"enum", {country}}}}, {"zip", {{"type", "string"}}}}}};
        for (const char* name : {"state", "town", "street"})
            way["properties"][name] = {{"enum", {name + std::to_string(i % 5), name + std::to_string(i % 7)}}};
        ways.push_back(way);
    }
    const std::string many = Json{{"type", "object"}, {"oneOf", ways}}.dump();
    CHECK(allows(many.c_str(), R"({"country":"country 7","zip":"1","town":"town2"})"));
    CHECK_FALSE(allows(many.c_str(), R"({"country":"country 7","town":"town3"})"));
    CHECK_FALSE(allows(many.c_str(), R"({"zip":"1"})"));
    CHECK_FALSE(allows(many.c_str(), "{}"));
    const std::string two = Json{{"type", "object"}, {"oneOf", {ways[0], ways[1]}}}.dump();
    CHECK(allows(two.c_str(), R"({"state":"state0"})"));  // of few all are written
    CHECK_FALSE(allows(two.c_str(), R"({"zip":"1"})"));
}

TEST_CASE("schemas: what only readers see is no part of schemas that hold together, and may stand in the way of none") {
    Json deep = {{"type", "integer"}};
    for (int i = 0; i < 40; ++i)
        deep = {{"type", "object"}, {"title", std::string(2000, 't')}, {"properties", {{"a", deep}}}};
    const Json schema = {{"title", "a"},
                         {"default", deep},
                         {"examples", {deep}},
                         {"x-note", {{"$ref", "#/nowhere"}}},
                         {"$defs", {{"a", {{"description", "b"}, {"maximum", 3}}}}},
                         {"allOf", {{{"$ref", "#/x-schemas/b"}}, {{"$ref", "#/$defs/a"}}}},
                         {"x-schemas", {{"b", {{"title", "c"}, {"type", "integer"}, {"minimum", 2}}}}}};
    for (int i = 0; i < 6; ++i) CHECK(allows(schema.dump().c_str(), std::to_string(i)) == (i == 2 || i == 3));
}

TEST_CASE("schemas: unevaluated properties of cousins, of conditions that fail and of what is excluded") {
    const char* const cousin =
        R"({"allOf":[{"properties":{"x":{"properties":{"a":{"type":"integer"}},"unevaluatedProperties":false}}},
        {"properties":{"x":{"properties":{"b":{"type":"integer"}}}}}],"required":["x"]})";
    CHECK(allows(cousin, R"({"x":{"a":1}})"));
    CHECK_FALSE(allows(cousin, R"({"x":{"b":1}})"));
    const char* const fails =
        R"({"if":{"properties":{"kind":{"const":"a"}},"required":["kind"]},"then":{"properties":{"x":{"type":"integer"}}},
        "else":{"properties":{"y":{"type":"string"}}},"unevaluatedProperties":false})";
    for (const char* text : {R"({"kind":"a","x":1})", R"({"y":""})", "{}"}) CHECK(allows(fails, text));
    for (const char* text : {R"({"kind":"b"})", R"({"kind":"b","y":""})", R"({"kind":"a","y":""})"})
        CHECK_FALSE(allows(fails, text));
    CHECK(refused(
              R"({"properties":{"foo":{}},"not":{"not":{"properties":{"bar":{}},"required":["bar"]}},
                "unevaluatedProperties":false})")
              .find("at least one text") != std::string::npos);
    const char* const parts =
        R"({"allOf":[{"unevaluatedProperties":false,"allOf":[{"properties":{"a":{"const":1}}}]},{"properties":{"b":{}}}]})";
    CHECK(allows(parts, R"({"a":1})"));
    CHECK_FALSE(allows(parts, R"({"b":1})"));
    CHECK(allows(
        R"({"prefixItems":[{"const":1}],"anyOf":[{"prefixItems":[true,{"const":2}]}],"unevaluatedItems":{"const":3}})",
        "[1,2,3,3]"));
    CHECK_FALSE(
        allows(R"({"prefixItems":[{"const":1}],"anyOf":[{"prefixItems":[true,{"const":2}]}],"unevaluatedItems":false})",
               "[1,2,3]"));
}

TEST_CASE("schemas: identifiers and anchors") {
    const char* const anchor = R"({"items":{"$ref":"#it"},"$defs":{"x":{"$anchor":"it","const":1}}})";
    CHECK(allows(anchor, "[1]"));
    CHECK_FALSE(allows(anchor, "[2]"));
    const char* const inner =
        R"({"$id":"https://a.example/root.json","items":{"$ref":"item.json#/$defs/one"},"$defs":{"i":{"$id":"item.json",
        "$defs":{"one":{"$ref":"#/$defs/two"},"two":{"const":2}}}}})";
    CHECK(allows(inner, "[2]"));
    CHECK_FALSE(allows(inner, "[1]"));
    CHECK(allows(R"({"properties":{"n":{"$recursiveRef":"#"}}})", R"({"n":{"n":{}}})"));
    CHECK(allows(R"({"$dynamicAnchor":"t","properties":{"n":{"$dynamicRef":"#t"}}})", R"({"n":{"n":{}}})"));
    CHECK(refused(R"({"properties":{"a/b":{"$ref":"other.json"}}})") ==
          "schema/properties/a~1b/$ref: expected a place in the schema such as #/$defs/name, got other.json");
}

TEST_CASE("schemas: a refusal names the place that the schema has") {
    CHECK(refused(R"({"allOf":[{"type":"object"},{"properties":{"a":{"format":3}}}]})")
              .find("schema/allOf/1/properties/a/format: ") == 0);
    CHECK(refused(R"({"if":{"multipleOf":3},"then":{"minimum":1}})")
              .find("schema/if/multipleOf: expected no multipleOf") == 0);
    CHECK(refused(R"({"$ref":"#/$defs/x","$defs":{"x":{"items":{"pattern":"("}}}})")
              .find("schema/$defs/x/items/pattern, column 2: ") == 0);
}

}  // namespace
}  // namespace fovea::testing
