// Late interaction (Khattab and Zaharia 2020, ColBERT): a text is a vector for each of its tokens, and a document's score for a
// query sums, over the query's vectors, the largest product with one of the document's (eq. 3).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/host/opened.h"
#include "host/model/texts.h"

namespace fovea {

/// How a model reads queries and documents: "late_interaction" of its metadata.
struct LateInteraction {
    /// One of the two.
    struct Side {
        std::optional<Token> marker = {};  ///< stands behind the tokens that open a text
        std::uint32_t most = 0;  ///< tokens, the marker and the template's among them; 0: as many as the model takes
    };
    Side query = {}, document = {};
    std::optional<Token> filler = {};  ///< fills queries of fewer tokens than n_filled
    std::uint32_t n_filled = 0;
    bool sees_filler = false;         ///< whether a query's tokens attend to it
    std::vector<Token> skipped = {};  ///< ascending: documents have no vectors of these
    bool skips_first = false;         ///< no text has a vector of its first token
    bool mean = false;                ///< scores are means over a query's vectors, not sums

    [[nodiscard]] const Side& side(bool is_query) const { return is_query ? query : document; }
    [[nodiscard]] std::string to_json() const;
    /// Throws host::Error, `place` first, for what is no such object of ids below vocab_size.
    [[nodiscard]] static LateInteraction read(std::string_view json, std::uint32_t vocab_size,
                                              const std::string& place);
};

/// A model of late interaction at work.
class LateModel {
public:
    /// Throws host::Error for another model. The opened model must outlive it.
    explicit LateModel(const host::Opened& opened);

    /// What stands before a query's text or a document's: the prompt of that name, or that of its side.
    [[nodiscard]] std::string prompt_of(bool is_query, const std::optional<std::string>& name) const;
    /// A text's tokens with the template's around them, cut, marked and filled.
    [[nodiscard]] TextTokens settle(bool is_query, std::vector<Token> ids) const;
    [[nodiscard]] TextTokens tokens_of(bool is_query, const std::string& prompt, std::string_view text,
                                       bool parse_special = false) const;
    /// Which of a text's tokens have vectors.
    [[nodiscard]] std::vector<std::uint32_t> kept(bool is_query, std::span<const Token> ids) const;
    /// rows: [ids][width()] of the model's head. The vectors of the tokens that have some, of length 1.
    [[nodiscard]] std::vector<float> vectors(bool is_query, std::span<const Token> ids,
                                             std::span<const float> rows) const;
    /// The score of a document's vectors for a query's: of a document without any, the least there is.
    [[nodiscard]] double score(std::span<const float> query, std::span<const float> document) const;

    [[nodiscard]] std::size_t width() const { return width_; }
    /// Tokens of a side's texts at most.
    [[nodiscard]] std::uint32_t most(bool is_query) const;

private:
    const host::Opened& opened_;
    LateInteraction how_;
    std::size_t width_;
    std::uint32_t most_;         // tokens of texts of a side without a length
    std::vector<Token> around_;  // a text's tokens that are the template's
    std::size_t n_opening_ = 0;  // of those, before the text
};

}  // namespace fovea
