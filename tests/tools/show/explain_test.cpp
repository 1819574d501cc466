// The steps of --explain, run unfused, end in what the fused path gives, and are what their formulas say.
#include "tools/show/explain.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/attend_cases.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

Model heads_of(const Case& c) {
    AttentionShape heads;
    heads.n_heads = c.n_heads;
    heads.n_kv_heads = c.n_kv_heads;
    heads.head_dim = c.head_dim;
    heads.value_head_dim = c.value_head_dim;
    heads.score_softcap = c.softcap;
    Model model;
    REQUIRE(attention_model(heads, model).ok());
    return model;
}

std::vector<float> fused(const Model& model, const AttendInput& in, std::size_t n_out, std::vector<float>& weights,
                         Type kv_type = Type::f32, const char* isa = nullptr) {
    const std::uint32_t keys = in.n_keys + in.n_past;
    SmallSession s(model,
                   {.max_batch = in.n_sequences * in.n_queries,
                    .kv_type = kv_type,
                    .max_sequences = in.n_sequences,
                    .max_key_rows = in.n_sequences * keys},
                   isa);
    std::vector<float> out(n_out, NAN);
    const AttentionShape& b = model.config().encoder.blocks[0].attention;
    const std::uint32_t n_keys = keys + b.bias_kv + b.zero_attn;
    weights.assign(std::size_t{in.n_sequences} * b.n_heads * in.n_queries * n_keys, NAN);
    REQUIRE(
        capture_attention(s.session, {.per_head = true, .n_queries = in.n_queries, .n_keys = n_keys, .out = weights})
            .ok());
    REQUIRE(attend(s.session, in, out).ok());
    return out;
}

const ExplainedStep& step(const std::vector<ExplainedStep>& steps, const std::string& name) {
    const auto found = std::find_if(steps.begin(), steps.end(), [&](const ExplainedStep& s) { return s.name == name; });
    REQUIRE(found != steps.end());
    return *found;
}

}  // namespace

TEST_CASE("explain: up to 64 keys the unfused steps end in the fused path's bits, for every mask and instruction set") {
    std::uint32_t seed = 0;
    for (Case c : cases()) {
        c.n_past = std::min(c.n_past, 20u);
        c.n_keys = std::min(c.n_keys, 64 - c.n_past);
        c.n_queries = std::min(c.n_queries, 40u);
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        const Model model = heads_of(c);
        for (const char* isa : model_isas())
            for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4}) {
                CAPTURE(isa);
                CAPTURE(static_cast<int>(kv_type));
                std::vector<float> weights, out;
                const std::vector<float> want = fused(model, a.input(), a.n_out(), weights, kv_type, isa);
                const std::vector<ExplainedStep> steps = explain(model, a.input(), kv_type, isa, out);
                CHECK(same(out, want));
                CHECK(same(step(steps, "softmax").values, weights));
            }
    }
}

TEST_CASE("explain: beyond 64 keys they differ by no more than the stated bound") {
    std::uint32_t seed = 0;
    for (const Case& c : cases()) {
        if (c.n_keys > 700) continue;
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        const Model model = heads_of(c);
        std::vector<float> weights, out;
        const std::vector<float> want = fused(model, a.input(), a.n_out(), weights);
        const std::vector<ExplainedStep> steps = explain(model, a.input(), Type::f32, nullptr, out);
        float largest = 0;
        for (const float x : a.value) largest = std::max(largest, std::abs(x));
        for (const float x : a.past_value) largest = std::max(largest, std::abs(x));
        const float bound = (2 * static_cast<float>(c.n_keys + c.n_past) + 400) * 0x1p-24f * largest;
        REQUIRE(out.size() == want.size());
        for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(std::abs(out[i] - want[i]) <= bound);
        // Before the mask, scores are products of queries and keys.
        const ExplainedStep& scores = step(steps, "scores");
        const std::size_t keys = c.n_keys + c.n_past;
        CHECK(scores.shape == std::vector<std::uint64_t>{c.n_sequences, c.n_heads, c.n_queries, keys});
        double product = 0;  // the first query's and the first fresh key's
        for (std::size_t i = 0; i < c.head_dim; ++i) product += double{a.query[i]} * a.key[i];
        CHECK(std::abs(scores.values[c.n_past] - product) < 1e-5);
    }
}

TEST_CASE("explain: a module's projections, appended keys and output map end in the fused bits, in every type") {
    for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8, Type::q4})
        for (const bool appends : {false, true}) {
            Config config;
            Stack& s = config.encoder;
            s.n_layers = s.n_blocks = 1;
            s.d_model = 48;
            AttentionShape& b = s.blocks[0].attention;
            b.n_heads = 6;
            b.n_kv_heads = appends ? 6 : 2;
            b.head_dim = 8;
            b.value_head_dim = appends ? 8 : 5;
            b.key_width = 40;
            b.value_width = 24;
            b.query_bias = b.value_bias = b.output_bias = true;
            b.bias_kv = b.zero_attn = appends;
            const SmallModel small(config, type);
            const Arrays a({.n_sequences = 2, .n_queries = 9, .n_keys = 21, .head_dim = 48, .value_head_dim = 40}, 3);
            AttendInput in;
            in.n_sequences = 2;
            in.n_queries = 9;
            in.n_keys = 21;
            in.query.data = std::span(a.query).first(2 * 9 * 48);
            in.key.data = std::span(a.key).first(2 * 21 * 40);
            in.value.data = std::span(a.value).first(2 * 21 * 24);
            in.masks.causal = true;
            std::vector<float> weights, out;
            const std::vector<float> want = fused(small.model, in, 2 * 9 * 48, weights);
            const std::vector<ExplainedStep> steps = explain(small.model, in, Type::f32, nullptr, out);
            CAPTURE(static_cast<int>(type));
            CHECK(same(out, want));
            CHECK(same(step(steps, "softmax").values, weights));
            CHECK(steps.size() == 13);
            CHECK(step(steps, "project keys").formula == "K = key \u00b7 Wk\u1d40");
            CHECK(step(steps, "output map").shape == std::vector<std::uint64_t>{2, 9, 48});
        }
}

TEST_CASE("explain: steps in words") {
    const std::string words = in_words(std::vector<ExplainedStep>{
        {"scores", "S = Q", {1, 4, 7}, std::vector<float>(28, 0.5f)}, {"one", "x", {1, 1}, {-1.25f}}});
    CHECK(words ==
          "1. scores  [1, 4, 7]  S = Q\n"
          "   0.500000   0.500000   0.500000   0.500000   0.500000   0.500000  \u2026\n"
          "   0.500000   0.500000   0.500000   0.500000   0.500000   0.500000  \u2026\n"
          "   0.500000   0.500000   0.500000   0.500000   0.500000   0.500000  \u2026\n"
          "          \u22ee\n"
          "2. one  [1, 1]  x\n"
          "  -1.250000\n");
}
