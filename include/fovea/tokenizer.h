// Text to ids and back, over tables that stay in the model file. Every function is total: any bytes in, any ids in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/config.h"
#include "fovea/status.h"

namespace fovea {
struct TokenizerReader;  // the engine's own: a friend that is not shown
}
#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

struct TokenizerHeader;  // engine/format/tokenizer_format.h

/// A validated view of a tokenizer section; trivially copyable. The bytes must outlive it.
class Tokenizer {
public:
    [[nodiscard]] std::uint32_t vocab_size() const noexcept;
    [[nodiscard]] bool valid() const noexcept { return header_ != nullptr; }
    /// Ids with a role of their own; kNoToken if the model has none.
    [[nodiscard]] Token bos() const noexcept;
    [[nodiscard]] bool adds_bos() const noexcept;           ///< TokenizeOptions::add_special puts bos first
    [[nodiscard]] bool ends_text(Token id) const noexcept;  ///< one of the model's end tokens
    [[nodiscard]] bool is_special(Token id) const noexcept;

    static constexpr Token kNoToken = 0xffffffffu;

private:
    friend struct TokenizerReader;  // engine/tokenizer/, the validator
    const TokenizerHeader* header_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Validates `section` (Model::tokenizer_bytes()). Errors, `tokenizer` unchanged: section_missing, truncated,
/// section_invalid, misaligned, unsupported.
[[nodiscard]] Status open_tokenizer(std::span<const std::byte> section, Tokenizer& tokenizer) noexcept;

struct TokenizeOptions {
    bool add_special = true;     ///< add the tokens the model wants around a text: most often its start token, if any
    bool parse_special = false;  ///< read "<|name|>" in the text as that special token; else it is plain text
};

/// Bytes of scratch that tokenize needs for a text of `text_bytes` bytes: up to 640 for each byte of the text, depending on
/// the tokenizer; unigram models need 8 more for each byte of their longest token. Most of it is for texts that grow when
/// normalized, and stays untouched by others. Saturates at 2^64 - 1.
[[nodiscard]] std::uint64_t tokenize_scratch_bytes(const Tokenizer& tokenizer, std::uint64_t text_bytes) noexcept;

/// Writes the ids of `text` to `tokens` and their number to `n_tokens`. Time O(n log n), no allocation.
///   text     any bytes; what is not UTF-8 is handled as the model's own tokenizer does, byte by byte if it can't
///   scratch  at least tokenize_scratch_bytes(text.size()), 4-byte aligned
/// Errors, n_tokens 0: buffer_too_small, `what` naming "scratch bytes" or "tokens" (then `wanted` is how many the text
/// gives; max_tokens is always enough); misaligned; bad_argument (a text of gigabytes); section_missing (a Tokenizer that
/// was not opened); section_invalid.
[[nodiscard]] Status tokenize(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options,
                              std::span<std::byte> scratch, std::span<Token> tokens, std::size_t& n_tokens) noexcept;

/// Writes the ids of two texts as one, for a model of pairs, in the order of the tokenizer's template for pairs. The
/// template's own tokens are left out without options.add_special.
///   scratch  at least tokenize_scratch_bytes of the longer text
///   tokens   max_tokens of both texts' bytes together is always enough
///   types    as long as `tokens` gets, or empty: each id's token type, most often 0 in the first text and 1 in the second
/// Errors: those of tokenize; section_missing, "template of a pair": the file has none.
[[nodiscard]] Status tokenize_pair(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                                   const TokenizeOptions& options, std::span<std::byte> scratch,
                                   std::span<Token> tokens, std::span<std::uint32_t> types,
                                   std::size_t& n_tokens) noexcept;

/// The most ids a text of `text_bytes` bytes can give, special ones included.
[[nodiscard]] std::uint64_t max_tokens(const Tokenizer& tokenizer, std::uint64_t text_bytes) noexcept;

/// The number of tokens of two texts with n_first and n_second tokens, those of the model's template for pairs
/// included.
[[nodiscard]] std::uint64_t pair_tokens(const Tokenizer& tokenizer, std::uint64_t n_first,
                                        std::uint64_t n_second) noexcept;

/// Puts two texts together as the model's template says, "[CLS] first [SEP] second [SEP]" if it is BERT's. The texts'
/// ids are tokenize's without add_special, cut by the caller if they are too long.
///   tokens, types  [pair_tokens(first.size(), second.size())]; types are encode's token types
///   second_start   where the second text's tokens start
/// Errors: section_missing (a Tokenizer that was not opened), bad_shape.
[[nodiscard]] Status join_pair(const Tokenizer& tokenizer, std::span<const Token> first, std::span<const Token> second,
                               std::span<Token> tokens, std::span<Token> types, std::uint64_t& second_start) noexcept;

/// Turns ids into text one at a time, holding back the bytes of an unfinished UTF-8 character.
/// Value type; keep one per text, and give it the prompt's ids too if the answer's first space matters.
struct Decoder {
    std::uint8_t held[4] = {};  ///< bytes of an unfinished character
    std::uint8_t n_held = 0;
    bool started = false;  ///< whether any visible token went by (SentencePiece drops the first space)
};

/// The bytes that `id` adds to the text after the tokens given to `decoder` before. Special tokens give nothing unless
/// `show_special`. Always whole UTF-8 characters: bytes that are none come out as U+FFFD, one for each maximal subpart
/// (Unicode Standard, section 3.9).
///   out   at least max_piece_bytes(tokenizer), else characters are missing; the view returned points into it
[[nodiscard]] std::string_view decode(const Tokenizer& tokenizer, Decoder& decoder, Token id, bool show_special,
                                      std::span<char> out) noexcept;
/// The bytes still held, as U+FFFD, when no more tokens come. `out` as in decode.
[[nodiscard]] std::string_view finish(Decoder& decoder, std::span<char> out) noexcept;

[[nodiscard]] std::size_t max_piece_bytes(const Tokenizer& tokenizer) noexcept;

/// The bytes token `id` stands for in a text; empty for an id out of range. A view of the file.
[[nodiscard]] std::string_view token_bytes(const Tokenizer& tokenizer, Token id) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
