// What conversion refuses, in which words, and what a damaged tokenizer section does: nothing worse than odd ids.
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "convert/tokenizers/tokenizer_bin.h"
#include "engine/format/format.h"
#include "host/base/error.h"
#include "tests/support/opened_tokenizer.h"

using namespace fovea;
using namespace fovea::testing;
using nlohmann::json;

namespace {

/// The refusal's line, or "" where there is none.
std::string refusal_of(const std::string& tokenizer_json, std::uint32_t vocab_size = 1u << 20) {
    try {
        static_cast<void>(section_of(tokenizer_json, {.vocab_size = vocab_size}));
        return "";
    } catch (const host::Error& refusal) {
        CHECK(dynamic_cast<const host::ArgumentError*>(&refusal) == nullptr);  // the file is at fault
        return refusal.what();
    }
}

/// Edits a golden tokenizer.json at a JSON pointer and expects a refusal that has all of `words`.
void check_refused(const char* name, const char* pointer, const json& value, const std::vector<std::string>& words) {
    json file = json::parse(golden_text(name));
    file[json::json_pointer(pointer)] = value;
    const std::string line = refusal_of(file.dump());
    CAPTURE(pointer);
    CAPTURE(line);
    CHECK(line.starts_with("tokenizer.json: "));
    CHECK(line.find('\n') == std::string::npos);
    for (const std::string& word : words) CHECK_MESSAGE(line.find(word) != std::string::npos, word);
}

/// Whatever the bytes are: a Status, or a tokenizer that can be used.
void use(std::span<const std::byte> bytes, std::mt19937& random) {
    // Exactly as many bytes as there are, so that a sanitizer sees the first one beyond.
    std::vector<std::byte> exact(bytes.begin(), bytes.end());
    Tokenizer tokenizer;
    if (!open_tokenizer(exact, tokenizer).ok()) {
        CHECK(!tokenizer.valid());
        return;
    }
    std::string text = "It's 12 <s> <mask> lamps\xcc\x81\xe1\x84\x80\xe1\x85\xa1!\n\n ";
    for (int i = 0; i < 20; ++i) text += static_cast<char>(random());
    REQUIRE(max_tokens(tokenizer, text.size()) < 100'000);
    std::vector<Token> ids;
    static_cast<void>(tokenize_exactly(tokenizer, text, {.add_special = true, .parse_special = true}, ids));
    for (int i = 0; i < 8; ++i) ids.push_back(static_cast<Token>(random()));
    for (Token id = 0; id < 300; id += 7) ids.push_back(id);
    REQUIRE(max_piece_bytes(tokenizer) <= 3 * exact.size() + 3);
    std::vector<char> out(max_piece_bytes(tokenizer));
    Decoder decoder;
    for (const Token id : ids) {
        const std::string_view piece = decode(tokenizer, decoder, id, true, out);
        CHECK(piece.size() <= out.size());
        static_cast<void>(tokenizer.ends_text(id) || tokenizer.is_special(id));
    }
}

}  // namespace

TEST_CASE("what a tokenizer.json may not say is refused with its file, field, expected and got") {
    const char* const gpt2 = "tokenizer_gpt2.json";
    const char* const llama3 = "tokenizer_llama3.json";
    const char* const llama2 = "tokenizer_llama2.json";
    check_refused(gpt2, "/model/type", "Unigram", {"model.type", "BPE", "Unigram"});
    check_refused(gpt2, "/model/dropout", 0.5, {"model.dropout", "none", "0.5"});
    check_refused(gpt2, "/model/end_of_word_suffix", "</w>", {"model.end_of_word_suffix", "</w>"});
    check_refused(gpt2, "/model/byte_fallback", true, {"model.byte_fallback", "false", "true"});
    check_refused(gpt2, "/model/unk_token", "nowhere", {"model.unk_token", "vocabulary", "nowhere"});
    check_refused(gpt2, "/model/vocab", json::array(), {"model.vocab", "object"});
    check_refused(gpt2, "/model/vocab/!", 1u << 20, {"model.vocab", "1048576", "\"!\""});
    check_refused(gpt2, "/model/vocab/!", 2, {"model.vocab", "each id once", "2"});
    check_refused(gpt2, "/model/vocab/!", "one", {"model.vocab", "one"});
    check_refused(gpt2, "/model/merges/5", "a b c", {"model.merges", "a b c"});
    check_refused(gpt2, "/model/merges/5", json::array({"a"}), {"model.merges", "two tokens", "1"});
    check_refused(gpt2, "/model/merges/5", json::array({"q", "qqq"}), {"model.merges", "qqq", "number 5"});
    check_refused(gpt2, "/model/merges/5", 7, {"model.merges", "7"});
    check_refused(gpt2, "/normalizer", {{"type", "NFX"}}, {"normalizer.type", "NFC", "NFX"});
    check_refused(gpt2, "/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "CAAAAAA="}},
                  {"normalizer.precompiled_charsmap", "whole units of a trie", "8"});
    check_refused(gpt2, "/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}},
                  {"normalizer.precompiled_charsmap", "base64", "?"});
    check_refused(gpt2, "/pre_tokenizer/type", "UnicodeScripts", {"pre_tokenizer.type", "ByteLevel", "UnicodeScripts"});
    check_refused(gpt2, "/pre_tokenizer/use_regex", 1, {"pre_tokenizer.use_regex", "true or false", "1"});
    check_refused(gpt2, "/decoder/type", "Metaspace", {"decoder.type", "ByteLevel", "Metaspace"});
    check_refused(gpt2, "/post_processor/type", "Odd", {"post_processor.type", "TemplateProcessing", "Odd"});
    check_refused(gpt2, "/added_tokens/0/id", 5, {"added_tokens[0].id", "5"});
    check_refused(gpt2, "/added_tokens/0/content", "", {"added_tokens[0].content", "some text"});
    check_refused(gpt2, "/added_tokens/0/content", std::string(256, 'x'), {"added_tokens[0]"});
    check_refused(llama3, "/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+\n",
                  {"pre_tokenizer.pretokenizers[0].pattern.Regex", "no \"\\w\"", "\\\\w+\\n"});
    check_refused(llama3, "/pre_tokenizer/pretokenizers/0/behavior", "Odd", {"behavior", "Isolated", "Odd"});
    check_refused(llama3, "/pre_tokenizer/pretokenizers/0/pattern", {{"String", ""}}, {"pattern.String", "some text"});
    check_refused(llama3, "/post_processor/processors/1/single/1/Sequence/id", "B", {"single[1]", "the one text"});
    check_refused(llama2, "/decoder", nullptr, {"decoder", "null"});
    check_refused(llama2, "/decoder", {{"type", "ByteFallback"}}, {"decoder", "made a space"});
    check_refused(llama2, "/decoder/decoders/3/start", 2, {"decoder.decoders[3]", "start 0 or 1"});
    check_refused(llama2, "/pre_tokenizer", {{"type", "ByteLevel"}}, {"pre_tokenizer", "no ByteLevel after another"});
    check_refused(llama2, "/normalizer/normalizers/0/prepend", "thirteen bytes",
                  {"normalizers[0].prepend", "12 bytes"});
    const char* const bert = "tokenizer_bert.json";
    check_refused(bert, "/model/type", "BPE", {"model.type", "WordPiece", "BPE"});
    check_refused(gpt2, "/model/type", "WordPiece", {"pre_tokenizer", "Whitespace", "WordPiece", "ByteLevel"});
    check_refused(gpt2, "/model/type", "WordLevel", {"model.type", "BPE, Unigram or WordPiece", "WordLevel"});
    check_refused(bert, "/model/continuing_subword_prefix", "@@", {"model.continuing_subword_prefix", "##", "@@"});
    check_refused(bert, "/model/max_input_chars_per_word", 1000, {"model.max_input_chars_per_word", "below 1000"});
    check_refused(bert, "/model/unk_token", nullptr, {"model.unk_token", "a token", "null"});
    check_refused(bert, "/model/unk_token", "[GONE]", {"model.unk_token", "vocabulary", "[GONE]"});
    check_refused(bert, "/decoder/prefix", "@@", {"decoder.prefix", "##", "@@"});
    check_refused(bert, "/decoder/type", "BPEDecoder", {"decoder.type", "WordPiece", "BPEDecoder"});
    check_refused(bert, "/pre_tokenizer/type", "Odd", {"pre_tokenizer.type", "BertPreTokenizer"});
    check_refused("tokenizer_t5_small.json", "/model/unk_id", 100000, {"model.unk_id", "number in the vocabulary"});
    check_refused("tokenizer_t5_small.json", "/model/vocab/3", {"x"}, {"model.vocab", "scores"});
    check_refused("tokenizer_t5_small.json", "/model/vocab", json::object(), {"model.vocab", "none"});
}

TEST_CASE("added tokens behind the model's rows are left out with a note, and nothing else changes") {
    auto json = nlohmann::json::parse(golden_text("tokenizer_bloom.json"));
    std::uint32_t n = 0;
    for (const auto& [name, id] : json["model"]["vocab"].items()) n = std::max(n, id.get<std::uint32_t>() + 1);
    for (const auto& token : json["added_tokens"]) n = std::max(n, token["id"].get<std::uint32_t>() + 1);
    const TokenizerFacts facts{.vocab_size = n};
    const std::vector<std::byte> wanted = section_of(json.dump(), facts);
    for (const char* name : {"<image_soft_token>", "[PAD]"})
        json["added_tokens"].push_back({{"id", n++}, {"content", name}, {"special", true}, {"normalized", false}});
    std::vector<std::string> notes;
    CHECK(tokenizer_section_from_json(json.dump(), "tokenizer.json", facts, notes) == wanted);
    REQUIRE(notes.size() == 1);
    CHECK(notes[0] == "tokenizer.json: added_tokens: left out, as the model has " + std::to_string(facts.vocab_size) +
                          " rows and none for them: <image_soft_token>, [PAD]");
}

TEST_CASE("what is no tokenizer.json is refused") {
    const std::string text = golden_text("tokenizer_gpt2.json");
    CHECK(refusal_of("").starts_with("tokenizer.json: expected JSON, got "));
    CHECK(refusal_of("[]") == "tokenizer.json: expected a JSON object, got array");
    CHECK(refusal_of("{}") != "");
    CHECK(refusal_of("{\"model\": 3}") != "");
    for (std::size_t n = 1; n < text.size() - 2; n += 997) CHECK(refusal_of(text.substr(0, n)) != "");
    CHECK(refusal_of(text, 100).find("vocab_size 100") != std::string::npos);
    std::string broken = text;
    broken[broken.find("\"vocab\"") + 20] = '\xff';
    CHECK(refusal_of(broken).starts_with("tokenizer.json: expected JSON, got "));
}

TEST_CASE("a tokenizer.json that would take its reader long, or deep, is refused soon") {
    const json original = json::parse(golden_text("tokenizer_llama2.json"));
    json file = original;
    json steps = {{"type", "NFC"}};
    for (int i = 0; i < 40; ++i) steps = {{"type", "Sequence"}, {"normalizers", json::array({steps})}};
    file["normalizer"] = steps;
    CHECK(refusal_of(file.dump()).find("64 levels") != std::string::npos);
    CHECK(refusal_of("{\"x\": " + std::string(100'000, '[')).find("64 levels") != std::string::npos);

    const json grows = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaaaaa"}};
    file = json::parse(golden_text("tokenizer_gpt2.json"));
    file["normalizer"] = {{"type", "Sequence"},
                          {"normalizers", json::array({grows, grows, grows, grows, grows, grows})}};
    file["added_tokens"].push_back({{"id", 100'000}, {"content", "aaaaa"}});
    CHECK(refusal_of(file.dump()).find("at most 64 KB of a token") != std::string::npos);

    file = original;
    json digits = json::array();
    for (int i = 0; i < 30; ++i) digits.push_back({{"type", "Digits"}});
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", digits}};
    CHECK(refusal_of(file.dump()).find("at most 24 steps") != std::string::npos);

    std::string text = original.dump(), numbers, objects;
    for (int i = 0; i < 60'000; ++i) numbers += "1,", objects += "{},";
    text.back() = ',';
    const auto begun = std::chrono::steady_clock::now();
    CHECK(refusal_of(text + "\"added_tokens\":[" + numbers + objects + "1]}")
              .find("added_tokens[0]: expected an object") != std::string::npos);
    // A minute, where a list was looked through whenever an object in it ended.
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(15));

    file = original;  // of what nobody reads there may be any number
    file["truncation"] = json::array();
    for (int i = 0; i < 5000; ++i) file["truncation"].push_back({{"part", i}});
    CHECK(refusal_of(file.dump()).empty());
}

TEST_CASE("a tokenizer.bin's pieces have at most 1,024 bytes") {
    const auto line_of = [](std::size_t n_bytes) -> std::string {
        std::string file;
        const auto put = [&](auto value) { file.append(reinterpret_cast<const char*>(&value), sizeof value); };
        put(std::int32_t{1 << 20});
        for (const std::string& piece : {std::string("<unk>"), std::string("<s>"), std::string(n_bytes, 'a')}) {
            put(1.0f);
            put(static_cast<std::int32_t>(piece.size()));
            file += piece;
        }
        try {
            static_cast<void>(
                tokenizer_section_from_llama2c(std::as_bytes(std::span(file)), "tokenizer.bin", {.vocab_size = 3}));
            return "";
        } catch (const host::Error& refusal) {
            return refusal.what();
        }
    };
    CHECK(line_of(1024) == "");
    CHECK(line_of(1025) == "tokenizer.bin: token 2 of 3: expected at most 1024 bytes, got 1025");
}

TEST_CASE("a tokenizer.json may have many added tokens, and parts that nobody reads") {
    const std::string golden = golden_text("tokenizer_gpt2.json");
    json file = json::parse(golden);
    file["padding"] = {{"added_tokens", json::array({{{"id", 3}}})}};
    CHECK(section_of(file.dump()) == section_of(golden));
    for (std::uint32_t i = 0; i < 20'000; ++i)
        file["added_tokens"].push_back({{"id", 100'000 + i}, {"content", "<token " + std::to_string(i) + ">"}});
    const OpenedTokenizer tokenizer(file.dump());
    CHECK(tokenizer.tokenize("<token 19999><token 0>", {.add_special = false}) == std::vector<Token>{119'999, 100'000});
    file["added_tokens"] = {{"id", 3}};
    CHECK(refusal_of(file.dump()).find("added_tokens: expected an array") != std::string::npos);
}

TEST_CASE("older spellings of a tokenizer.json give the same section") {
    const std::string text = golden_text("tokenizer_gpt2.json");
    const json file = json::parse(text);
    std::string merges = "[\"#version: 0.2\"";
    for (const json& pair : file["model"]["merges"])
        merges += "," + json(pair[0].get<std::string>() + " " + pair[1].get<std::string>()).dump();
    // Merges as strings, before the vocabulary, and no word on what kind of model this is.
    const std::string model = "{\"merges\":" + merges + "],\"vocab\":" + file["model"]["vocab"].dump() + "}";
    json rest = file;
    rest.erase("model");
    const std::string older = "{\"model\":" + model + "," + rest.dump().substr(1);
    CHECK(section_of(older) == section_of(text));
    json whole = json::parse(golden_text("tokenizer_llama3.json"));
    json& split = whole["pre_tokenizer"]["pretokenizers"][0];
    split["behavior"] = "Removed";
    split["invert"] = true;
    CHECK(section_of(whole.dump()) == section_of(golden_text("tokenizer_llama3.json")));
}

TEST_CASE("a section of any length is refused or usable") {
    std::mt19937 random(2);
    const std::vector<std::byte> section = section_of(golden_text("tokenizer_gaps.json"));
    std::size_t n_opened = 0;
    for (std::size_t n = 0; n < section.size(); ++n) {
        const std::span<const std::byte> part(section.data(), n);
        std::vector<std::byte> exact(part.begin(), part.end());
        Tokenizer tokenizer;
        n_opened += open_tokenizer(exact, tokenizer).ok();
        if (n % 16 == 0) use(part, random);
    }
    CHECK(n_opened < 64);  // only where what is cut off is the padding at the end
    std::vector<std::byte> shifted(section.size() + 1);
    std::memcpy(shifted.data() + 1, section.data(), section.size());
    Tokenizer tokenizer;
    CHECK(open_tokenizer(std::span(shifted).subspan(1), tokenizer).code == Code::misaligned);
    CHECK(open_tokenizer({}, tokenizer).code == Code::section_missing);
    CHECK(!tokenizer.valid());
}

TEST_CASE("a section with any byte of its header, directory or steps changed is refused or usable") {
    std::mt19937 random(3);
    for (const char* name : {"tokenizer_roberta.json", "tokenizer_metaspace.json", "tokenizer_bert.json"}) {
        const std::vector<std::byte> section = section_of(golden_text(name));
        TokenizerHeader header;
        std::memcpy(&header, section.data(), sizeof header);
        std::vector<std::size_t> places;
        const std::size_t directory_end = sizeof header + header.n_tables * sizeof(TokenizerTable);
        for (std::size_t i = 0; i < directory_end; ++i) places.push_back(i);
        for (std::size_t at = sizeof header; at < directory_end; at += sizeof(TokenizerTable)) {
            TokenizerTable table;
            std::memcpy(&table, section.data() + at, sizeof table);
            if (table.kind == static_cast<std::uint32_t>(TokenizerTableKind::steps))
                for (std::size_t i = 0; i < table.bytes; ++i) places.push_back(table.offset + i);
        }
        for (const std::size_t place : places)
            for (const unsigned flip : {0x01u, 0x04u, 0x40u, 0x80u, 0xffu}) {
                std::vector<std::byte> changed = section;
                changed[place] ^= std::byte(flip);
                use(changed, random);
            }
    }
}

TEST_CASE("a section of damaged tables is refused or usable") {
    std::mt19937 random(4);
    for (const char* name :
         {"tokenizer_roberta.json", "tokenizer_llama3.json", "tokenizer_metaspace.json", "tokenizer_bert.json"}) {
        const std::vector<std::byte> section = section_of(golden_text(name));
        for (int round = 0; round < 400; ++round) {
            std::vector<std::byte> changed = section;
            const std::size_t first = round % 2 ? 64 : 512;  // half of them with an intact directory
            for (int n = 1 << random() % 10; n > 0; --n)
                changed[first + random() % (changed.size() - first)] = std::byte(random() % 3 ? random() : 0xff);
            use(changed, random);
        }
    }
}
