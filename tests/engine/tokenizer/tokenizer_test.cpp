// Tokenizers against what the `tokenizers` package makes of the same texts (golden/make_tokenizers.py), and the reference
// models' own ids.
#include "fovea/tokenizer.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "convert/tokenizers/tokenizer_bin.h"
#include "convert/tokenizers/vocab_txt.h"
#include "engine/format/utf8.h"
#include "host/base/error.h"
#include "tests/support/opened_tokenizer.h"
#include "tests/support/sanitized.h"

using namespace fovea;
using namespace fovea::testing;
using nlohmann::json;

namespace {

constexpr const char* kKinds[] = {"gpt2",     "roberta",      "llama3",       "qwen2",   "smollm",     "gaps",
                                  "llama2",   "mistral",      "metaspace",    "bert",    "bert_cased", "bert_accents",
                                  "falcon",   "bloom",        "deepseek_llm", "gpt_oss", "behaviors",  "words",
                                  "t5_small", "albert_small", "unigram_bytes"};

/// CRC-32 as zlib computes it.
std::uint32_t crc32(std::uint32_t crc, const std::vector<Token>& ids) {
    crc = ~crc;
    for (const Token id : ids)
        for (int shift = 0; shift < 32; shift += 8) {
            crc ^= id >> shift & 0xff;
            for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    return ~crc;
}

std::string spell(std::uint32_t code) {
    char bytes[4];
    return {bytes, put_character(code, bytes)};
}

/// `context` with the character in the place of every "*".
std::string in_context(std::string_view context, std::uint32_t code) {
    std::string text;
    for (const char c : context) text += c == '*' ? spell(code) : std::string(1, c);
    return text;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const Character c = first_character(text);
        if (c.code == kNotACharacter) return false;
        text.remove_prefix(c.bytes);
    }
    return true;
}

/// A file below ../shared, or nothing where it is absent: then the caller skips, which on a build server fails.
std::string shared_file(const std::string& name) {
    const std::filesystem::path path = std::filesystem::path(FOVEA_SOURCE_DIR) / "../shared" / name;
    if (std::filesystem::exists(path)) return read_text(path);
    const char* ci = std::getenv("CI");
    CHECK_MESSAGE((!ci || !*ci), "no reference file at ", path.string());
    MESSAGE("skipped: no reference file at ", path.string());
    return {};
}

void check_encoding(const OpenedTokenizer& tokenizer, const json& texts, const json& expected,
                    const TokenizeOptions& options) {
    REQUIRE(texts.size() == expected.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        CAPTURE(texts[i].dump());
        CHECK(tokenizer.tokenize(texts[i].get<std::string>(), options) == expected[i].get<std::vector<Token>>());
    }
}

}  // namespace

TEST_CASE("each kind of tokenizer gives the ids and the text that the tokenizers package gives") {
    const json texts = json::parse(golden_text("tokenizer_texts.json"));
    REQUIRE(texts["mixed"].size() > 300);
    for (const std::string kind : kKinds) {
        CAPTURE(kind);
        const OpenedTokenizer tokenizer(golden_text("tokenizer_" + kind + ".json"));
        const json expected = json::parse(golden_text("tokenizer_" + kind + "_expected.json"));
        check_encoding(tokenizer, texts["mixed"], expected["mixed"], {.add_special = true, .parse_special = true});
        check_encoding(tokenizer, texts["special"], expected["special"], {.add_special = false, .parse_special = true});
        check_encoding(tokenizer, texts["special"], expected["plain"], {.add_special = false, .parse_special = false});
        for (const json& sample : expected["decoded"]) {
            const auto ids = sample["ids"].get<std::vector<Token>>();
            CAPTURE(sample["ids"].dump());
            CHECK(tokenizer.decode(ids, false) == sample["text"].get<std::string>());
            CHECK(tokenizer.decode(ids, true) == sample["all"].get<std::string>());
        }
    }
}

TEST_CASE("two texts give the ids and the token types that the tokenizers package gives") {
    int n_checked = 0;
    for (const std::string kind : kKinds) {
        const json expected = json::parse(golden_text("tokenizer_" + kind + "_expected.json"));
        if (!expected.contains("pairs")) continue;
        CAPTURE(kind);
        const OpenedTokenizer opened(golden_text("tokenizer_" + kind + ".json"));
        const Tokenizer& tokenizer = opened.tokenizer();
        for (const json& pair : expected["pairs"]) {
            const auto first = pair["first"].get<std::string>(), second = pair["second"].get<std::string>();
            CAPTURE(first);
            CAPTURE(second);
            std::vector<std::byte> scratch(tokenize_scratch_bytes(tokenizer, std::max(first.size(), second.size())));
            std::vector<Token> ids(max_tokens(tokenizer, first.size() + second.size()));
            std::vector<std::uint32_t> types(ids.size());
            std::size_t n = 0;
            const TokenizeOptions options{.add_special = true, .parse_special = true};
            REQUIRE(tokenize_pair(tokenizer, first, second, options, scratch, ids, types, n).ok());
            ids.resize(n);
            types.resize(n);
            CHECK(ids == pair["ids"].get<std::vector<Token>>());
            CHECK(types == pair["types"].get<std::vector<std::uint32_t>>());
            ++n_checked;
        }
    }
    CHECK(n_checked == 9 * 20);
}

TEST_CASE("every code point there is gives the ids that the tokenizers package gives" * doctest::skip(kSanitized)) {
    const json texts = json::parse(golden_text("tokenizer_texts.json"));
    int n_checked = 0;
    for (const std::string kind : kKinds) {
        const json expected = json::parse(golden_text("tokenizer_" + kind + "_expected.json"))["code_points"];
        if (expected.is_null()) continue;
        CAPTURE(kind);
        const OpenedTokenizer tokenizer(golden_text("tokenizer_" + kind + ".json"));
        std::uint32_t crc = 0;
        for (const json& context : texts["contexts"]) {
            std::string text;
            for (std::uint32_t code = 0, n = 0; code < 0x110000; ++code) {
                if (code >= 0xd800 && code < 0xe000) continue;
                text += in_context(context.get<std::string>(), code);
                if (++n % 50 == 0 || code == 0x10ffff) {
                    crc = crc32(crc, tokenizer.tokenize(text, {.add_special = false, .parse_special = true}));
                    text.clear();
                }
            }
        }
        CHECK(crc == expected.get<std::uint32_t>());
        ++n_checked;
    }
    CHECK(n_checked == 8);
}

TEST_CASE("decoding gives whole characters, and U+FFFD for what is none") {
    const json texts = json::parse(golden_text("tokenizer_texts.json"));
    for (const std::string kind : {"gpt2", "llama2"}) {
        CAPTURE(kind);
        const OpenedTokenizer tokenizer(golden_text("tokenizer_" + kind + ".json"));
        for (const json& sample : texts["broken"]) {
            const auto bytes = sample["bytes"].get<std::vector<std::uint8_t>>();
            CAPTURE(sample["bytes"].dump());
            const std::vector<Token> ids = tokenizer.tokenize({bytes.begin(), bytes.end()}, {.add_special = false});
            for (const std::string& piece : tokenizer.pieces(ids, true)) CHECK(is_utf8(piece));
            CHECK(tokenizer.decode(ids, true) == sample["text"].get<std::string>());
        }
    }
}

TEST_CASE("a byte-level vocabulary gives back any bytes") {
    const OpenedTokenizer tokenizer(golden_text("tokenizer_llama3.json"));
    std::mt19937 random(1);
    for (std::size_t n = 0; n < 300; ++n) {
        std::string text, back;
        for (std::size_t i = 0; i < n; ++i) text += static_cast<char>(random() % (n % 2 ? 256 : 64));
        for (const Token id : tokenizer.tokenize(text, {.add_special = false}))
            back += token_bytes(tokenizer.tokenizer(), id);
        CHECK(back == text);
    }
}

TEST_CASE("one word of two megabytes is as good as short ones") {
    const OpenedTokenizer tokenizer(golden_text("tokenizer_gpt2.json"));
    std::string text;
    for (std::uint32_t x = 1; text.size() < 2'000'000; x = x * 1664525 + 1013904223)
        text += static_cast<char>('a' + x / 0x10000 % 26);
    const std::vector<Token> ids = tokenizer.tokenize(text, {.add_special = false});
    CHECK(ids.size() < text.size());
    CHECK(tokenizer.decode(ids, true) == text);
    // A word's beginning is merged alike whatever follows far behind.
    const std::vector<Token> first = tokenizer.tokenize(text.substr(0, 1000), {.add_special = false});
    CHECK(std::equal(first.begin(), first.end() - 20, ids.begin()));
}

TEST_CASE("an added token that is a space and takes the spaces after it is found once for each, at once") {
    nlohmann::json file = nlohmann::json::parse(golden_text("tokenizer_gpt2.json"));
    constexpr Token kSpaces = 100'000, kTab = 100'001;
    file["added_tokens"].push_back({{"id", kSpaces}, {"content", " "}, {"normalized", false}, {"rstrip", true}});
    file["added_tokens"].push_back({{"id", kTab}, {"content", "\t"}, {"normalized", false}});
    const OpenedTokenizer tokenizer(file.dump());
    // The tokenizers package looks for tokens in the whole text first, and takes the space with them afterwards.
    constexpr std::size_t kMany = 400'000;
    const std::vector<Token> spaces = tokenizer.tokenize(std::string(kMany, ' '), {.add_special = false});
    CHECK(spaces == std::vector<Token>(kMany, kSpaces));
    std::string text;
    std::vector<Token> wanted;
    for (std::size_t i = 0; i < kMany; ++i) {
        text += i % 2 ? '\t' : ' ';
        wanted.push_back(i % 2 ? kTab : kSpaces);
    }
    CHECK(tokenizer.tokenize(text, {.add_special = false}) == wanted);
}

TEST_CASE("what encode needs is what it says, to the byte and the token") {
    for (const std::string kind : kKinds) {
        CAPTURE(kind);
        const OpenedTokenizer opened(golden_text("tokenizer_" + kind + ".json"));
        const Tokenizer& tokenizer = opened.tokenizer();
        const std::string text = "The lamp is on.\xcc\x81 <s> \xe2\x96\x81";
        const std::vector<Token> wanted = opened.tokenize(text, {});
        REQUIRE(wanted.size() <= max_tokens(tokenizer, text.size()));
        std::vector<std::byte> scratch(tokenize_scratch_bytes(tokenizer, text.size()) + 4);
        std::vector<Token> ids(wanted.size());
        std::size_t n = 7;
        const std::span<std::byte> enough(scratch.data(), scratch.size() - 4);

        Status status = tokenize(tokenizer, text, {}, enough, {ids.data(), ids.size() - 1}, n);
        CHECK(status.code == Code::buffer_too_small);
        CHECK(status.wanted == wanted.size());
        CHECK(status.had == wanted.size() - 1);
        CHECK(n == 0);
        status = tokenize(tokenizer, text, {}, enough.first(enough.size() - 1), ids, n);
        CHECK(status.code == Code::buffer_too_small);
        CHECK(status.wanted == enough.size());
        CHECK(n == 0);
        CHECK(tokenize(tokenizer, text, {}, {scratch.data() + 1, enough.size()}, ids, n).code == Code::misaligned);
        CHECK(tokenize(tokenizer, text, {}, enough, ids, n).ok());
        CHECK(n == wanted.size());
        CHECK(ids == wanted);
    }
}

TEST_CASE("a tokenizer that was never opened answers everything") {
    const Tokenizer tokenizer;
    Decoder decoder;
    std::size_t n = 7;
    char out[8];
    CHECK(!tokenizer.valid());
    CHECK(tokenizer.vocab_size() == 0);
    CHECK(tokenizer.bos() == Tokenizer::kNoToken);
    CHECK(!tokenizer.adds_bos());
    CHECK(!tokenizer.ends_text(0));
    CHECK(!tokenizer.is_special(0));
    CHECK(tokenize_scratch_bytes(tokenizer, 100) == 0);
    CHECK(max_tokens(tokenizer, 100) == 0);
    CHECK(tokenize(tokenizer, "a", {}, {}, {}, n).code == Code::section_missing);
    CHECK(n == 0);
    CHECK(decode(tokenizer, decoder, 0, true, out).empty());
    CHECK(token_bytes(tokenizer, 0).empty());
}

TEST_CASE("a vocab.txt gives the section of the tokenizer.json that says the same") {
    constexpr std::uint32_t kLines = 900;
    json file = json::parse(golden_text("tokenizer_bert.json"));
    file["added_tokens"].erase(file["added_tokens"].begin() + 5, file["added_tokens"].end());
    std::vector<std::string> lines(kLines);
    json vocab = json::object();
    for (const auto& [token, id] : file["model"]["vocab"].items())
        if (id.get<std::uint32_t>() < kLines) vocab[token] = id, lines[id.get<std::uint32_t>()] = token;
    file["model"]["vocab"] = vocab;
    const std::filesystem::path config = std::filesystem::temp_directory_path() / "fovea_tokenizer_config.json";
    for (const bool cased : {false, true}) {
        std::string text;
        for (const std::string& line : lines) text += line + (cased ? "\n" : "\r\n");
        std::ofstream(config) << (cased ? R"({"do_lower_case": false, "unk_token": {"content": "[UNK]"},
            "strip_accents": null})"
                                        : "{}");
        file["normalizer"]["lowercase"] = !cased;
        const auto section = tokenizer_section_from_vocab_txt(text, "vocab.txt", config, {.vocab_size = kLines});
        CHECK(section == section_of(file.dump()));
        CHECK_THROWS_AS(tokenizer_section_from_vocab_txt(text, "vocab.txt", config, {.vocab_size = kLines - 1}),
                        host::Error);
    }
    CHECK_THROWS_WITH(tokenizer_section_from_vocab_txt(std::string_view("[UNK]\na\n"), "vocab.txt", "", {}),
                      "vocab.txt: expected the token [CLS], got none");
    CHECK_THROWS_WITH(
        tokenizer_section_from_vocab_txt(std::string_view("[UNK]\n[CLS]\n[SEP]\n\xff"), "vocab.txt", "", {}),
        "vocab.txt: expected UTF-8, got other bytes");
    std::filesystem::remove(config);
}

TEST_CASE("WordPiece: a word may spell a token that continues words, as tokenizers 0.23.3 reads it") {
    const OpenedTokenizer opened(
        R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": null, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {"[UNK]": 0, "a": 1, "b": 2, "##a": 3, "##b": 4, "ab": 5, "##ab": 6, "#": 7, "##c": 8, "c": 9,
                            "###": 10, "####a": 11, "##d": 12, "-": 13}}})");
    const std::pair<const char*, std::vector<Token>> cases[] = {
        {"##a", {3}},           {"a##b", {1, 10, 10, 4}}, {"##ab c", {6, 9}}, {"#a", {7, 3}},
        {"###", {10}},          {"####a", {11}},          {"##d a", {12, 1}}, {"##x", {0}},
        {"a ##aab", {1, 3, 6}}, {"###a", {10, 3}},        {"##", {7, 10}},    {"##b##a", {4, 11}}};
    for (const auto& one : cases) {
        const char* text = one.first;
        CAPTURE(text);
        CHECK(opened.tokenize(text, {}) == one.second);
    }
}

TEST_CASE("roles of ids: start, end, special") {
    const OpenedTokenizer llama(golden_text("tokenizer_llama3.json"),
                                {.vocab_size = 2000, .bos = {}, .eos = {1204, 3}});
    CHECK(llama.tokenizer().bos() == 1203);
    CHECK(llama.tokenizer().adds_bos());
    CHECK(llama.tokenizer().ends_text(1204));
    CHECK(llama.tokenizer().ends_text(3));
    CHECK(!llama.tokenizer().ends_text(1203));
    CHECK(llama.tokenizer().is_special(1203));
    CHECK(!llama.tokenizer().is_special(3));
    CHECK(!llama.tokenizer().is_special(5000));
    CHECK(llama.tokenizer().vocab_size() == 1205);
    CHECK(llama.tokenize("<s>", {}) == std::vector<Token>{1203, llama.tokenize("<s>", {})[1],
                                                          llama.tokenize("<s>", {})[2], llama.tokenize("<s>", {})[3]});
    CHECK(llama.tokenize("<s>", {.parse_special = true}) == std::vector<Token>{1203, 1203});
    const OpenedTokenizer qwen(golden_text("tokenizer_qwen2.json"), {.vocab_size = 2000, .bos = Token{5}, .eos = {}});
    CHECK(qwen.tokenizer().bos() == 5);
    CHECK(!qwen.tokenizer().adds_bos());
}

TEST_CASE("the demo model's tokenizer spells its commands") {
    const std::string text = shared_file("demo/model/tokenizer.json");
    if (text.empty()) return;
    const OpenedTokenizer tokenizer(text, {.vocab_size = 512, .bos = Token{0}, .eos = {0}});
    CHECK(tokenizer.tokenize("turn on the lights", {}) == std::vector<Token>{0, 500, 335, 265, 339, 116});
    CHECK(tokenizer.decode({0, 500, 335, 265, 339, 116}, false) == "turn on the lights");
    CHECK(tokenizer.tokenize("a<|endoftext|>b", {.parse_special = true}) == std::vector<Token>{0, 98, 0, 99});
}

TEST_CASE("stories260K's tokenizer.bin gives the reference text and its ids") {
    const std::string bytes = shared_file("models/stories260k/tokenizer.bin");
    if (bytes.empty()) return;
    std::string text = shared_file("models/stories260k/expected_greedy.txt");
    std::vector<Token> ids = {1};
    std::istringstream numbers(shared_file("models/stories260k/expected_greedy_ids.txt"));
    for (Token id; numbers >> id;) ids.push_back(id);
    REQUIRE(ids.size() == 257);
    REQUIRE(text.back() == '\n');
    text.pop_back();
    const OpenedTokenizer tokenizer(
        tokenizer_section_from_llama2c(std::as_bytes(std::span(bytes)), "tokenizer.bin", {.vocab_size = 512}));
    CHECK(tokenizer.tokenize(text, {}) == ids);
    CHECK(tokenizer.decode(ids, false) == text);
    CHECK(tokenizer.tokenizer().ends_text(1));
    CHECK(tokenizer.tokenizer().ends_text(2));
    CHECK_THROWS_AS(tokenizer_section_from_llama2c(std::as_bytes(std::span(bytes)), "t", {.vocab_size = 511}),
                    host::Error);
    CHECK_THROWS_AS(tokenizer_section_from_llama2c(std::as_bytes(std::span(bytes)), "t", {.vocab_size = 513}),
                    host::Error);
    for (std::size_t n = 0; n < bytes.size(); n += 7)
        CHECK_THROWS_AS(
            tokenizer_section_from_llama2c(std::as_bytes(std::span(bytes).first(n)), "t", {.vocab_size = 512}),
            host::Error);
}
