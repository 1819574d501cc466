// Tokenizers out of GGUF files against what the `tokenizers` and `sentencepiece` packages make of the same texts.
#include "convert/tokenizers/gguf_tokenizer.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "host/base/error.h"
#include "host/base/source_file.h"
#include "tests/support/opened_tokenizer.h"

using namespace fovea;
using namespace fovea::testing;
using nlohmann::json;

namespace {

constexpr std::uint32_t kMany = 1u << 20;

std::vector<std::byte> section_of_gguf(const std::filesystem::path& path, std::uint32_t vocab_size = kMany) {
    std::vector<std::string> notes;
    const Gguf file(path, map_source(path));
    return tokenizer_section_from_gguf(file, vocab_size, notes);
}

std::filesystem::path golden(const std::string& name) {
    return std::filesystem::path(FOVEA_GOLDEN_DIR) / "gguf" / ("tokenizer_" + name + ".gguf");
}

/// CRC-32 as zlib computes it, of the ids in little-endian order.
std::uint32_t crc32(const std::vector<Token>& ids) {
    std::uint32_t crc = ~0u;
    for (const Token id : ids)
        for (int shift = 0; shift < 32; shift += 8) {
            crc ^= id >> shift & 0xff;
            for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    return ~crc;
}

/// What a file spoiled by `edit` is refused with.
std::string refusal_of_spoiled(const std::string& name, const std::function<void(std::string&)>& edit) {
    std::string bytes = read_text(golden(name));
    edit(bytes);
    const auto path = std::filesystem::temp_directory_path() / ("fovea-test-" + std::to_string(::getpid()) + ".gguf");
    std::ofstream(path, std::ios::binary) << bytes;
    std::string line;
    try {
        const std::vector<std::byte> section = section_of_gguf(path);
        if (!section.empty()) static_cast<void>(OpenedTokenizer(section).tokenize("The lamp, 12 lamps.", {}));
    } catch (const host::Error& refusal) {
        line = refusal.what();
    }
    std::filesystem::remove(path);
    return line;
}

void check_has(const std::string& line, std::initializer_list<const char*> parts) {
    CAPTURE(line);
    for (const std::string part : parts) CHECK(line.find(part) != std::string::npos);
}

/// A file of metadata alone.
class Metadata {
public:
    Metadata(const std::string& architecture, const std::string& model) {
        text("general.architecture", architecture);
        text("tokenizer.ggml.model", model);
    }
    void text(const std::string& key, const std::string& value) { add(key, GgufKind::text, string(value)); }
    void flag(const std::string& key, bool value) { add(key, GgufKind::boolean, {value ? '\1' : '\0'}); }
    void number(const std::string& key, std::uint32_t value) { add(key, GgufKind::u32, raw(value)); }
    /// Adds each token's text and kind; its score is less than that of the one before it.
    void tokens(const std::vector<std::pair<std::string, std::int32_t>>& all) {
        std::string texts, kinds, scores;
        for (std::size_t i = 0; i < all.size(); ++i) {
            texts += string(all[i].first);
            kinds += raw(all[i].second);
            scores += raw(-static_cast<float>(i));
        }
        list("tokenizer.ggml.tokens", GgufKind::text, all.size(), texts);
        list("tokenizer.ggml.token_type", GgufKind::i32, all.size(), kinds);
        list("tokenizer.ggml.scores", GgufKind::f32, all.size(), scores);
    }
    void merges(const std::vector<std::string>& all) {
        std::string texts;
        for (const std::string& merge : all) texts += string(merge);
        list("tokenizer.ggml.merges", GgufKind::text, all.size(), texts);
    }
    [[nodiscard]] OpenedTokenizer opened() const {
        const auto path =
            std::filesystem::temp_directory_path() / ("fovea-test-" + std::to_string(::getpid()) + ".gguf");
        std::ofstream(path, std::ios::binary)
            << "GGUF" << raw(std::uint32_t{3}) << raw(std::uint64_t{0}) << raw(n_) << bytes_ << std::string(64, '\0');
        const std::vector<std::byte> section = section_of_gguf(path);
        std::filesystem::remove(path);
        return OpenedTokenizer(section);
    }

private:
    template<class T>
    static std::string raw(T value) {
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }
    static std::string string(const std::string& text) { return raw(std::uint64_t{text.size()}) + text; }
    void add(const std::string& key, GgufKind kind, const std::string& value) {
        bytes_ += string(key) + raw(static_cast<std::uint32_t>(kind)) + value;
        ++n_;
    }
    void list(const std::string& key, GgufKind kind, std::size_t n, const std::string& values) {
        constexpr std::uint32_t kList = 9;
        add(key, static_cast<GgufKind>(kList), raw(static_cast<std::uint32_t>(kind)) + raw(std::uint64_t{n}) + values);
    }

    std::string bytes_;
    std::uint64_t n_ = 0;
};

constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3;

}  // namespace

TEST_CASE("gguf: byte-level vocabularies give the ids and the text that the tokenizers package gives") {
    const json texts = json::parse(golden_text("tokenizer_texts.json"));
    for (const std::string kind : {"gpt2", "smollm", "llama3", "qwen2"}) {
        CAPTURE(kind);
        const OpenedTokenizer tokenizer(section_of_gguf(golden(kind)));
        const json expected = json::parse(golden_text("tokenizer_" + kind + "_expected.json"));
        CHECK(tokenizer.tokenizer().adds_bos() == (kind == "llama3"));
        for (std::size_t i = 0; i < texts["mixed"].size(); ++i) {
            const std::string text = texts["mixed"][i].get<std::string>();
            CAPTURE(text);
            CHECK(tokenizer.tokenize(text, {true, true}) == expected["mixed"][i].get<std::vector<Token>>());
        }
        for (std::size_t i = 0; i < texts["special"].size(); ++i) {
            const std::string text = texts["special"][i].get<std::string>();
            CAPTURE(text);
            CHECK(tokenizer.tokenize(text, {false, true}) == expected["special"][i].get<std::vector<Token>>());
            CHECK(tokenizer.tokenize(text, {false, false}) == expected["plain"][i].get<std::vector<Token>>());
        }
        for (const json& sample : expected["decoded"]) {
            const auto ids = sample["ids"].get<std::vector<Token>>();
            CHECK(tokenizer.decode(ids, false) == sample["text"].get<std::string>());
            CHECK(tokenizer.decode(ids, true) == sample["all"].get<std::string>());
        }
    }
}

TEST_CASE(
    "gguf: runs of digits are cut in threes from their end as the tokenizers package does, beside any character") {
    const json expected = json::parse(golden_text("tokenizer_cuts_expected.json"));
    for (const std::string name : {"superbpe", "tiny_aya"}) {
        CAPTURE(name);
        const json& ids = expected["ids"][name];
        const OpenedTokenizer tokenizer(section_of_gguf(golden(name)));
        for (std::size_t i = 0; i < expected["texts"].size(); ++i) {
            const std::string text = expected["texts"][i].get<std::string>();
            CAPTURE(text);
            CHECK(tokenizer.tokenize(text, {true, true}) == ids[i].get<std::vector<Token>>());
        }
        // Time grows with the run's length, not with its square: a million digits would take minutes.
        CHECK(tokenizer.tokenize(std::string(1'000'000, '7'), {true, true}).size() > 300'000);
    }
}

TEST_CASE("gguf: pieces with scores give the ids that the sentencepiece package gives") {
    const json texts = json::parse(golden_text("tokenizer_texts.json"))["mixed"];
    const json crcs = json::parse(golden_text("gguf/tokenizer_pieces_crc.json"));
    const OpenedTokenizer tokenizer(section_of_gguf(golden("pieces")));
    REQUIRE(texts.size() == crcs.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::string text = texts[i].get<std::string>();
        CAPTURE(text);
        const std::vector<Token> ids = tokenizer.tokenize(text, {.add_special = false, .parse_special = false});
        CHECK(crc32(ids) == crcs[i].get<std::uint32_t>());
        if (text.find("\xe2\x96\x81") == std::string::npos) CHECK(tokenizer.decode(ids, false) == text);
    }
    CHECK(tokenizer.tokenize("a", {}).front() == tokenizer.tokenizer().bos());
    CHECK(tokenizer.tokenizer().ends_text(2));
    CHECK(tokenizer.tokenizer().is_special(1));
}

TEST_CASE("gguf: a WordPiece vocabulary gives the ids that the tokenizers package gives") {
    const json texts = json::parse(golden_text("tokenizer_texts.json"))["mixed"];
    const json crcs = json::parse(golden_text("gguf/tokenizer_bert_crc.json"));
    const OpenedTokenizer tokenizer(section_of_gguf(golden("bert")));
    REQUIRE(texts.size() == crcs.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        CAPTURE(texts[i].dump());
        CHECK(crc32(tokenizer.tokenize(texts[i].get<std::string>(), {true, true})) == crcs[i].get<std::uint32_t>());
    }
    const std::vector<Token> ids = tokenizer.tokenize("THE lamp, thé LÁMP", {});
    CHECK(ids == tokenizer.tokenize("the lamp, the lamp", {}));
    CHECK(ids.front() == 2);  // [CLS]
    CHECK(ids.back() == 3);   // [SEP]
    CHECK(tokenizer.tokenizer().bos() == 2);
    CHECK(tokenizer.decode(ids, false) == "the lamp, the lamp");
    for (const Token id : {0u, 1u, 2u, 3u, 4u}) CHECK(tokenizer.tokenizer().is_special(id));
    CHECK(!tokenizer.tokenizer().is_special(5));
}

TEST_CASE("gguf: a WordPiece vocabulary needs no ids but its spellings, and says where it is not for lower case") {
    std::string bytes = read_text(golden("bert"));
    const auto rename = [&](const std::string& key, const std::string& other) {
        REQUIRE(bytes.find(key) != std::string::npos);
        bytes.replace(bytes.find(key), key.size(), other);
    };
    const std::vector<std::byte> whole = section_of_gguf(golden("bert"));
    const auto path = std::filesystem::temp_directory_path() / ("fovea-test-" + std::to_string(::getpid()) + ".gguf");
    std::vector<std::string> notes;
    const auto section = [&] {
        std::ofstream(path, std::ios::binary) << bytes;
        const Gguf file(path, map_source(path));
        return tokenizer_section_from_gguf(file, kMany, notes);
    };
    for (const std::string name : {"bos", "unknown", "mask"})
        rename("tokenizer.ggml." + name, "tokenizer.ggml." + std::string(name.size(), 'x'));
    CHECK(section() == whole);
    rename("tokenizer.ggml.seperator_token_id", "tokenizer.ggml.xxxxxxxxx_token_id");
    CHECK(section() == whole);
    CHECK(notes.empty());
    rename("\xe2\x96\x81the", "\xe2\x96\x81The");
    static_cast<void>(section());
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("tokenizer.ggml.tokens has capitals") != std::string::npos);
    std::filesystem::remove(path);
}

TEST_CASE("gguf: the end of a message ends an answer, but where an answer is several messages") {
    for (const bool harmony : {false, true}) {
        Metadata file("gpt-oss", "gpt2");
        file.text("tokenizer.ggml.pre", "gpt-4o");
        file.tokens({{"a", kNormal},
                     {"<|end|>", kControl},
                     {"<|return|>", kControl},
                     {harmony ? "<|call|>" : "<|other|>", kControl}});
        file.number("tokenizer.ggml.eos_token_id", 2);
        file.merges({});
        const OpenedTokenizer opened = file.opened();
        CHECK(opened.tokenizer().ends_text(1) != harmony);
        CHECK(opened.tokenizer().ends_text(2));
        CHECK(opened.tokenizer().ends_text(3) == harmony);
    }
}

TEST_CASE("gguf: two tokens may make one that is found by itself, too") {
    Metadata file("llama", "gpt2");
    file.text("tokenizer.ggml.pre", "gpt-2");
    file.tokens({{"a", kNormal}, {"b", kNormal}, {"ab", kControl}});
    file.merges({"a b"});
    CHECK(file.opened().tokenize("ab a", {.add_special = false}).front() == 2);
}

TEST_CASE("gguf: Phi 3's special tokens take the spaces after them") {
    for (const bool phi : {false, true}) {
        Metadata file(phi ? "phi3" : "llama", "llama");
        file.tokens({{"<unk>", kUnknown},
                     {"<s>", kControl},
                     {"</s>", kControl},
                     {"<|user|>", kControl},
                     {"\xe2\x96\x81", kNormal},
                     {"a", kNormal},
                     {"\xe2\x96\x81"
                      "a",
                      kNormal},
                     {"\n", kNormal}});
        const TokenizeOptions options{.add_special = false, .parse_special = true};
        const std::vector<Token> taken = {3, 6}, left = {3, 4, 7, 5};
        CHECK(file.opened().tokenize("<|user|>\na", options) == (phi ? taken : left));
    }
}

TEST_CASE("gguf: a WordPiece vocabulary is for the case that the file says") {
    const std::vector<std::pair<std::string, std::int32_t>> tokens = {{"[PAD]", kControl},
                                                                      {"[UNK]", kControl},
                                                                      {"[CLS]", kControl},
                                                                      {"[SEP]", kControl},
                                                                      {"\xe2\x96\x81"
                                                                       "A",
                                                                       kNormal},
                                                                      {"\xe2\x96\x81"
                                                                       "a",
                                                                       kNormal},
                                                                      {"\xe2\x96\x81\xc3\xa4", kNormal}};
    const auto ids = [&](int lowers, int strips, const char* text) {
        Metadata file("bert", "bert");
        file.tokens(tokens);
        if (lowers >= 0) file.flag("tokenizer.ggml.normalizer.lowercase", lowers != 0);
        if (strips >= 0) file.flag("tokenizer.ggml.normalizer.strip_accents", strips != 0);
        return file.opened().tokenize(text, {.add_special = false}).at(0);
    };
    CHECK(ids(-1, -1, "A") == 5);
    CHECK(ids(1, -1, "A") == 5);
    CHECK(ids(0, -1, "A") == 4);
    CHECK(ids(-1, -1, "\xc3\x84") == 5);
    CHECK(ids(1, 0, "\xc3\x84") == 6);
    CHECK(ids(0, -1, "\xc3\xa4") == 6);
    CHECK(ids(0, 1, "\xc3\xa4") == 5);
}

TEST_CASE("gguf: vocabularies changed at random give a refusal or a tokenizer") {
    std::mt19937 random(6);
    int n_refused = 0;
    for (const char* name : {"smollm", "pieces", "bert"})
        for (int i = 0; i < 100; ++i)
            n_refused += refusal_of_spoiled(name, [&](std::string& bytes) {
                             bytes[random() % (i % 2 ? 512 : bytes.size())] = static_cast<char>(random());
                         }) != "";
    CHECK(n_refused > 40);
    CHECK(n_refused < 300);
}

TEST_CASE("gguf: tokenizers that are not what they say are refused") {
    const auto replace = [](const std::string& from, const std::string& to) {
        return [=](std::string& bytes) {
            REQUIRE(from.size() == to.size());
            REQUIRE(bytes.find(from) != std::string::npos);
            bytes.replace(bytes.find(from), from.size(), to);
        };
    };
    check_has(refusal_of_spoiled("smollm", replace("smollm", "smolln")),
              {"tokenizer.ggml.pre: expected one that docs/format.md lists", "got \"smolln\""});
    check_has(refusal_of_spoiled("gpt2",
                                 [](std::string& bytes) {
                                     const std::size_t at = bytes.find("tokenizer.ggml.model") + 20 + 4 + 8;
                                     bytes.replace(at, 4, "t5xx");
                                 }),
              {"tokenizer.ggml.model: expected gpt2, llama, t5, gemma4 or bert, got \"t5xx\""});
    check_has(refusal_of_spoiled("gpt2", replace("tokenizer.ggml.merges", "tokenizer.ggml.nerges")),
              {"tokenizer.ggml.merges: expected a list of texts, got nothing"});
    check_has(refusal_of_spoiled("pieces", replace("tokenizer.ggml.scores", "tokenizer.ggml.stores")),
              {"tokenizer.ggml.scores: expected a list of float32 numbers, got nothing"});
    check_has(refusal_of_spoiled(
                  "gpt2",
                  [](std::string& bytes) { bytes[bytes.find("tokenizer.ggml.merges") + 21 + 4 + 4 + 8 + 8] = '\x01'; }),
              {"tokenizer.ggml.merges: number 0: expected"});
    check_has(refusal_of_spoiled(
                  "pieces",
                  [](std::string& bytes) {
                      const float nan = NAN;
                      std::memcpy(bytes.data() + bytes.find("tokenizer.ggml.scores") + 21 + 4 + 4 + 8 + 40, &nan, 4);
                  }),
              {"tokenizer.ggml.scores: token 10: expected a score, got NaN"});
    check_has(refusal_of_spoiled("bert",
                                 [](std::string& bytes) {
                                     const std::uint32_t beyond = 5000;
                                     const std::string key = "tokenizer.ggml.bos_token_id";
                                     std::memcpy(bytes.data() + bytes.find(key) + key.size() + 4, &beyond, 4);
                                 }),
              {"tokenizer.ggml.bos_token_id: expected a token's id, got 5000"});
    check_has(refusal_of_spoiled("bert", replace("\xe2\x96\x81the", "\xe2\x96\x81\xff\xff\xff")),
              {"expected UTF-8, got other bytes"});
    std::string line;
    try {
        static_cast<void>(section_of_gguf(golden("gpt2"), 100));
    } catch (const host::Error& refusal) {
        line = refusal.what();
    }
    check_has(line, {"tokenizer.ggml.tokens: expected 1 to 100 texts", "got a list of 1200"});
}
