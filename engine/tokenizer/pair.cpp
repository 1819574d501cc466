// Two texts as one: the places of their tokens in the model's template, and the types they get there.
#include "engine/format/tables.h"

namespace fovea {
namespace {

// The template of a tokenizer whose file has none for pairs.
constexpr TokenizerPart kPlain[] = {{kFirstText, 0}, {kSecondText, 0}};

}  // namespace

std::uint64_t pair_tokens(const Tokenizer& tokenizer, std::uint64_t n_first, std::uint64_t n_second) noexcept {
    const Tables tables = TokenizerReader::tables(tokenizer);
    if (!tables.header) return 0;
    if (tables.pair.empty()) return n_first + n_second;
    std::uint64_t n = 0;
    for (const TokenizerPart& part : tables.pair)
        n += part.id == kFirstText ? n_first : part.id == kSecondText ? n_second : 1;
    return n;
}

Status join_pair(const Tokenizer& tokenizer, std::span<const Token> first, std::span<const Token> second,
                 std::span<Token> tokens, std::span<Token> types, std::uint64_t& second_start) noexcept {
    const Tables tables = TokenizerReader::tables(tokenizer);
    if (!tables.header) return {Code::section_missing, "tokenizer", 0, 0};
    const std::uint64_t wanted = pair_tokens(tokenizer, first.size(), second.size());
    for (const std::uint64_t had : {tokens.size(), types.size()})
        if (had != wanted) return {Code::bad_shape, "tokens of a pair", wanted, had};
    const std::span<const TokenizerPart> parts =
        tables.pair.empty() ? std::span<const TokenizerPart>(kPlain) : tables.pair;
    std::size_t at = 0;
    second_start = 0;
    for (const TokenizerPart& part : parts) {
        if (part.id == kSecondText) second_start = at;
        const std::span<const Token> ids = part.id == kFirstText    ? first
                                           : part.id == kSecondText ? second
                                                                    : std::span<const Token>(&part.id, 1);
        for (const Token id : ids) {
            tokens[at] = id;
            types[at++] = part.type;
        }
    }
    return {};
}

}  // namespace fovea
