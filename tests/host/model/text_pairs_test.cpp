// Texts that are cut to a length keep the tokens that close them.
#include "host/model/text_pairs.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace fovea::testing {
namespace {

constexpr Token kOpening = 1000, kClosing = 2000;  // the first of each; a text's own are smaller

/// Tokens as a tokenizer gives them: n_opening, the text's own, n_closing.
std::vector<Token> tokens_of(std::size_t n_opening, std::size_t n_text, std::size_t n_closing) {
    std::vector<Token> ids;
    for (std::size_t i = 0; i < n_opening; ++i) ids.push_back(kOpening + static_cast<Token>(i));
    for (std::size_t i = 0; i < n_text; ++i) ids.push_back(static_cast<Token>(i));
    for (std::size_t i = 0; i < n_closing; ++i) ids.push_back(kClosing + static_cast<Token>(i));
    return ids;
}

TEST_CASE("cut_text: the ids at one end and those of the template at the other, for every length and every template") {
    for (const CutAt at : {CutAt::end, CutAt::front})
        for (std::size_t n_opening = 0; n_opening < 4; ++n_opening)
            for (std::size_t n_closing = 0; n_closing < 4; ++n_closing)
                for (std::size_t n_text = 0; n_text < 8; ++n_text)
                    for (std::size_t most = 0; most < 12; ++most) {
                        CAPTURE(n_opening);
                        CAPTURE(n_closing);
                        CAPTURE(n_text);
                        CAPTURE(most);
                        std::vector<Token> whole = tokens_of(n_opening, n_text, n_closing), ids = whole;
                        cut_text(tokens_of(n_opening, 0, n_closing), most, at, ids);
                        REQUIRE(ids.size() == std::min(most, whole.size()));
                        // All tokens of an empty text are the template's, so none can be told to be at that end.
                        std::size_t n_kept = n_text ? n_closing : n_opening + n_closing;
                        if (at == CutAt::front) {  // the same, seen from behind
                            n_kept = n_text ? n_opening : n_opening + n_closing;
                            std::reverse(whole.begin(), whole.end());
                            std::reverse(ids.begin(), ids.end());
                        }
                        const std::size_t n_first = n_kept <= ids.size() ? ids.size() - n_kept : ids.size();
                        CHECK(
                            std::equal(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n_first), whole.begin()));
                        CHECK(std::equal(ids.begin() + static_cast<std::ptrdiff_t>(n_first), ids.end(),
                                         whole.end() - static_cast<std::ptrdiff_t>(ids.size() - n_first)));
                    }
}

}  // namespace
}  // namespace fovea::testing
