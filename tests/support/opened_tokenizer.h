// Tokenizers of the golden files, opened, with buffers of exactly the sizes they ask for.
#pragma once
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"
#include "fovea/tokenizer.h"
#include "tests/support/files.h"

namespace fovea::testing {

inline std::vector<std::byte> section_of(const std::string& tokenizer_json,
                                         const TokenizerFacts& facts = {.vocab_size = 1u << 20}) {
    std::vector<std::string> notes;
    return tokenizer_section_from_json(tokenizer_json, "tokenizer.json", facts, notes);
}

/// Ids of `text`, in memory that ends where the tokenizer says it may.
inline Status tokenize_exactly(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options,
                               std::vector<Token>& ids) {
    std::vector<std::byte> scratch(tokenize_scratch_bytes(tokenizer, text.size()));
    ids.assign(max_tokens(tokenizer, text.size()), 0);
    std::size_t n = 0;
    const Status status = tokenize(tokenizer, text, options, scratch, ids, n);
    ids.resize(n);
    return status;
}

class OpenedTokenizer {
public:
    explicit OpenedTokenizer(const std::vector<std::byte>& section)
        : words_((section.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t)) {
        std::memcpy(words_.data(), section.data(), section.size());
        const Status status = open_tokenizer({reinterpret_cast<std::byte*>(words_.data()), section.size()}, tokenizer_);
        CAPTURE(status.what);
        REQUIRE(status.ok());
    }
    explicit OpenedTokenizer(const std::string& tokenizer_json, const TokenizerFacts& facts = {.vocab_size = 1u << 20})
        : OpenedTokenizer(section_of(tokenizer_json, facts)) {}

    [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }

    [[nodiscard]] std::vector<Token> tokenize(const std::string& text, const TokenizeOptions& options) const {
        std::vector<Token> ids;
        const Status status = tokenize_exactly(tokenizer_, text, options, ids);
        CAPTURE(status.what);
        REQUIRE(status.ok());
        return ids;
    }

    /// The text that each id adds, and the rest held back at the end.
    [[nodiscard]] std::vector<std::string> pieces(const std::vector<Token>& ids, bool show_special) const {
        std::vector<char> out(max_piece_bytes(tokenizer_));
        Decoder decoder;
        std::vector<std::string> result;
        for (const Token id : ids) result.emplace_back(fovea::decode(tokenizer_, decoder, id, show_special, out));
        result.emplace_back(finish(decoder, out));
        return result;
    }

    [[nodiscard]] std::string decode(const std::vector<Token>& ids, bool show_special) const {
        std::string text;
        for (const std::string& piece : pieces(ids, show_special)) text += piece;
        return text;
    }

private:
    std::vector<std::uint64_t> words_;  // aligned as a section must be
    Tokenizer tokenizer_;
};

}  // namespace fovea::testing
