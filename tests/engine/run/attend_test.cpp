// Attention on heads as they are: against plain loops in double, and what must hold for every kind of mask.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/attend_cases.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// Those of every test, and what only a model's own attention has: windows and appended keys.
std::vector<Case> all_cases() {
    std::vector<Case> all = cases();
    for (const Case& more :
         {Case{.causal = true, .window = 9},
          {.causal = true, .lengths = true, .window = 9},
          {.n_queries = 90, .n_keys = 20, .causal = true, .window = 7},  // queries beyond all keys
          {.n_queries = 90, .n_keys = 20, .causal = true, .lengths = true, .window = 30},
          {.window = 9},
          {.n_past = 41, .lengths = true, .window = 12},
          {.window = 3, .zero_attn = true},
          {.pads = true, .lengths = true, .window = 9, .zero_attn = true},
          {.n_queries = 90, .n_keys = 20, .window = 7, .zero_attn = true},  // some see the zero key alone
          {.zero_attn = true},
          {.lengths = true, .zero_attn = true},
          {.n_past = 41, .causal = true, .lengths = true, .zero_attn = true},
          {.n_queries = 90, .n_keys = 20, .causal = true, .pads = true, .window = 7, .zero_attn = true}})
        all.push_back(more);
    return all;
}

/// Results of a session of exactly the planned size.
struct Attended {
    std::vector<float> out, weights;
};
Attended run(const Arrays& a, const AttendInput& in, std::uint32_t n_threads = 1, const char* isa = nullptr,
             bool per_head = true) {
    Model model;
    AttentionShape heads;
    heads.n_heads = a.c.n_heads;
    heads.n_kv_heads = a.c.n_kv_heads;
    heads.head_dim = a.c.head_dim;
    heads.value_head_dim = a.c.value_head_dim;
    heads.score_softcap = a.c.softcap;
    heads.causal = a.c.window != 0 && a.c.causal;
    heads.window = a.c.window;
    heads.zero_attn = a.c.zero_attn;
    REQUIRE(attention_model(heads, model).ok());
    SmallSession s(model,
                   {.max_batch = in.n_sequences * in.n_queries,
                    .n_threads = n_threads,
                    .max_sequences = in.n_sequences,
                    .max_key_rows = in.n_sequences * (in.n_keys + in.n_past)},
                   isa);
    Attended ran{std::vector<float>(a.n_out(), NAN),
                 std::vector<float>(a.n_weights() / (per_head ? 1 : a.c.n_heads), NAN)};
    REQUIRE(
        capture_attention(
            s.session, {.per_head = per_head, .n_queries = in.n_queries, .n_keys = a.n_columns(), .out = ran.weights})
            .ok());
    REQUIRE(attend(s.session, in, ran.out).ok());
    std::vector<float> without(ran.out.size(), NAN);
    REQUIRE(capture_attention(s.session, {}).ok());
    REQUIRE(attend(s.session, in, without).ok());  // asking for weights changes nothing else
    CHECK(std::memcmp(without.data(), ran.out.data(), without.size() * 4) == 0);
    return ran;
}

/// softmax over what is seen, in double.
void check_against_loops(const Arrays& a, const Attended& ran) {
    const Case& c = a.c;
    const std::size_t keys = c.n_keys + c.n_past;
    const auto at = [&](const std::vector<float>& fresh, const std::vector<float>& past, std::size_t s, std::size_t h,
                        std::size_t k, std::size_t i, std::size_t dim) {
        const std::size_t head = s * c.n_kv_heads + h;
        return static_cast<double>(k < c.n_past ? past[(head * c.n_past + k) * dim + i]
                                                : fresh[(head * c.n_keys + k - c.n_past) * dim + i]);
    };
    double worst = 0;
    for (std::size_t s = 0; s < c.n_sequences; ++s)
        for (std::size_t h = 0; h < c.n_heads; ++h)
            for (std::size_t q = 0; q < c.n_queries; ++q) {
                const std::size_t kv_head = h / (c.n_heads / c.n_kv_heads), row = (s * c.n_heads + h) * c.n_queries + q;
                std::vector<double> p(a.n_columns());
                double sum = 0, got_sum = 0;
                for (std::size_t k = 0; k < keys; ++k) {
                    if (!a.sees(s, h, q, k)) continue;
                    double score = 0;
                    for (std::size_t i = 0; i < c.head_dim; ++i)
                        score += static_cast<double>(a.query[row * c.head_dim + i]) *
                                 at(a.key, a.past_key, s, kv_head, k, i, c.head_dim);
                    score /= std::sqrt(static_cast<double>(c.head_dim));
                    if (c.softcap != 0) score = c.softcap * std::tanh(score / c.softcap);
                    if (c.adds) score += a.added[row * keys + k];
                    sum += p[k] = std::exp(score);
                }
                if (c.zero_attn) sum += p[keys] = 1;
                for (std::size_t k = 0; k < p.size(); ++k) {
                    worst = std::max(worst, std::abs(ran.weights[row * p.size() + k] - (sum > 0 ? p[k] / sum : 0)));
                    got_sum += ran.weights[row * p.size() + k];
                }
                CHECK(std::abs(got_sum - (sum > 0 ? 1 : 0)) <= 1e-5);  // 600 terms of relative error 30·2⁻²⁴
                for (std::size_t i = 0; i < c.value_head_dim; ++i) {
                    double want = 0;
                    for (std::size_t k = 0; k < keys; ++k)
                        if (p[k] > 0)
                            want += p[k] / sum * at(a.value, a.past_value, s, kv_head, k, i, c.value_head_dim);
                    worst = std::max(worst, std::abs(ran.out[row * c.value_head_dim + i] - want));
                }
            }
    CHECK(worst <= 1e-5);  // scores below 64·2⁻²⁴ off, values below 2
}

}  // namespace

TEST_CASE("attend: sequences of a module with appended keys and normed ones are what each is alone") {
    constexpr std::uint32_t kQueries = 6, kKeys = 17, kWidth = 20;
    for (const Norm norm : {Norm::none, Norm::rms, Norm::layer})
        for (const bool bias_kv : {false, true})
            for (const bool zero_attn : {false, true})
                for (const HeadNorm head_norm : {HeadNorm::shared, HeadNorm::each}) {
                    CAPTURE(static_cast<int>(norm));
                    CAPTURE(bias_kv);
                    CAPTURE(zero_attn);
                    Config config;
                    Stack& stack = config.encoder;
                    stack.n_layers = stack.n_blocks = 1;
                    stack.d_model = kWidth;
                    AttentionShape& heads = stack.blocks[0].attention;
                    heads.n_heads = heads.n_kv_heads = 4;
                    heads.head_dim = heads.value_head_dim = 5;
                    heads.bias_kv = bias_kv;
                    heads.zero_attn = zero_attn;
                    heads.query_key_norm = norm;
                    if (norm != Norm::none) heads.head_norm = head_norm;
                    heads.has_output_map = true;
                    const SmallModel small(config, Type::f32, 3);
                    std::vector<float> query(3 * kQueries * kWidth), key(3 * kKeys * kWidth);
                    std::mt19937 random(4);
                    for (std::vector<float>* all : {&query, &key})
                        for (float& x : *all) x = static_cast<float>(random() % 2001) / 1000 - 1;
                    const auto run_of = [&](std::uint32_t first, std::uint32_t n, std::uint32_t n_threads) {
                        SmallSession s(small.model, {.max_batch = n * kQueries,
                                                     .n_threads = n_threads,
                                                     .max_sequences = n,
                                                     .max_key_rows = n * kKeys});
                        AttendInput in;
                        in.query.data = std::span(query).subspan(first * kQueries * kWidth, n * kQueries * kWidth);
                        in.key.data = in.value.data =
                            std::span(key).subspan(first * kKeys * kWidth, n * kKeys * kWidth);
                        in.n_sequences = n;
                        in.n_queries = kQueries;
                        in.n_keys = kKeys;
                        std::vector<float> out(n * kQueries * kWidth);
                        REQUIRE(attend(s.session, in, out).ok());
                        return out;
                    };
                    std::vector<float> alone;
                    for (std::uint32_t i = 0; i < 3; ++i) {
                        const std::vector<float> one = run_of(i, 1, 1);
                        alone.insert(alone.end(), one.begin(), one.end());
                    }
                    CHECK(same(run_of(0, 3, 1), alone));
                    CHECK(same(run_of(0, 3, 3), alone));
                }
}

TEST_CASE("attend: plain loops give the same, for every kind of mask") {
    std::uint32_t seed = 0;
    for (const Case& c : all_cases()) {
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        check_against_loops(a, run(a, a.input()));
    }
}

TEST_CASE("attend: the same bits on every instruction set and number of threads, weights and means too") {
    std::uint32_t seed = 0;
    for (const Case& c : all_cases()) {
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        const Attended want = run(a, a.input(), 1, "scalar");
        const Attended mean = run(a, a.input(), 1, "scalar", false);
        const std::size_t matrix = std::size_t{c.n_queries} * a.n_columns();
        for (std::size_t i = 0; i < mean.weights.size(); ++i) {
            float sum = 0;
            for (std::size_t h = 0; h < c.n_heads; ++h)
                sum += want.weights[i / matrix * c.n_heads * matrix + h * matrix + i % matrix];
            REQUIRE(mean.weights[i] == sum / static_cast<float>(c.n_heads));
        }
        for (const char* isa : model_isas())
            for (const std::uint32_t n_threads : {1u, 2u, 3u, 4u}) {
                CAPTURE(isa);
                CAPTURE(n_threads);
                const Attended got = run(a, a.input(), n_threads, isa);
                CHECK(same(want.out, got.out));
                CHECK(same(want.weights, got.weights));
                CHECK(same(mean.weights, run(a, a.input(), n_threads, isa, false).weights));
            }
    }
}

TEST_CASE("attend: a query of a sequence has the same bits alone as among all") {
    std::uint32_t seed = 0;
    for (const Case& c : all_cases()) {
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        if (c.window) continue;  // counted from a place that a query alone does not have
        const Attended all = run(a, a.input());
        for (std::uint32_t s = 0; s < c.n_sequences; ++s)
            for (const std::uint32_t q : {0u, c.n_queries / 2, c.n_queries - 1}) {
                // The sequence and the query alone: causal ones see what their place among all lets them see.
                AttendInput in = a.input();
                in.n_sequences = in.n_queries = 1;
                const auto skip = [&](Heads& heads, std::uint64_t n) { heads.data = heads.data.subspan(n); };
                skip(in.query, s * in.query.strides.sequence + q * in.query.strides.row);
                for (Heads* heads : {&in.key, &in.value, &in.past_key, &in.past_value})
                    skip(*heads, s * heads->strides.sequence);
                Mask& mask = in.masks.attention;
                const std::uint64_t at = s * mask.sequence_stride + q * mask.query_stride;
                if (mask.hidden) mask.hidden += at;
                if (mask.added) mask.added += at;
                if (c.pads) in.masks.padding.hidden += s * in.masks.padding.sequence_stride;
                const std::int64_t length = c.lengths ? a.lengths[s] : c.n_keys + c.n_past;
                const std::int64_t seen = (c.lengths ? length - c.n_queries : c.n_past) + std::int64_t{q} + 1;
                const auto n =
                    static_cast<std::uint32_t>(c.causal ? std::max<std::int64_t>(0, std::min(length, seen)) : length);
                in.kv_lengths = {&n, 1};
                in.masks.causal = false;
                in.out_strides = {0, c.value_head_dim, c.value_head_dim};
                Arrays one = a;
                one.c.n_sequences = one.c.n_queries = 1;
                const Attended got = run(one, in);
                for (std::size_t h = 0; h < c.n_heads; ++h)
                    CHECK(std::memcmp(&got.out[h * c.value_head_dim],
                                      &all.out[((s * c.n_heads + h) * c.n_queries + q) * c.value_head_dim],
                                      c.value_head_dim * sizeof(float)) == 0);
            }
    }
}

TEST_CASE("attend: a key and a value that a query does not see may hold anything") {
    std::uint32_t seed = 0;
    for (const Case& c : all_cases()) {
        Arrays a(c, ++seed);
        CAPTURE(seed);
        const Attended want = run(a, a.input());
        // Where masks hide a key from some queries only: one key, so that others see NaN.
        std::vector<std::uint8_t> spoiled(std::size_t{c.n_sequences} * c.n_keys);
        for (std::size_t s = 0; s < c.n_sequences; ++s)
            for (std::size_t k = 0; k < c.n_keys; ++k) {
                bool seen = (c.hides || c.adds) && k != 3;
                for (std::size_t q = 0; !(c.hides || c.adds) && q < c.n_queries; ++q)
                    seen = seen || a.sees(s, 0, q, k + c.n_past);
                spoiled[s * c.n_keys + k] = !seen;
                for (std::size_t h = 0; !seen && h < c.n_kv_heads; ++h) {
                    const std::size_t row = (s * c.n_kv_heads + h) * c.n_keys + k;
                    std::fill_n(&a.key[row * c.head_dim], c.head_dim, k % 2 ? NAN : HUGE_VALF);
                    std::fill_n(&a.value[row * c.value_head_dim], c.value_head_dim, k % 3 ? NAN : -HUGE_VALF);
                }
            }
        for (const char* isa : model_isas()) {
            CAPTURE(isa);
            const Attended got = run(a, a.input(), 2, isa);
            std::size_t n_compared = 0;
            for (std::size_t row = 0; row < std::size_t{c.n_sequences} * c.n_heads * c.n_queries; ++row) {
                const std::size_t q = row % c.n_queries, h = row / c.n_queries % c.n_heads,
                                  s = row / c.n_queries / c.n_heads, keys = a.n_columns();
                bool clean = true;
                for (std::size_t k = 0; k < c.n_keys; ++k)
                    clean = clean && !(spoiled[s * c.n_keys + k] && a.sees(s, h, q, k + c.n_past));
                if (!clean) continue;
                ++n_compared;
                REQUIRE(std::memcmp(&got.out[row * c.value_head_dim], &want.out[row * c.value_head_dim],
                                    c.value_head_dim * sizeof(float)) == 0);
                REQUIRE(std::memcmp(&got.weights[row * keys], &want.weights[row * keys], keys * sizeof(float)) == 0);
            }
            CHECK(n_compared > 0);
        }
    }
}

TEST_CASE("attend: sequences in another order give their results in that order") {
    std::uint32_t seed = 0;
    for (const Case& c : all_cases()) {
        if (c.n_sequences == 1) continue;
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        const Attended want = run(a, a.input());
        Arrays apply_sign = a;  // each sequence becomes the next, the last the first
        const auto turn = [&](auto& x) {
            if (!x.empty())
                std::rotate(x.begin(), x.end() - static_cast<std::ptrdiff_t>(x.size() / c.n_sequences), x.end());
        };
        for (auto* x : {&apply_sign.query, &apply_sign.key, &apply_sign.value, &apply_sign.past_key,
                        &apply_sign.past_value, &apply_sign.added})
            turn(*x);
        turn(apply_sign.padding);
        turn(apply_sign.lengths);
        Attended expected = want;
        turn(expected.out);
        turn(expected.weights);
        const Attended got = run(apply_sign, apply_sign.input(), 2);
        CHECK(same(expected.out, got.out));
        CHECK(same(expected.weights, got.weights));
    }
}

TEST_CASE("attend: a module that appends keys gives the same bits everywhere, beside every mask") {
    Config config;
    Stack& s = config.encoder;
    s.n_layers = s.n_blocks = 1;
    s.d_model = 20;
    AttentionShape& b = s.blocks[0].attention;
    b.n_heads = b.n_kv_heads = 4;
    b.head_dim = b.value_head_dim = 5;
    b.query_bias = b.key_bias = b.value_bias = b.output_bias = b.bias_kv = b.zero_attn = true;
    const SmallModel small(config, Type::f32);
    std::uint32_t seed = 0;
    for (Case c : all_cases()) {
        c.n_past = 0;
        c.n_kv_heads = c.n_heads = 4;
        c.n_keys = std::min(c.n_keys, 75u);
        c.n_queries = std::min(c.n_queries, 29u);
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        AttendInput in = a.input();
        in.query.data = std::span(a.query).first(std::size_t{c.n_sequences} * c.n_queries * 20);
        in.key.data = in.value.data = std::span(a.key).first(std::size_t{c.n_sequences} * c.n_keys * 20);
        const auto result = [&](const char* isa, std::uint32_t n_threads, Type kv_type) {
            SmallSession session(small.model,
                                 {.max_batch = c.n_sequences * c.n_queries,
                                  .n_threads = n_threads,
                                  .kv_type = kv_type,
                                  .max_sequences = c.n_sequences,
                                  .max_key_rows = c.n_sequences * c.n_keys},
                                 isa);
            std::vector<float> out(in.query.data.size(), NAN);
            REQUIRE(attend(session.session, in, out).ok());
            for (const float x : out) REQUIRE(std::isfinite(x));
            return out;
        };
        for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4}) {
            const std::vector<float> want = result("scalar", 1, kv_type);
            for (const char* isa : model_isas())
                for (const std::uint32_t n_threads : {1u, 2u, 3u}) {
                    CAPTURE(isa);
                    CAPTURE(n_threads);
                    CHECK(same(want, result(isa, n_threads, kv_type)));
                }
        }
    }
}

TEST_CASE("attend: what it refuses leaves the result as it was") {
    const Arrays a({.pads = true});
    Model model;
    AttentionShape heads;
    CHECK(attention_model(heads, model).code == Code::config_invalid);
    heads.n_heads = heads.n_kv_heads = 2;
    heads.head_dim = heads.value_head_dim = 4;
    heads.query_key_norm = Norm::rms;
    CHECK(attention_model(heads, model).code == Code::config_invalid);
    heads.query_key_norm = Norm::none;
    REQUIRE(attention_model(heads, model).ok());
    const Limits limits{.max_batch = 6, .max_sequences = 2, .max_key_rows = 10};
    Plan plan;
    REQUIRE(make_plan(model.config(), limits, plan).ok());
    AlignedBytes arena(plan.arena_bytes);
    Session session;
    CHECK(make_session(model, limits, std::span(arena).first(plan.arena_bytes - 1), session).code ==
          Code::arena_too_small);
    REQUIRE(make_session(model, limits, arena, session).ok());
    const std::vector<float> x(2 * 5 * 8, 1.0f);
    std::vector<float> out(2 * 3 * 8, 7.0f);
    const Strides strides{40, 8, 4};
    AttendInput good;
    good.query = good.key = good.value = {x, strides};
    good.n_sequences = 2;
    good.n_queries = 3;
    good.n_keys = 5;
    good.out_strides = {24, 8, 4};
    const auto refuses = [&](const auto& change, Code code) {
        AttendInput bad = good;
        change(bad);
        CHECK(attend(session, bad, out).code == code);
        for (const float y : out) CHECK(y == 7.0f);
    };
    const std::uint32_t lengths[] = {5, 6};
    refuses([](AttendInput& in) { in.n_sequences = 3; }, Code::bad_shape);
    refuses([](AttendInput& in) { in.n_queries = 0; }, Code::bad_shape);
    refuses([](AttendInput& in) { in.n_queries = 4; }, Code::bad_shape);
    refuses([](AttendInput& in) { in.n_keys = 6; }, Code::bad_shape);
    refuses([](AttendInput& in) { in.n_past = 1; }, Code::bad_shape);
    refuses([](AttendInput& in) { in.key.data = in.key.data.first(79); }, Code::bad_shape);
    refuses([](AttendInput& in) { in.query.strides.head = ~std::uint64_t{0}; }, Code::bad_shape);
    refuses([](AttendInput& in) { in.value.strides.sequence = 0; }, Code::bad_shape);
    refuses([](AttendInput& in) { in.out_strides.row = 9; }, Code::bad_shape);
    for (const Strides& meet : {Strides{}, {24, 8, 3}, {24, 4, 4}, {23, 8, 4}, {20, 4, 10}})
        refuses([&](AttendInput& in) { in.out_strides = meet; }, Code::bad_shape);
    refuses([&](AttendInput& in) { in.kv_lengths = lengths; }, Code::bad_shape);
    refuses([&](AttendInput& in) { in.kv_lengths = std::span(lengths).first(1); }, Code::bad_shape);
    std::vector<float> weights(2 * 3 * 5);
    REQUIRE(capture_attention(session, {.n_queries = 3, .n_keys = 4, .out = weights}).ok());
    refuses([](AttendInput&) {}, Code::bad_shape);
    REQUIRE(capture_attention(session, {.n_queries = 3, .n_keys = 5, .out = std::span(weights).first(29)}).ok());
    refuses([](AttendInput&) {}, Code::bad_shape);
    CHECK(capture_attention(session, {.layer = 1, .n_queries = 3, .n_keys = 5, .out = weights}).code ==
          Code::bad_argument);
    CHECK(capture_attention(session, {.cross = true, .n_queries = 3, .n_keys = 5, .out = weights}).code ==
          Code::bad_argument);
    REQUIRE(capture_attention(session, {}).ok());
    CHECK(attend(session, good, out).ok());
    const Token token = 0;
    CHECK(forward(session, {&token, 1}, {}).code == Code::unsupported);
    CHECK(encode(session, {}, out).code == Code::unsupported);
}
