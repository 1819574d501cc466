// Sources in parts: nothing is lost, every part fits, and parts end where sentences or words do.
#include "host/translate/split_source.h"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace fovea;

using Strings = std::vector<std::string>;

/// Parts of at most `most` bytes.
Strings split(std::string_view text, std::size_t most) {
    Strings parts;
    for (const std::string_view part : split_source(text, [&](std::string_view some) { return some.size() <= most; }))
        parts.emplace_back(part);
    return parts;
}

TEST_CASE("split source: at sentences, else at lines and words, else within a word between characters") {
    CHECK(split("One. Two.", 20) == Strings{"One. Two."});
    CHECK(split("  One. ", 20) == Strings{"  One. "});  // what fits is as it is
    CHECK(split("", 20) == Strings{""});
    CHECK(split("One two. Three four! Five?", 20) == Strings{"One two. Three four!", "Five?"});
    CHECK(split("He said \"Go.\" She went. ", 16) == Strings{"He said \"Go.\"", "She went."});
    CHECK(split("It cost 3.50 in all of it", 14) == Strings{"It cost 3.50", "in all of it"});
    CHECK(split("a first line\nand a second", 20) == Strings{"a first line", "and a second"});
    CHECK(split("abcdefghij klm", 4) == Strings{"abcd", "efgh", "ij", "klm"});
    CHECK(split("一二。三四。五六。", 20) == Strings{"一二。三四。", "五六。"});
    CHECK(split("äöüß", 3) == Strings{"ä", "ö", "ü", "ß"});
    CHECK(split("ä", 1) == Strings{"ä"});  // one character at least
    CHECK(split("a  b", 1) == Strings{"a", "b"});
}

TEST_CASE("split source: of random texts all but blanks is there, in order") {
    std::uint64_t random = 3;
    const auto below = [&](std::uint64_t n) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        return (random >> 33) % n;
    };
    const char* const pieces[] = {"a", "bc", "def", " ", " ", ".", ". ", "! ", "\n", "é", "。", "😀", ") "};
    const auto without_blanks = [](std::string_view text) {
        std::string rest;
        for (const char c : text)
            if (c != ' ' && c != '\n') rest += c;
        return rest;
    };
    for (int round = 0; round < 500; ++round) {
        std::string text;
        for (std::uint64_t n = below(200); n-- > 0;) text += pieces[below(std::size(pieces))];
        const std::size_t most = 4 + below(60);
        std::string all;
        for (const std::string& part : split(text, most)) {
            CHECK((part.size() <= most || text.size() <= most));
            CHECK((!part.empty() || text.empty() || without_blanks(text).empty()));
            all += part;
        }
        CHECK(without_blanks(all) == without_blanks(text));
    }
}

}  // namespace
