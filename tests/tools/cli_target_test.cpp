// `run` with models that write one text from another: texts of transformers' generate, languages, and what is refused.
#include "command_line.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

/// A folder of golden/numbered_pieces with its SentencePiece model, and the file that it becomes.
struct Translator {
    TemporaryFolder folder;
    std::string model = (folder / "translator.fovea").string();
    json expected;

    explicit Translator(const std::string& name) {
        const fs::path golden = FOVEA_GOLDEN_DIR;
        fs::copy(golden / "numbered_pieces" / name, folder / "model");
        const bool is_marian = name == "marian";
        fs::copy_file(golden / (is_marian ? "spm_unigram.model" : "spm_bpe.model"),
                      folder / "model" / (is_marian ? "source.spm" : "sentencepiece.bpe.model"));
        expected = json::parse(read_text(folder / "model/expected.json"));
        output_of({"convert", (folder / "model").string(), "-o", model, "--type", "f32"});
    }
    [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& more) const {
        std::vector<std::string> all{"run", model};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
};

TEST_CASE("cli: run translates as transformers does, into the language that is asked for") {
    for (const char* name : {"marian", "m2m_100"}) {
        CAPTURE(name);
        const Translator translator(name);
        REQUIRE(translator.expected["written"].size() == 6);  // by four beams, as the models say, and greedily
        for (const json& pair : translator.expected["written"]) {
            const auto options = pair[0].get<std::vector<std::string>>();
            std::string text = output_of(translator.command(options));
            text.erase(0, text.find_first_not_of(' '));  // transformers strips texts
            CHECK(text == pair[1].get<std::string>() + "\n");
        }
    }
}

TEST_CASE("cli: run says in JSON what a target is, and -n ends it sooner") {
    const Translator translator("marian");
    const std::vector<std::string> source{"-p", "The lamp in the hall is on."};
    const auto asked = [&](std::vector<std::string> more) {
        more.insert(more.end(), source.begin(), source.end());
        more.insert(more.end(), {"--json", "--beams", "1"});
        return json::parse(output_of(translator.command(more)));
    };
    const json whole = asked({}), part = asked({"-n", "3"});
    CHECK(whole["finish"] == "length");
    CHECK(whole["n_tokens"] == whole["tokens"].size());
    CHECK(whole["n_prompt_tokens"] == translator.expected["ids"][0][1].size());
    for (const char* field :
         {"tokens_per_second", "prefill_tokens_per_second", "arena_bytes", "file_bytes", "n_threads"})
        CHECK(whole.contains(field));
    REQUIRE(part["tokens"].size() == 3);
    for (int i = 0; i < 3; ++i) CHECK(part["tokens"][i] == whole["tokens"][i]);
    // Ids in place of the text.
    std::string ids;
    for (const json& id : translator.expected["ids"][0][1]) ids += (ids.empty() ? "" : ",") + id.dump();
    const json of_ids = json::parse(output_of(translator.command({"--tokens", ids, "--json", "--beams", "1"})));
    CHECK(of_ids["tokens"] == whole["tokens"]);
}

TEST_CASE("cli: run searches with as many beams as the model says, or as are asked for") {
    const Translator translator("marian");
    const auto asked = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"-p", "The lamp in the hall is on.", "--json"});
        return json::parse(output_of(translator.command(more)));
    };
    const json own = asked({}), four = asked({"--beams", "4"}), one = asked({"--beams", "1"}),
               two = asked({"--beams", "2"});
    CHECK(own["tokens"] == four["tokens"]);
    CHECK(own["score"] == four["score"]);
    CHECK(own["score"].get<double>() < 0);
    CHECK(own["arena_bytes"] == four["arena_bytes"]);
    CHECK(two["arena_bytes"] < own["arena_bytes"]);
    CHECK(!one.contains("score"));
    CHECK(one["tokens"] != own["tokens"]);
    // Sampling, and what decides token by token, has one beam.
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--top-k", "1"}, {"--speculate", "2"}, {"--stop", "no such text"}}) {
        const json made = asked(more);
        CHECK(!made.contains("score"));
        CHECK(made["tokens"] == one["tokens"]);
    }
    CHECK(asked({"-n", "3"})["tokens"].size() == 3);
    CHECK(asked({"-n", "3"})["finish"] == "length");
    CHECK(asked({"-n", "0"})["tokens"].empty());
}

TEST_CASE("cli: run refuses what models of two stacks have not, and languages that they do not know") {
    const Translator marian("marian"), m2m("m2m_100");
    const auto refused = [](const Translator& translator, std::vector<std::string> more, int status,
                            const char* words) {
        more.insert(more.begin(), {"-p", "a"});
        check_refused(translator.command(more), status, words);
    };
    refused(marian, {"--to", "ita"}, 2,
            "--to: expected one of the model's 2 languages, such as >>fra<<, >>deu<<, got ita");
    refused(marian, {"--from", "fra"}, 2, "--from: expected a model that is told the source's language");
    refused(m2m, {"--to", "__xx__"}, 2, "--to: expected one of the model's 100 languages, such as __af__");
    refused(m2m, {"--to", "the"}, 2, "--to: expected one of the model's 100 languages");
    refused(marian, {"--session", "x"}, 2, "--session: expected a model that continues its prompt");
    refused(marian, {"--context", "20"}, 2, "--context: expected a model that continues its prompt");
    refused(marian, {"--regex", "a"}, 2, "a form of answers: expected a model that continues its prompt");
    refused(marian, {"--beams", "3", "--temp", "1"}, 2, "--beams: expected 1 beside options of sampling, got 3");
    refused(marian, {"--beams", "3", "--stop", "x"}, 2, "--beams: expected 1 beside --stop, got 3");
    refused(marian, {"--beams", "3", "--speculate", "2"}, 2, "--beams: expected 1 beside --speculate, got 3");
    refused(marian, {"--beams", "65"}, 2, "--beams");
    check_refused({"run", "--beams", "2", "-p", "a"}, 2, "--beams: expected a model that writes one text from another");
    const std::string lamps(40 * 5, 'a');
    check_refused(marian.command({"-p", lamps}), 1,
                  "prompt: expected at most 32 tokens, as many as the model reads at once");
    check_refused({"run", "--to", "fr", "-p", "a"}, 2, "--from, --to: expected a model that translates");
}

}  // namespace
}  // namespace fovea::testing
