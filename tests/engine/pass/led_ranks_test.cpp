// Ranks that follow the first: it alone makes, forks, marks, rewinds and ends caches, and they have the same bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <span>
#include <vector>

#include "fovea/encode.h"
#include "host/model/leading.h"
#include "tests/support/encoded.h"
#include "tests/support/encoder_models.h"
#include "tests/support/rank_group.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kBatch = 12, kSequences = 5, kPositions = 60, kPages = 9;

/// A workspace and a pool with room for five sequences, but not for five long ones; and one for memories.
struct Running {
    Plan plan;
    PoolPlan pool_plan, memory_plan;
    AlignedBytes arena, pool_arena, memory_arena;
    Workspace workspace;
    CachePool pool, memories;
    bool ok = false;

    Running(const Model& model, const Ranks* ranks, const RankSplit* split = nullptr) {
        Limits limits{.max_kv_len = kPositions, .max_batch = kBatch, .max_sequences = kSequences};
        PoolLimits pool_limits{.max_kv_len = kPositions, .max_sequences = kSequences, .n_pages = kPages};
        if (ranks) limits.rank = pool_limits.rank = static_cast<std::uint8_t>(ranks->rank);
        if (ranks) limits.n_ranks = pool_limits.n_ranks = static_cast<std::uint8_t>(ranks->n_ranks);
        limits.split = pool_limits.split = split;
        if (!make_workspace_plan(model.config(), limits, plan).ok()) return;
        if (!make_pool_plan(model.config(), pool_limits, pool_plan).ok()) return;
        arena.resize(plan.arena_bytes, std::byte{0xee});
        pool_arena.resize(pool_plan.arena_bytes, std::byte{0xee});
        ok = make_workspace(model, limits, arena, workspace, {.ranks = ranks}).ok() &&
             make_pool(model, pool_limits, pool_arena, pool).ok();
        if (!model.config().encoder.n_layers) return;
        pool_limits.memory = true;
        ok = ok && make_pool_plan(model.config(), pool_limits, memory_plan).ok();
        memory_arena.resize(memory_plan.arena_bytes, std::byte{0xee});
        ok = ok && make_pool(model, pool_limits, memory_arena, memories).ok();
    }
};

/// Random caches, forks, marks, rewinds, ends and passes; the logits of all passes, and what became of each.
std::vector<float> drive(Running& running, std::uint32_t vocab_size, std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    std::vector<Cache> caches;
    std::vector<float> all;
    for (int turn = 0; turn < 60; ++turn) {
        const std::uint32_t what = below(8);
        if (what == 0 || caches.empty()) {
            if (Cache made; make_cache(running.pool, made).ok()) caches.push_back(made);
        } else if (what == 1) {
            if (Cache fork; fork_cache(caches[below(static_cast<std::uint32_t>(caches.size()))], fork).ok())
                caches.push_back(fork);
        } else if (what == 2) {
            Cache& cache = caches[below(static_cast<std::uint32_t>(caches.size()))];
            all.push_back(static_cast<float>(rewind(cache, below(cache.kv_len() + 1)).ok()));
        } else if (what == 3) {
            all.push_back(static_cast<float>(mark(caches[below(static_cast<std::uint32_t>(caches.size()))]).ok()));
        } else if (what == 4 && below(2)) {
            const auto at = caches.begin() + below(static_cast<std::uint32_t>(caches.size()));
            (void)end_cache(*at);
            caches.erase(at);
        } else {
            std::shuffle(caches.begin(), caches.end(), random);
            const std::uint32_t n_steps = 1 + below(static_cast<std::uint32_t>(caches.size()));
            std::array<std::vector<Token>, kSequences> tokens;
            std::array<std::vector<float>, kSequences> logits;
            std::vector<Step> steps;
            for (std::uint32_t i = 0; i < n_steps; ++i) {
                tokens[i].resize(1 + below(20));
                for (Token& token : tokens[i]) token = below(vocab_size + (below(500) == 0));  // rarely one too large
                logits[i].resize(std::array{std::size_t{0}, std::size_t{1}, tokens[i].size()}[below(3)] * vocab_size);
                steps.push_back({caches[i], tokens[i], logits[i]});
            }
            const Status status = forward(running.workspace, steps);
            all.push_back(static_cast<float>(status.code));
            for (std::uint32_t i = 0; i < n_steps && status.ok(); ++i)
                all.insert(all.end(), logits[i].begin(), logits[i].end());
        }
    }
    return all;
}

/// Texts beside two memories, one of which a fork shares, and the logits of their tokens.
std::vector<float> drive_pairs(Running& running, std::uint32_t vocab_size) {
    const auto sources = some_tokens(kBatch, 60), tokens = some_tokens(20, vocab_size);
    const std::vector<std::uint32_t> lengths{7, 5};
    std::array<Cache, 3> memories, texts;
    bool ok = running.ok;
    for (std::size_t i = 0; i < 2; ++i)
        ok = ok && make_cache(running.memories, memories[i]).ok() && make_cache(running.pool, texts[i]).ok();
    ok = ok &&
         cache_memory(running.workspace, {.source = {.ids = sources, .lengths = lengths}}, std::span(memories).first(2))
             .ok();
    std::vector<float> all;
    const auto pass = [&](std::size_t n_texts, std::size_t first, std::uint32_t n) {
        std::vector<float> logits(n_texts * vocab_size);
        std::vector<Step> steps;
        for (std::size_t i = 0; i < n_texts; ++i)
            steps.push_back({texts[i], std::span(tokens).subspan(first + i, n),
                             std::span(logits).subspan(i * vocab_size, vocab_size), memories[i]});
        ok = ok && forward(running.workspace, steps).ok();
        all.insert(all.end(), logits.begin(), logits.end());
    };
    pass(2, 0, 4);
    ok = ok && fork_cache(texts[0], texts[2]).ok() && fork_cache(memories[0], memories[2]).ok();
    pass(3, 6, 1);
    ok = ok && end_cache(memories[0]).ok() && end_cache(texts[0]).ok();
    std::swap(memories[0], memories[2]), std::swap(texts[0], texts[2]);
    pass(2, 11, 3);
    if (!ok) all.clear();
    return all;
}

/// What the first rank had from `lead`, while the others followed.
std::vector<float> led(Group& group, const Model& model, const auto& lead, const RankSplit* split = nullptr) {
    std::vector<float> had;
    for_all_ranks(group, [&](const Ranks& own) {
        if (own.rank == 0) {
            const host::Leading leading(own);
            Running running(model, &leading.ranks(), split);
            if (running.ok) had = lead(running);
            return;
        }
        Running running(model, &own, split);
        if (running.ok) host::follow(own, running.workspace, running.pool, running.memories);
    });
    return had;
}

}  // namespace

TEST_CASE("ranks: those that follow the first have its bits, whatever it does with its caches") {
    std::vector<NamedConfig> configs{{"llama", llama_config()}, {"shared keys", shared_keys_config()}};
    for (const NamedConfig& recurrent : recurrent_configs()) configs.push_back(recurrent);
    for (const NamedConfig& named : configs) {
        CAPTURE(named.name);
        const SmallModel small(named.config, Type::q8);
        for (std::uint32_t seed = 0; seed < (kSanitized ? 2u : 8u); ++seed) {
            CAPTURE(seed);
            const auto drive_it = [&](Running& running) {
                return drive(running, small.model.config().decoder.vocab_size, seed);
            };
            Running alone(small.model, nullptr);
            REQUIRE(alone.ok);
            const std::vector<float> want = drive_it(alone);
            CHECK(want.size() > 1000);
            for (const std::uint32_t n_ranks : {2u, 5u}) {
                Group group(n_ranks);
                CHECK(same_bits(want, led(group, small.model, drive_it)));
            }
            for (const std::uint32_t n_ranks : {2u, 4u}) {
                std::vector<std::uint8_t> shares(n_ranks, 1);
                if (named.name == "shared keys")  // those layers are in one stage
                    std::fill(shares.begin() + n_ranks / 2, shares.end(), 5);
                const RankSplit stages{shares.data(), 2};
                Group group(n_ranks);
                CHECK(same_bits(want, led(group, small.model, drive_it, &stages)));
            }
        }
    }
}

TEST_CASE("ranks: those that follow fill the memories of the first and read them") {
    Config config = text_config(true);
    config.encoder = bert_config().encoder;
    const SmallModel small(config, Type::q8);
    const auto drive_it = [&](Running& running) { return drive_pairs(running, config.decoder.vocab_size); };
    Running alone(small.model, nullptr);
    const std::vector<float> want = drive_it(alone);
    REQUIRE(want.size() == 7 * std::size_t{config.decoder.vocab_size});
    const RankSplit stages{nullptr, 2};
    for (const std::uint32_t n_ranks : {2u, 3u}) {
        Group group(n_ranks);
        CHECK(same_bits(want, led(group, small.model, drive_it)));
    }
    for (const std::uint32_t n_ranks : {2u, 4u}) {
        Group group(n_ranks);
        CHECK(same_bits(want, led(group, small.model, drive_it, &stages)));
    }
}

TEST_CASE("ranks: a flag of the first ends a pass on those that follow, and what they do not follow is refused") {
    const SmallModel small(llama_config(), Type::q8);
    const auto tokens = some_tokens(40, small.model.config().decoder.vocab_size);
    Group group(2);
    const std::vector<float> had = led(group, small.model, [&](Running& running) {
        Cache cache;
        CHECK(make_cache(running.pool, cache).ok());
        const std::atomic<bool> flag = true;
        const Step step{cache, tokens, {}};
        set_cancel(running.workspace, &flag);
        CHECK(forward(running.workspace, {&step, 1}).code == Code::cancelled);
        set_cancel(running.workspace, nullptr);
        CHECK(cache.kv_len() == 0);
        CHECK(forward(running.workspace, {&step, 1}).ok());
        const std::vector<float> row(small.model.config().decoder.d_model);
        const Step of_rows{.cache = cache, .tokens = {}, .logits = {}, .rows = row};
        CHECK(forward(running.workspace, {&of_rows, 1}).code == Code::unsupported);
        CHECK(encode(running.workspace, {}, {}).code == Code::unsupported);
        return std::vector<float>(1);
    });
    CHECK(had.size() == 1);
}

TEST_CASE("ranks: those that follow encode what the first does, and what they are not told of is refused") {
    const SmallModel small(bert_config(), Type::q8);
    const Stack& stack = small.model.config().encoder;
    const auto tokens = some_tokens(30, stack.vocab_size), types = some_tokens(30, 2);
    const std::vector<std::uint32_t> lengths{17, 4, 9}, n_unpooled{3, 0, 2};
    std::vector<std::uint8_t> hidden(3 * 17);
    hidden[1] = hidden[2 * 17 + 8] = 1;
    const Pooling mean = Pooling::mean;
    EncodeInput pooled{.source = {.ids = tokens, .types = types, .lengths = lengths},
                       .before_head = true,
                       .pooling = &mean,
                       .n_unpooled = n_unpooled};
    pooled.source.masks.padding = {.hidden = hidden.data(), .sequence_stride = 17, .n_keys = 17};
    const EncodeInput plain{.source = {.ids = tokens, .lengths = lengths}};
    const std::vector<float> want = encoded(small.model, pooled, 3 * std::size_t{stack.d_model});
    const std::vector<float> want_plain = encoded(small.model, plain, 30 * std::size_t{stack.d_model});
    const RankSplit stages{nullptr, 2};
    for (const RankSplit* split : {static_cast<const RankSplit*>(nullptr), &stages}) {
        Group group(4);
        std::vector<float> got(want.size()), got_plain(want_plain.size());
        std::atomic<int> n_ok = 0;
        for_all_ranks(group, [&](const Ranks& own) {
            const Limits limits{.max_batch = 60,
                                .rank = static_cast<std::uint8_t>(own.rank),
                                .n_ranks = 4,
                                .split = split,
                                .max_sequences = 3};
            Plan plan;
            Workspace workspace;
            if (!make_workspace_plan(small.model.config(), limits, plan).ok()) return;
            AlignedBytes arena(plan.arena_bytes);
            if (own.rank) {
                if (!make_workspace(small.model, limits, arena, workspace, {.ranks = &own}).ok()) return;
                host::follow(own, workspace, {});
                ++n_ok;
                return;
            }
            const host::Leading leading(own);
            if (!make_workspace(small.model, limits, arena, workspace, {.ranks = &leading.ranks()}).ok()) return;
            const std::uint32_t row = 1;
            EncodeInput chosen = plain;
            chosen.rows = {&row, 1};
            n_ok += encode(workspace, pooled, got).ok() &&
                    encode(workspace, chosen, std::span(got_plain).first(stack.d_model)).code == Code::unsupported &&
                    encode(workspace, plain, got_plain).ok();
        });
        CHECK(n_ok == 4);
        CHECK(same_bits(want, got));
        CHECK(same_bits(want_plain, got_plain));
    }
}

TEST_CASE("ranks: a call as bytes that is damaged, or of another pool, is refused and changes nothing") {
    const SmallModel small(llama_config(), Type::q8);
    Running running(small.model, nullptr);
    REQUIRE(running.ok);
    Cache cache;
    REQUIRE(make_cache(running.pool, cache).ok());
    const auto tokens = some_tokens(7, small.model.config().decoder.vocab_size);
    std::vector<float> logits(small.model.config().decoder.vocab_size);
    std::array steps{Step{cache, tokens, logits}};
    AlignedBytes call(call_bytes(steps));
    write_call(steps, call);
    CallSize size;
    REQUIRE(call_size(call, size).ok());
    CHECK((size.n_steps == 1 && size.n_logits == logits.size()));
    REQUIRE(forward(running.workspace, steps).ok());
    const auto read = [&](std::span<const std::byte> bytes, std::span<float> out) {
        return read_call(bytes, running.pool, out, steps).code;
    };
    const std::span<const std::byte> whole(call);
    for (std::size_t n = 0; n < whole.size(); ++n) CHECK(read(whole.first(n), logits) == Code::truncated);
    CHECK(read(whole, std::span(logits).first(1)) == Code::bad_shape);
    AlignedBytes other = call;
    other[24] = std::byte{200};  // the step's cache
    CHECK(read(other, logits) == Code::bad_argument);
    other = call;
    other[28] = std::byte{8};  // its tokens
    CHECK(read(other, logits) == Code::bad_shape);
    CHECK(cache.kv_len() == 7);
    CHECK(read(whole, logits) == Code::ok);
    CHECK(cache.kv_len() == 0);  // as it was when the call was written
    CachePool larger;
    PoolPlan plan;
    REQUIRE(make_pool_plan(small.model.config(), {.max_kv_len = kPositions, .max_sequences = 2}, plan).ok());
    AlignedBytes arena(plan.arena_bytes);
    REQUIRE(make_pool(small.model, plan.limits, arena, larger).ok());
    CHECK(read_call(whole, larger, logits, steps).code == Code::session_mismatch);
    CachePool none;
    CHECK(read_call(whole, none, logits, steps).code == Code::bad_argument);
}
