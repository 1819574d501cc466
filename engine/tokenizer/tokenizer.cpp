#include "fovea/tokenizer.h"

#include "engine/tokenizer/tables.h"

namespace fovea {
namespace {

bool contains(std::span<const std::uint32_t> ids, Token id) noexcept {
    for (const std::uint32_t other : ids)
        if (other == id) return true;
    return false;
}

}  // namespace

std::uint32_t Tokenizer::vocab_size() const noexcept { return header_ ? header_->n_tokens : 0; }

Token Tokenizer::bos() const noexcept { return header_ ? header_->bos : kNoToken; }

bool Tokenizer::adds_bos() const noexcept {
    const Tables tables = TokenizerReader::tables(*this);
    return tables.header && !tables.prefix_ids.empty() && tables.prefix_ids[0] == tables.header->bos;
}

bool Tokenizer::ends_text(Token id) const noexcept { return contains(TokenizerReader::tables(*this).end_ids, id); }

bool Tokenizer::is_special(Token id) const noexcept {
    return TokenizerReader::tables(*this).has_bit(id, kSpecialToken);
}

Status open_tokenizer(std::span<const std::byte> section, Tokenizer& tokenizer) noexcept {
    Tables tables;
    if (Status s = read_tables(section, tables); !s.ok()) return s;
    for (Token id = 0; id < tables.header->n_tokens; ++id) {
        const std::uint32_t begin = tables.offset(id), end = tables.offset(std::size_t{id} + 1);
        if (begin > end || end > tables.token_text.size() || end - begin > tables.header->max_token_bytes)
            return {Code::section_invalid, "token's bytes", id, end};
    }
    TokenizerReader::set(tokenizer, section);
    return {};
}

std::string_view token_bytes(const Tokenizer& tokenizer, Token id) noexcept {
    return TokenizerReader::tables(tokenizer).token(id);
}

}  // namespace fovea
