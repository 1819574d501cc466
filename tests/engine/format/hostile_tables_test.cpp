// Tokenizers whose tables say anything: a file is refused, or every text has its ids, within the memory that was announced.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

#include "engine/format/tokenizer_format.h"
#include "tests/support/opened_tokenizer.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr const char* kKinds[] = {"gpt2",    "llama2",   "bert_accents", "deepseek_llm", "behaviors",
                                  "gpt_oss", "t5_small", "albert_small", "unigram_bytes"};
constexpr const char* kTexts[] = {"", "Ein Wort, 12345 words\n\n  don't",
                                  "\u00c5\u1e9b\u0323 \u1ea0\u0301\uac01 e\u0301\u0327",
                                  "\u4e2d\u6587 \U0001f469\u200d\U0001f52c <s> [MASK] \xff\xfe"};

std::vector<TokenizerTable> tables_of(const std::vector<std::byte>& section) {
    TokenizerHeader header;
    std::memcpy(&header, section.data(), sizeof header);
    std::vector<TokenizerTable> tables(header.n_tables);
    std::memcpy(tables.data(), section.data() + sizeof header, tables.size() * sizeof tables[0]);
    return tables;
}

/// Whether it opens; then each text has ids, and those have a text. Ids may be none of the vocabulary: forward refuses them.
bool serves(const std::vector<std::byte>& section) {
    std::vector<std::uint64_t> words((section.size() + 7) / 8);
    std::memcpy(words.data(), section.data(), section.size());
    Tokenizer tokenizer;
    if (!open_tokenizer({reinterpret_cast<const std::byte*>(words.data()), section.size()}, tokenizer).ok())
        return false;
    for (const char* text : kTexts) {
        std::vector<Token> ids;
        REQUIRE(tokenize_exactly(tokenizer, text, {.parse_special = true}, ids).ok());
        std::vector<char> out(max_piece_bytes(tokenizer));
        Decoder decoder;
        for (const Token id : ids) (void)decode(tokenizer, decoder, id, true, out);
    }
    return true;
}

}  // namespace

TEST_CASE("hostile tables: a character that decomposes to itself, alone or before another, comes to an end") {
    std::uint32_t n_changed = 0;
    for (const char* kind : kKinds) {
        CAPTURE(kind);
        std::vector<std::byte> section = section_of(golden_text(std::string("tokenizer_") + kind + ".json"));
        for (const TokenizerTable& table : tables_of(section)) {
            if (table.kind != static_cast<std::uint32_t>(TokenizerTableKind::decompositions)) continue;
            for (std::uint32_t at = table.offset; at < table.offset + table.bytes; at += 8) {
                std::uint64_t entry;
                std::memcpy(&entry, &section[at], 8);
                const std::uint64_t code = entry & 0x1fffff;
                entry = code | code << 21 | (++n_changed % 2 ? code << 42 : 0);
                std::memcpy(&section[at], &entry, 8);
            }
        }
        CHECK(serves(section));
    }
    CHECK(n_changed > 1000);
}

TEST_CASE("hostile tables: numbers of any table are others, a few or all") {
    std::mt19937 random(3);
    for (const char* kind : kKinds) {
        CAPTURE(kind);
        const std::vector<std::byte> whole = section_of(golden_text(std::string("tokenizer_") + kind + ".json"));
        std::uint32_t n_served = 0;
        for (const TokenizerTable& table : tables_of(whole)) {
            CAPTURE(table.kind);
            if (table.bytes < 4) continue;
            for (const std::uint32_t n_changes : {1u, 8u, table.bytes / 4}) {
                std::vector<std::byte> section = whole;
                for (std::uint32_t i = 0; i < n_changes; ++i) {
                    const std::size_t at = table.offset + random() % (table.bytes / 4) * 4;
                    const std::size_t from = table.offset + random() % (table.bytes / 4) * 4;
                    // Numbers that another element has, or any.
                    if (random() % 2)
                        std::memcpy(&section[at], &whole[from], 4);
                    else
                        std::memset(&section[at], static_cast<int>(random() % 256), 1 + random() % 4);
                }
                n_served += serves(section);
            }
        }
        CHECK(n_served > 0);
    }
}
