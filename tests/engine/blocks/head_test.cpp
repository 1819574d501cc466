// What an encoder's head makes of its rows, against plain loops; relative positions and windows on both sides, against the
// caller's own masks; narrower embeddings. Every instruction set and number of threads gives the same bits.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "fovea/encode.h"
#include "host/model/listing.h"
#include "tests/support/encoded.h"
#include "tests/support/encoder_models.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kLengths[] = {17, 1, 40};
constexpr std::uint32_t kRows = 58;

/// The same on every instruction set with several threads.
std::vector<float> encoded_everywhere(const Model& model, const EncodeInput& in, std::size_t n_out) {
    const std::vector<float> first = encoded(model, in, n_out, "scalar");
    for (const char* isa : model_isas())
        for (const std::uint32_t n_threads : {1u, 3u})
            CHECK(same_bits(first, encoded(model, in, n_out, isa, n_threads)));
    return first;
}

double activated(Activation activation, double x) {
    switch (activation) {
        case Activation::tanh: return std::tanh(x);
        case Activation::relu: return x > 0 ? x : 0;
        case Activation::gelu: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
        default: return x;
    }
}

/// The head's maps in double precision.
std::vector<double> mapped(const Model& model, std::vector<double> x) {
    const ElementReader at(model);
    const Stack& s = model.config().encoder;
    for (std::uint32_t i = 0; i < s.n_head_maps(); ++i) {
        const HeadMap& map = s.head[i];
        std::vector<double> y(map.width);
        for (std::uint32_t r = 0; r < map.width; ++r) {
            y[r] = map.bias ? at("head_map_bias", i, 0, r) : 0;
            for (std::size_t c = 0; c < x.size(); ++c) y[r] += at("head_map", i, r, c) * x[c];
            y[r] = activated(map.activation, y[r]);
        }
        if (map.norm == Norm::layer) {
            double mean = 0, variance = 0;
            for (const double v : y) mean += v / map.width;
            for (const double v : y) variance += (v - mean) * (v - mean) / map.width;
            for (std::uint32_t r = 0; r < map.width; ++r)
                y[r] = (y[r] - mean) / std::sqrt(variance + map.norm_epsilon) * at("head_norm", i, 0, r) +
                       (map.norm_bias ? at("head_norm_bias", i, 0, r) : 0);
        }
        x = y;
    }
    if (!s.has_output_head) return x;
    std::vector<double> logits(s.vocab_size);
    for (std::uint32_t r = 0; r < s.vocab_size; ++r) {
        logits[r] = s.output_bias ? at("output_bias", 0, 0, r) : 0;
        for (std::size_t c = 0; c < x.size(); ++c)
            logits[r] += at(s.tied_output ? "token_embedding" : "output", 0, r, c) * x[c];
    }
    return logits;
}

void check_near(std::span<const float> got, const std::vector<double>& wanted) {
    REQUIRE(got.size() == wanted.size());
    double largest = 1e-3;
    for (const double v : wanted) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) <= 2e-6 * largest);
}

Config with_head(std::initializer_list<HeadMap> maps, Pooling pooling) {
    Config config = bert_config();
    std::copy(maps.begin(), maps.end(), config.encoder.head.begin());
    config.encoder.pooling = pooling;
    return config;
}

TEST_CASE("head: maps of a sequence's vector and of every row are the plain formula, whatever else is in the call") {
    const HeadMap pooler{.width = 40, .activation = Activation::tanh, .bias = true}, labels{.width = 3, .bias = true};
    const HeadMap normed{.width = 24, .activation = Activation::gelu, .norm = Norm::layer, .norm_bias = true};
    for (const Pooling pooling : {Pooling::first, Pooling::none})
        for (const Config& config :
             {with_head({pooler, labels}, pooling), with_head({labels}, pooling),
              with_head({normed, pooler, {.width = 90, .activation = Activation::relu}, labels}, pooling)}) {
            const SmallModel small(config, Type::f32);
            const auto ids = some_tokens(kRows, 60);
            EncodeInput in{.source = {.ids = ids, .lengths = kLengths}};
            const std::size_t n = pooling == Pooling::none ? kRows : 3;
            const std::vector<float> results = encoded_everywhere(small.model, in, n * 3);
            in.before_head = true;
            const std::vector<float> before = encoded_everywhere(small.model, in, n * 40);
            for (std::size_t i = 0; i < n; ++i)
                check_near(std::span(results).subspan(i * 3, 3),
                           mapped(small.model, {before.begin() + static_cast<std::ptrdiff_t>(i * 40),
                                                before.begin() + static_cast<std::ptrdiff_t>(i * 40 + 40)}));
        }
}

TEST_CASE("head: a call may pool otherwise than the stack, and leave out each sequence's first rows") {
    Config config = with_head({}, Pooling::max);
    config.encoder.normalize_pooled = true;
    const SmallModel small(config, Type::f32);
    const auto ids = some_tokens(kRows, 60);
    EncodeInput in{.source = {.ids = ids, .lengths = kLengths}};
    const Pooling none = Pooling::none;
    in.pooling = &none;
    const std::vector<float> rows = encoded_everywhere(small.model, in, kRows * 40);
    const std::vector<std::uint32_t> left_out{5, 0, kLengths[2] - 1};
    const Pooling ways[] = {Pooling::mean, Pooling::first,         Pooling::last,
                            Pooling::max,  Pooling::weighted_mean, Pooling::mean_sqrt_len};
    for (const Pooling pooling : ways) {
        CAPTURE(static_cast<int>(pooling));
        in.pooling = &pooling;
        in.n_unpooled = left_out;
        const std::vector<float> got = encoded_everywhere(small.model, in, 3 * 40);
        for (std::size_t i = 0, begin = 0; i < 3; begin += kLengths[i++]) {
            std::vector<double> wanted(40);
            const std::size_t first = left_out[i], n = kLengths[i];
            double total = 0, squares = 0;
            for (std::size_t k = 0; k < 40; ++k) {
                const auto at = [&](std::size_t row) { return double{rows[(begin + row) * 40 + k]}; };
                double sum = 0, most = at(first);
                total = 0;
                for (std::size_t row = first; row < n; ++row) {
                    const double weight = pooling == Pooling::weighted_mean ? static_cast<double>(row + 1) : 1.0;
                    sum += weight * at(row), total += weight, most = std::max(most, at(row));
                }
                wanted[k] = pooling == Pooling::first           ? at(first)
                            : pooling == Pooling::last          ? at(n - 1)
                            : pooling == Pooling::max           ? most
                            : pooling == Pooling::mean_sqrt_len ? sum / std::sqrt(total)
                                                                : sum / total;
                squares += wanted[k] * wanted[k];
            }
            for (double& x : wanted) x /= std::sqrt(squares);
            check_near(std::span(got).subspan(i * 40, 40), wanted);
        }
    }
    SmallSession s(small.model, {.max_batch = kRows, .max_sequences = 3});
    std::vector<float> out(3 * 40);
    in.pooling = nullptr;  // as the stack pools
    const std::vector<std::uint32_t> all{0, 0, kLengths[2]}, many{0, 0, 0, 1};
    for (const auto* wrong : {&all, &many}) {
        in.n_unpooled = *wrong;
        CHECK(encode(s.session, in, out).code == Code::bad_shape);
    }
}

TEST_CASE("head: logits of chosen rows are those of all rows, with an output head that is the embedding or not") {
    for (const bool tied : {true, false}) {
        Config config =
            with_head({{.width = tied ? 40u : 23u, .activation = Activation::gelu, .norm = Norm::layer, .bias = true}},
                      Pooling::none);
        config.encoder.has_output_head = config.encoder.output_bias = true;
        config.encoder.tied_output = tied;
        const SmallModel small(config, Type::f32);
        const auto ids = some_tokens(kRows, 60);
        EncodeInput in{.source = {.ids = ids, .lengths = kLengths}};
        const std::vector<float> all = encoded_everywhere(small.model, in, kRows * 60);
        in.before_head = true;
        const std::vector<float> before = encoded(small.model, in, kRows * 40);
        in.before_head = false;
        check_near(std::span(all).subspan(17 * 60, 60),
                   mapped(small.model, {before.begin() + 17 * 40, before.begin() + 18 * 40}));
        const std::uint32_t rows[] = {57, 3, 3, 17};
        in.rows = rows;
        const std::vector<float> chosen = encoded_everywhere(small.model, in, 4 * 60);
        for (std::size_t i = 0; i < 4; ++i)
            CHECK(same_bits(std::span(chosen).subspan(i * 60, 60), std::span(all).subspan(rows[i] * 60, 60)));
        SmallSession s(small.model, {.max_batch = kRows, .max_sequences = 3});
        std::vector<float> out(60);
        const std::uint32_t beyond[] = {kRows};
        in.rows = beyond;
        CHECK(encode(s.session, in, out).code == Code::bad_shape);
    }
}

TEST_CASE("head: pooled results are of length 1 behind the maps, and refused where a stack that pools chooses rows") {
    Config config = with_head({{.width = 7, .bias = true}}, Pooling::mean);
    config.encoder.normalize_pooled = true;
    const SmallModel small(config, Type::f32);
    const auto ids = some_tokens(kRows, 60);
    EncodeInput in{.source = {.ids = ids, .lengths = kLengths}};
    const std::vector<float> results = encoded_everywhere(small.model, in, 21);
    for (std::size_t i = 0; i < 3; ++i) {
        double squares = 0;
        for (std::size_t k = 0; k < 7; ++k) squares += double{results[i * 7 + k]} * results[i * 7 + k];
        CHECK(std::abs(squares - 1) < 1e-5);
    }
    const std::uint32_t rows[] = {0};
    in.rows = rows;
    SmallSession s(small.model, {.max_batch = kRows, .max_sequences = 3});
    std::vector<float> out(7);
    CHECK(encode(s.session, in, out).code == Code::bad_shape);
}

TEST_CASE("pooling: largest, weighted and square-root means are their formulas over the rows") {
    for (const Pooling pooling : {Pooling::max, Pooling::weighted_mean, Pooling::mean_sqrt_len, Pooling::mean}) {
        Config config = bert_config();
        const SmallModel plain(config, Type::f32);
        config.encoder.pooling = pooling;
        const SmallModel small(config, Type::f32);
        const auto ids = some_tokens(kRows, 60);
        const EncodeInput in{.source = {.ids = ids, .lengths = kLengths}};
        const std::vector<float> rows = encoded(plain.model, in, kRows * 40),
                                 got = encoded_everywhere(small.model, in, 120);
        std::size_t first = 0;
        for (std::size_t s = 0; s < 3; first += kLengths[s++]) {
            std::vector<double> wanted(40);
            for (std::size_t c = 0; c < 40; ++c) {
                double sum = 0, weights = 0, most = -INFINITY;
                for (std::size_t r = 0; r < kLengths[s]; ++r) {
                    const double x = rows[(first + r) * 40 + c],
                                 w = pooling == Pooling::weighted_mean ? double(r + 1) : 1.0;
                    sum += w * x, weights += w, most = std::max(most, x);
                }
                wanted[c] = pooling == Pooling::max
                                ? most
                                : sum / (pooling == Pooling::mean_sqrt_len ? std::sqrt(weights) : weights);
            }
            check_near(std::span(got).subspan(s * 40, 40), wanted);
        }
    }
}

/// A mask of [head, query, key] that every layer's attention gets from the caller.
std::vector<float> scores_mask(std::uint32_t n, const std::function<float(std::uint32_t, std::int64_t)>& score) {
    std::vector<float> added;
    for (std::uint32_t head = 0; head < 5; ++head)
        for (std::int64_t q = 0; q < n; ++q)
            for (std::int64_t k = 0; k < n; ++k) added.push_back(score(head, k - q));
    return added;
}

TEST_CASE("relative positions add what the table says of the distance, and give the bits of a mask that adds it") {
    for (const std::uint32_t most : {1u, 4u, 100u}) {
        Config config = bert_config();
        config.encoder.blocks[0].attention.position = Position::relative;
        config.encoder.blocks[0].attention.relative_max_distance = most;
        const SmallModel small(config, Type::f32);
        const auto ids = some_tokens(40, 60);
        const std::uint32_t lengths[] = {40};
        EncodeInput in{.source = {.ids = ids, .lengths = lengths}};
        const std::vector<float> got = encoded_everywhere(small.model, in, 40 * 40);

        // The same weights without relative positions: random tensors depend on their role and layer alone.
        Config plain_config = config;
        plain_config.encoder.blocks[0].attention.position = Position::none;
        plain_config.encoder.blocks[0].attention.relative_max_distance = 0;
        const SmallModel plain(plain_config, Type::f32);
        const ElementReader at(small.model);
        const std::vector<float> added = scores_mask(40, [&](std::uint32_t head, std::int64_t distance) {
            const std::int64_t far = static_cast<std::int64_t>(most);
            const std::int64_t row = far + std::min(std::max(distance, -far), far);
            return static_cast<float>(at("relative_bias", 0, static_cast<std::uint64_t>(row), head));
        });
        CHECK(!same_bits(got, encoded(plain.model, in, 40 * 40)));
        in.source.masks.attention = {.added = added.data(), .head_stride = 1600, .query_stride = 40, .n_keys = 40};
        CHECK(same_bits(got, encoded(plain.model, in, 40 * 40)));
    }
}

TEST_CASE(
    "a window without a causal mask sees as far on both sides, and gives the bits of a mask that hides the rest") {
    for (const std::uint32_t window : {1u, 5u, 39u, 64u}) {
        Config config = bert_config();
        const SmallModel plain(config, Type::f32);
        config.encoder.blocks[0].attention.window = window;
        const SmallModel small(config, Type::f32);
        const auto ids = some_tokens(40, 60);
        const std::uint32_t lengths[] = {40};
        EncodeInput in{.source = {.ids = ids, .lengths = lengths}};
        const std::vector<float> got = encoded_everywhere(small.model, in, 40 * 40);
        const std::vector<float> added = scores_mask(
            40, [&](std::uint32_t, std::int64_t distance) { return std::abs(distance) < window ? 0.0f : -INFINITY; });
        in.source.masks.attention = {.added = added.data(), .head_stride = 1600, .query_stride = 40, .n_keys = 40};
        const std::vector<float> wanted = encoded(plain.model, in, 40 * 40);
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) < 1e-5f);
    }
}

TEST_CASE("embeddings that are narrower or wider than the layers go through a map, with the same bits everywhere") {
    for (const std::uint32_t width : {7u, 40u, 130u}) {
        Config config = bert_config();
        config.encoder.embedding_width = width;
        config.encoder.embedding_bias = true;
        for (const Type type : {Type::f32, Type::q8}) {
            const SmallModel small(config, type);
            const auto ids = some_tokens(kRows, 60);
            const EncodeInput in{.source = {.ids = ids, .lengths = kLengths}};
            const std::vector<float> all = encoded_everywhere(small.model, in, kRows * 40);
            const std::uint32_t one[] = {1};
            const EncodeInput alone{.source = {.ids = std::span(ids).subspan(17, 1), .lengths = one}};
            CHECK(same_bits(encoded_everywhere(small.model, alone, 40), std::span(all).subspan(17 * 40, 40)));
        }
    }
}

TEST_CASE("what is not computed of heads is refused when a plan is made") {
    Config config = both_config(NormPlace::post);
    config.encoder.head[0] = {.width = 4};
    Plan plan;
    CHECK(make_plan(config, {}, plan).code == Code::unsupported);
    config = bert_config();
    config.encoder.logit_softcap = 3;
    CHECK(make_plan(config, {}, plan).code == Code::unsupported);
}

TEST_CASE("logits of an encoder are scaled and capped as those of a decoder are") {
    Config config = bert_config();
    config.encoder.has_output_head = config.encoder.tied_output = true;
    const std::size_t n_logits = 40 * std::size_t{config.encoder.vocab_size};
    const SmallModel plain(config, Type::f32);
    config.encoder.logit_scale = 0.375f;
    config.encoder.logit_softcap = 3;
    const SmallModel small(config, Type::f32);
    const auto ids = some_tokens(40, 60);
    const std::uint32_t lengths[] = {40};
    const EncodeInput in{.source = {.ids = ids, .lengths = lengths}};
    const std::vector<float> got = encoded_everywhere(small.model, in, n_logits),
                             as_they_are = encoded(plain.model, in, n_logits);
    for (std::size_t i = 0; i < n_logits; ++i) {
        const double wanted = 3 * std::tanh(double{as_they_are[i] * 0.375f} / 3);
        CHECK(std::abs(got[i] - wanted) <=
              4e-7 * std::abs(wanted));  // a quotient, tanh and a product: 1.4 ulp and two roundings
    }
}

}  // namespace
