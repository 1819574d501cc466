// Perplexity and divergence by their definitions, and what quantized weights cost by them.
#include "tools/measure/evaluate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "convert/open/convert.h"
#include "convert/quantize/quantize.h"
#include "host/base/elements.h"
#include "host/base/words.h"
#include "tests/support/command_line.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/small_models.h"
#include "tools/options/opened.h"

namespace fovea::testing {
namespace {

/// A model in memory.
struct Evaluated {
    AlignedBytes file;
    host::Opened opened;

    Evaluated(const ModelSource& source, Type type) : file(write_bytes(source, {.type = type})) {
        opened.name = type_name(type);
        REQUIRE(open_model(file, opened.model).ok());
    }

    [[nodiscard]] host::Runtime<Session> start() const {
        return start_session(opened, {.max_batch = 64, .n_threads = 1});
    }

    [[nodiscard]] double perplexity(const std::vector<std::vector<Token>>& texts) const {
        host::Runtime<Session> running = start();
        Evaluation sum;
        for (const auto& tokens : texts) evaluate(opened, running, nullptr, tokens, sum);
        return sum.perplexity();
    }
};

ModelSource source_of(const std::filesystem::path& path) {
    ConvertOptions options;
    options.source = path;
    return read_source(options);
}

/// The source with the matrices that a q4 file holds in q4 rounded to what `quantize` makes of each group.
template<class Quantize>
ModelSource rounded(ModelSource source, Quantize quantize) {
    source.read_rows = [read = source.read_rows, quantize](const TensorSpec& spec, std::uint32_t row, std::uint32_t n,
                                                           float* out) {
        read(spec, row, n, out);
        if (stored_type(spec, Type::q4) != Type::q4) return;
        for (std::uint32_t r = 0; r < n; ++r, out += spec.n_cols)
            for (std::uint32_t col = 0; col < spec.n_cols; col += kGroup) {
                const std::uint32_t width = std::min(kGroup, spec.n_cols - col);
                float x[kGroup] = {};
                std::copy_n(out + col, width, x);
                const QuantizedGroup group = quantize(x);
                for (std::uint32_t i = 0; i < width; ++i)
                    out[col + i] = from_f16(group.scale) * static_cast<float>(group.quants[i]);
            }
    };
    return source;
}

/// The usual scale: the element of largest magnitude becomes −8.
QuantizedGroup plain_q4(const float (&x)[kGroup]) {
    float most = 0;
    for (const float value : x)
        if (std::fabs(value) > std::fabs(most)) most = value;
    QuantizedGroup group{to_f16(most / -8), {}};
    const double step = from_f16(group.scale);
    for (std::size_t i = 0; step != 0 && i < kGroup; ++i)
        group.quants[i] = static_cast<std::int8_t>(std::clamp(std::round(x[i] / step), -8.0, 7.0));
    return group;
}

/// Commands with their answers.
std::vector<std::vector<Token>> demo_texts(const host::Opened& demo, int n) {
    std::ifstream file(FOVEA_GOLDEN_DIR "/demo_commands.txt");
    std::vector<std::vector<Token>> texts;
    for (std::string line; n-- && std::getline(file, line);) {
        const std::size_t tab = line.find('\t');
        const std::string text =
            line.substr(0, tab) + std::string(demo.model.info().prompt_suffix) + line.substr(tab + 1);
        texts.push_back(demo.tokens(text));
    }
    return texts;
}

TEST_CASE("eval: perplexity and divergence are those of the logits") {
    const SmallModel small(llama_config(), Type::f32), coarse(llama_config(), Type::q4);
    host::Opened opened, other;
    opened.model = small.model;
    other.model = coarse.model;
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
    const auto tokens = some_tokens(50, vocab_size);
    const auto probabilities = [&](const SmallModel& of) {
        SmallSession s(of.model, {});
        std::vector<float> logits(tokens.size() * vocab_size);
        REQUIRE(forward(s.session, tokens, logits).ok());
        std::vector<long double> p(logits.begin(), logits.end());
        for (std::size_t row = 0; row < p.size(); row += vocab_size) {
            long double sum = 0;
            for (std::size_t i = row; i < row + vocab_size; ++i) sum += p[i] = std::exp(p[i]);
            for (std::size_t i = row; i < row + vocab_size; ++i) p[i] /= sum;
        }
        return p;
    };
    const auto q = probabilities(small), p = probabilities(coarse);
    long double surprise = 0, divergence = 0;
    for (std::size_t row = 0; row + 1 < tokens.size(); ++row) {
        surprise -= std::log(q[row * vocab_size + tokens[row + 1]]);
        for (std::size_t i = row * vocab_size; i < (row + 1) * vocab_size; ++i)
            divergence += p[i] * std::log(p[i] / q[i]);
    }
    for (const std::uint32_t max_batch : {7u, 64u}) {
        host::Runtime<Session> running = start_session(opened, {.max_batch = max_batch, .n_threads = 1});
        host::Runtime<Session> against = start_session(other, {.max_batch = 11, .n_threads = 1});
        Evaluation sum, same;
        evaluate(opened, running, &against, tokens, sum);
        CHECK(sum.n_predicted == 49);
        CHECK(sum.perplexity() == doctest::Approx(static_cast<double>(std::exp(surprise / 49))).epsilon(1e-9));
        CHECK(sum.mean_divergence() == doctest::Approx(static_cast<double>(divergence / 49)).epsilon(1e-9));
        CHECK(sum.mean_divergence() > 0);
        host::Runtime<Session> again = start_session(opened, {.max_batch = 5, .n_threads = 1});
        evaluate(opened, running, &again, tokens, same);
        CHECK(same.divergence == 0);
        CHECK(same.same_top() == 1);
        CHECK(same.perplexity() == same.against_perplexity());
    }
}

TEST_CASE("eval: the demo model in q8 predicts held-out commands as in f32") {
    const host::Opened demo = open_path_or_demo("");
    const auto texts = demo_texts(demo, 100);
    REQUIRE(texts.size() == 100);
    const ModelSource source = source_of(FOVEA_SOURCE_DIR "/tools/demo/demo.fovea");
    const double f32 = Evaluated(source, Type::f32).perplexity(texts);
    const double q8 = Evaluated(source, Type::q8).perplexity(texts);
    CAPTURE(f32);
    CHECK(std::fabs(q8 / f32 - 1) < 0.003);
}

TEST_CASE("eval: q4 scales of least squared error predict stories260K's own text better than the usual ones") {
    const auto stories = reference_model("stories260k");
    if (!stories) return;
    const TemporaryFolder folder;
    const std::string file = (folder / "stories.fovea").string();
    (void)output_of({"convert", (*stories / "checkpoint_v1.bin").string(), "--tokenizer",
                     (*stories / "tokenizer.bin").string(), "-o", file});
    const host::Opened opened = open_path(file);
    const std::vector<std::vector<Token>> texts{opened.tokens(read_text(*stories / "expected_greedy.txt"))};
    const ModelSource source = source_of(file);
    const double f32 = Evaluated(source, Type::f32).perplexity(texts);
    const double q8 = Evaluated(source, Type::q8).perplexity(texts), q4 = Evaluated(source, Type::q4).perplexity(texts);
    const double best =
        Evaluated(rounded(source_of(file), [](const float(&x)[kGroup]) { return quantize_q4(x); }), Type::f32)
            .perplexity(texts);
    const double plain = Evaluated(rounded(source_of(file), plain_q4), Type::f32).perplexity(texts);
    CAPTURE(f32);
    CAPTURE(plain);
    CHECK(std::fabs(q8 / f32 - 1) < 0.003);
    CHECK(best < plain);
    CHECK(q4 < plain);
    CHECK(q4 / f32 < 1.1);
}

}  // namespace
}  // namespace fovea::testing
