// Languages of strings: what operations on them leave, over all short texts; what is read of patterns that look ahead.
#include <doctest/doctest.h>

#include <regex>

#include "host/grammar/regex.h"
#include "tests/support/form_cases.h"

namespace fovea::testing {
namespace {

using grammar::Dialects;
using grammar::Language;

/// All texts of up to four of these characters.
const std::vector<std::string>& short_texts() {
    static const std::vector<std::string> texts = [] {
        std::vector<std::string> all{""};
        for (std::size_t i = 0; i < all.size() && all[i].size() < 4; ++i)
            for (const char c : {'a', 'b', '.'}) all.push_back(all[i] + c);
        return all;
    }();
    return texts;
}

Language of(const char* pattern) { return language_of_regex(pattern, Dialects::all); }

TEST_CASE("languages: of two patterns both, either, and the one without the other") {
    const char* const patterns[] = {"^a", "b$",   "a.*b",   "^(ab|\\.)*$", "^[^a]{2,3}$",
                                    "^$", "ba?b", "\\.\\.", "^a{1,2}b?$"};
    for (const char* x : patterns)
        for (const char* y : patterns) {
            CAPTURE(x);
            CAPTURE(y);
            const std::regex a(x), b(y);
            const Language both = of(x) & of(y), either = of(x) | of(y), less = of(x) - of(y);
            for (const std::string& text : short_texts()) {
                CAPTURE(text);
                const bool in_a = std::regex_search(text, a), in_b = std::regex_search(text, b);
                REQUIRE(both.has(text) == (in_a && in_b));
                REQUIRE(either.has(text) == (in_a || in_b));
                REQUIRE(less.has(text) == (in_a && !in_b));
            }
            CHECK((of(x) - of(x)).empty());
        }
}

TEST_CASE("languages: what looks ahead is what the standard library's expressions match") {
    for (const char* pattern :
         {"^(?!\\.)(?!.*\\.\\.)[ab.]*[ab]$", "^(?=.{2,3}$)a*b*", "^a(?!b)[ab]*$", "^(?=a|b{2}).*[.]$", "(?!a)b"}) {
        CAPTURE(pattern);
        const std::regex oracle(pattern);
        const Language language = of(pattern);
        const Form form(grammar::read_json_schema(R"({"pattern":")" +
                                                  std::regex_replace(pattern, std::regex("\\\\"), "\\\\") + "\"}"),
                        byte_level());
        for (const std::string& text : short_texts()) {
            CAPTURE(text);
            REQUIRE(language.has(text) == std::regex_search(text, oracle));
            REQUIRE(fits(form, "\"" + text + "\"") == language.has(text));
        }
    }
}

TEST_CASE("languages: texts of some lengths are those, however long others are, or nothing where that costs too much") {
    constexpr std::pair<std::uint32_t, std::uint32_t> kBounds[] = {{0, 0}, {0, 2}, {1, 3}, {2, grammar::kNoLimit},
                                                                   {3, 3}, {4, 9}, {6, 9}};
    for (const char* pattern : {"", "^a", "b$", "^(ab|\\.)*$", "^[^a]{2,3}$", "^(a{2}|b{3}|\\.a*)$"})
        for (const auto& bounds : kBounds) {
            const auto min = bounds.first, max = bounds.second;
            CAPTURE(pattern);
            CAPTURE(min);
            CAPTURE(max);
            const auto some = of(pattern).within(min, max, 1000);
            const Language same = of(pattern) & Language::of_lengths(min, max);
            REQUIRE(some);
            CHECK(some->cost() == same.cost());
            CHECK(some->empty() == same.empty());
            for (const std::string& text : short_texts()) {
                CAPTURE(text);
                REQUIRE(some->has(text) == same.has(text));
            }
        }
    const Language lines = of("^(\\S+\\s+){0,9}\\S+$");
    CHECK_FALSE(lines.within(0, 3000, 6000));
    CHECK(lines.within(0, 8, 6000));
}

TEST_CASE("languages: lengths count characters, and dialects differ where they may") {
    const Language two = Language::of_lengths(2, 3);
    CHECK(two.has("\xc3\xa9\xe6\xbc\xa2"));
    CHECK_FALSE(two.has("\xc3\xa9"));
    CHECK_FALSE(two.has("abcd"));
    CHECK(Language::of_lengths(2, grammar::kNoLimit).has("abcdef"));
    CHECK_FALSE(language_of_regex("^\\w$", Dialects::all).has("\xc3\xa9"));
    CHECK(language_of_regex("^\\w$", Dialects::any).has("\xc3\xa9"));
    CHECK(language_of_regex("^a$", Dialects::any).has("a\n"));
    CHECK_FALSE(language_of_regex("^a$", Dialects::all).has("a\n"));
    CHECK_THROWS_AS((void)language_of_regex("^(a|b){9000}(c|d){9000}$", Dialects::all), grammar::GrammarError);
}

}  // namespace
}  // namespace fovea::testing
