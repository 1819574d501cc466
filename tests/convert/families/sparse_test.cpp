// Sparse vectors of SPLADE and of bge-m3's head: sentence-transformers' and the paper's weights, by the library and the command line.
#include <doctest/doctest.h>

#include <cmath>

#include "host/model/texts.h"
#include "tests/support/command_line.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

using nlohmann::json;

const fs::path kSparse = fs::path(FOVEA_GOLDEN_DIR) / "sparse";

struct Sparse {
    TemporaryFolder folder;
    ConvertOptions options;

    explicit Sparse(const char* name) {
        fs::copy(kSparse / name, folder / "m", fs::copy_options::recursive);
        options.source = folder / "m", options.output = folder / "m.fovea";
        options.type = Type::f32;
        options.sparse = std::string(name) == "m3";
    }
    [[nodiscard]] host::Opened opened() const {
        convert_source(options);
        return open_path(options.output.string());
    }
    [[nodiscard]] std::string refused() const {
        return refusal_of([&] { convert_source(options); });
    }
};

json expected(const char* name) { return json::parse(read_text(kSparse / name / "expected.json")); }

void check_weights(const std::map<std::string, double>& got, const json& want) {
    CHECK(got.size() == want.size());
    double largest = 0;
    for (const auto& weight : want) largest = std::max(largest, weight.get<double>());
    for (const auto& [id, weight] : got) CHECK(std::abs(weight - want.value(id, -1.0)) <= 1e-4 * largest);
}

TEST_CASE("sparse vectors: ids and weights of texts, behind a prompt too, several at a time and cut") {
    for (const char* name : {"splade", "m3"}) {
        const Sparse model(name);
        const host::Opened opened = model.opened();
        CHECK(opened.makes_sparse());
        for (const json& one : expected(name)) {
            CAPTURE(one.dump());
            const std::vector<std::string> texts = {"b", one["text"], "a b c d"};
            const auto vectors = host::embed_sparse(opened, texts, {.prompt = one["prompt"].get<std::string>()});
            REQUIRE(vectors.size() == 3);
            std::map<std::string, double> got;
            for (const auto& [id, weight] : vectors[1]) got[std::to_string(id)] = weight;
            check_weights(got, one["weights"]);
        }
        const host::Opened other = host::open_file((model.folder / "m.fovea").string());
        CHECK(refusal_of([&] { (void)head_of(other); }).find("got sparse") != std::string::npos);
    }
}

TEST_CASE("cli: encode prints the weights of sparse vectors by id, or writes rows as wide as the vocabulary") {
    for (const char* name : {"splade", "m3"}) {
        const Sparse model(name);
        const std::string path = model.opened().name, texts = (model.folder / "texts.txt").string();
        std::string lines;
        for (const json& one : expected(name))
            if (one["prompt"] == "") lines += one["text"].get<std::string>() + "\n";
        write_text(texts, lines);
        const std::string rows = (model.folder / "rows.npy").string();
        std::istringstream out(output_of({"encode", path, "--texts", texts, "--json", "-o", rows}));
        const NpyArray array = read_npy(rows);
        const std::vector<float> values = numbers_of<float>(array);
        REQUIRE(array.shape.size() == 2);
        std::size_t i = 0;
        for (const json& one : expected(name)) {
            if (one["prompt"] != "") continue;
            std::string line;
            REQUIRE(std::getline(out, line));
            const auto got = json::parse(line)["weights"].get<std::map<std::string, double>>();
            check_weights(got, one["weights"]);
            for (std::size_t id = 0; id < array.shape[1]; ++id) {
                const auto found = got.find(std::to_string(id));
                CHECK(std::abs(values[i * array.shape[1] + id] - (found == got.end() ? 0 : found->second)) < 1e-6);
            }
            ++i;
        }
        CHECK(i == array.shape[0]);
    }
}

TEST_CASE("sparse vectors: what makes none is refused by its name") {
    const Sparse splade("splade");
    edit_json(splade.folder / "m/1_SpladePooling/config.json", [](json& f) { f["pooling_strategy"] = "sum"; });
    CHECK(contains(splade.refused(), "pooling_strategy: expected max"));
    const Sparse other("splade");
    edit_json(other.folder / "m/config.json", [](json& f) { f["architectures"] = {"BertModel"}; });
    CHECK(contains(other.refused(), "expected a model for masked words before a SpladePooling"));
    Sparse headed("splade");
    headed.options.sparse = true;
    CHECK(contains(headed.refused(), "--sparse: expected an encoder without a head"));
    const Sparse lost("m3");
    fs::remove(lost.folder / "m/sparse_linear.pt");
    CHECK(contains(lost.refused(), "sparse_linear.pt"));
    const Sparse twice("splade");
    edit_json(twice.folder / "m/1_SpladePooling/config.json", [](json& f) { f["activation_function"] = "log1p_relu"; });
    const Sparse once("splade");
    const std::vector<std::string> texts = {"a b c"};
    const auto a = host::embed_sparse(once.opened(), texts)[0], b = host::embed_sparse(twice.opened(), texts)[0];
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        CHECK(std::abs(std::log1p(a[i].weight) - b[i].weight) < 1e-6);  // a rounding of numbers below 2
}

}  // namespace
}  // namespace fovea::testing
