// Ranks in stages, each a thread here: every stage has a run of layers, and the bits are those of one.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <string_view>
#include <thread>
#include <vector>

#include "fovea/encode.h"
#include "fovea/ranks.h"
#include "tests/support/encoded.h"
#include "tests/support/encoder_models.h"
#include "tests/support/rank_group.h"
#include "tests/support/rank_session.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// Ranks in stages, and their shares.
struct Shape {
    std::vector<std::uint8_t> shares;
    std::uint8_t n_stages;

    [[nodiscard]] std::uint32_t n_ranks() const { return static_cast<std::uint32_t>(shares.size()); }
    [[nodiscard]] RankSplit split() const { return {shares.data(), n_stages}; }
};

const std::vector<Shape> kShapes{{{1, 1}, 2}, {{1, 1, 1}, 3}, {{1, 1, 1, 1}, 2}, {{1, 5}, 2}, {{3, 1, 1, 2, 2, 9}, 3}};

[[nodiscard]] std::uint64_t bytes_of(const Plan& plan, std::string_view name) {
    for (std::uint32_t i = 0; i < plan.n_parts; ++i)
        if (plan.parts[i].name == name) return plan.parts[i].bytes;
    return 0;
}

[[nodiscard]] Limits limits_of(const RankSplit& split, std::uint32_t rank, std::uint32_t n_ranks) {
    return {.rank = static_cast<std::uint8_t>(rank), .n_ranks = static_cast<std::uint8_t>(n_ranks), .split = &split};
}

/// A prompt of several passes without logits, then logits of three tokens.
[[nodiscard]] std::vector<float> logits_behind(Session& session, std::span<const Token> text) {
    std::vector<float> all(3 * std::size_t{session.model().config().decoder.vocab_size});
    const bool ok = forward(session, text.first(text.size() - 3), {}).ok() &&
                    forward(session, text.subspan(text.size() - 3), all).ok();
    if (!ok) all.clear();
    return all;
}

}  // namespace

TEST_CASE("stages: logits have the bits of one, for every model, number of stages and ranks of each") {
    std::vector<NamedConfig> all_configs = decoder_configs();
    std::ranges::copy(recurrent_configs(), std::back_inserter(all_configs));
    int n_refused = 0;
    for (const NamedConfig& named : all_configs)
        for (const Type type : {Type::f32, Type::q8}) {
            if (kSanitized && type != Type::f32) continue;
            CAPTURE(named.name);
            const SmallModel small(named.config, type);
            const std::vector<float> want = logits_of(small.model, {.max_batch = 12}, nullptr);
            REQUIRE(!want.empty());
            for (const Shape& shape : kShapes) {
                CAPTURE(shape.n_ranks());
                const RankSplit split = shape.split();
                Plan plan;
                const Status planned = make_plan(small.model.config(), limits_of(split, 0, shape.n_ranks()), plan);
                n_refused += planned.code == Code::unsupported;
                if (planned.code == Code::unsupported) {
                    CHECK(named.name == "shared keys");
                    continue;
                }
                Group group(shape.n_ranks());
                std::vector<std::vector<float>> got(shape.n_ranks());
                for_all_ranks(group, [&](const Ranks& ranks) {
                    const Limits limits{.max_batch = 12, .n_threads = ranks.rank % 2 + 1, .split = &split};
                    got[ranks.rank] = logits_of(small.model, limits, &ranks);
                });
                for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
            }
        }
    CHECK(n_refused > 0);  // its last layers read keys of the third, which most shapes have in another stage
}

TEST_CASE("stages: one begins the next pass while another has not ended the one before") {
    const SmallModel small(llama_config(4), Type::q8);
    const auto text = some_tokens(60, small.model.config().decoder.vocab_size);
    struct Watch {
        std::atomic<bool> second_began = false;  // the second pass, on the first stage
        bool has_waited = false, overlapped = false;
    } watch;
    const auto see_second = [](void* its, std::uint32_t position, std::uint32_t, const char*, std::span<const float>) {
        if (position >= 20) static_cast<Watch*>(its)->second_began = true;
    };
    const auto wait_in_first = [](void* its, std::uint32_t, std::uint32_t layer, const char*, std::span<const float>) {
        auto& own = *static_cast<Watch*>(its);
        if (own.has_waited || layer < 2) return;  // its own layers, behind the first stage's rows
        for (int i = 0; i < 6000 && !own.second_began; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        own.has_waited = true;
        own.overlapped = own.second_began;
    };
    const RankSplit split{nullptr, 2};
    Group group(2);
    std::atomic<int> n_ok = 0;
    for_all_ranks(group, [&](const Ranks& ranks) {
        RankSession own(small.model, {.max_batch = 20, .split = &split}, &ranks);
        if (ranks.rank == 0) set_trace(own.session, {see_second, &watch});
        if (ranks.rank == 1) set_trace(own.session, {wait_in_first, &watch});
        n_ok += forward(own.session, std::span(text).first(40), {}).ok();
    });
    CHECK(n_ok == 2);
    CHECK(watch.overlapped);
}

TEST_CASE("stages: a prompt of several passes and what follows it have the bits of one") {
    const SmallModel small(llama_config(4), Type::q8);
    const auto text = some_tokens(103, small.model.config().decoder.vocab_size);
    RankSession alone(small.model, {.max_batch = 20}, nullptr);
    const std::vector<float> want = logits_behind(alone.session, text);
    REQUIRE(!want.empty());
    for (const Shape& shape : kShapes) {
        const RankSplit split = shape.split();
        Group group(shape.n_ranks());
        std::vector<std::vector<float>> got(shape.n_ranks());
        for_all_ranks(group, [&](const Ranks& ranks) {
            RankSession own(small.model, {.max_batch = 20, .split = &split}, &ranks);
            if (own.status.ok()) got[ranks.rank] = logits_behind(own.session, text);
        });
        for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
    }
}

TEST_CASE("stages: an encoder's vectors, and those of two stacks, have the bits of one") {
    for (const Config& config : {bert_config(), disentangled_config(8, 12), both_config(NormPlace::pre)}) {
        const SmallModel small(config, Type::f16);
        const std::uint32_t d_model = small.model.config().encoder.d_model;
        const auto tokens = some_tokens(30, std::max(config.encoder.vocab_size, 2u));
        const std::vector<float> vectors = some_floats(30 * std::size_t{d_model}, 7);
        const std::vector<std::uint32_t> lengths{17, 13};
        Sequences side{.lengths = lengths};
        if (config.encoder.vocab_size)
            side.ids = tokens;
        else
            side.vectors = vectors;
        const EncodeInput in{.source = side, .target = config.decoder.n_layers ? side : Sequences{}};
        const std::size_t n_out = 30 * std::size_t{d_model};
        const std::vector<float> want = encoded(small.model, in, n_out);
        for (const Shape& shape : kShapes) {
            const RankSplit split = shape.split();
            Group group(shape.n_ranks());
            std::vector<std::vector<float>> got(shape.n_ranks(), std::vector<float>(n_out));
            for_all_ranks(group, [&](const Ranks& ranks) {
                RankSession own(small.model, {.max_batch = 60, .split = &split, .max_sequences = 3}, &ranks);
                if (!own.status.ok() || !encode(own.session, in, got[ranks.rank]).ok()) got[ranks.rank].clear();
            });
            for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
        }
    }
}

TEST_CASE(
    "stages: a plan holds the caches of its layers alone, a byte less is refused, and so are other numbers of ranks") {
    const SmallModel small(llama_config(6, 64, 8, 4, 16, 96, 4096), Type::q8);
    Plan alone;
    REQUIRE(make_plan(small.model.config(), {}, alone).ok());
    const std::uint64_t layer = bytes_of(alone, "keys") / 6, whole = rank_bytes(small.model, {});
    const std::uint8_t shares[] = {2, 2, 1, 1};
    const RankSplit thirds{nullptr, 3}, both{shares, 2};
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        const Limits limits = limits_of(thirds, rank, 3);
        Plan plan;
        REQUIRE(make_plan(small.model.config(), limits, plan).ok());
        CHECK(bytes_of(plan, "keys") == 2 * layer);
        CHECK(bytes_of(plan, "values") == 2 * layer);
        sum += rank_bytes(small.model, limits);
        const Ranks ranks{.rank = rank,
                          .n_ranks = 3,
                          .gather = [](void*, RankGroup, std::byte*, std::span<const std::uint64_t>) { return true; }};
        AlignedBytes arena(plan.arena_bytes);
        Session session;
        const std::span<std::byte> bytes = arena;
        CHECK(make_session(small.model, limits, bytes.first(bytes.size() - 1), session, {.ranks = &ranks}).code ==
              Code::arena_too_small);
        CHECK(make_session(small.model, limits, bytes, session, {.ranks = &ranks}).ok());
    }
    // Each stage reads the output head.
    const SmallModel headless(llama_config(3, 64, 8, 4, 16, 96, 4096), Type::q8);
    const std::uint64_t head = 2 * rank_bytes(headless.model, {}) - whole;
    CHECK(sum == whole + 2 * head);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        Plan plan;
        REQUIRE(make_plan(small.model.config(), limits_of(both, rank, 4), plan).ok());
        CHECK(bytes_of(plan, "keys") == (rank < 2 ? 4 : 2) * layer / 2);
        PoolPlan pool;
        REQUIRE(make_pool_plan(small.model.config(),
                               {.rank = static_cast<std::uint8_t>(rank), .n_ranks = 4, .split = &both}, pool)
                    .ok());
    }
    Plan plan;
    const RankSplit none{nullptr, 0};
    CHECK(make_plan(small.model.config(), limits_of(thirds, 0, 4), plan).code == Code::bad_limits);
    CHECK(make_plan(small.model.config(), limits_of(none, 0, 4), plan).code == Code::bad_limits);
    CHECK(make_plan(small.model.config(), limits_of(thirds, 0, 0), plan).code == Code::bad_limits);
}

TEST_CASE("stages: a saved session has the bytes of one process, and goes on in other stages") {
    std::vector<NamedConfig> all_configs{{"llama", llama_config(4, 64, 8, 4, 16, 96, 4096)}};
    std::ranges::copy(recurrent_configs(), std::back_inserter(all_configs));
    for (const NamedConfig& named : all_configs) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::q8);
        const SavedText want(small.model, {.max_batch = 16}, nullptr);
        REQUIRE(!want.bytes.empty());
        REQUIRE(!want.rest.empty());
        for (const Shape& shape : kShapes) {
            const RankSplit split = shape.split();
            Group group(shape.n_ranks());
            std::vector<SavedText> got(shape.n_ranks());
            for_all_ranks(group, [&](const Ranks& ranks) {
                got[ranks.rank] = SavedText(small.model, {.max_batch = 16, .split = &split}, &ranks, want.bytes);
            });
            for (const SavedText& of_rank : got) {
                CHECK(of_rank.bytes == want.bytes);
                CHECK(same_bits(want.rest, of_rank.rest));
            }
        }
    }
}

TEST_CASE("stages: a flag of the first stage ends a call on all, lost ranks do, and caches stay as they were") {
    const SmallModel small(llama_config(6), Type::q8);
    const auto text = some_tokens(120, small.model.config().decoder.vocab_size);
    RankSession alone(small.model, {.max_batch = 40}, nullptr);
    const std::vector<float> want = logits_behind(alone.session, text);
    const std::uint8_t shares[] = {1, 1, 1, 1};
    const RankSplit split{shares, 2};
    for (const std::uint32_t whose : {0u, 1u}) {
        Group group(4);
        std::vector<Code> codes(4);
        std::vector<std::vector<float>> got(4);
        for_all_ranks(group, [&](const Ranks& ranks) {
            RankSession own(small.model, {.max_batch = 40, .split = &split}, &ranks);
            struct Flag {
                std::atomic<bool> is_set = false;
            } flag;
            set_cancel(own.session, &flag.is_set);
            // Set as the rows of the third pass are embedded.
            if (ranks.rank == whose)
                set_trace(own.session,
                          {[](void* its, std::uint32_t position, std::uint32_t, const char*, std::span<const float>) {
                               if (position >= 80) static_cast<Flag*>(its)->is_set = true;
                           },
                           &flag});
            codes[ranks.rank] = forward(own.session, text, {}).code;
            set_trace(own.session, {});
            set_cancel(own.session, nullptr);
            if (own.session.kv_len() == 0) got[ranks.rank] = logits_behind(own.session, text);
        });
        for (const Code code : codes) CHECK(code == Code::cancelled);
        for (const std::vector<float>& of_rank : got) CHECK(same_bits(want, of_rank));
    }
    Group group(4);
    group.lost = true;
    std::vector<Code> codes(4);
    for_all_ranks(group, [&](const Ranks& ranks) {
        RankSession own(small.model, {.max_batch = 40, .split = &split}, &ranks);
        codes[ranks.rank] = forward(own.session, text, {}).code;
    });
    for (const Code code : codes) CHECK(code == Code::io_error);
}
