// A source file of its own, so that firmware that has no use for it has nothing of it.
#include "engine/format/parts.h"
#include "engine/tokenizer/tokenize_parts.h"

namespace fovea {

Status tokenize_around(const Tokenizer& tokenizer, std::string_view text, std::span<const TextRange> plain,
                       const TokenizeOptions& options, std::span<std::byte> scratch, std::span<Token> tokens,
                       std::size_t& n_tokens) noexcept {
    n_tokens = 0;
    if (!has(Part::plain_parts)) return {Code::unsupported, "plain parts of a text: left out of this build", 0, 0};
    std::size_t at = 0;
    for (const TextRange& range : plain) {
        if (range.first < at || range.last < range.first || range.last > text.size())
            return {Code::bad_argument, "plain ranges' order", text.size(), range.last};
        at = range.last;
    }
    return tokenize_parts(tokenizer, text, plain, options, scratch, tokens, n_tokens);
}

}  // namespace fovea
