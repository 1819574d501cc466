// The text that a reranker reads of a query and a document, as its metadata's pair_template says: the form of a chat, in the midst
// of which the texts stand for {query} and {document}.
#pragma once
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/host/opened.h"
#include "fovea/host/texts.h"
#include "fovea/tokenize_around.h"

namespace fovea {

struct PairTemplate {
    static constexpr std::string_view kQuery = "{query}", kDocument = "{document}";
    std::string_view before, between, after;

    /// Nothing where the text has not each place once, the query's first.
    [[nodiscard]] static std::optional<PairTemplate> read(std::string_view text);
};

/// Reads tokens, as host::tokenize_around does.
struct PairReader {
    std::function<std::vector<Token>(std::string_view text, const TokenizeOptions& options,
                                     std::span<const TextRange> plain)>
        read;
    std::size_t most_bytes = std::numeric_limits<std::size_t>::max();  ///< of a text

    [[nodiscard]] static PairReader of(const host::Opened& opened);
};

struct TemplatedPair {
    std::vector<Token> ids;
    std::size_t n_whole = 0;  ///< how many there were before the document was cut
};

/// The pair's tokens, at most `most`: of more the document is cut. The template's special tokens are read; unless `parse_special`
/// those in the texts are not. Throws host::Error where no room is left for the document.
[[nodiscard]] TemplatedPair templated_pair(const PairTemplate& form, std::string_view query, std::string_view document,
                                           std::size_t most, bool parse_special, const Tokenizer& tokenizer,
                                           const PairReader& reader);

}  // namespace fovea
