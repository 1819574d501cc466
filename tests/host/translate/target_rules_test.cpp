// What a text that is written from another may be: which tokens are languages, and how long it is.
#include "host/base/error.h"
#include "host/translate/translation.h"
#include "tests/support/opened_tokenizer.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("languages: T5's tokens of places are none") {
    const OpenedTokenizer t5(golden_text("tokenizer_t5_small.json"));
    const Tokenizer& tokenizer = t5.tokenizer();
    bool has_place = false;
    for (Token id = 0; id < tokenizer.vocab_size(); ++id)
        has_place |= tokenizer.is_special(id) && token_bytes(tokenizer, id) == "<extra_0>";
    REQUIRE(has_place);
    const Languages german{.from = {}, .to = "de"};
    CHECK_THROWS_WITH_AS((void)find_languages(german, tokenizer, {}),
                         "--to: expected none, for the model has no tokens of languages, got de", host::Error);
}

TEST_CASE("target rules: the place of a forced end is kept for it only where the text is as long as the rules allow") {
    TargetRules rules;  // one token before the text
    rules.ends_at_max = true;
    CHECK(rules.most_new(10) == 9);
    rules.max_length = 20;
    CHECK(rules.most_new(100) == 18);
    CHECK(rules.most_new(20) == 18);
    CHECK(rules.most_new(19) == 18);
    CHECK(rules.most_new(12) == 11);
    CHECK_FALSE(rules.ends_by_length(19));
    rules.max_new = 30;  // before max_length
    CHECK(rules.most_new(100) == 29);
    CHECK(rules.most_new(31) == 29);
    CHECK(rules.most_new(30) == 29);
    CHECK(rules.most_new(8) == 7);
    rules.max_new = 0xffffffffu;
    CHECK(rules.most_new(8) == 7);
    rules.ends_at_max = false, rules.max_new = 0;
    CHECK(rules.most_new(100) == 19);
}
