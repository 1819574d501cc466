// Attention on heads as they are: against plain loops in double, and what must hold for every kind of mask.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "fovea/encode.h"
#include "small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr float kHidden = -HUGE_VALF;

/// Heads, masks and sizes of one call, made from a seed. Heads are [sequence, head, row, dim].
struct Case {
    std::uint32_t n_sequences = 3, n_heads = 4, n_kv_heads = 2, n_queries = 29, n_keys = 75, n_past = 0;
    std::uint32_t head_dim = 20, value_head_dim = 24;
    bool causal = false, hides = false, adds = false, pads = false, lengths = false;
    float softcap = 0;
};

struct Arrays {
    Case c;
    std::vector<float> query, key, value, past_key, past_value, added;
    std::vector<std::uint8_t> hidden, padding;
    std::vector<std::uint32_t> lengths;

    explicit Arrays(const Case& made, std::uint32_t seed = 1) : c(made) {
        std::mt19937 random(seed);
        const auto floats = [&](std::vector<float>& out, std::size_t n) {
            out.resize(n);
            for (float& x : out) x = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-30f;
        };
        const std::size_t n = c.n_sequences, keys = c.n_keys + c.n_past;
        floats(query, n * c.n_heads * c.n_queries * c.head_dim);
        floats(key, n * c.n_kv_heads * c.n_keys * c.head_dim);
        floats(value, n * c.n_kv_heads * c.n_keys * c.value_head_dim);
        floats(past_key, n * c.n_kv_heads * c.n_past * c.head_dim);
        floats(past_value, n * c.n_kv_heads * c.n_past * c.value_head_dim);
        if (c.adds) floats(added, n * c.n_heads * c.n_queries * keys);
        for (float& x : added)
            if (random() % 6 == 0) x = kHidden;
        if (c.hides) hidden.resize(c.n_queries * keys);
        for (auto& x : hidden) x = random() % 3 == 0;
        for (std::size_t i = 0; c.hides && i < keys; ++i) hidden[2 * keys + i] = 1;  // one query sees nothing
        if (c.pads) padding.resize(n * keys);
        for (auto& x : padding) x = random() % 4 == 0;
        for (std::size_t i = 0; c.lengths && i < n; ++i)
            lengths.push_back(static_cast<std::uint32_t>(random() % keys) + 1);
    }

    [[nodiscard]] AttendInput input() const {
        const auto heads = [](const std::vector<float>& data, std::uint64_t n_heads, std::uint64_t rows,
                              std::uint64_t dim) {
            return Heads{data, {n_heads * rows * dim, dim, rows * dim}};
        };
        const std::uint32_t keys = c.n_keys + c.n_past;
        AttendInput in;
        in.query = heads(query, c.n_heads, c.n_queries, c.head_dim);
        in.key = heads(key, c.n_kv_heads, c.n_keys, c.head_dim);
        in.value = heads(value, c.n_kv_heads, c.n_keys, c.value_head_dim);
        in.past_key = heads(past_key, c.n_kv_heads, c.n_past, c.head_dim);
        in.past_value = heads(past_value, c.n_kv_heads, c.n_past, c.value_head_dim);
        in.n_sequences = c.n_sequences;
        in.n_queries = c.n_queries;
        in.n_keys = c.n_keys;
        in.n_past = c.n_past;
        in.masks.causal = c.causal;
        const std::uint64_t matrix = std::uint64_t{c.n_queries} * keys;
        if (c.hides) in.masks.attention = {.hidden = hidden.data(), .query_stride = keys, .n_keys = keys};
        if (c.adds)
            in.masks.attention = {.added = added.data(),
                                  .sequence_stride = c.n_heads * matrix,
                                  .head_stride = matrix,
                                  .query_stride = keys,
                                  .n_keys = keys};
        if (c.pads) in.masks.padding = {.hidden = padding.data(), .sequence_stride = keys, .n_keys = keys};
        in.kv_lengths = lengths;
        in.out_strides = heads(query, c.n_heads, c.n_queries, c.value_head_dim).strides;
        return in;
    }
    [[nodiscard]] std::size_t n_out() const {
        return std::size_t{c.n_sequences} * c.n_heads * c.n_queries * c.value_head_dim;
    }
    [[nodiscard]] std::size_t n_weights() const {
        return std::size_t{c.n_sequences} * c.n_heads * c.n_queries * (c.n_keys + c.n_past);
    }
    [[nodiscard]] bool sees(std::size_t s, std::size_t head, std::size_t q, std::size_t k) const {
        const std::size_t keys = c.n_keys + c.n_past;
        const std::size_t length = c.lengths ? lengths[s] : keys;
        const std::ptrdiff_t diagonal =
            c.lengths ? static_cast<std::ptrdiff_t>(length) - c.n_queries : static_cast<std::ptrdiff_t>(c.n_past);
        if (k >= length || (c.causal && static_cast<std::ptrdiff_t>(k) > diagonal + static_cast<std::ptrdiff_t>(q)))
            return false;
        if (c.pads && padding[s * keys + k]) return false;
        if (c.hides && hidden[q * keys + k]) return false;
        return !c.adds || added[((s * c.n_heads + head) * c.n_queries + q) * keys + k] != kHidden;
    }
};

/// Results of a session of exactly the planned size.
struct Ran {
    std::vector<float> out, weights;
};
Ran run(const Arrays& a, const AttendInput& in, std::uint32_t n_threads = 1, const char* isa = nullptr,
        bool per_head = true) {
    Model model;
    Block block;
    block.n_heads = a.c.n_heads;
    block.n_kv_heads = a.c.n_kv_heads;
    block.head_dim = a.c.head_dim;
    block.value_head_dim = a.c.value_head_dim;
    block.score_softcap = a.c.softcap;
    REQUIRE(attention_model(block, model).ok());
    SmallSession s(model,
                   {.max_batch = in.n_sequences * in.n_queries,
                    .n_threads = n_threads,
                    .max_sequences = in.n_sequences,
                    .max_memory = in.n_sequences * (in.n_keys + in.n_past)},
                   isa);
    Ran ran{std::vector<float>(a.n_out(), NAN), std::vector<float>(a.n_weights() / (per_head ? 1 : a.c.n_heads), NAN)};
    REQUIRE(set_weights(
                s.session,
                {.per_head = per_head, .n_queries = in.n_queries, .n_keys = in.n_keys + in.n_past, .out = ran.weights})
                .ok());
    REQUIRE(attend(s.session, in, ran.out).ok());
    std::vector<float> without(ran.out.size(), NAN);
    REQUIRE(set_weights(s.session, {}).ok());
    REQUIRE(attend(s.session, in, without).ok());  // asking for weights changes nothing else
    CHECK(std::memcmp(without.data(), ran.out.data(), without.size() * 4) == 0);
    return ran;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<Case> cases() {
    return {{},
            {.causal = true},
            {.hides = true},
            {.adds = true},
            {.pads = true},
            {.causal = true, .adds = true, .pads = true},
            {.lengths = true},
            {.causal = true, .lengths = true},
            {.n_past = 41, .causal = true, .hides = true},
            {.n_sequences = 1, .n_heads = 6, .n_kv_heads = 2, .n_queries = 1, .n_keys = 1100, .pads = true},
            {.n_sequences = 1, .n_heads = 3, .n_kv_heads = 1, .n_queries = 600, .n_keys = 600, .causal = true},
            {.n_sequences = 2,
             .n_heads = 1,
             .n_kv_heads = 1,
             .n_queries = 15,
             .n_keys = 530,
             .hides = true,
             .pads = true,
             .softcap = 3.0f}};
}

/// softmax over what is seen, in double.
void check_against_loops(const Arrays& a, const Ran& ran) {
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
                std::vector<double> p(keys);
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
                for (std::size_t k = 0; k < keys; ++k) {
                    worst = std::max(worst, std::abs(ran.weights[row * keys + k] - (sum > 0 ? p[k] / sum : 0)));
                    got_sum += ran.weights[row * keys + k];
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

TEST_CASE("attend: plain loops give the same, for every kind of mask") {
    std::uint32_t seed = 0;
    for (const Case& c : cases()) {
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        check_against_loops(a, run(a, a.input()));
    }
}

TEST_CASE("attend: the same bits on every instruction set and number of threads, weights and means too") {
    std::uint32_t seed = 0;
    for (const Case& c : cases()) {
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        const Ran want = run(a, a.input(), 1, "scalar");
        const Ran mean = run(a, a.input(), 1, "scalar", false);
        const std::size_t matrix = std::size_t{c.n_queries} * (c.n_keys + c.n_past);
        for (std::size_t i = 0; i < mean.weights.size(); ++i) {
            float sum = 0;
            for (std::size_t h = 0; h < c.n_heads; ++h)
                sum += want.weights[i / matrix * c.n_heads * matrix + h * matrix + i % matrix];
            REQUIRE(mean.weights[i] == sum / static_cast<float>(c.n_heads));
        }
        for (const char* isa : isa_names())
            for (const std::uint32_t n_threads : {1u, 2u, 3u, 4u}) {
                CAPTURE(isa);
                CAPTURE(n_threads);
                const Ran got = run(a, a.input(), n_threads, isa);
                CHECK(same(want.out, got.out));
                CHECK(same(want.weights, got.weights));
                CHECK(same(mean.weights, run(a, a.input(), n_threads, isa, false).weights));
            }
    }
}

TEST_CASE("attend: a query of a sequence has the same bits alone as among all") {
    std::uint32_t seed = 0;
    for (const Case& c : cases()) {
        const Arrays a(c, ++seed);
        CAPTURE(seed);
        const Ran all = run(a, a.input());
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
                const Ran got = run(one, in);
                for (std::size_t h = 0; h < c.n_heads; ++h)
                    CHECK(std::memcmp(&got.out[h * c.value_head_dim],
                                      &all.out[((s * c.n_heads + h) * c.n_queries + q) * c.value_head_dim],
                                      c.value_head_dim * sizeof(float)) == 0);
            }
    }
}

TEST_CASE("attend: hidden keys and values may hold anything") {
    std::uint32_t seed = 0;
    for (const Case& c : cases()) {
        if (c.hides || c.adds) continue;  // those hide a key from some queries only
        Arrays a(c, ++seed);
        CAPTURE(seed);
        const Ran want = run(a, a.input());
        for (std::size_t s = 0; s < c.n_sequences; ++s)
            for (std::size_t k = 0; k < c.n_keys; ++k) {
                bool seen = false;
                for (std::size_t q = 0; q < c.n_queries; ++q) seen = seen || a.sees(s, 0, q, k + c.n_past);
                for (std::size_t h = 0; !seen && h < c.n_kv_heads; ++h) {
                    const std::size_t row = (s * c.n_kv_heads + h) * c.n_keys + k;
                    std::fill_n(&a.key[row * c.head_dim], c.head_dim, k % 2 ? NAN : HUGE_VALF);
                    std::fill_n(&a.value[row * c.value_head_dim], c.value_head_dim, k % 3 ? NAN : -HUGE_VALF);
                }
            }
        for (const char* isa : isa_names()) {
            const Ran got = run(a, a.input(), 2, isa);
            CHECK(same(want.out, got.out));
            CHECK(same(want.weights, got.weights));
        }
    }
}

TEST_CASE("attend: what it refuses leaves the result as it was") {
    const Arrays a({.pads = true});
    Model model;
    Block block;
    CHECK(attention_model(block, model).code == Code::config_invalid);
    block.n_heads = block.n_kv_heads = 2;
    block.head_dim = block.value_head_dim = 4;
    block.d_ff = 3;
    CHECK(attention_model(block, model).code == Code::config_invalid);
    block.d_ff = 0;
    REQUIRE(attention_model(block, model).ok());
    const Limits limits{.max_batch = 6, .max_sequences = 2, .max_memory = 10};
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
    refuses([&](AttendInput& in) { in.kv_lengths = lengths; }, Code::bad_shape);
    refuses([&](AttendInput& in) { in.kv_lengths = std::span(lengths).first(1); }, Code::bad_shape);
    std::vector<float> weights(2 * 3 * 5);
    REQUIRE(set_weights(session, {.n_queries = 3, .n_keys = 4, .out = weights}).ok());
    refuses([](AttendInput&) {}, Code::bad_shape);
    REQUIRE(set_weights(session, {.n_queries = 3, .n_keys = 5, .out = std::span(weights).first(29)}).ok());
    refuses([](AttendInput&) {}, Code::bad_shape);
    CHECK(set_weights(session, {.layer = 1, .n_queries = 3, .n_keys = 5, .out = weights}).code == Code::bad_argument);
    CHECK(set_weights(session, {.cross = true, .n_queries = 3, .n_keys = 5, .out = weights}).code ==
          Code::bad_argument);
    REQUIRE(set_weights(session, {}).ok());
    CHECK(attend(session, good, out).ok());
    const Token token = 0;
    CHECK(forward(session, {&token, 1}, {}).code == Code::unsupported);
    CHECK(encode(session, {}, out).code == Code::unsupported);
}
