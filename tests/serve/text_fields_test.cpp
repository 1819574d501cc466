// The fields of requests for texts as docs/server.md lists them: made from their table.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "serve/api/text_fields.h"

namespace {

using namespace fovea::serve;
using Row = FieldRow<Request>;

const std::string kPath = FOVEA_SOURCE_DIR "/docs/server.md";
constexpr const char* kBegin = "<!-- fields: FOVEA_WRITE_FIELDS=1 fovea_tests -sf='*text_fields_test.cpp' -->\n";
constexpr const char* kEnd = "<!-- fields end -->\n";

/// Letters for the objects that have a field.
std::string where(unsigned of) {
    constexpr std::pair<unsigned, char> kLetters[] = {{kChat, 'C'},          {kCompletion, 'T'}, {kResponse, 'R'},
                                                      {kMessages, 'M'},      {kOllamaChat, 'a'}, {kOllamaGenerate, 'g'},
                                                      {kOllamaOptions, 'P'}, {kStructured, 'S'}, {kBatch, 'B'}};
    std::string letters;
    for (const auto& [bit, letter] : kLetters)
        if (of & bit) letters += letter;
    return letters;
}

/// "`a`, `b` CT, `c` R" of rows: names by the objects that have them, in the order in which these come first.
std::string listed(const std::function<bool(const Row&)>& wanted) {
    std::vector<std::pair<std::string, unsigned>> fields;
    for (const Row& row : text_fields()) {
        if (!wanted(row)) continue;
        const auto is_it = [&](const auto& field) { return field.first == row.name; };
        const auto known = std::find_if(fields.begin(), fields.end(), is_it);
        if (known == fields.end())
            fields.push_back({row.name, row.of});
        else
            known->second |= row.of;
    }
    std::vector<std::pair<std::string, std::string>> lists;  // letters, names
    for (const auto& [name, of] : fields) {
        const std::string letters = where(of);
        auto list = std::find_if(lists.begin(), lists.end(), [&](const auto& one) { return one.first == letters; });
        if (list == lists.end()) list = lists.insert(list, {letters, ""});
        list->second += (list->second.empty() ? "`" : ", `") + name + "`";
    }
    std::string text;
    for (const auto& [letters, names] : lists) text += (text.empty() ? "" : ", ") + names + " " + letters;
    return text;
}

/// Lines of at most 130 characters, those behind the first with space before them.
std::string wrapped(const std::string& text, const std::string& indent) {
    constexpr std::size_t kMost = 130;
    std::string lines, line;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        if (!line.empty() && line.size() + 1 + word.size() > kMost) {
            lines += line + "\n";
            line = indent + word;
        } else {
            line += (line.empty() ? "" : " ") + word;
        }
    }
    return lines + line + "\n";
}

/// "`a`, `b` in `place[]` CT, `other` M; `c` in ..." of members that change no answer.
std::string ignored_members() {
    std::vector<std::pair<std::string, std::string>> lists;  // names, places
    for (const MemberRow& row : member_rows()) {
        std::string names;
        std::istringstream words(row.ignored);
        for (std::string word; words >> word;) names += (names.empty() ? "`" : ", `") + word + "`";
        if (names.empty()) continue;
        const auto known =
            std::find_if(lists.begin(), lists.end(), [&](const auto& one) { return one.first == names; });
        auto& places = known == lists.end() ? lists.emplace_back(names, "").second : known->second;
        places += (places.empty() ? "`" : ", `") + std::string(row.place) + "` " + where(row.of);
    }
    std::string text;
    for (const auto& [names, places] : lists) text += (text.empty() ? "" : "; ") + names + " in " + places;
    return text;
}

std::string document() {
    std::string text;
    std::vector<std::string> said;
    for (const Row& row : text_fields()) {
        if (!*row.as || std::find(said.begin(), said.end(), row.as) != said.end()) continue;
        said.emplace_back(row.as);
        const std::string names = listed([&](const Row& one) { return said.back() == one.as; });
        text += wrapped("- " + names + ": " + row.as, "  ");
    }
    const auto refused = [](const Row& row) { return std::holds_alternative<Row::Only>(row.to); };
    const auto ignored = [](const Row& row) { return std::holds_alternative<Row::Ignored>(row.to); };
    return text + "\n" + wrapped("Refused, unless they say what is done anyway: " + listed(refused) + ".", "") + "\n" +
           wrapped(
               "Ignored, for they change no answer: " + listed(ignored) + "; of members: " + ignored_members() + ".",
               "");
}

}  // namespace

TEST_CASE("the server's fields are those of the document") {
    std::ifstream file(kPath);
    std::stringstream read;
    read << file.rdbuf();
    const std::string text = read.str();
    const std::size_t begin = text.find(kBegin), end = text.find(kEnd);
    REQUIRE(begin != std::string::npos);
    REQUIRE(end != std::string::npos);
    const std::size_t first = begin + std::string(kBegin).size();
    const std::string made = "\n" + document() + "\n";
    if (std::getenv("FOVEA_WRITE_FIELDS")) {
        std::ofstream(kPath) << text.substr(0, first) << made << text.substr(end);
        return;
    }
    CHECK(text.substr(first, end - first) == made);
}

TEST_CASE("members are read or ignored, each in one way") {
    for (const MemberRow& row : member_rows()) {
        CAPTURE(row.place);
        std::istringstream words(row.ignored);
        for (std::string word; words >> word;)
            CHECK((" " + std::string(row.obeyed) + " ").find(" " + word + " ") == std::string::npos);
        const auto is_same = [&](const MemberRow& other) {
            return std::string(other.place) == row.place && (other.of & row.of) != 0;
        };
        CHECK(std::ranges::count_if(member_rows(), is_same) == 1);
    }
}

TEST_CASE("a field is obeyed, refused or ignored, by each kind of request in one way") {
    std::map<std::pair<std::string, unsigned>, bool> reads;  // more than one reader is the sampler's, and one beside it
    for (const Row& row : text_fields()) {
        CAPTURE(row.name);
        const bool is_obeyed =
            !std::holds_alternative<Row::Only>(row.to) && !std::holds_alternative<Row::Ignored>(row.to);
        CHECK(is_obeyed == (*row.as != 0));
        for (unsigned bit = 1; bit <= kMessages; bit <<= 1) {
            if (!(row.of & bit) || bit == kLine) continue;
            const auto [known, is_new] = reads.try_emplace({row.name, bit}, is_obeyed);
            CHECK((is_new || known->second == is_obeyed));
        }
    }
}
