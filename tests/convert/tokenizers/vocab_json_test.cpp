// A vocab.json and a merges.txt give the ids that the tokenizers package gives of the tokenizer.json that says the same.
#include <doctest/doctest.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "convert/tokenizers/tokenizer_file.h"
#include "host/base/error.h"
#include "tests/support/opened_tokenizer.h"
#include "tests/support/sanitized.h"

using namespace fovea;
using namespace fovea::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// A golden tokenizer.json's parts, as the folders of older models hold them.
class Parts {
public:
    Parts(const std::string& kind, const json& config)
        : whole_(json::parse(golden_text("tokenizer_" + kind + ".json"))) {
        fs::create_directories(folder_);
        write("vocab.json", whole_["model"]["vocab"].dump());
        std::string merges = "#version: 0.2\n";
        for (const json& pair : whole_["model"]["merges"])
            merges += pair[0].get<std::string>() + " " + pair[1].get<std::string>() + "\n";
        write("merges.txt", merges);
        json all = config;
        for (const json& token : whole_["added_tokens"]) all["added_tokens_decoder"][token["id"].dump()] = token;
        write("tokenizer_config.json", all.dump());
    }
    ~Parts() { fs::remove_all(folder_); }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    void write(const char* name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
    [[nodiscard]] std::vector<std::byte> section() const {
        std::vector<std::string> notes;
        return tokenizer_section_from_file(folder_ / "vocab.json", {.vocab_size = 1u << 20}, notes);
    }
    [[nodiscard]] std::string refusal() const {
        try {
            (void)section();
        } catch (const host::Error& refusal) {
            return refusal.what();
        }
        return "";
    }

private:
    const fs::path folder_ = fs::temp_directory_path() / ("fovea-vocab-json-" + std::to_string(::getpid()));
    const json whole_;
};

}  // namespace

TEST_CASE("vocab.json: the ids of the tokenizer.json that says the same") {
    const std::pair<const char*, json> kinds[] = {
        {"gpt2", {{"tokenizer_class", "GPT2Tokenizer"}, {"bos_token", "<|end|>"}}},
        {"roberta",
         {{"tokenizer_class", "RobertaTokenizerFast"},
          {"add_prefix_space", true},
          {"cls_token", {{"content", "<s>"}}},
          {"sep_token", "</s>"}}},
        {"qwen2", {{"tokenizer_class", "Qwen2Tokenizer"}}}};
    const json texts = json::parse(golden_text("tokenizer_texts.json"));
    for (const auto& one : kinds) {
        const std::string kind = one.first;
        CAPTURE(kind);
        const Parts parts(kind, one.second);
        const OpenedTokenizer tokenizer(parts.section());
        const json expected = json::parse(golden_text("tokenizer_" + kind + "_expected.json"));
        for (std::size_t i = 0; i < texts["mixed"].size(); ++i) {
            CAPTURE(texts["mixed"][i].dump());
            CHECK(tokenizer.tokenize(texts["mixed"][i].get<std::string>(), {true, true}) ==
                  expected["mixed"][i].get<std::vector<Token>>());
        }
    }
}

TEST_CASE("vocab.json: a start token where the configuration adds one, as OPT's does") {
    const Parts parts("gpt2",
                      {{"tokenizer_class", "GPT2Tokenizer"}, {"bos_token", "<|end|>"}, {"add_bos_token", true}});
    const OpenedTokenizer tokenizer(parts.section());
    const std::vector<Token> with = tokenizer.tokenize("the lamp", {}),
                             without = tokenizer.tokenize("the lamp", {false});
    REQUIRE(with.size() == without.size() + 1);
    CHECK(with[0] == 0);
    CHECK(tokenizer.tokenizer().adds_bos());
}

TEST_CASE("vocab.json: whose words they are, by the model where the tokenizer does not say") {
    const json texts = json::parse(golden_text("tokenizer_texts.json"));
    const json expected = json::parse(golden_text("tokenizer_roberta_expected.json"));
    const std::string text = texts["mixed"][5].get<std::string>();
    const Parts parts("roberta", {{"add_prefix_space", true}});
    const auto ids = [&] { return OpenedTokenizer(parts.section()).tokenize(text, {true, true}); };
    CHECK(ids() != expected["mixed"][5].get<std::vector<Token>>());
    parts.write("config.json", R"({"model_type": "roberta"})");
    CHECK(ids() == expected["mixed"][5].get<std::vector<Token>>());
    parts.write("config.json", R"({"model_type": "bert", "tokenizer_class": "RobertaTokenizerFast"})");
    CHECK(ids() == expected["mixed"][5].get<std::vector<Token>>());
    parts.write("config.json", R"({"model_type": "bert", "tokenizer_class": "HerbertTokenizerFast"})");
    CHECK(parts.refusal().find("got HerbertTokenizer") != std::string::npos);
}

TEST_CASE("vocab.json: an end beside the start, and no start that has no name") {
    const Parts parts("gpt2", {{"tokenizer_class", "GPT2Tokenizer"},
                               {"bos_token", "<|end|>"},
                               {"eos_token", "<|end|>"},
                               {"add_bos_token", true},
                               {"add_eos_token", true}});
    const std::vector<Token> ids = OpenedTokenizer(parts.section()).tokenize("the lamp", {});
    CHECK(ids.front() == 0);
    CHECK(ids.back() == 0);
    const Parts qwen("qwen2", {{"tokenizer_class", "Qwen2Tokenizer"}, {"add_bos_token", true}});
    CHECK(!OpenedTokenizer(qwen.section()).tokenizer().adds_bos());
}

TEST_CASE("vocab.json: a hundred thousand added tokens take no minutes, and odd ids are left alone" *
          doctest::skip(kSanitized)) {
    const Parts parts("gpt2", {{"tokenizer_class", "GPT2Tokenizer"},
                               {"added_tokens_decoder", {{"", {{"content", "x"}}}, {"-1", {{"content", "y"}}}}}});
    json more = json::object();
    for (int i = 0; i < 100000; ++i) more["<" + std::to_string(i) + ">"] = 2000 + i;
    parts.write("added_tokens.json", more.dump());
    CHECK(OpenedTokenizer(parts.section()).tokenize("<99999>", {}) == std::vector<Token>{101999});
}

TEST_CASE("vocab.json: what cannot be read is refused by name") {
    const auto refuses = [](const json& config, const std::function<void(const Parts&)>& change, const char* words) {
        const Parts parts("roberta", config);
        change(parts);
        const std::string line = parts.refusal();
        CAPTURE(line);
        CHECK(line.find(words) != std::string::npos);
    };
    const json roberta = {{"tokenizer_class", "RobertaTokenizer"}};
    refuses(
        {{"tokenizer_class", "BlenderbotTokenizer"}}, [](const Parts&) {},
        "vocab.json: tokenizer_class: expected one of GPT2Tokenizer");
    refuses(
        roberta, [](const Parts& p) { p.write("merges.txt", "a b\nabc\n"); },
        "merges.txt: line 2: expected two tokens with a space between, got abc");
    refuses(
        roberta, [](const Parts& p) { p.write("merges.txt", "a b c\n"); }, "merges.txt: line 1");
    refuses(
        roberta, [](const Parts& p) { p.write("vocab.json", "[1]"); }, "vocab.json: expected a JSON object");
    refuses(
        roberta, [](const Parts& p) { p.write("vocab.json", R"({"a": 0, "b": 1})"); }, "vocab.json");
    refuses(
        roberta, [](const Parts& p) { p.write("vocab.json", R"({"a": "x"})"); }, "vocab.json");
    refuses(
        {{"tokenizer_class", "RobertaTokenizer"}, {"cls_token", "<none>"}}, [](const Parts&) {},
        "vocab.json: expected the cls_token <none>, got none");
}
