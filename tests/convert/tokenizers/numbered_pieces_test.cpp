// Tokenizers of a SentencePiece model and a vocab.json beside it: ids and texts are those of transformers' own classes
// (golden/make_numbered_pieces.py), and files that do not fit are refused.
#include "convert/tokenizers/numbered_pieces.h"
#include "host/base/json.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <functional>

#include "convert/tokenizers/tokenizer_file.h"
#include "host/base/error.h"
#include "tests/support/opened_tokenizer.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kVocab = 900;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// A model's folder: the golden's files, and the SentencePiece model under the name that it has there.
class Folder {
public:
    explicit Folder(const std::string& name) {
        const fs::path golden = FOVEA_GOLDEN_DIR;
        fs::remove_all(path_);
        fs::copy(golden / "numbered_pieces" / name, path_);
        const bool is_marian = name == "marian";
        fs::copy_file(golden / (is_marian ? "spm_unigram.model" : "spm_bpe.model"),
                      path_ / (is_marian ? "source.spm" : "sentencepiece.bpe.model"));
        expected = read("expected.json");
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] SortedJson read(const char* name) const { return SortedJson::parse(read_text(path_ / name)); }
    void write(const char* name, const SortedJson& json) const { std::ofstream(path_ / name) << json.dump(); }
    void remove(const char* name) const { fs::remove(path_ / name); }
    [[nodiscard]] std::vector<std::byte> section(std::vector<std::string>& notes) const {
        return tokenizer_section_from_file(path_ / "vocab.json", {.vocab_size = kVocab, .eos = {}}, notes);
    }

    SortedJson expected;

private:
    const fs::path path_ = fs::temp_directory_path() / ("fovea-numbered-" + std::to_string(::getpid()));
};

/// What a folder's tokenizer is refused with after a change of its vocab.json.
std::string line_of(const char* name, const std::function<void(SortedJson&)>& edit) {
    const Folder folder(name);
    SortedJson vocabulary = folder.read("vocab.json");
    edit(vocabulary);
    folder.write("vocab.json", vocabulary);
    std::vector<std::string> notes;
    try {
        static_cast<void>(folder.section(notes));
    } catch (const host::Error& refusal) {
        return refusal.what();
    }
    return "";
}

}  // namespace

TEST_CASE("numbered pieces: ids and texts are those of transformers' classes") {
    for (const char* name : {"marian", "m2m_100"}) {
        CAPTURE(name);
        const Folder folder(name);
        std::vector<std::string> notes;
        const OpenedTokenizer opened(folder.section(notes));
        CHECK(notes.empty());
        std::size_t n = 0;
        for (const SortedJson& pair : folder.expected["ids"]) {
            const auto text = pair[0].get<std::string>();
            CAPTURE(text);
            CHECK(opened.tokenize(text, {}) == pair[1].get<std::vector<Token>>());
            ++n;
        }
        for (const SortedJson& pair : folder.expected["texts"]) {
            const auto ids = pair[0].get<std::vector<Token>>();
            // transformers strips texts.
            std::string text = opened.decode(ids, false);
            text.erase(0, text.find_first_not_of(' '));
            text.erase(text.find_last_not_of(' ') + 1);
            CHECK(text == pair[1].get<std::string>());
            ++n;
        }
        CHECK(n >= 60);
    }
}

TEST_CASE("numbered pieces: a language comes before the text, the one that the folder says or English") {
    const Folder folder("m2m_100");
    std::vector<std::string> notes;
    const auto first = [&] { return OpenedTokenizer(folder.section(notes)).tokenize("a", {}).front(); };
    const SortedJson vocabulary = folder.read("vocab.json");
    const Token french = first();
    CHECK(french == vocabulary.size() + 24);
    folder.remove("tokenizer_config.json");
    CHECK(first() == vocabulary.size() + 18);
    // Numbered ones go by their numbers.
    folder.write("tokenizer_config.json", SortedJson::parse(R"({"added_tokens_decoder": {"890": {"content": "__en__"},
                                                                                   "891": {"content": "__xy__"}}})"));
    CHECK(first() == 890);
}

TEST_CASE("numbered pieces: pieces without a number are left out, with a note; bad numbers are refused") {
    const Folder folder("marian");
    std::vector<std::string> notes;
    SortedJson vocabulary = folder.read("vocab.json");
    std::string gone;
    for (const auto& [name, id] : vocabulary.items())
        if (id == 20) gone = name;
    vocabulary.erase(gone);
    folder.write("vocab.json", vocabulary);
    const OpenedTokenizer opened(folder.section(notes));
    REQUIRE(notes.size() == 1);
    CHECK(contains(notes[0], "source.spm: 1 pieces are not in vocab.json"));

    CHECK(contains(line_of("marian", [](SortedJson& json) { json["</s>"] = kVocab; }),
                   "</s>: expected an id below the model's vocab_size, 900, got 900"));
    CHECK(contains(line_of("marian", [](SortedJson& json) { json["</s>"] = "0"; }), "</s>: expected an id below"));
    CHECK(
        contains(line_of("marian", [](SortedJson& json) { json["another"] = 0; }), "expected an id of its own, got 0"));
    CHECK(
        contains(line_of("marian", [](SortedJson& json) { json.erase("<unk>"); }), "expected a token <unk>, got none"));
    CHECK(contains(line_of("marian", [](SortedJson& json) { json.erase("</s>"); }), "expected a token </s>, got none"));
}
