// Words that come again in a text have the ids of the first time, whatever their table had room for.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/support/opened_tokenizer.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("a long text has the ids that its words have alone") {
    std::mt19937 random(7);
    const auto word_of = [&](std::size_t n) {
        std::string word = " ";
        while (word.size() < n)
            word += random() % 9 ? std::string(1, static_cast<char>('a' + random() % 26)) : "\xc3\xa4";
        return word;
    };
    std::vector<std::string> words;
    for (std::size_t i = 0; i < 600; ++i) words.push_back(word_of(2 + i % 45));
    // A word of more than half of the text wants the table's room.
    for (const std::size_t n_long : {0u, 90'000u}) {
        std::vector<std::string> order;
        for (std::size_t i = 0; i < 3000; ++i) order.push_back(words[random() % (i % 2 ? 20 : words.size())]);
        if (n_long) order.insert(order.begin() + 1500, word_of(n_long));
        for (const std::string kind : {"gpt2", "llama3", "bert_cased", "t5_small"}) {
            CAPTURE(kind);
            CAPTURE(n_long);
            const OpenedTokenizer tokenizer(golden_text("tokenizer_" + kind + ".json"));
            std::string text;
            std::vector<Token> wanted;
            for (const std::string& word : order) {
                text += word;
                const std::vector<Token> ids = tokenizer.tokenize(word, {.add_special = false});
                wanted.insert(wanted.end(), ids.begin(), ids.end());
            }
            CHECK(tokenizer.tokenize(text, {.add_special = false}) == wanted);
        }
    }
}
