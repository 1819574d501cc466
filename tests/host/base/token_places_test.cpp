// Places of tokens against what the `tokenizers` package says of the same texts (golden/make_offsets.py).
#include "fovea/host/token_places.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/opened_tokenizer.h"

using namespace fovea;
using namespace fovea::testing;
using nlohmann::json;

namespace {

json places_of(const Tokenizer& tokenizer, const std::string& text, const TokenizeOptions& options) {
    json places = json::array();
    const host::PlacedTokens placed = host::tokenize_with_places(tokenizer, text, options);
    REQUIRE(placed.places.size() == placed.tokens.size());
    for (const host::TokenPlace& place : placed.places) places.push_back(json::array({place.begin, place.end}));
    return places;
}

}  // namespace

TEST_CASE("token places: those of the tokenizers package, for every kind of tokenizer") {
    const json golden = json::parse(std::ifstream(FOVEA_GOLDEN_DIR "/tokenizer_offsets.json"));
    const auto texts = golden.at("texts").get<std::vector<std::string>>();
    REQUIRE(golden.size() > 20);
    for (const auto& item : golden.items()) {
        const std::string& name = item.key();
        const json& wanted = item.value();
        if (name == "texts") continue;
        CAPTURE(name);
        const OpenedTokenizer opened(golden_text(name + ".json"));
        REQUIRE(wanted.size() == texts.size());
        for (std::size_t i = 0; i < texts.size(); ++i) {
            CAPTURE(texts[i]);
            CHECK(places_of(opened.tokenizer(), texts[i], {.add_special = false}) == wanted[i]);
        }
    }
}

TEST_CASE("token places: what a template adds stands for nothing, special tokens for their names") {
    const OpenedTokenizer bert(golden_text("tokenizer_bert.json"));
    CHECK(places_of(bert.tokenizer(), "The lamp", {}).front() == json::array({0, 0}));
    CHECK(places_of(bert.tokenizer(), "The lamp", {}).back() == json::array({0, 0}));
    const json places = places_of(bert.tokenizer(), "a [SEP] b", {.add_special = false, .parse_special = true});
    CHECK(places == json::array({{0, 1}, {2, 7}, {8, 9}}));
    CHECK(places_of(bert.tokenizer(), "", {.add_special = false}).empty());
}

TEST_CASE("token places: any bytes, in time that grows with them") {
    std::string marks = "e", unknown, blanks(100'000, ' ');
    for (int i = 0; i < 20'000; ++i) marks += "\xcc\x81", unknown += "\xf0\x9f\x91\x8d ";
    for (const char* kind : {"bert", "llama2", "gpt2", "t5_small", "unigram_bytes", "words"}) {
        const OpenedTokenizer opened(golden_text(std::string("tokenizer_") + kind + ".json"));
        for (const std::string& text :
             {std::string("a\xff\xc3 b\xe2\x82 \xf0\x9f lamp\xcc\x81"), marks, unknown, blanks, "a" + blanks + "b"}) {
            const host::PlacedTokens placed = host::tokenize_with_places(opened.tokenizer(), text);
            bool within = placed.places.size() == placed.tokens.size();
            for (const host::TokenPlace& place : placed.places)
                within = within && place.begin <= place.end && place.end <= text.size();
            CHECK(within);
        }
    }
}
