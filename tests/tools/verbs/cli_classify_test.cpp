// `classify`, and `encode` of many texts: what they print of golden models, by the numbers that transformers computed.
#include <cctype>
#include <cmath>
#include <cstring>

#include "tests/support/command_line.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

fs::path encoder_folder(const char* name) { return fs::path(FOVEA_GOLDEN_DIR) / "encoders" / name; }

/// A golden folder as a Fovea file, maybe with changes to copies of its files.
class Model {
public:
    explicit Model(const char* name, const std::function<void(const fs::path&)>& change = {}) {
        const fs::path copy = folder_ / "source";
        fs::copy(encoder_folder(name), copy, fs::copy_options::recursive);
        if (change) change(copy);
        path = (folder_ / "model.fovea").string();
        output_of({"convert", copy.string(), "-o", path});
    }
    std::string path;
    [[nodiscard]] std::string file(const char* name, const std::string& text) const {
        write_text(folder_ / name, text);
        return (folder_ / name).string();
    }
    [[nodiscard]] std::string out(const char* name) const { return (folder_ / name).string(); }

private:
    TemporaryFolder folder_;
};

std::vector<float> expected(const char* name, int text) {
    return numbers_of<float>(read_npy((encoder_folder(name) / ("expected_" + std::to_string(text) + ".npy")).string()));
}

std::vector<json> lines_of(const std::string& text) {
    std::vector<json> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
    return lines;
}

TEST_CASE("cli: classify prints each label with its probability, the likeliest first, of texts and pairs") {
    const char* name = "distilbert_sequenceclassification";
    const Model model(name, [](const fs::path& folder) {
        edit_json(folder / "config.json", [](json& config) { config["id2label"]["0"] = "first\nlabel"; });
    });
    const std::vector<json> results = lines_of(
        output_of({"classify", model.path, "--texts", (encoder_folder(name) / "texts.jsonl").string(), "--json"}));
    REQUIRE(results.size() == 3);
    CHECK(results[2].contains("pair"));
    for (int i = 0; i < 3; ++i) {
        const std::vector<float> logits = expected(name, i);
        const json& labels = results[static_cast<std::size_t>(i)]["labels"];
        REQUIRE(labels.size() == logits.size());
        double total = 0, sum = 0, last = 2;
        for (const float logit : logits) total += std::exp(double{logit});
        for (const json& label : labels) {
            const std::string word = label["label"];
            const std::size_t id = word == "first label" ? 0 : std::stoul(word.substr(6));
            CHECK(std::abs(label["logit"].get<double>() - logits[id]) < 1e-4);
            CHECK(std::abs(label["score"].get<double>() - std::exp(double{logits[id]}) / total) < 1e-4);
            CHECK(label["score"].get<double>() <= last);
            last = label["score"];
            sum += last;
        }
        CHECK(std::abs(sum - 1) < 1e-9);
    }
    const std::string one = output_of({"classify", model.path, "-p", "a b", "--pair", "c"});
    CHECK(std::count(one.begin(), one.end(), '\n') == static_cast<std::ptrdiff_t>(expected(name, 0).size()));
    CHECK(contains(one, "  LABEL_1\n"));
    check_refused({"classify", model.path}, 2, "-p or --texts: expected one of them, got neither");
    check_refused({"classify", model.path, "-p", "a", "--pair", "b", "--texts", "x"}, 2,
                  "-p or --pair beside it, got both");
}

TEST_CASE("cli: a reranker's score is of each line beside -p, through a sigmoid unless the model says otherwise") {
    const char* name = "bert_sequenceclassification";
    const auto line = json::parse(read_text(encoder_folder(name) / "texts.jsonl")
                                      .substr(read_text(encoder_folder(name) / "texts.jsonl").rfind("{\"text")));
    const double logit = expected(name, 2).at(0);
    for (const bool cross_encoder : {false, true})
        for (const char* function : {"", "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"}) {
            const Model model(name, [&](const fs::path& folder) {
                if (cross_encoder) {  // as sentence-transformers 6 saves one
                    write_text(folder / "modules.json",
                               R"([{"idx": 0, "name": "0", "path": "", "type": "a.b.Transformer"}])");
                    write_text(folder / "config_sentence_transformers.json", json{{"activation_fn", function}}.dump());
                } else if (*function)
                    edit_json(folder / "config.json",
                              [&](json& config) { config["sentence_transformers"]["activation_fn"] = function; });
            });
            const std::string texts = model.file("texts", line["pair"].get<std::string>() + "\na b\n");
            const std::vector<json> got =
                lines_of(output_of({"classify", model.path, "-p", line["text"], "--texts", texts, "--json"}));
            REQUIRE(got.size() == 2);
            const bool bare = contains(function, "Identity");
            CHECK(std::abs(got[0]["score"].get<double>() - (bare ? logit : 1 / (1 + std::exp(-logit)))) < 1e-4);
            const std::string printed = output_of({"classify", model.path, "-p", line["text"], "--pair", line["pair"]});
            CHECK(std::abs(std::stod(printed) - got[0]["score"].get<double>()) < 1e-6);
        }
}

TEST_CASE("cli: classify labels words, finds answers and fills masks") {
    const Model words("albert_tokenclassification");
    const json labelled = json::parse(output_of({"classify", words.path, "-p", "a b  c", "--json"}));
    REQUIRE(labelled["words"].size() == 3);
    CHECK(labelled["words"][2]["word"] == "c");
    CHECK(labelled["words"][2]["label"].get<std::string>().starts_with("LABEL_"));
    // Words that the tokenizer does not know are words.
    const json unknown = json::parse(output_of({"classify", words.path, "-p", "a Zürich c", "--json"}));
    REQUIRE(unknown["words"].size() == 3);
    CHECK(unknown["words"][1]["word"] == "Zürich");
    CHECK(unknown["words"][2]["word"] == "c");

    const char* name = "xlm_roberta_questionanswering";
    const Model answers(name);
    const auto pair = json::parse(read_text(encoder_folder(name) / "texts.jsonl")
                                      .substr(read_text(encoder_folder(name) / "texts.jsonl").rfind("{\"text")));
    const json answer =
        json::parse(output_of({"classify", answers.path, "-p", pair["text"], "--pair", pair["pair"], "--json"}));
    const std::vector<float> logits = expected(name, 2);  // [tokens][start, end], the pair's before the last [SEP]
    const std::size_t n = (pair["pair"].get<std::string>().size() + 1) / 2, first = logits.size() / 2 - 1 - n;
    // No answer, which [CLS] stands for, has its share (Devlin et al. 2019, section 4.3).
    double best = -1e30, starts = std::exp(double{logits[0]}), ends = std::exp(double{logits[1]});
    const double none = logits[0] + double{logits[1]};
    std::size_t begin = 0, end = 0;
    for (std::size_t i = 0; i < n; ++i) {
        starts += std::exp(double{logits[2 * (first + i)]}), ends += std::exp(double{logits[2 * (first + i) + 1]});
        for (std::size_t j = i; j < n; ++j)
            if (const double score = logits[2 * (first + i)] + double{logits[2 * (first + j) + 1]}; score > best)
                best = score, begin = i, end = j + 1;
    }
    CHECK(answer["answer"] == pair["pair"].get<std::string>().substr(2 * begin, 2 * (end - begin) - 1));
    CHECK(std::abs(answer["score"].get<double>() - std::exp(best) / starts / ends) < 1e-4);
    CHECK(std::abs(answer["no_answer"].get<double>() - std::exp(none) / starts / ends) < 1e-4);
    check_refused({"classify", answers.path, "-p", "a"}, 2, "--pair: expected the text to find the answer in");
    // An answer is a part of the text as it was given: capitals, accents, words that the tokenizer does not know, and all of a word.
    for (const std::string text : {"\u00c9 \u00fc A b", "a  cat b dog", "A\tB (c) D.", "b", "dogs ab cd \u6f22"}) {
        CAPTURE(text);
        for (const char* question : {"a", "b c", "d a b"}) {
            const json found = json::parse(output_of(
                {"classify", answers.path, "-p", question, "--pair", text, "--json", "--answer-tokens", "2"}));
            const std::string part = found["answer"];
            const std::size_t at = text.find(part);
            REQUIRE(at != text.npos);
            CHECK(!part.empty());
            const auto is_letter = [&](std::size_t i) {
                return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
            };
            const std::size_t end = at + part.size();
            CHECK_FALSE((at > 0 && is_letter(at - 1) && is_letter(at)));
            CHECK_FALSE((is_letter(end - 1) && is_letter(end)));
        }
    }

    const Model masked("electra_maskedlm");
    const json filled =
        json::parse(output_of({"classify", masked.path, "-p", "a [MASK] b [MASK]", "--top", "3", "--json"}));
    REQUIRE(filled["masks"].size() == 2);
    CHECK(filled["masks"][0].size() == 3);
    CHECK(filled["masks"][0][0]["score"].get<double>() >= filled["masks"][0][1]["score"].get<double>());
    check_refused({"classify", masked.path, "-p", "a b"}, 1, "expected the model's mask ([MASK] or <mask>)");
}

TEST_CASE("cli: encode gives a head's model's vectors, with --head its logits; a model without a head has no classes") {
    const Model model("bert_sequenceclassification"), plain("t5_model");
    output_of({"encode", model.path, "-p", "a b", "-o", model.out("v.npy")});
    output_of({"encode", model.path, "-p", "a b", "--head", "-o", model.out("h.npy")});
    CHECK(read_npy(model.out("v.npy")).shape == std::vector<std::uint64_t>{12});
    CHECK(read_npy(model.out("h.npy")).shape == std::vector<std::uint64_t>{1});
    check_refused({"classify", plain.path, "-p", "a"}, 1, "expected an encoder with a head");
    const DemoFile demo;
    check_refused({"classify", demo.path, "-p", "a"}, 1, "expected an encoder with a head");
}

TEST_CASE("cli: of a pair that is too long the longer text is cut, and of two the second has the odd token") {
    const Model model("bert_sequenceclassification", [](const fs::path& folder) {
        write_text(folder / "sentence_bert_config.json",
                   R"({"max_seq_length": 14})");  // 11 beside the template's three
    });
    const auto words = [](const char* word, int n) {
        std::string text = word;
        for (int i = 1; i < n; ++i) text += std::string(" ") + word;
        return text;
    };
    const auto scores = [&](int n_first, int n_second) {
        const Ran ran =
            run_fovea({"classify", model.path, "-p", words("a", n_first), "--pair", words("b", n_second), "--json"});
        CHECK(ran.status == 0);
        json answer = json::parse(ran.out);
        return answer["labels"].dump() + answer["scores"].dump();
    };
    CHECK(scores(10, 10) == scores(5, 6));
    CHECK(scores(8, 10) == scores(5, 6));
    CHECK(scores(10, 8) == scores(6, 5));
    CHECK(scores(4, 10) == scores(4, 7));
    CHECK(scores(10, 3) == scores(8, 3));
    CHECK(scores(5, 6) != scores(6, 5));
}

TEST_CASE("cli: encode takes any number of texts with the memory of a batch, and each vector is the text's alone") {
    const Model model("bert_sentence", [](const fs::path& folder) {
        write_text(folder / "sentence_bert_config.json", R"({"max_seq_length": 12, "do_lower_case": false})");
    });
    std::string few, many;
    for (int i = 0; i < 4000; ++i) {
        std::string line = "the lamp";
        for (int k = 0; k < i % 7; ++k) line += " is on";
        many += line + "\n";
        if (i < 1000) few += line + "\n";
    }
    const auto arena = [&](const std::string& texts) {
        const Ran ran = run_fovea(
            {"encode", model.path, "--texts", model.file("texts", texts), "--json", "-o", model.out("y.npy")});
        CHECK(ran.status == 0);
        CHECK(contains(ran.err, "texts have more than 12 tokens and are cut, the first on line 6"));
        return json::parse(ran.out)["arena_bytes"].get<std::uint64_t>();
    };
    const std::uint64_t wanted = arena(few);
    CHECK(arena(many) == wanted);
    const Ran with_returns = run_fovea({"encode", model.path, "--texts", model.file("crlf", "the lamp\r\nis on\r\n"),
                                        "-o", model.out("crlf.npy")}),
              without = run_fovea(
                  {"encode", model.path, "--texts", model.file("lf", "the lamp\nis on\n"), "-o", model.out("lf.npy")});
    CHECK(with_returns.status + without.status == 0);
    CHECK(read_text(model.out("crlf.npy")) == read_text(model.out("lf.npy")));
    const NpyArray all = read_npy(model.out("y.npy"));
    CHECK(all.shape == std::vector<std::uint64_t>{4000, 36});
    const Ran one = run_fovea({"encode", model.path, "-p", "the lamp is on is on is on", "-o", model.out("one.npy")});
    CHECK(one.err == "");
    CHECK(std::memcmp(read_npy(model.out("one.npy")).data.data(), all.data.data() + 3 * 36 * 4, 36 * 4) == 0);
    CHECK(contains(
        run_fovea({"encode", model.path, "-p", "the lamp is on is on is on is on is on", "-o", model.out("z.npy")}).err,
        "note: the text has 14 tokens and is cut to 12\n"));
}

}  // namespace
}  // namespace fovea::testing
