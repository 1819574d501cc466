#include "fovea/host/tokens.h"

#include <algorithm>
#include <memory>

#include "host/base/error.h"
#include "host/base/tokens_around.h"

namespace fovea::host {
namespace {

/// Room for ids as most texts need it and, where that was too little, as this one does: the bound is for texts that grow.
/// `call` fills it, says how many there are, and returns its status.
template<class Call>
std::vector<Token> fill(const Tokenizer& tokenizer, std::size_t n_bytes, std::uint64_t n_most,
                        const std::string& subject, std::span<std::byte> scratch, Call call) {
    constexpr std::size_t kMore = 64;
    std::unique_ptr<std::byte[]> memory;
    if (scratch.empty()) {
        const auto n_scratch = static_cast<std::size_t>(tokenize_scratch_bytes(tokenizer, n_bytes));
        // Not cleared, as most of it is never touched; operator new aligns to 16 bytes, as tokenize wants it.
        memory = std::make_unique_for_overwrite<std::byte[]>(n_scratch);
        scratch = {memory.get(), n_scratch};
    }
    std::vector<Token> tokens(static_cast<std::size_t>(std::min<std::uint64_t>(n_most, n_bytes + kMore)));
    std::size_t n_tokens = 0;
    Status status = call(scratch, tokens, n_tokens);
    if (status.code == Code::buffer_too_small && status.wanted > tokens.size() && status.wanted <= n_most) {
        tokens.resize(static_cast<std::size_t>(status.wanted));
        status = call(scratch, tokens, n_tokens);
    }
    require(status, subject);
    tokens.resize(n_tokens);
    return tokens;
}

}  // namespace

std::vector<Token> tokenize(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options,
                            const std::string& subject, std::span<std::byte> scratch) {
    return fill(tokenizer, text.size(), max_tokens(tokenizer, text.size()), subject, scratch,
                [&](std::span<std::byte> room, std::vector<Token>& tokens, std::size_t& n_tokens) {
                    return fovea::tokenize(tokenizer, text, options, room, tokens, n_tokens);
                });
}

std::vector<Token> tokenize_around(const Tokenizer& tokenizer, std::string_view text, std::span<const TextRange> plain,
                                   const TokenizeOptions& options, std::span<std::byte> scratch) {
    if (plain.empty()) return tokenize(tokenizer, text, options, {}, scratch);
    return fill(tokenizer, text.size(), max_tokens(tokenizer, text.size()), {}, scratch,
                [&](std::span<std::byte> room, std::vector<Token>& tokens, std::size_t& n_tokens) {
                    return fovea::tokenize_around(tokenizer, text, plain, options, room, tokens, n_tokens);
                });
}

TokenizedPair tokenize_pair(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                            const TokenizeOptions& options, const std::string& subject) {
    TokenizedPair pair;
    pair.tokens =
        fill(tokenizer, std::max(first.size(), second.size()), max_tokens(tokenizer, first.size() + second.size()),
             subject, {}, [&](std::span<std::byte> room, std::vector<Token>& tokens, std::size_t& n_tokens) {
                 pair.types.resize(tokens.size());
                 return fovea::tokenize_pair(tokenizer, first, second, options, room, tokens, pair.types, n_tokens);
             });
    pair.types.resize(pair.tokens.size());
    return pair;
}

std::string detokenize(const Tokenizer& tokenizer, std::span<const Token> ids, const DetokenizeOptions& options) {
    std::vector<char> piece(max_piece_bytes(tokenizer));
    Decoder decoder;
    std::string text;
    for (const Token id : options.before) (void)decode(tokenizer, decoder, id, options.show_special, piece);
    for (const Token id : ids) text += decode(tokenizer, decoder, id, options.show_special, piece);
    if (!options.goes_on) text += finish(decoder, piece);
    return text;
}

}  // namespace fovea::host
