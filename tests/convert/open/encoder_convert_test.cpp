// BERT folders and GGUF files become encoders: what the file holds, computed with in plain loops, is what transformers
// computes.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "convert/open/convert.h"
#include "fovea/model.h"
#include "fovea/tokenizer.h"
#include "host/base/elements.h"
#include "host/base/npy.h"
#include "host/model/listing.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/encoded.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

fs::path golden_encoder(const std::string& name) { return fs::path(FOVEA_GOLDEN_DIR) / "encoders" / name; }

using Row = std::vector<double>;

/// A converted folder, and its encoder in double precision from the file's own tensors.
class ConvertedEncoder {
public:
    explicit ConvertedEncoder(const fs::path& source, std::optional<Type> type = Type::f32) {
        ConvertOptions options;
        options.source = source;
        options.output = folder_ / "model.fovea";
        options.type = type;
        convert_source(options);
        REQUIRE(map_file(options.output.c_str(), mapping_).ok());
        REQUIRE(open_model(mapping_.bytes(), model, {.verify_checksums = true}).ok());
        element_.emplace(model);
    }

    [[nodiscard]] std::vector<Row> rows(const std::vector<Token>& ids) const {
        const Stack& s = model.config().encoder;
        std::vector<Row> x;
        for (std::size_t pos = 0; pos < ids.size(); ++pos) {
            Row row(s.d_model);
            for (std::uint32_t i = 0; i < s.d_model; ++i)
                row[i] = at("token_embedding", 0, ids[pos], i) + at("position_embedding", 0, pos, i) +
                         at("type_embedding", 0, 0, i);
            x.push_back(normed("embedding_norm", 0, s.final_norm_epsilon, row));
        }
        for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) x = block(layer, s.block(layer), x);
        return x;
    }

    Model model;

private:
    double at(const std::string& role, std::uint32_t layer, std::uint64_t row, std::uint64_t col) const {
        return (*element_)(role, layer, row, col);
    }

    Row normed(const std::string& role, std::uint32_t layer, double epsilon, const Row& x) const {
        double mean = 0, variance = 0;
        for (const double v : x) mean += v / static_cast<double>(x.size());
        for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
        Row y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
            y[i] =
                (x[i] - mean) / std::sqrt(variance + epsilon) * at(role, layer, 0, i) + at(role + "_bias", layer, 0, i);
        return y;
    }

    Row mapped(const std::string& role, std::uint32_t layer, std::size_t n, const Row& x) const {
        Row y(n);
        for (std::size_t r = 0; r < n; ++r) {
            y[r] = at(role + "_bias", layer, 0, r);
            for (std::size_t c = 0; c < x.size(); ++c) y[r] += at(role, layer, r, c) * x[c];
        }
        return y;
    }

    std::vector<Row> block(std::uint32_t layer, const Block& b, const std::vector<Row>& x) const {
        const std::size_t d = x[0].size();
        std::vector<Row> q, k, v, out;
        for (const Row& row : x) {
            q.push_back(mapped("query", layer, d, row));
            k.push_back(mapped("key", layer, d, row));
            v.push_back(mapped("value", layer, d, row));
        }
        for (std::size_t i = 0; i < x.size(); ++i) {
            Row merged(d);
            for (std::size_t first = 0; first < d; first += b.attention.head_dim) {
                Row weights(x.size());
                double sum = 0;
                for (std::size_t j = 0; j < x.size(); ++j) {
                    double score = 0;
                    for (std::size_t c = first; c < first + b.attention.head_dim; ++c) score += q[i][c] * k[j][c];
                    sum += weights[j] = std::exp(score / std::sqrt(static_cast<double>(b.attention.head_dim)));
                }
                for (std::size_t j = 0; j < x.size(); ++j)
                    for (std::size_t c = first; c < first + b.attention.head_dim; ++c)
                        merged[c] += weights[j] / sum * v[j][c];
            }
            Row row = mapped("attention_output", layer, d, merged);
            for (std::size_t c = 0; c < d; ++c) row[c] += x[i][c];
            row = normed("attention_norm", layer, b.norm_epsilon, row);
            Row inner = mapped("up", layer, b.feed.d_ff, row);
            for (double& u : inner)
                u *= b.feed.activation == Activation::gelu
                         ? 0.5 * std::erfc(-u / std::sqrt(2.0))
                         : 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (u + 0.044715 * u * u * u)));
            Row y = mapped("down", layer, d, inner);
            for (std::size_t c = 0; c < d; ++c) y[c] += row[c];
            out.push_back(normed("feed_forward_norm", layer, b.norm_epsilon, y));
        }
        return out;
    }

    TemporaryFolder folder_;
    Mapping mapping_;
    std::optional<ElementReader> element_;
};

/// The largest difference of `rows` from an array.
double error(const std::vector<Row>& rows, const fs::path& path) {
    const NpyArray expected = read_npy(path.string());
    REQUIRE(expected.shape == std::vector<std::uint64_t>{rows.size(), rows[0].size()});
    double worst = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t c = 0; c < rows[i].size(); ++c) {
            float want;
            std::memcpy(&want, expected.data.data() + (i * rows[i].size() + c) * sizeof want, sizeof want);
            worst = std::max(worst, std::abs(rows[i][c] - want));
        }
    return worst;
}

/// The ids that the expected rows are of.
std::vector<Token> first_ids(const Stack& stack) {
    std::vector<Token> ids(24);
    for (std::uint32_t i = 0; i < ids.size(); ++i) ids[i] = (7 * i + 3) % stack.vocab_size;
    return ids;
}

/// The mean of the rows, normalized, for each line of bert_sentence's texts, after checking their ids.
std::vector<Row> vectors_of_texts(const ConvertedEncoder& converted) {
    const fs::path folder = golden_encoder("bert_sentence");
    Tokenizer tokenizer;
    REQUIRE(open_tokenizer(converted.model.tokenizer_bytes(), tokenizer).ok());
    const auto expected = nlohmann::json::parse(read_text(folder / "expected_text_ids.json"));
    std::istringstream texts(read_text(folder / "texts.txt"));
    std::vector<Row> vectors;
    for (std::string text; std::getline(texts, text);) {
        std::vector<std::byte> scratch(tokenize_scratch_bytes(tokenizer, text.size()));
        std::vector<Token> ids(max_tokens(tokenizer, text.size()));
        std::size_t n = 0;
        REQUIRE(tokenize(tokenizer, text, {}, scratch, ids, n).ok());
        ids.resize(n);
        CHECK(ids == expected.at(vectors.size()).get<std::vector<Token>>());
        Row mean(converted.model.config().encoder.d_model);
        for (const Row& row : converted.rows(ids))
            for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += row[c];
        double square = 0;
        for (const double m : mean) square += m * m;
        for (double& m : mean) m /= std::sqrt(square);
        vectors.push_back(mean);
    }
    CHECK(vectors.size() == expected.size());
    return vectors;
}

/// Edits a JSON file.
void edit(const fs::path& path, const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json value = nlohmann::json::parse(read_text(path));
    change(value);
    std::ofstream(path) << value.dump();
}

}  // namespace

TEST_CASE("convert: BERT's encoder has transformers' rows") {
    for (const char* name : {"bert_sentence", "bert_masked"}) {
        CAPTURE(name);
        const ConvertedEncoder converted(golden_encoder(name));
        const Stack& stack = converted.model.config().encoder;
        // Both are float64 over the same weights; the expected rows, up to 4, were rounded to float32.
        CHECK(error(converted.rows(first_ids(stack)), golden_encoder(name) / "expected_rows.npy") < 4e-7);
        CHECK(converted.model.config().decoder.n_layers == 0);
    }
    const ConvertedEncoder masked(golden_encoder("bert_masked"), std::nullopt);
    CHECK(tensors(masked.model)[0].type == Type::f16);
    const Stack& stack = masked.model.config().encoder;
    CHECK(stack.pooling == Pooling::none);
    CHECK(!stack.normalize_pooled);
    CHECK(stack.n_token_types == 3);
}

TEST_CASE("convert: a sentence-transformers folder gives its vectors") {
    const fs::path folder = golden_encoder("bert_sentence");
    const ConvertedEncoder converted(folder);
    const Stack& stack = converted.model.config().encoder;
    CHECK(stack.pooling == Pooling::mean);
    CHECK(stack.normalize_pooled);
    CHECK(error(vectors_of_texts(converted), folder / "expected_texts.npy") < 1e-7);
}

TEST_CASE("convert: BERT's GGUF files have transformers' rows and vectors") {
    const fs::path folder = fs::path(FOVEA_GOLDEN_DIR) / "gguf";
    for (const std::string name : {"bert", "bert_qkv"}) {
        CAPTURE(name);
        const ConvertedEncoder converted(folder / (name + ".gguf"));
        const Stack& stack = converted.model.config().encoder;
        CHECK(stack.pooling == (name == "bert" ? Pooling::mean : Pooling::first));
        CHECK(stack.normalize_pooled);
        CHECK(stack.n_token_types == (name == "bert" ? 2 : 1));
        CHECK(!stack.block(0).attention.causal);
        CHECK(converted.model.config().decoder.n_layers == 0);
        CHECK(converted.model.tokenizer_bytes().empty() == (name == "bert_qkv"));
        // As above: the weights are the very floats that transformers computed with.
        CHECK(error(converted.rows(first_ids(stack)), folder / (name + "_rows.npy")) < 4e-7);
    }
    CHECK(error(vectors_of_texts(ConvertedEncoder(folder / "bert.gguf")), folder / "bert_texts.npy") < 1e-7);
    CHECK(read_source({.source = folder / "bert.gguf"}).type == Type::f16);
    CHECK(read_source({.source = folder / "bert_qkv.gguf"}).type == Type::q8);
    const std::string line = refusal_of([&] {
        const fs::path tokenizer = fs::path(FOVEA_GOLDEN_DIR) / "tokenizer_smollm.json";
        static_cast<void>(read_source({.source = folder / "bert_qkv.gguf", .tokenizer = tokenizer}));
    });
    CAPTURE(line);
    CHECK(line.find("vocab_size 61") != std::string::npos);
}

TEST_CASE("convert: what a BERT or sentence-transformers folder may not say is refused") {
    TemporaryFolder folder;
    const auto fresh = [&] {
        fs::remove_all(folder / "m");
        fs::copy(golden_encoder("bert_sentence"), folder / "m", fs::copy_options::recursive);
        return folder / "m";
    };
    const auto check = [&](const char* file, const std::function<void(nlohmann::json&)>& change, const char* words) {
        const fs::path model = fresh();
        edit(model / file, change);
        const std::string line = refusal_of([&] { static_cast<void>(read_source({.source = model})); });
        CAPTURE(line);
        CHECK(line.find(words) != std::string::npos);
        CHECK(line.find((model / fs::path(file).parent_path()).string()) == 0);
    };
    CHECK(read_source({.source = fresh()}).config.encoder.n_layers == 2);
    check(
        "config.json", [](auto& c) { c["position_embedding_type"] = "relative_key"; }, "expected absolute");
    check(
        "config.json", [](auto& c) { c["is_decoder"] = true; }, "is_decoder: expected false");
    check(
        "config.json", [](auto& c) { c["num_attention_heads"] = 5; }, "a multiple of num_attention_heads, 5");
    check(
        "config.json", [](auto& c) { c["hidden_act"] = "mish"; }, "hidden_act");
    check(
        "config.json", [](auto& c) { c["num_hidden_layers"] = 3; }, "encoder.layer.2.");
    check(
        "modules.json", [](auto& m) { m[2]["type"] = "sentence_transformers.models.CNN"; }, "models.CNN");
    check(
        "modules.json", [](auto& m) { m.push_back(m[2]); }, "models.Normalize");
    check(
        "modules.json", [](auto& m) { m[0].erase("type"); }, "a module without a type");
    check(
        "modules.json", [](auto& m) { m = nlohmann::json::object(); }, "no list of modules");
    check(
        "modules.json", [](auto& m) { m[0]["path"] = "../m"; }, "a path out of the folder, ../m");
    check(
        "modules.json", [](auto& m) { m[1]["path"] = "/"; }, "a path out of the folder, /");
    check(
        "modules.json", [](auto& m) { m.insert(m.begin(), m[1]); }, "Pooling");
    check(
        "1_Pooling/config.json", [](auto& p) { p["pooling_mode_max_tokens"] = true; },
        "one way of pooling that is true");
    check(
        "1_Pooling/config.json", [](auto& p) { p["pooling_mode"] = "odd"; }, "mean, cls, max, lasttoken");
    const fs::path newer = fresh();
    edit(newer / "1_Pooling/config.json", [](auto& p) { p = {{"pooling_mode", "cls"}}; });
    CHECK(read_source({.source = newer}).config.encoder.pooling == Pooling::first);
    edit(newer / "1_Pooling/config.json", [](auto& p) { p = {{"pooling_mode", {"max"}}}; });
    CHECK(read_source({.source = newer}).config.encoder.pooling == Pooling::max);
    edit(newer / "1_Pooling/config.json", [](auto& p) { p = {{"pooling_mode_mean_tokens", false}}; });
    CHECK(read_source({.source = newer}).config.encoder.pooling == Pooling::mean);
    edit(newer / "modules.json", [](auto& m) {
        m.insert(m.begin() + 1,
                 nlohmann::json::object({{"type", "sentence_transformers.models.Dropout"}, {"path", "1_Dropout"}}));
    });
    CHECK(read_source({.source = newer}).config.encoder.normalize_pooled);
}
