// Late interaction: vectors of tokens and scores of documents beside sentence-transformers' and the paper's, by the library and
// the command line.
#include <doctest/doctest.h>

#include <cmath>

#include "host/model/late_interaction.h"
#include "tests/support/command_line.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

const fs::path kLate = fs::path(FOVEA_GOLDEN_DIR) / "late";
constexpr const char* kModels[] = {"native", "pylate", "stanford", "m3"};

struct Late {
    TemporaryFolder folder;
    ConvertOptions options;
    json expected;

    explicit Late(const std::string& name) : expected(json::parse(read_text(kLate / name / "expected.json"))) {
        fs::copy(kLate / name, folder / "m", fs::copy_options::recursive);
        options.source = folder / "m", options.output = folder / "m.fovea";
        options.type = Type::f32;
        options.colbert = name == "m3";
    }
    [[nodiscard]] host::Opened opened() const {
        convert_source(options);
        return open_path(options.output.string());
    }
    [[nodiscard]] std::string refused() const {
        return refusal_of([&] { convert_source(options); });
    }
    [[nodiscard]] std::vector<std::string> texts(const char* side) const {
        return expected[side].get<std::vector<std::string>>();
    }
};

void check_vectors(const host::TextRows& got, const json& want) {
    REQUIRE(got.ids.size() == want.size());
    REQUIRE(got.values.size() == want.size() * got.width);
    float error = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
        for (std::size_t k = 0; k < got.width; ++k)
            error = std::max(error, std::abs(got.values[i * got.width + k] - want[i][k].get<float>()));
    CHECK(error < 1e-4f);
}

}  // namespace

TEST_CASE("late interaction: vectors of queries' and documents' tokens, and documents' scores") {
    for (const char* name : kModels) {
        CAPTURE(name);
        const Late model(name);
        const host::Opened opened = model.opened();
        CHECK(opened.has_late_interaction());
        const std::vector<std::string> queries = model.texts("queries"), documents = model.texts("documents");
        for (const bool are_queries : {true, false}) {
            const auto rows = host::embed_tokens(opened, are_queries ? queries : documents, are_queries);
            const json& want = model.expected[are_queries ? "query_vectors" : "document_vectors"];
            REQUIRE(rows.size() == want.size());
            for (std::size_t i = 0; i < rows.size(); ++i) check_vectors(rows[i], want[i]);
            const std::string alone = (are_queries ? queries : documents)[0];  // the bits of a text alone are the same
            CHECK(host::embed_tokens(opened, {&alone, 1}, are_queries)[0].values == rows[0].values);
        }
        for (std::size_t q = 0; q < queries.size(); ++q) {
            std::vector<Text> pairs;
            for (const std::string& document : documents) pairs.push_back({queries[q], document});
            const std::vector<double> scores = host::score_pairs(opened, pairs);
            for (std::size_t d = 0; d < documents.size(); ++d)
                CHECK(std::abs(scores[d] - model.expected["scores"][q][d].get<double>()) < 1e-4);
            const std::vector<host::Ranked> ranked = host::rank(opened, queries[q], documents);
            CHECK(ranked[0].score == *std::max_element(scores.begin(), scores.end()));
        }
        const host::Opened other = host::open_file((model.folder / "m.fovea").string());
        CHECK(contains(refusal_of([&] { (void)head_of(other); }), "got late-interaction"));
    }
}

TEST_CASE("cli: classify prints scores by late interaction, encode the vectors of a text's tokens") {
    for (const char* name : kModels) {
        const Late model(name);
        const std::string path = model.opened().name, documents = (model.folder / "documents.txt").string(),
                          rows = (model.folder / "rows.npy").string();
        std::string lines;
        for (const std::string& document : model.texts("documents")) lines += document + "\n";
        write_text(documents, lines);
        const std::string query = model.texts("queries")[1];
        std::istringstream out(output_of({"classify", path, "-p", query, "--texts", documents, "--json"}));
        for (const json& want : model.expected["scores"][1]) {
            std::string line;
            REQUIRE(std::getline(out, line));
            CHECK(std::abs(json::parse(line)["score"].get<double>() - want.get<double>()) < 1e-4);
        }
        const json printed =
            json::parse(output_of({"encode", path, "-p", query, "--prompt-name", "query", "--json", "-o", rows}));
        const json& want = model.expected["query_vectors"][1];
        CHECK(printed["vectors"].size() == want.size());
        CHECK(printed["tokens"].size() == want.size());
        const NpyArray array = read_npy(rows);
        CHECK(array.shape == std::vector<std::uint64_t>{want.size(), want[0].size()});
        std::istringstream many(output_of({"encode", path, "--texts", documents, "--json"}));
        for (const json& document : model.expected["document_vectors"]) {
            std::string line;
            REQUIRE(std::getline(many, line));
            CHECK(json::parse(line)["vectors"].size() == document.size());
        }
    }
}

TEST_CASE("late interaction: what a folder or a file may not say is refused by its name") {
    const auto changed = [](const char* name, const char* file, const std::function<void(json&)>& change) {
        const Late model(name);
        edit_json(model.folder / "m" / file, change);
        return model.refused();
    };
    const char* const of_encoder = "config_sentence_transformers.json";
    CHECK(contains(changed("native", of_encoder, [](json& f) { f["model_type"] = "SentenceTransformer"; }),
                   "model_type: expected MultiVectorEncoder, or ColBERT"));
    CHECK(contains(changed("native", of_encoder, [](json& f) { f["similarity_fn_name"] = "euclidean"; }),
                   "similarity_fn_name: expected maxsim or meanmaxsim"));
    CHECK(contains(changed("native", "modules.json", [](json& f) { f.erase(3); }), "expected a Normalize behind"));
    CHECK(contains(changed("native", "modules.json", [](json& f) { std::swap(f[1], f[3]); }),
                   "expected a Transformer, a Pooling"));
    CHECK(contains(changed("native", "2_MultiVectorMask/config.json",
                           [](json& f) {
                               f["skiplist_tasks"] = {"query", "document"};
                           }),
                   "skiplist_tasks: expected document alone"));
    CHECK(contains(changed("native", "1_Dense/config.json", [](json& f) { f["module_input_name"] = "other"; }),
                   "module_input_name: expected token_embeddings"));
    CHECK(contains(
        changed("native", "sentence_bert_config.json", [](json& f) { f["query_expansion"]["strategy"] = "max"; }),
        "strategy: expected fixed or min"));
    CHECK(contains(changed("stanford", "artifact.metadata", [](json& f) { f["query_token_id"] = "[unused9]"; }),
                   "query_token_id: expected a token of the vocabulary"));
    CHECK(contains(changed("stanford", "artifact.metadata", [](json& f) { f["dim"] = 9; }),
                   "linear.weight: expected shape [9, 12], got [8, 12]"));
    CHECK(contains(changed("stanford", "tokenizer_config.json", [](json& f) { f["mask_token"] = "[NO]"; }),
                   "expected a token that queries are filled with"));
    Late both("m3");
    both.options.sparse = true;
    CHECK(contains(both.refused(), "--sparse, --colbert: expected one of them, got both"));
    fs::remove(both.folder / "m/colbert_linear.pt");
    both.options.sparse = false;
    CHECK(contains(both.refused(), "colbert_linear.pt"));

    const auto read = [](const char* text) {
        return refusal_of([&] { (void)LateInteraction::read(text, 10, "file"); });
    };
    CHECK(read(R"({"query": {"marker": 9}, "document": {}, "skipped": [3, 1]})").empty());
    CHECK(contains(read("[]"), "file: expected a JSON object"));
    CHECK(contains(read(R"({"document": {}})"), "file: query: expected an object"));
    CHECK(contains(read(R"({"query": {"marker": 10}, "document": {}})"), "marker: expected a whole number below 10"));
    CHECK(contains(read(R"({"query": {}, "document": {"length": -1}})"), "length: expected a whole number"));
    CHECK(contains(read(R"({"query": {}, "document": {}, "skipped": [10]})"), "skipped: expected ids"));
    CHECK(contains(read(R"({"query": {}, "document": {}, "mean": 1})"), "mean: expected true or false"));
    CHECK(contains(read(R"({"query": {}, "document": {}, "filler": "a"})"), "filler: expected a whole number"));
}

}  // namespace fovea::testing
