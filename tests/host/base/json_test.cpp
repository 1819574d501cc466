// JSON's text as values, held against the library's own reading of it.
#include "host/base/wanted_json.h"

#include <doctest/doctest.h>
#include <chrono>
#include <random>
#include <string>

namespace fovea {
namespace {

/// A text of random values in values, with spaces, twins among members, and numbers of each kind.
void write_value(std::mt19937& random, int depth, std::string& text) {
    static constexpr const char* kPlain[] = {"null", "true",          "-7", "18446744073709551615", "0.5e-3",
                                             "\"\"", "\"\\u00e9\\n\""};
    const unsigned kind = random() % (depth ? 9 : 7);
    if (kind < 7) {
        text += kPlain[kind];
        return;
    }
    const unsigned n = random() % 6;
    text += kind == 7 ? '[' : '{';
    for (unsigned i = 0; i < n; ++i) {
        if (i) text += " , ";
        if (kind == 8) text += '"' + std::string(1, static_cast<char>('a' + random() % 4)) + "\":";
        write_value(random, depth - 1, text);
    }
    text += kind == 7 ? ']' : '}';
}

double seconds_of(const std::string& text) {
    const auto begun = std::chrono::steady_clock::now();
    CHECK(!read_json(text).is_discarded());
    CHECK(!read_wanted(text, [](std::size_t, std::string_view) { return true; }).is_discarded());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

TEST_CASE("json: values are the library's, in the order of their first names") {
    std::mt19937 random(1);
    for (int i = 0; i < 3000; ++i) {
        std::string text;
        write_value(random, 4, text);
        INFO(text);
        const Json read = read_json(text);
        CHECK(read.dump() == Json::parse(text).dump());
        // Cut or changed anywhere it is none to both, with the same place of the fault.
        text.erase(random() % text.size(), 1);
        JsonFault fault;
        const bool is_none = read_json(text, &fault).is_discarded();
        CHECK(is_none == Json::parse(text, nullptr, false).is_discarded());
        if (!is_none) continue;
        try {
            const Json other = Json::parse(text);
            FAIL(other);
        } catch (const Json::parse_error& error) {
            CHECK(fault.byte == error.byte);
            CHECK(fault.words.starts_with("expected JSON, got a parse error at line "));
        }
    }
}

TEST_CASE("json: a member that comes twice has the last value, in the first one's place") {
    CHECK(read_json(R"({"b":1,"a":2,"b":{"c":[3]},"a":4})").dump() == R"({"b":{"c":[3]},"a":4})");
}

TEST_CASE("json: bounds are kept to and named") {
    JsonFault fault;
    const JsonBounds bounds{.depth = 3, .members = 2};
    CHECK(read_json(R"([[[1]],{"a":{"b":1,"c":2}}])", &fault, bounds).is_array());
    CHECK(read_json("[[[[1]]]]", &fault, bounds).is_discarded());
    CHECK(fault.words == "expected at most 3 arrays and objects in each other, got more");
    CHECK(read_json(R"({"a":1,"b":2,"c":3})", &fault, bounds).is_discarded());
    CHECK(fault.words == "expected at most 2 keys in an object, got more");
    CHECK(read_json(std::string(1 << 20, '[')).is_discarded());  // no call within calls for each
    CHECK(read_json("1e999", &fault).is_discarded());
    CHECK(fault.byte == 0);
}

/// The members that are wanted, out of the whole.
SortedJson part_of(const SortedJson& whole, const WantedMember& wanted, std::size_t depth = 1) {
    SortedJson part = whole;
    for (auto at = part.begin(); part.is_structured() && at != part.end();) {
        *at = part_of(*at, wanted, depth + 1);
        at = part.is_array() || wanted(depth, at.key()) ? std::next(at) : part.erase(at);
    }
    return part;
}

TEST_CASE("json: without members that are not wanted all others are the library's") {
    std::mt19937 random(2);
    for (int i = 0; i < 3000; ++i) {
        std::string text;
        write_value(random, 5, text);
        INFO(text);
        for (const std::size_t level : {0, 1, 2, 3}) {
            const auto wanted = [&](std::size_t depth, std::string_view name) { return depth != level || name < "c"; };
            CHECK(read_wanted(text, wanted) == part_of(SortedJson::parse(text), wanted));
        }
        text.erase(random() % text.size(), 1);
        const auto none = [](std::size_t, std::string_view) { return false; };
        JsonFault fault, known;
        const bool is_none = read_sorted_json(text, &known).is_discarded();
        CHECK(read_wanted(text, none, &fault).is_discarded() == is_none);
        CHECK(fault.byte == known.byte);
        CHECK(fault.words == known.words);
    }
}

TEST_CASE("json: time grows with a text's bytes, whatever they are") {
    std::string siblings = "{\"a\":[";
    while (siblings.size() < 1 << 20) siblings += "{},";
    siblings += "1]}";
    std::string mixed = "[";
    while (mixed.size() < 1 << 19) mixed += "1,";
    while (mixed.size() < 1 << 20) mixed += "{},";
    mixed += "1]";
    std::string names = "{";
    for (int i = 0; names.size() < 1 << 20; ++i) names += '"' + std::to_string(i) + "\":1,";
    names += "\"x\":1}";
    std::string strings = "[\"" + std::string(1 << 20, 'x') + "\"]";
    const double plain = seconds_of(strings);
    CHECK(seconds_of(siblings) < 1 + 100 * plain);  // a minute where each object was looked for
    CHECK(seconds_of(mixed) < 1 + 100 * plain);
    CHECK(seconds_of(names) < 1 + 100 * plain);
}

}  // namespace fovea
