// Stacks over vectors and ids: one sequence's result depends on nothing but itself, and has the same bits everywhere.
// That it is the right one: the reference cases, through the command line.
#include <doctest/doctest.h>

#include <cmath>

#include "fovea/encode.h"
#include "host/model/parameters.h"
#include "tests/support/encoder_models.h"
#include "tests/support/same_bits.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

std::vector<float> encoded(const Model& model, const EncodeInput& in, std::size_t n_out, const Limits& limits,
                           const char* isa = nullptr) {
    SmallSession s(model, limits, isa);
    std::vector<float> out(n_out, NAN);
    const Status status = encode(s.session, in, out);
    CAPTURE(status.what);
    REQUIRE(status.ok());
    for (const float x : out) CHECK(std::isfinite(x));
    return out;
}

constexpr std::uint32_t kLengths[] = {17, 1, 40, 5};
constexpr std::uint32_t kRows = 63;

}  // namespace

TEST_CASE("encode: ids of several sequences give what each gives alone, pooled or not, on every instruction set") {
    for (const Pooling pooling : {Pooling::none, Pooling::mean, Pooling::first, Pooling::last, Pooling::max,
                                  Pooling::weighted_mean, Pooling::mean_sqrt_len}) {
        Config config = bert_config();
        config.encoder.pooling = pooling;
        config.encoder.normalize_pooled = pooling != Pooling::none;
        const SmallModel small(config, Type::f32);
        const bool pooled = pooling != Pooling::none;
        CAPTURE(static_cast<int>(pooling));
        const auto ids = some_tokens(kRows, 60), types = some_tokens(kRows, 2);
        const EncodeInput all{.source = {.ids = ids, .types = types, .lengths = kLengths}};
        const Limits limits{.max_batch = kRows, .max_sequences = 4};
        const std::size_t n_out = (pooled ? 4 : kRows) * 40;
        const auto want = encoded(small.model, all, n_out, limits, "scalar");
        for (const char* isa : model_isas())
            for (const std::uint32_t n_threads : {1u, 2u, 3u}) {
                CAPTURE(isa);
                CAPTURE(n_threads);
                Limits threads = limits;
                threads.n_threads = n_threads;
                CHECK(same_bits(want, encoded(small.model, all, n_out, threads, isa)));
            }
        std::size_t row = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            const std::uint32_t n = kLengths[i];
            const EncodeInput one{.source = {.ids = std::span(ids).subspan(row, n),
                                             .types = std::span(types).subspan(row, n),
                                             .lengths = {&n, 1}}};
            const auto alone = encoded(small.model, one, (pooled ? 1 : n) * 40, {.max_batch = n});
            CHECK(same_bits(alone, std::span(want).subspan((pooled ? i : row) * 40, alone.size())));
            double squares = 0;
            for (std::size_t j = 0; j < 40; ++j) squares += double{alone[j]} * alone[j];
            if (pooled) CHECK(std::abs(squares - 1) < 1e-5);
            row += n;
        }
    }
}

TEST_CASE(
    "encode: an encoder and a decoder give the same bits for one sequence and several, on any number of threads") {
    for (const NormPlace place : {NormPlace::pre, NormPlace::post})
        for (const Type type : {Type::f32, Type::f16, Type::q8, Type::q4}) {
            const SmallModel small(both_config(place), type);
            CAPTURE(static_cast<int>(type));
            const std::uint32_t targets[] = {3, 30, 1, 20};
            const auto source = some_floats(kRows * 40, 1), target = some_floats(54 * 40, 2);
            std::vector<std::uint8_t> padding(4 * 40, 0);
            for (std::size_t i = 0; i < padding.size(); ++i) padding[i] = i % 40 % 7 == 3;
            const Mask mask{.hidden = padding.data(), .sequence_stride = 40, .n_keys = 40};
            const EncodeInput all{.source = {.vectors = source, .lengths = kLengths, .masks = {.padding = mask}},
                                  .target = {.vectors = target, .lengths = targets, .masks = {.causal = true}},
                                  .memory_masks = {.padding = mask}};
            const Limits limits{.max_batch = kRows, .max_sequences = 4};
            const auto want = encoded(small.model, all, 54 * 40, limits, "scalar");
            for (const char* isa : model_isas())
                for (const std::uint32_t n_threads : {1u, 2u, 4u}) {
                    Limits threads = limits;
                    threads.n_threads = n_threads;
                    CHECK(same_bits(want, encoded(small.model, all, 54 * 40, threads, isa)));
                }
            std::size_t row = 0, target_row = 0;
            for (std::size_t i = 0; i < 4; ++i) {
                EncodeInput one = all;
                one.source.vectors = std::span(source).subspan(row * 40, kLengths[i] * 40);
                one.source.lengths = std::span(kLengths).subspan(i, 1);
                one.target.vectors = std::span(target).subspan(target_row * 40, targets[i] * 40);
                one.target.lengths = std::span(targets).subspan(i, 1);
                one.source.masks.padding.hidden += i * 40;
                one.memory_masks.padding.hidden += i * 40;
                const auto alone = encoded(small.model, one, targets[i] * 40, {.max_batch = kRows});
                CHECK(same_bits(alone, std::span(want).subspan(target_row * 40, alone.size())));
                // A later row of a causal target changes no earlier one.
                if (targets[i] > 2) {
                    const std::uint32_t fewer = targets[i] - 1;
                    one.target.vectors = one.target.vectors.first(fewer * 40);
                    one.target.lengths = {&fewer, 1};
                    CHECK(same_bits(encoded(small.model, one, fewer * 40, {.max_batch = kRows}),
                                    std::span(alone).first(fewer * 40)));
                }
                row += kLengths[i];
                target_row += targets[i];
            }
        }
}

TEST_CASE("encode: the planned bytes are enough and one less is refused; wrong calls change nothing") {
    const SmallModel small(both_config(NormPlace::post), Type::f32);
    const Limits limits{.max_batch = 8, .n_threads = 2, .max_sequences = 2, .max_key_rows = 9};
    Plan plan;
    REQUIRE(make_plan(small.model.config(), limits, plan).ok());
    AlignedBytes arena(plan.arena_bytes + 64, std::byte{0x5a});
    Session session;
    CHECK(make_session(small.model, limits, std::span(arena).first(plan.arena_bytes - 1), session).code ==
          Code::arena_too_small);
    REQUIRE(make_session(small.model, limits, std::span(arena).first(plan.arena_bytes), session).ok());
    const auto x = some_floats(9 * 40, 3);
    const std::uint32_t lengths[] = {7, 1}, none[] = {8, 0}, more[] = {7, 2};
    const EncodeInput good{.source = {.vectors = std::span(x).first(320), .lengths = lengths},
                           .target = {.vectors = std::span(x).first(320), .lengths = lengths}};
    std::vector<float> out(320, 7.0f);
    const auto refuses = [&](const auto& change) {
        EncodeInput bad = good;
        change(bad);
        CHECK(encode(session, bad, out).code == Code::bad_shape);
        for (const float y : out) CHECK(y == 7.0f);
    };
    refuses([&](EncodeInput& in) { in.source.lengths = none; });
    refuses([&](EncodeInput& in) { in.source.lengths = more; });
    refuses([&](EncodeInput& in) { in.source.lengths = {}; });
    refuses([&](EncodeInput& in) { in.target.lengths = in.target.lengths.first(1); });
    refuses([&](EncodeInput& in) { in.target.vectors = x; });
    refuses([&](EncodeInput& in) { in.memory = x; });
    CHECK(encode(session, good, std::span(out).first(319)).code == Code::bad_shape);
    CHECK(encode(session, good, out).ok());
    for (std::size_t past = 0; past < 64; ++past) CHECK(arena[plan.arena_bytes + past] == std::byte{0x5a});
    CHECK(make_plan(small.model.config(), {.max_kv_len = 5}, plan).code == Code::bad_limits);
    CHECK(make_plan(small.model.config(), {.max_batch = 1u << 23}, plan).code == Code::bad_limits);
}

TEST_CASE("the number of heads changes no parameter count, and changes the result") {
    ParameterCount counts[2];
    std::vector<float> results[2];
    for (const std::uint32_t n_heads : {2u, 8u}) {
        Config config;
        Stack& s = config.encoder;
        s.n_layers = s.n_blocks = 1;
        s.d_model = 512;
        AttentionShape& b = s.blocks[0].attention;
        b.n_heads = b.n_kv_heads = n_heads;
        b.head_dim = b.value_head_dim = 512 / n_heads;
        b.query_bias = b.key_bias = b.value_bias = b.output_bias = true;
        const SmallModel small(config, Type::f32);
        counts[n_heads / 8] = count_parameters(small.model.config());
        CHECK(counts[n_heads / 8].attention == 1536 * 512 + 512 * 512);
        CHECK(counts[n_heads / 8].biases_and_norms == 1536 + 512);
        const auto x = some_floats(12 * 512, 5);
        SmallSession session(small.model, {.max_batch = 12});
        AttendInput in;
        in.query.data = in.key.data = in.value.data = x;
        in.n_queries = in.n_keys = 12;
        results[n_heads / 8].resize(12 * 512);
        REQUIRE(attend(session.session, in, results[n_heads / 8]).ok());
    }
    CHECK(counts[0].total == counts[1].total);
    CHECK_FALSE(same_bits(results[0], results[1]));
}
