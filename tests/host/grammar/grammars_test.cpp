// Grammars and regular expressions: which texts fit, what is refused and in which words.
#include <doctest/doctest.h>

#include <regex>

#include "tests/support/form_cases.h"
#include "tests/support/sanitized.h"

namespace fovea::testing {
namespace {

using grammar::GrammarError;
using grammar::read_gbnf;
using grammar::read_json_schema;
using grammar::read_regex;

TEST_CASE("grammars: behind the first mark, before which any text stands") {
    const Form form(grammar::behind("</think>", read_regex("[0-9]{2}")), byte_level());
    for (const char* text : {"</think>12", "a\nb </think>\n\n12", "a</thin</think> 12", "<</think>12",
                             "\xc3\xa9<think>34</think>    12"}) {
        CAPTURE(text);
        CHECK(fits(form, text));
    }
    for (const char* text : {"12", "a</think>", "</think>1", "a</think>x12", "a</think>b</think>12", "</think>     12",
                             "a</think >12", "</thin12"}) {
        CAPTURE(text);
        CHECK(!fits(form, text));
    }
}

TEST_CASE("gbnf: literals, classes, groups, repetitions and rules of rules") {
    struct Case {
        const char* text;
        std::vector<std::string> fit, unfit;
    };
    const Case cases[] = {
        {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "ye", "yess", "yesno"}},
        {"# a note\nroot ::= a b?   # and another\na ::= \"x\"+\nb ::= [0-9]{2,3}\n",
         {"x", "xxx", "x12", "xx123"},
         {"", "x1", "x1234", "12"}},
        {"root ::= (\n  \"a\" |\n  \"b\"\n)*\n", {"", "a", "abba"}, {"c", "ab c"}},
        {"root ::= [^a-c\\n\\]]{3}",
         {"xyz", "d\xc3\xa9\xe6\xbc\xa2", "\xf0\x9f\x98\x80  "},
         {"xya", "xy", "xy]", "xy\n"}},
        {"root ::= \"\\\"\\\\\\t\\x41\\u00e9\\U0001F600\"", {"\"\\\tA\xc3\xa9\xf0\x9f\x98\x80"}, {"\"\\tA"}},
        {"root ::= \"(\" root? \")\"", {"()", "((()))"}, {"", "(", "(()"}},
        {"root ::= \"a\" root | \"b\"", {"b", std::string(2000, 'a') + "b"}, {"a"}},
        {"root ::= item (\",\" item)*\nitem ::= \"[\" (item (\",\" item)*)? \"]\" | [0-9]",
         {"1,2,[3,[]],4", "[[1],[2]]"},
         {"1,", "[1", "[,]"}},
        {"root ::= x x x\nx ::= \"a\" | \"ab\" | \"b\"",
         {"aaa",
          "abab"
          "b",
          "aab", "bbb", "abaab"},
         {"a", "aa", "abababab"}},
        {"root ::= e\n\n  | \"z\"\ne ::= \"\" | \"q\"", {"", "q", "z"}, {"qq"}},
        {"root ::= [a-z]{100,2000} \".\"",
         {std::string(100, 'a') + ".", std::string(2000, 'z') + "."},
         {std::string(99, 'a') + ".", std::string(2001, 'a') + "."}},
        {"root ::= (\"ab\" | \"c\"){30,40}",
         {std::string(30, 'c'), std::string(39, 'c') + "ab"},
         {std::string(29, 'c'), std::string(41, 'c')}},
        {"root ::= .", {"\n", "\xc3\xa9"}, {"\xc3", "ab"}},
    };
    for (const Case& c : cases) {
        CAPTURE(c.text);
        const Form form(read_gbnf(c.text), byte_level());
        for (const std::string& text : c.fit) {
            CAPTURE(text);
            CHECK(fits(form, text));
        }
        for (const std::string& text : c.unfit) {
            CAPTURE(text);
            CHECK(!fits(form, text));
        }
    }
}

TEST_CASE("regex: classes write what all dialects have in them") {
    struct Case {
        const char *pattern, *text;
        bool is_in;
    };
    // A letter, a sign, a no-break space and an ideographic one.
    const Case cases[] = {{"\\S", "\xc3\xa9", true},
                          {"\\S", "\xe2\x82\xac", true},
                          {"\\S", "\xc2\xa0", false},
                          {"\\S", "\xe3\x80\x80", false},
                          {"[^\\s]", "\xc2\xa0", false},
                          {"[^\\s]", "\xc3\xa9", true},
                          {"\\s", "\xc2\xa0", false},
                          {"[^\\S]", "\xc3\xa9", false},
                          {"[^\\S]", " ", true},
                          {"\\W", "\xc3\xa9", false},
                          {"\\W", "-", true},
                          {"[^\\W_]", "\xe2\x82\xac", false},
                          {"[^\\W_]", "_", false},
                          {"[^\\W_]", "a", true},
                          {"[^\\w]", "\xc3\xa9", false},
                          {"\\D", "\xc3\xa9", true},
                          {"[^\\D]", "\xc3\xa9", false},
                          {"[^\\D]", "7", true},
                          {"[\\s\\S]", "\xc2\xa0", true},
                          {"[\\d\\D]", "\xc3\xa9", true},
                          {"[\\w\\W]", "\xc3\xa9", true},
                          {"[\\W\\w]", "\xc3\xa9", true},
                          {"[^\\s\\S]?", "a", false},
                          {"\\ud83d\\ude00", "\xf0\x9f\x98\x80", true},
                          {"[\\u00e0-\\u00ff]", "\xc3\xa9", true}};
    for (const Case& c : cases) {
        CAPTURE(c.pattern);
        CAPTURE(c.text);
        CHECK(fits(Form(read_regex(c.pattern), byte_level()), c.text) == c.is_in);
    }
}

TEST_CASE("regex: what the standard library's expressions match fits, and what is drawn they match") {
    const char* const patterns[] = {"[0-9]{3}-(a|b)+x?",
                                    "(foo|bar|foobar)*",
                                    "a{2,5}b{0,40}c",
                                    "\\d+(\\.\\d{1,3})?",
                                    "[^a-y]{1,3}",
                                    "(?:x|yz){2,}",
                                    "\\w+@\\w+\\.(com|org)",
                                    "^-?(0|[1-9]\\d*)$",
                                    "(a*b*)*c",
                                    "[\\s]x[\\-\\]]",
                                    "a|",
                                    "((ab){2}|c){2,3}"};
    const char* const texts[] = {"",       "a",       "c",    "ab",       "123-abx", "123-",           "foobarfoo",
                                 "foobar", "aaabbbc", "aac",  "12",       "12.345",  "12.3456",        "z",
                                 "zzz",    "zzzz",    "xx",   "xyzx",     "x",       "me@example.com", "me@example.net",
                                 "-0",     "-12",     "012",  "aabbaabc", " x-",     "\tx]",           "abab",
                                 "ababab", "ccc",     "cabab"};
    std::mt19937 random(5);
    for (const char* const pattern : patterns) {
        CAPTURE(pattern);
        const Form form(read_regex(pattern), byte_level());
        const std::regex oracle(pattern);
        for (const char* const text : texts) {
            CAPTURE(text);
            CHECK(fits(form, text) == std::regex_match(text, oracle));
        }
        FormState s(form.constraint());
        for (int i = 0; i < 20; ++i) {
            restart(s.state);
            const Answer answer = draw(form, s, random, 40);
            bool ascii = true;
            for (const char c : answer.text) ascii = ascii && (c & 0x80) == 0;
            CAPTURE(answer.text);
            if (answer.complete && ascii) CHECK(std::regex_match(answer.text, oracle));
        }
    }
}

TEST_CASE("json schemas: texts that people write fit, and near misses do not") {
    struct Case {
        const char* schema;
        std::vector<std::string> fit, unfit;
    };
    const Case cases[] = {
        {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]})",
         {R"({"a":1})", R"({"a": -12, "b": "x\n\u00e9"})", "{\n  \"a\": 0,\n  \"b\": \"\"\n}"},
         {"{}", R"({"b":"x","a":1})", R"({"a":01})", R"({"a":1,})", R"({"a":1.5})", R"({"a":1,"c":2})", R"({"a":1}x)"}},
        {R"({"type":"object","properties":{"x":{"type":"boolean"}},"additionalProperties":{"type":"null"}})",
         {"{}", R"({"x":true})", R"({"y":null})", R"({"x":false,"xy":null,"":null})"},
         {R"({"x":null})", R"({"y":true})"}},
        {R"({"type":"array","items":{"type":"number"},"minItems":1,"maxItems":3})",
         {"[1]", "[1.5, -2e10, 0]"},
         {"[]", "[1,2,3,4]", "[.5]", "[1e]"}},
        {R"({"type":"integer","minimum":-12,"maximum":105})",
         {"-12", "-1", "0", "9", "10", "99", "105"},
         {"-13", "106", "-0", "007", "1050"}},
        {R"({"type":"number","minimum":0,"maximum":1})", {"0", "1", "0.25"}, {"1.5", "-0.5", "2"}},
        {R"({"type":"string","pattern":"^[a-c\"]+$","maxLength":3})",
         {"\"abc\"", "\"\\\"\""},
         {"\"\"", "\"abca\"", "\"d\""}},
        {R"({"type":"string","minLength":2,"maxLength":3})",
         {"\"ab\"", "\"\\n\\u00e9\xe6\xbc\xa2\""},
         {"\"a\"", "\"abcd\"", "\"a\\q\""}},
        {R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["next"]}}})",
         {R"({"next":null})", R"({"next":{"next":{"next":null}}})"},
         {R"({"next":{}})"}},
        {R"({"enum":["a",1,null,{"k":[1,2]}]})", {"\"a\"", "1", "null", R"({"k":[1,2]})"}, {"a", "2"}},
        {R"({"allOf":[{"properties":{"a":{"minimum":3}}},{"type":"object","properties":{"a":{"type":"integer","maximum":5}},"required":["a"]}]})",
         {R"({"a":3})", R"({"a":5})"},
         {"{}", R"({"a":6})", R"({"a":2})"}},
        {"true", {"[1,{\"a\":[true,null,\"x\"]}]", "3"}, {"[1", "tru"}},
        {R"({"type":"string","format":"date"})", {"\"2024-02-28\""}, {"\"2024-13-01\"", "\"2024-02-30\""}},
        {R"({"type":"string","format":"password","maxLength":2})", {"\"ab\""}, {"\"abc\"", "3"}},
        {R"({"type":["string","null"],"nullable":true})", {"null", "\"x\""}, {"1"}},
        {R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"items":{"const":3}})",
         {"[]", "[1]", "[1,2]", "[1,2,3,3]"},
         {"[2]", "[1,3]"}},
    };
    for (const Case& c : cases) {
        CAPTURE(c.schema);
        for (const Vocabulary* vocabulary : {&byte_level(), &sentence_piece()}) {
            const Form form(read_json_schema(c.schema), *vocabulary);
            for (const std::string& text : c.fit) {
                CAPTURE(text);
                CHECK(fits(form, text));
            }
            for (const std::string& text : c.unfit) {
                CAPTURE(text);
                CHECK(!fits(form, text));
            }
        }
    }
}

TEST_CASE("grammars: what is refused names the place and what was expected") {
    const auto gbnf = [](const std::string& text) { return refusal([&] { return read_gbnf(text); }); };
    const auto regex = [](const std::string& text) { return refusal([&] { return read_regex(text); }); };
    const auto schema = [](const std::string& text) { return refusal([&] { return read_json_schema(text); }); };
    CHECK(gbnf("") == "grammar: expected a rule root, got none");
    CHECK(gbnf("root ::= x") == "grammar: expected a rule x, which is used, got none");
    CHECK(gbnf("root ::= \"a\"\nroot ::= \"b\"").find("line 2, column 1: expected each rule once") !=
          std::string::npos);
    CHECK(gbnf("root ::= \"a").find("expected a character, got the end") != std::string::npos);
    CHECK(gbnf("root ::= [z-a]").find("expected a range from low to high") != std::string::npos);
    CHECK(gbnf("root ::= root \"a\" | \"b\"").find("recursion at its left") != std::string::npos);
    CHECK(gbnf("root ::= e root \"a\" | \"b\"\ne ::= \"x\"?").find("recursion at its left") != std::string::npos);
    CHECK(gbnf("root ::= \"a\" root") == "expected a grammar of at least one text that ends, got none");
    CHECK(gbnf("root ::= <think>").find("tokens as such are not supported") != std::string::npos);
    CHECK(gbnf("root ::= \"a\"{3,2}").find("no fewer repetitions") != std::string::npos);
    CHECK(gbnf("root ::= \"\xff\"").find("expected UTF-8, got a byte that is none") != std::string::npos);
    CHECK(gbnf("root ::= " + std::string(300, '(') + "\"a\"" + std::string(300, ')')).find("200 groups") !=
          std::string::npos);
    CHECK(gbnf("root ::= \"a\"{99999999}").find("expected a number up to") != std::string::npos);
    CHECK(gbnf("root ::= \"ab\"{70000}").find("65534 repetitions, got 70000") != std::string::npos);
    CHECK(regex("[[:alpha:]]+").find("column 2: expected \\d, \\w, \\s or a-z in [ ], which has no [:names:]") !=
          std::string::npos);
    CHECK(regex("a(b").find("column 4: expected ), got the end") != std::string::npos);
    CHECK(regex("c((?=a)b)").find("(?: or (?<name>") != std::string::npos);
    CHECK(regex("(a)\\1").find("expected an escape") != std::string::npos);
    CHECK(regex("*a").find("something to repeat") != std::string::npos);
    CHECK(regex("a^b").find("expected ^ at the expression's start alone") != std::string::npos);
    CHECK(regex("\\ud83d").find("expected \\u of a character, or of both its surrogates") != std::string::npos);
    CHECK(regex("[]").find("expected a character in [ ]") != std::string::npos);
    CHECK(schema("{") == "schema: expected JSON, got what is none at byte 2");
    CHECK(schema("{\"maximum\": 1e999}") == "schema: expected numbers that a double can hold, got a larger one");
    CHECK(schema("3") == "schema: expected a schema, got 3");
    CHECK(schema(R"({"not":{}})").find("at least one text") != std::string::npos);
    CHECK(schema(R"({"properties":{"a":{"contains":{},"unevaluatedItems":false}}})")
              .find("schema/properties/a/contains: expected no contains beside unevaluatedItems") == 0);
    CHECK(schema(R"({"type":"text"})").find("/type: expected object, array") != std::string::npos);
    CHECK(schema(R"({"$ref":"other.json"})").find("expected a place in the schema such as") != std::string::npos);
    CHECK(schema(R"({"$ref":"#/$defs/none"})").find("got #/$defs/none") != std::string::npos);
    CHECK(schema(R"({"$ref":"#"})").find("at least one text") != std::string::npos);
    CHECK(schema(R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})").find("recursion at its left") != std::string::npos);
    CHECK(schema(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})").find("of which no text fits two") !=
          std::string::npos);
    CHECK(schema(R"({"type":"string","format":3})").find("/format: expected a name, got 3") != std::string::npos);
    CHECK(schema(R"({"type":null})") == "schema/type: expected a type or a list of types, got null");
    CHECK(schema(R"({"type":["string",3]})") == "schema/type: expected a type or a list of types, got 3");
    CHECK(schema(R"({"properties":3})").find("json.exception") == std::string::npos);
    CHECK(schema(R"({"type":"integer","minimum":3,"maximum":2})").find("at least one text") != std::string::npos);
    CHECK(schema(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})").find("at least one text") !=
          std::string::npos);
    CHECK(schema(R"({"type":"string","pattern":"^(ab|c)*$","minLength":5000})").find("schema/pattern: expected") == 0);
    CHECK(schema(R"({"type":"array","minItems":-1})").find("/minItems: expected a whole number, got -1") !=
          std::string::npos);
    CHECK(schema(R"({"type":"number","multipleOf":0})").find("/multipleOf: expected a number above 0") !=
          std::string::npos);
    std::string deep = "{}";
    for (int i = 0; i < 500; ++i) deep = R"({"items":)" + deep + "}";
    CHECK(schema(deep).find("brackets within brackets") != std::string::npos);
}

TEST_CASE("grammars: one of too many states is refused before it costs more") {
    // What comes so many places before the end has to be remembered: each place doubles the states.
    const auto doubling = [](int n_places) {
        std::string text = "(a|b)*a";
        for (int i = 0; i < n_places; ++i) text += "(a|b)";
        return read_regex(text);
    };
    CHECK(refusal([&] { return doubling(8); }) == "");
    CHECK(refusal([&] { return doubling(8); }, {.max_states = 100}) ==
          "expected a grammar of at most 100 states, got more");
    CHECK(refusal([&] { return doubling(18); }) == "expected a grammar of at most 60000 states, got more");
}

TEST_CASE("grammars: a short text that asks for much is refused at once" * doctest::skip(kSanitized)) {
    const auto gbnf = [](const std::string& text) { return refusal([&] { return read_gbnf(text); }); };
    const auto regex = [](const std::string& text) { return refusal([&] { return read_regex(text); }); };
    const auto schema = [](const std::string& text) { return refusal([&] { return read_json_schema(text); }); };
    // Repetitions of repetitions, of which none is in brackets.
    CHECK(gbnf("root ::= \"a\"" + std::string(1000, '*')) == "");
    CHECK(gbnf("root ::= \"a\"" + std::string(60000, '*')).find("2000 deep within expressions") != std::string::npos);
    CHECK(regex("a{2}{3}").find("column 5: expected one repetition") != std::string::npos);
    CHECK(regex("a{2}{b").empty());
    // Each rule twice in the one before, down to an empty text.
    std::string rules = "root ::= a0 \"x\"\n";
    for (int i = 0; i < 38; ++i) {
        const std::string next = "a" + std::to_string(i + 1);
        rules += "a" + std::to_string(i) + " ::= " + next + " | " + next + "\n";
    }
    CHECK(gbnf(rules + "a38 ::= \"\"").find("60000 states, got more") != std::string::npos);
    // Parts that may be empty, repeated within one another.
    CHECK(regex("((ab|cd)(){65534}(){65534}(){65534})*") == "");
    CHECK(regex("(((){65534}){65534}){65534}").find("60000 states, got more") != std::string::npos);
    // Schemas that are each twice in the one before.
    std::string all, not_any, arrays = R"({"type":"null"})";
    for (int i = 0; i < 40; ++i) {
        const std::string n = std::to_string(i), a = R"({"$ref":"#/$defs/a)" + std::to_string(i + 1) + "\"}",
                          b = R"({"$ref":"#/$defs/b)" + std::to_string(i + 1) + "\"}";
        all += "\"a" + n + R"(":{"allOf":[)" + a + "," + b + "]},\"b" + n + R"(":{"allOf":[)" + b + "," + a + "]},";
        not_any += "\"a" + n + R"(":{"anyOf":[)" + a + "," + a + "]},";
        arrays = R"({"type":"array","items":)" + arrays + "}";
    }
    const char* const last = R"("a40":{"type":"string"},"b40":{"type":"string","minLength":1}}})";
    CHECK(schema(R"({"$ref":"#/$defs/a0","$defs":{)" + all + last).find("2000000 values") != std::string::npos);
    CHECK(schema(R"({"not":{"$ref":"#/$defs/a0"},"$defs":{)" + not_any + last).find("4000 schemas that are excluded") !=
          std::string::npos);
    CHECK(schema(arrays) == "");
    const auto itself = [](const std::string& name) {
        const std::string r = R"({"$ref":"#/$defs/)" + name + "\"}";
        return "\"" + name + R"(":{"type":"object","required":["x","y","z"],"properties":{"x":)" + r + R"(,"y":)" + r +
               R"(,"z":)" + r + "}}";
    };
    CHECK(schema(R"({"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}],"$defs":{)" + itself("A") + "," + itself("B") +
                 "}}")
              .find("2000000 values") != std::string::npos);
}

TEST_CASE("grammars: bytes that the vocabulary has no token for are not asked for") {
    // The demo's like: a vocabulary of few bytes. Here that of WordPiece, whose end is given.
    const Vocabulary pieces("tokenizer_bert.json", {0});
    const Form form(read_regex("(a|b|\xe6\xbc\xa2){3}"), pieces);
    FormState s(form.constraint());
    std::mt19937 random(1);
    for (int i = 0; i < 20; ++i) {
        restart(s.state);
        CHECK(draw(form, s, random, 50).complete);
    }
}

}  // namespace
}  // namespace fovea::testing
