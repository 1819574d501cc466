// SentencePiece's files against what the package makes of the same texts (families/compare_tokenizers.py), and files that are
// none; regular expressions that are read, and those that are refused.
#include "convert/tokenizers/sentence_piece.h"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "convert/tokenizers/gguf_cuts.h"
#include "convert/tokenizers/gguf_tokenizer.h"
#include "convert/tokenizers/tokenizer_steps.h"
#include "convert/tokenizers/trie.h"
#include "engine/tokenizer/automaton.h"
#include "host/base/error.h"
#include "host/base/source_file.h"
#include "tests/support/opened_tokenizer.h"
#include "tests/support/sanitized.h"

using namespace fovea;
using namespace fovea::testing;
using nlohmann::json;

namespace {

std::vector<std::byte> section_of_model(const std::string& bytes) {
    return tokenizer_section_from_sentence_piece({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()},
                                                 "tokenizer.model", {.vocab_size = 1u << 20, .bos = {}, .eos = {}});
}

std::string refusal_of_model(const std::string& bytes) {
    try {
        static_cast<void>(section_of_model(bytes));
    } catch (const host::Error& refusal) {
        return refusal.what();
    }
    return {};
}

std::string with_split(const std::string& pattern) {
    json file = json::parse(golden_text("tokenizer_gpt2.json"));
    file["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
    return file.dump();
}

std::string refusal_of_pattern(const std::string& pattern) {
    try {
        static_cast<void>(section_of(with_split(pattern)));
    } catch (const host::Error& refusal) {
        return refusal.what();
    }
    return {};
}

/// The pieces that a pattern cuts `text` into, found by ids: in this vocabulary a piece starts where merging stops.
std::vector<std::string> cut(const std::string& pattern, const std::string& text) {
    const RefusePattern refuse = [](const std::string& wanted) { throw host::Error(wanted); };
    TokenizerSource source;
    source.steps = {
        pattern_step(source.patterns, parse_pattern(pattern, refuse), false, StepKind::pattern, 0, {}, refuse)};
    const std::vector<std::byte> section = write_steps_section(source);
    std::vector<std::uint64_t> words((section.size() + 7) / 8);
    std::memcpy(words.data(), section.data(), section.size());
    Tables tables;
    REQUIRE(read_tables({reinterpret_cast<const std::byte*>(words.data()), section.size()}, tables).ok());
    Pattern found(tables, 0);
    std::vector<std::string> pieces;
    for (std::size_t pos = 0; pos < text.size();) {
        const auto segment = found.segment(text, pos);
        REQUIRE(segment.end > pos);
        pieces.push_back((segment.is_match ? "" : "-") + text.substr(pos, segment.end - pos));
        pos = segment.end;
    }
    return pieces;
}

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("SentencePiece's models give the ids and the text that the sentencepiece package gives") {
    for (const std::string name : {"unigram", "unigram_bytes", "bpe"}) {
        CAPTURE(name);
        const OpenedTokenizer tokenizer(section_of_model(golden_text("spm_" + name + ".model")));
        const json expected = json::parse(golden_text("spm_" + name + "_expected.json"));
        REQUIRE(expected["texts"].size() > 300);
        for (std::size_t i = 0; i < expected["texts"].size(); ++i) {
            CAPTURE(expected["texts"][i].dump());
            const auto ids = tokenizer.tokenize(expected["texts"][i].get<std::string>(), {});
            CHECK(ids == expected["ids"][i].get<std::vector<Token>>());
        }
    }
}

TEST_CASE("a SentencePiece model of characters merges none, and pieces with a space of their own are in no text") {
    // ModelProto: pieces {1: text, 3: kind}, trainer_spec {3: model_type}, normalizer_spec {4: remove_extra_whitespaces}.
    const auto message = [](char number, const std::string& bytes) {
        return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
    };
    const auto piece = [&](const std::string& text, char kind) {
        return message(1, message(1, text) + std::string{3 << 3, kind});
    };
    const auto model = [&](char type, char removes) {
        return piece("<unk>", 2) + piece("\u2581", 1) + piece("a", 1) + piece("b", 1) + piece("ab", 1) +
               piece("tool", 4) + piece("a b", 4) + piece("  ", 4) + message(2, std::string{3 << 3, type}) +
               message(3, std::string{4 << 3, removes});
    };
    const auto ids_of = [&](char type, const std::string& text) {
        return OpenedTokenizer(section_of_model(model(type, 0))).tokenize(text, {});
    };
    CHECK(ids_of(4, "ab toolb") == std::vector<Token>{1, 2, 3, 1, 5, 3});
    CHECK(ids_of(2, "ab toolb") == std::vector<Token>{1, 4, 1, 5, 3});
    CHECK(ids_of(4, "a b  ") == std::vector<Token>{1, 2, 1, 3, 1, 1});
    CHECK(refusal_of_model(model(3, 0)).find("expected 1 (Unigram), 2 (BPE) or 4 (characters), got 3") !=
          std::string::npos);
    CHECK(refusal_of_model(model(2, 1)).find("without spaces that are removed, got \"  \"") != std::string::npos);
}

TEST_CASE("a GGUF file's Unigram gives the same ids, and an end") {
    const std::filesystem::path path = std::filesystem::path(FOVEA_GOLDEN_DIR) / "gguf" / "tokenizer_unigram.gguf";
    std::vector<std::string> notes;
    const Gguf file(path, map_source(path));
    const OpenedTokenizer tokenizer(tokenizer_section_from_gguf(file, 1u << 20, notes));
    const json expected = json::parse(golden_text("spm_unigram_expected.json"));
    for (std::size_t i = 0; i < expected["texts"].size(); ++i) {
        CAPTURE(expected["texts"][i].dump());
        auto ids = expected["ids"][i].get<std::vector<Token>>();
        ids.push_back(2);
        CHECK(tokenizer.tokenize(expected["texts"][i].get<std::string>(), {}) == ids);
    }
}

TEST_CASE("a damaged SentencePiece model is refused, or opens") {
    const std::string whole = golden_text("spm_unigram_bytes.model");
    CHECK(refusal_of_model("").find("expected pieces, got none") != std::string::npos);
    CHECK(refusal_of_model("\x0a\x7f").find("expected 127 more bytes, got 0") != std::string::npos);
    CHECK(refusal_of_model(std::string(20, '\xff')).find("expected a number of at most 10 bytes") != std::string::npos);
    CHECK(refusal_of_model(std::string("\x0b\x00", 2)).find("expected a field of a kind 0, 1, 2 or 5, got 3") !=
          std::string::npos);
    constexpr std::size_t kEvery = kSanitized ? 997 : 97;
    for (std::size_t n = 1; n < whole.size(); n += kEvery) {
        CAPTURE(n);
        std::string spoiled = whole;
        spoiled[n] = static_cast<char>(spoiled[n] ^ (1 << n % 8));
        for (const std::string& bytes : {whole.substr(0, n), spoiled}) {
            try {
                const OpenedTokenizer tokenizer(section_of_model(bytes));
                static_cast<void>(tokenizer.tokenize("The lamp is on: 12 \xc3\xa9\xff.", {}));
            } catch (const host::Error& refusal) {
                CHECK(std::string(refusal.what()).find("tokenizer.model: ") == 0);
            }
        }
    }
}

TEST_CASE("patterns find what a matcher that goes back finds") {
    CHECK(cut("a|ab", "abab") == Pieces{"a", "-b", "a", "-b"});
    CHECK(cut("ab|a", "abab") == Pieces{"ab", "ab"});
    CHECK(cut("a{2,3}", "aaaaa") == Pieces{"aaa", "aa"});
    CHECK(cut("a+?", "aaa") == Pieces{"a", "a", "a"});
    CHECK(cut("\\s+(?!\\S)|\\s+", "a   b  ") == Pieces{"-a", "  ", " ", "-b", "  "});
    CHECK(cut("\\s+$", "a  b   ") == Pieces{"-a  b", "   "});
    CHECK(cut("\\s+$", "a  b   \n") == Pieces{"-a  b", "   \n"});
    CHECK(cut("[a-c&&[^b]]+", "aabcc") == Pieces{"aa", "-b", "cc"});
    CHECK(cut("(?i:'s)", "'S's'\xc5\xbf") == Pieces{"'S", "'s", "'\xc5\xbf"});
    CHECK(cut("\\p{Lu}\\p{^Lu}+", "AbcDe") == Pieces{"Abc", "De"});
    CHECK(cut("(?=[ab])[^b]", "abc") == Pieces{"a", "-bc"});
}

TEST_CASE("a pattern that waits for what never comes takes a time that grows with the text, not its square") {
    const std::string spaces(2'000'000, ' ');
    CHECK(cut("\\s+$", spaces + "x").size() == 1);
    CHECK(cut("\\s*[\\r\\n]+|x", spaces + "x").size() == 2);
}

TEST_CASE("patterns that are not read name themselves") {
    for (const char* pattern : {"(?<!a)b", "a++", "\\bword", "(?>ab)", "(?=ab)c", "a{2,1}", "[a", "(a", "a)",
                                "\\p{Greek}", "(ab)*?c?|(?:)", "x*", "[[:alpha:]]", "^a", "a{3000}", "\\1"}) {
        CAPTURE(pattern);
        const std::string line = refusal_of_pattern(pattern);
        CHECK(line.find("tokenizer.json: pre_tokenizer.pretokenizers[0].pattern.Regex: expected ") == 0);
        CHECK(line.find(", got \"") != std::string::npos);
    }
}

TEST_CASE("each of llama.cpp's names for a cut has its steps") {
    std::string names = gguf_cut_names() + ", ";
    int n_names = 0;
    for (std::size_t at = 0; at < names.size();) {
        const std::size_t end = names.find(", ", at);
        CAPTURE(names.substr(at, end - at));
        TokenizerSource source;
        CHECK(add_gguf_cut(names.substr(at, end - at), source).known);
        CHECK(!source.steps.empty());
        ++n_names;
        at = end + 2;
    }
    CHECK(n_names > 80);
    TokenizerSource none;
    CHECK(!add_gguf_cut("nobody's", none).known);
}

TEST_CASE("a trie finds each of its keys, and no other") {
    std::vector<std::pair<std::string, std::uint32_t>> entries;
    for (std::uint32_t x = 1, i = 0; i < 20000; ++i, x = x * 1664525 + 1013904223) {
        std::string key;
        for (std::uint32_t y = x; y; y /= 7) key += static_cast<char>("\0ab\xc3\xa9 z"[y % 7]);
        entries.emplace_back(key, i);
    }
    const std::vector<std::uint32_t> units = make_trie(entries);
    const Trie trie(units);
    std::map<std::string, std::uint32_t> last(entries.begin(), entries.end());
    for (const auto& [key, value] : entries) last[key] = value;
    for (const auto& [key, value] : last) {
        std::uint32_t node = 0;
        bool there = true;
        for (const char c : key) there = there && trie.step(node, c);
        REQUIRE(there);
        CHECK(trie.value(node) == value);
        for (const char c : {'q', '\xff', '\x01'}) {
            std::uint32_t other = node;
            CHECK(!trie.step(other, c));
        }
    }
}
