// How languages are named: which tokens of a model that writes one text from another are some.
#include "convert/refusal.h"
#include "convert/target_writer.h"
#include "opened_tokenizer.h"

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
                         "--to: expected none, for the model has no tokens of languages, got de", Refusal);
}
