// `run` with models that write one text from another: texts of transformers' generate, languages, and what is refused.
#include <algorithm>
#include <sstream>

#include "tests/support/command_line.h"

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
            CHECK(output_of(translator.command(options)) == pair[1].get<std::string>() + "\n");
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

TEST_CASE("cli: run reads a source that is too long in parts, says so, and writes what it writes of each") {
    const Translator translator("marian");
    const std::string lamp = "The lamp in the hall is on.";
    std::string text = lamp;
    for (int i = 0; i < 4; ++i) text += " " + lamp;
    const Ran ran = run_fovea(translator.command({"-p", text, "--beams", "1", "--json"}));
    CHECK(ran.status == 0);
    CHECK(contains(ran.err, " parts: the model reads at most 32 tokens at once\n"));
    const json whole = json::parse(ran.out);
    REQUIRE(whole["n_parts"].get<int>() > 1);
    std::vector<Token> tokens;
    std::string joined;
    const std::size_t n = whole["n_parts"];
    for (std::size_t i = 0, left = 5; i < n; ++i) {
        std::string part = lamp;  // as many sentences as fit
        for (std::size_t k = 1; k < std::min<std::size_t>(left, (5 + n - 1) / n); ++k) part += " " + lamp;
        left -= std::min<std::size_t>(left, (5 + n - 1) / n);
        const json one = json::parse(output_of(translator.command({"-p", part, "--beams", "1", "--json"})));
        CHECK(!one.contains("n_parts"));
        for (const json& token : one["tokens"]) tokens.push_back(token);
        const std::string written = one["text"];
        joined += (joined.empty() || written.starts_with(' ') ? "" : " ") + written;
    }
    CHECK(whole["tokens"] == tokens);
    CHECK(whole["text"] == joined);
    // In a word without an end.
    CHECK(json::parse(output_of(translator.command({"-p", std::string(200, 'a'), "--json"})))["n_parts"].get<int>() >
          1);
}

TEST_CASE("cli: run gives a line for each line of a file, whatever stands in one") {
    const Translator translator("m2m_100");
    const auto line_of = [&](const std::string& text) {
        return output_of(translator.command({"-p", text, "--to", "de", "--beams", "1", "--quiet"}));
    };
    std::string long_one;
    for (int i = 0; i < 30; ++i) long_one += "The lamp in the hall is on. ";
    const std::string path = (translator.folder / "lines.txt").string();
    write_text(path, "The lamp is on.\n\n" + long_one + "\nA hall.\r\n");
    const std::string expected = line_of("The lamp is on.") + "\n" + line_of(long_one) + line_of("A hall.");
    const std::vector<std::string> asked{"--to", "German", "--beams", "1", "--quiet"};
    for (const std::vector<std::string>& from : {std::vector<std::string>{"-f", path}, {"-p", "@" + path}}) {
        std::vector<std::string> all = asked;
        all.insert(all.end(), from.begin(), from.end());
        CHECK(output_of(translator.command(all)) == expected);
    }
    std::istringstream objects(output_of(translator.command({"-f", path, "--to", "de-DE", "--beams", "1", "--json"})));
    std::vector<json> each;
    for (std::string line; std::getline(objects, line);) each.push_back(json::parse(line));
    REQUIRE(each.size() == 4);
    CHECK(each[1]["text"] == "");
    CHECK(each[2]["n_parts"].get<int>() > 1);
    CHECK(each[3]["text"].get<std::string>() + "\n" == line_of("A hall."));
}

TEST_CASE("cli: run --batch reads a source that is too long in parts, too") {
    const Translator translator("marian");
    std::string text = "The lamp in the hall is on.";
    for (int i = 0; i < 3; ++i) text += " " + text;
    const std::string in = (translator.folder / "in.jsonl").string();
    write_text(in, json{{"prompt", "A hall."}}.dump() + "\n" + json{{"prompt", text}}.dump() + "\n" +
                       json{{"prompt", "A lamp."}}.dump() + "\n");
    for (const char* n : {"1", "4"}) {
        const Ran ran = run_fovea(translator.command({"--batch", in, "--sequences", n}));
        CHECK(ran.status == 0);
        CHECK(contains(ran.err, "note: 1 source read in parts: the model reads at most 32 tokens at once\n"));
        std::istringstream answers(ran.out);
        std::vector<json> all;
        for (std::string line; std::getline(answers, line);) all.push_back(json::parse(line));
        REQUIRE(all.size() == 3);
        const json alone = json::parse(output_of(translator.command({"-p", text, "--beams", "1", "--json"})));
        for (const char* field : {"text", "finish", "n_parts", "n_tokens", "n_prompt_tokens"})
            CHECK(all[1][field] == alone[field]);
        CHECK(!all[0].contains("n_parts"));
    }
}

TEST_CASE("cli: run takes languages as people write them") {
    const Translator marian("marian"), m2m("m2m_100");
    const auto written = [](const Translator& translator, const std::string& to) {
        return output_of(translator.command({"-p", "The lamp is on.", "--to", to, "--beams", "1", "--quiet"}));
    };
    for (const char* to : {"deu", "German", "DE", "ger"}) CHECK(written(marian, to) == written(marian, ">>deu<<"));
    for (const char* to : {"fr", "FRENCH", "fr-CA", "fra"}) CHECK(written(m2m, to) == written(m2m, "__fr__"));
    CHECK(written(m2m, "German") != written(m2m, "French"));
}

/// Requests of all kinds, and the options that have `run` write the same alone.
std::vector<std::pair<json, std::vector<std::string>>> requests_of(const Translator& translator) {
    std::vector<std::pair<json, std::vector<std::string>>> all;
    for (const json& pair : translator.expected["written"]) {
        auto options = pair[0].get<std::vector<std::string>>();
        if (options[options.size() - 2] != "--beams") continue;
        options.resize(options.size() - 2);  // all are written by one
        json request;
        for (std::size_t i = 0; i < options.size(); i += 2)
            request[options[i] == "-p" ? "prompt" : options[i].substr(2)] = options[i + 1];
        all.emplace_back(request, options);
    }
    const std::string text = translator.expected["written"][0][0][1];
    all.push_back({{{"prompt", text}, {"max_tokens", 3}}, {"-p", text, "-n", "3"}});
    all.push_back({{{"prompt", text}, {"max_tokens", 0}}, {"-p", text, "-n", "0"}});
    all.push_back(
        {{{"prompt", text}, {"temperature", 1.5}, {"seed", 4}}, {"-p", text, "--temp", "1.5", "--seed", "4"}});
    all.push_back({{{"prompt", "a"}}, {"-p", "a"}});
    all.push_back({{{"prompt", text}}, {"-p", text}});
    const json& ids = translator.expected["ids"][3][1];
    std::string list;
    for (const json& id : ids) list += (list.empty() ? "" : ",") + id.dump();
    all.push_back({{{"prompt", ids}}, {"--tokens", list}});
    return all;
}

TEST_CASE("cli: run --batch writes each text as it is written alone, whatever is computed beside it") {
    for (const char* name : {"marian", "m2m_100"}) {
        CAPTURE(name);
        const Translator translator(name);
        auto requests = requests_of(translator);
        std::vector<json> alone;
        for (const auto& [request, options] : requests) {
            std::vector<std::string> more = options;
            more.insert(more.end(), {"--json", "--beams", "1"});  // as all that are computed together
            alone.push_back(json::parse(output_of(translator.command(more))));
        }
        const std::string in = (translator.folder / "in.jsonl").string();
        for (const char* n : {"1", "2", "5", "64"}) {
            CAPTURE(n);
            std::rotate(requests.begin(), requests.begin() + 2, requests.end());
            std::rotate(alone.begin(), alone.begin() + 2, alone.end());
            std::string lines;
            for (int times = 0; times < 3; ++times)
                for (const auto& [request, options] : requests) lines += request.dump() + "\n";
            write_text(in, lines);
            std::istringstream answers(output_of(translator.command({"--batch", in, "--sequences", n, "--quiet"})));
            std::size_t i = 0;
            for (std::string line; std::getline(answers, line); ++i) {
                CAPTURE(i);
                const json answer = json::parse(line), &one = alone[i % alone.size()];
                for (const char* field : {"text", "finish", "n_tokens", "n_prompt_tokens"})
                    CHECK(answer[field] == one[field]);
            }
            CHECK(i == 3 * requests.size());
        }
    }
}

TEST_CASE("cli: run --batch of translations goes on where it was stopped, and takes languages from its options") {
    const Translator translator("m2m_100");
    const std::string in = (translator.folder / "in.jsonl").string(), out = (translator.folder / "out.jsonl").string();
    write_text(in, R"({"prompt": "The lamp in the hall is on."}
{"prompt": "The lamp in the hall is on.", "to": "fr"}
)");
    const auto command = translator.command({"--batch", in, "-o", out, "--to", "de", "--quiet"});
    output_of(command);
    const std::string whole = read_text(out);
    const json first = json::parse(whole.substr(0, whole.find('\n')));
    std::string text = first["text"];
    text.erase(0, text.find_first_not_of(' '));
    CHECK(text == translator.expected["written"][1][1].get<std::string>());  // by one beam
    CHECK(json::parse(whole.substr(whole.find('\n') + 1))["text"] != first["text"]);
    for (const std::size_t n : {std::size_t{0}, whole.size() / 3, whole.size() - 3, whole.size()}) {
        write_text(out, whole.substr(0, n));
        output_of(command);
        CHECK(read_text(out) == whole);
    }
    check_refused(translator.command({"--batch", in, "-o", out, "--to", "fr"}), 1, "out.jsonl: line 1");
    const auto refused = [&](const std::string& line, const char* words) {
        write_text(in, line + "\n");
        check_refused(translator.command({"--batch", in}), 1, words);
    };
    refused(R"({"prompt": "a", "to": "xx"})", "in.jsonl: line 1: to: expected one of the model's 100 languages");
    refused(R"({"prompt": "a", "regex": "b"})", "in.jsonl: line 1: regex: expected none, for");
    refused(R"({"messages": [{"role": "user", "content": "a"}]})", "in.jsonl: line 1: messages: expected a model that");
    refused(R"({"prompt": [999999]})", "in.jsonl: line 1: prompt: expected token ids below ");
    write_text(in, R"({"prompt": "a", "to": "fr"})");
    check_refused({"run", "--batch", in}, 1, "in.jsonl: line 1: to: expected a model that writes a text from a text");
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
    check_refused(marian.command({"--beams", "2", "--batch", "in.jsonl"}), 2,
                  "--beams: expected 1 beside --batch, got 2");
    check_refused({"run", "--beams", "2", "-p", "a"}, 2, "--beams: expected a model that writes one text from another");
    check_refused({"run", "--to", "fr", "-p", "a"}, 2, "--from, --to: expected a model that translates");
}

}  // namespace
}  // namespace fovea::testing
