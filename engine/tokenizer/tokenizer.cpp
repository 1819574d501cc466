#include "fovea/tokenizer.h"

#include <algorithm>

#include "engine/format/tables.h"
#include "engine/format/utf8.h"

namespace fovea {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

void release(Decoder& decoder, TextSink& out) noexcept {
    if (decoder.n_held) out.put(kReplacement);
    decoder.n_held = 0;
}

/// One more byte of the text. An unfinished character that `byte` does not continue becomes one U+FFFD, as does each
/// byte that can neither start nor continue one (Unicode Standard, section 3.9: maximal subparts).
void push(Decoder& decoder, std::uint8_t byte, TextSink& out) noexcept {
    if (decoder.n_held && !utf8_continues(decoder.held, decoder.n_held, byte)) release(decoder, out);
    if (decoder.n_held == 0 && utf8_bytes(byte) == 0) {
        out.put(kReplacement);
        return;
    }
    decoder.held[decoder.n_held++] = byte;
    if (decoder.n_held < utf8_bytes(decoder.held[0])) return;
    out.put({reinterpret_cast<const char*>(decoder.held), decoder.n_held});
    decoder.n_held = 0;
}

/// A Decoder is the caller's: no value in it leads outside of `held`.
void make_sound(Decoder& decoder) noexcept {
    if (decoder.n_held >= sizeof decoder.held || (decoder.n_held && decoder.n_held >= utf8_bytes(decoder.held[0])))
        decoder.n_held = 0;
}

}  // namespace

std::uint32_t Tokenizer::vocab_size() const noexcept { return header_ ? header_->n_tokens : 0; }

Token Tokenizer::bos() const noexcept { return header_ ? header_->bos : kNoToken; }

bool Tokenizer::adds_bos() const noexcept {
    const Tables tables = TokenizerReader::tables(*this);
    return tables.header && !tables.prefix_ids.empty() && tables.prefix_ids[0] == tables.header->bos;
}

bool Tokenizer::ends_text(Token id) const noexcept {
    const std::span<const std::uint32_t> ids = TokenizerReader::tables(*this).end_ids;
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool Tokenizer::is_special(Token id) const noexcept {
    return TokenizerReader::tables(*this).has_bit(id, kSpecialToken);
}

Status open_tokenizer(std::span<const std::byte> section, Tokenizer& tokenizer) noexcept {
    Tables tables;
    if (Status s = read_tables(section, tables); !s.ok()) return s;
    for (Token id = 0; id < tables.header->n_tokens; ++id) {
        const std::uint32_t begin = tables.offset(id), end = tables.offset(std::size_t{id} + 1);
        if (begin > end || end > tables.token_text.size() || end - begin > tables.header->max_token_bytes)
            return {Code::section_invalid, "token's bytes", tables.header->max_token_bytes, end - begin};
    }
    TokenizerReader::set(tokenizer, section);
    return {};
}

std::string_view token_bytes(const Tokenizer& tokenizer, Token id) noexcept {
    return TokenizerReader::tables(tokenizer).token(id);
}

std::string_view decode(const Tokenizer& tokenizer, Decoder& decoder, Token id, bool show_special,
                        std::span<char> out) noexcept {
    const Tables tables = TokenizerReader::tables(tokenizer);
    std::string_view token = tables.token(id);
    if (token.empty() || (tables.has_bit(id, kSpecialToken) && !show_special)) return {};
    const bool first = !decoder.started;
    decoder.started = true;
    make_sound(decoder);
    const bool drop_spaces = first && (tables.header->flags & kDropFirstSpaces);
    TextSink output(out);
    if (token[0] == ' ') {
        if ((first && (tables.header->flags & kDropFirstSpace)) || tables.has_bit(id, kJoinedToken))
            token.remove_prefix(1);
    } else if (first && tables.is_word_piece()) {
        output.put("##");  // nothing to join, so it shows that it would
    }
    for (const char c : token)
        if (!drop_spaces || c != ' ') push(decoder, static_cast<std::uint8_t>(c), output);
    return output.text();
}

std::string_view finish(Decoder& decoder, std::span<char> out) noexcept {
    TextSink output(out);
    release(decoder, output);
    return output.text();
}

std::size_t max_piece_bytes(const Tokenizer& tokenizer) noexcept {
    // Each byte may become a U+FFFD, and so may what was held.
    const TokenizerHeader* header = TokenizerReader::header(tokenizer);
    const std::uint64_t n = ((header ? header->max_token_bytes : 0) + std::uint64_t{1}) * kReplacement.size();
    return n > SIZE_MAX ? SIZE_MAX : static_cast<std::size_t>(n);
}

}  // namespace fovea
