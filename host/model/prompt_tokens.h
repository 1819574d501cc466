// Tokens of prompts, within what a model has room for.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/host/arena.h"
#include "fovea/host/opened.h"
#include "fovea/tokenize_around.h"
#include "host/base/error.h"
#include "host/model/text_pairs.h"

namespace fovea::host {

/// A prompt that cannot be read: "expected X, got Y".
struct PromptError : Error {
    explicit PromptError(const std::string& line, bool too_long_ = false) : Error(line), too_long(too_long_) {}
    bool too_long;  ///< it has more tokens than there is room for
};

/// Turns texts into tokens. Its memory is taken once, here; threads take turns with it.
class PromptTokens {
public:
    /// Texts of 1 to `most` tokens. `context`: positions of a text and what follows it, which is what a refusal speaks of.
    /// The opened model must outlive it. Throws Error where memory lacks.
    PromptTokens(const Opened& opened, std::uint32_t context, std::uint32_t most);
    /// What memory_bytes() will be, before any is taken.
    [[nodiscard]] static std::uint64_t planned_bytes(const Opened& opened, std::uint32_t context);

    /// A text's tokens, however many; `plain` as tokenize_around has it. Throws PromptError where it has too many bytes to be
    /// read.
    [[nodiscard]] std::vector<Token> read(std::string_view text, const TokenizeOptions& options = {},
                                          std::span<const TextRange> plain = {});
    /// The same, cut to `most` tokens: what the tokenizer puts around a text stays.
    [[nodiscard]] std::vector<Token> read_cut(std::string_view text, const TokenizeOptions& options = {});
    /// Throws PromptError where there are none or too many, or where one is beyond the vocabulary.
    void check(const std::vector<Token>& tokens) const;

    [[nodiscard]] std::uint32_t most() const { return most_; }
    [[nodiscard]] std::uint64_t memory_bytes() const { return scratch_.size(); }

    /// Bytes of a text that read takes, at most.
    [[nodiscard]] std::size_t most_bytes() const { return most_bytes_; }

private:
    [[noreturn]] void refuse_length(const std::string& got) const;

    const Tokenizer& tokenizer_;
    std::uint32_t vocab_size_, context_, most_;
    std::size_t most_bytes_;
    CutAt cut_at_;
    Arena scratch_;
    std::unique_ptr<std::mutex> turn_ = std::make_unique<std::mutex>();  // of scratch_
};

}  // namespace fovea::host
