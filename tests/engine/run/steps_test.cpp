// Workspaces, pools and caches: sizes, sharing, refusals. Bits in company are held by tests/schedule.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>

#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kPositions = 700;

std::vector<float> alone(const Model& model, std::span<const Token> tokens) {
    SmallSession s(model, {});
    std::vector<float> logits(tokens.size() * model.config().decoder.vocab_size);
    REQUIRE(forward(s.session, tokens, logits).ok());
    return logits;
}

Config config() { return llama_config(2, 48, 6, 2, 8, 88, kPositions); }

}  // namespace

TEST_CASE("pool: the planned size works, one byte less is refused, nothing beyond it is touched") {
    const SmallModel small(config(), Type::q8);
    for (const PoolLimits& limits :
         {PoolLimits{}, PoolLimits{.max_sequences = 7, .page_len = 128, .n_pages = 9, .kv_type = Type::q8},
          PoolLimits{.max_sequences = 3, .kv_type = Type::q4}}) {
        PoolPlan plan;
        REQUIRE(make_pool_plan(small.model.config(), limits, plan).ok());
        std::uint64_t end = 0;
        for (std::uint32_t i = 0; i < plan.n_parts; ++i) {
            CHECK(plan.parts[i].offset == end);
            end += (plan.parts[i].bytes + 63) / 64 * 64;
        }
        CHECK(end == plan.arena_bytes);
        AlignedBytes bytes(plan.arena_bytes + 64, std::byte{0x5a});
        CachePool pool;
        const Status less = make_pool(small.model, limits, std::span(bytes).first(plan.arena_bytes - 1), pool);
        CHECK(less.code == Code::arena_too_small);
        CHECK(less.wanted == plan.arena_bytes);
        CHECK_FALSE(pool.valid());
        CHECK(make_pool(small.model, limits, std::span(bytes).subspan(1), pool).code == Code::misaligned);
        REQUIRE(make_pool(small.model, limits, std::span(bytes).first(plan.arena_bytes), pool).ok());
        CHECK(pool.n_free_pages() == plan.limits.n_pages);
        CHECK(pool.n_free_sequences() == plan.limits.max_sequences);
        // All pages are filled.
        SmallWorkspace w(small.model, {});
        const auto tokens = some_tokens(kPositions, small.model.config().decoder.vocab_size);
        while (pool.n_free_pages()) {
            Cache cache;
            REQUIRE(make_cache(pool, cache).ok());
            const std::uint32_t room = pool.n_free_pages() * plan.limits.page_len;
            const Step step{cache, std::span(tokens).first(std::min(kPositions, room)), {}};
            REQUIRE(forward(w.workspace, {&step, 1}).ok());
        }
        for (std::size_t past = 0; past < 64; ++past) REQUIRE(bytes[plan.arena_bytes + past] == std::byte{0x5a});
    }
}

TEST_CASE("workspace: the planned size works, one byte less is refused") {
    const SmallModel small(config(), Type::f32);
    const Limits limits{.max_batch = 20, .n_threads = 2, .max_sequences = 5};
    Plan plan;
    REQUIRE(make_workspace_plan(small.model.config(), limits, plan).ok());
    AlignedBytes bytes(plan.arena_bytes, std::byte{0xee});
    Workspace workspace;
    CHECK(make_workspace(small.model, limits, std::span(bytes).first(plan.arena_bytes - 1), workspace).code ==
          Code::arena_too_small);
    CHECK_FALSE(workspace.valid());
    CHECK(make_workspace(small.model, limits, bytes, workspace).ok());
}

TEST_CASE("plans refuse limits that no model has room for") {
    const SmallModel small(config(), Type::f32);
    const Config& c = small.model.config();
    PoolPlan pool;
    CHECK(make_pool_plan(c, {.max_kv_len = kPositions + 1}, pool).code == Code::bad_limits);
    CHECK(make_pool_plan(c, {.max_sequences = 0}, pool).code == Code::bad_limits);
    CHECK(make_pool_plan(c, {.page_len = 0}, pool).code == Code::bad_limits);
    CHECK(make_pool_plan(c, {.page_len = 96}, pool).code == Code::bad_limits);
    CHECK(make_pool_plan(c, {.n_pages = 1u << 31}, pool).code == Code::bad_limits);
    CHECK(make_pool_plan(c, {.max_sequences = 1u << 22}, pool).code == Code::bad_limits);
    CHECK(make_pool_plan(c, {.kv_type = Type::bf16}, pool).code == Code::bad_limits);
    Plan plan;
    CHECK(make_workspace_plan(c, {.max_batch = 3, .max_sequences = 4}, plan).code == Code::bad_limits);
    CHECK(make_workspace_plan(c, {.max_batch = 1u << 23}, plan).code == Code::bad_limits);
}

TEST_CASE("a session's arena is at most 1 KB larger than its rows, tensors and cache alone") {
    // What a session took before it was a workspace and a cache: 3,584 bytes of state and 16 more for each layer.
    for (const NamedConfig& named : decoder_configs()) {
        CAPTURE(named.name);
        Plan plan, workspace;
        const Limits limits{.max_batch = 8, .max_sequences = 0};
        REQUIRE(make_plan(named.config, limits, plan).ok());
        REQUIRE(make_workspace_plan(named.config, {.max_batch = 8, .max_sequences = 1}, workspace).ok());
        std::uint64_t cache = 0;
        for (std::uint32_t i = 0; i < plan.n_parts; ++i)
            if (std::string_view(plan.parts[i].name) == "keys" || std::string_view(plan.parts[i].name) == "values")
                cache += plan.parts[i].bytes;
        const std::uint64_t beside = plan.arena_bytes - cache - workspace.arena_bytes;
        CHECK(beside <= 512 + named.config.decoder.n_layers * 16);
    }
}

TEST_CASE("forks share pages, and who writes to a shared page copies it") {
    const SmallModel small(config(), Type::f16);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
    SmallSteps many(small.model, {.max_batch = 64, .max_sequences = 33}, {.max_sequences = 33, .n_pages = 60});
    const auto prompt = some_tokens(600, vocab_size);
    Cache first = many.make();
    const Step start{first, prompt, {}};
    REQUIRE(forward(many.workspace, {&start, 1}).ok());
    CHECK(many.pool.n_free_pages() == 60 - 10);  // 600 positions are 9.4 pages of 64
    std::vector<Cache> forks(32);
    for (Cache& fork : forks) REQUIRE(fork_cache(first, fork).ok());
    CHECK(many.pool.n_free_pages() == 50);  // tables alone
    CHECK(many.pool.n_free_sequences() == 0);
    Cache none;
    CHECK(fork_cache(first, none).code == Code::pool_full);
    CHECK_FALSE(none.valid());

    // Each fork goes on differently: one page each, the last of the prompt's.
    std::vector<Token> next(forks.size());
    std::vector<std::vector<float>> logits(forks.size(), std::vector<float>(vocab_size));
    std::vector<Step> steps;
    for (std::size_t i = 0; i < forks.size(); ++i) {
        next[i] = static_cast<Token>(i);
        steps.push_back({forks[i], {&next[i], 1}, logits[i]});
    }
    REQUIRE(forward(many.workspace, steps).ok());
    CHECK(many.pool.n_free_pages() == 50 - 32);
    for (std::size_t i : {std::size_t{0}, std::size_t{31}}) {
        std::vector<Token> text = prompt;
        text.push_back(next[i]);
        const auto want = alone(small.model, text);
        CHECK(std::memcmp(want.data() + prompt.size() * vocab_size, logits[i].data(), vocab_size * 4) == 0);
    }
    for (Cache& fork : forks) CHECK(end_cache(fork).ok());
    CHECK(many.pool.n_free_pages() == 50);
    REQUIRE(rewind(first, 128).ok());
    CHECK(many.pool.n_free_pages() == 58);
    CHECK(end_cache(first).ok());
    CHECK(many.pool.n_free_pages() == 60);
}

TEST_CASE("the last of several forks in one call keeps the page that no other cache has") {
    const SmallModel small(config(), Type::f32);
    SmallSteps many(small.model, {.max_sequences = 2}, {.max_sequences = 2, .n_pages = 2});
    const auto tokens = some_tokens(20, small.model.config().decoder.vocab_size);
    Cache one = many.make(), two;
    const Step start{one, tokens, {}};
    REQUIRE(forward(many.workspace, {&start, 1}).ok());
    REQUIRE(fork_cache(one, two).ok());
    const Step both[] = {{one, std::span(tokens).first(1), {}}, {two, std::span(tokens).subspan(1, 1), {}}};
    CHECK(forward(many.workspace, both).ok());  // one copy: both pages are in use now
    CHECK(many.pool.n_free_pages() == 0);
}

TEST_CASE("bad steps are refused, one status each, and change nothing") {
    const SmallModel small(config(), Type::f32), other(config(), Type::f32, 2);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
    SmallSteps many(small.model, {.max_batch = 8, .max_sequences = 2}, {.max_sequences = 4, .n_pages = 11});
    SmallSteps foreign(other.model, {}, {});
    const auto tokens = some_tokens(kPositions, vocab_size);
    std::vector<float> logits(3 * vocab_size);
    Cache a = many.make(), b = many.make(), c = many.make(), strange = foreign.make(), ended = many.make();
    REQUIRE(end_cache(ended).ok());
    CHECK(end_cache(ended).code == Code::bad_argument);
    const std::span<const Token> two = std::span(tokens).first(2);
    const Step start{a, std::span(tokens).first(640), {}};
    REQUIRE(forward(many.workspace, {&start, 1}).ok());

    const auto refused = [&](std::vector<Step> steps) {
        const Status status = forward(many.workspace, steps);
        CHECK(a.kv_len() == 640);
        CHECK(b.kv_len() == 0);
        CHECK(many.pool.n_free_pages() == 1);
        return status.code;
    };
    const Token wrong[] = {0, vocab_size};
    CHECK(refused({}) == Code::bad_shape);
    CHECK(refused({{a, two, {}}, {b, two, {}}, {c, two, {}}}) == Code::bad_shape);  // more than max_sequences
    CHECK(refused({{b, {}, {}}}) == Code::bad_shape);
    CHECK(refused({{a, two, {}}, {b, two, logits}}) == Code::bad_shape);
    CHECK(refused({{b, wrong, {}}}) == Code::token_out_of_range);
    CHECK(refused({{a, std::span(tokens).first(61), {}}}) == Code::context_full);
    CHECK(refused({{a, two, {}}, {a, two, {}}}) == Code::bad_argument);  // the same cache twice
    CHECK(refused({{b, two, {}}, {Cache{}, two, {}}}) == Code::bad_argument);
    CHECK(refused({{b, two, {}}, {ended, two, {}}}) == Code::bad_argument);
    CHECK(refused({{b, two, {}}, {strange, two, {}}}) == Code::session_mismatch);
    CHECK(refused({{a, two, {}}, {b, two, {}}}) == Code::pool_full);  // two pages, of which there is one
    Workspace none;
    CHECK(forward(none, {{Step{a, two, {}}}}).code == Code::bad_argument);
    Cache fresh;
    CachePool no_pool;
    CHECK(make_cache(no_pool, fresh).code == Code::bad_argument);
    CHECK(fork_cache(ended, fresh).code == Code::bad_argument);
    CHECK(rewind(a, 641).code == Code::bad_argument);
    CHECK(rewind(ended, 0).code == Code::bad_argument);
    CHECK(ended.kv_len() == 0);
    std::size_t written = 0;
    CHECK(save_cache(ended, {}, written).code == Code::bad_argument);

    const Step last{b, two, std::span(logits).first(2 * vocab_size)};
    CHECK(forward(many.workspace, {&last, 1}).ok());
    const auto want = alone(small.model, two);
    CHECK(std::memcmp(want.data(), logits.data(), want.size() * 4) == 0);
}

TEST_CASE("a session that was not made refuses everything") {
    Session session;
    std::size_t written = 0;
    const Token token = 0;
    CHECK(forward(session, {&token, 1}, {}).code == Code::bad_argument);
    CHECK(rewind(session, 0).code == Code::bad_argument);
    CHECK(save_session(session, {}, written).code == Code::bad_argument);
    CHECK(restore_session(session, {}).code == Code::bad_argument);
    CHECK(session_bytes(session) == 0);
    CHECK(session.kv_len() == 0);
    CHECK(session.max_kv_len() == 0);
    CHECK(capture_attention(session, {}).code == Code::bad_argument);
    set_trace(session, {});
    set_cancel(session, nullptr);
    CHECK_FALSE(session.cache().valid());
    CHECK_FALSE(session.workspace().valid());
}

TEST_CASE("a cancelled call of several passes gives back every page it took") {
    const SmallModel small(config(), Type::f32);
    SmallSteps many(small.model, {.max_batch = 16, .max_sequences = 2}, {.max_sequences = 2, .n_pages = 20});
    const auto tokens = some_tokens(300, small.model.config().decoder.vocab_size);
    Cache a = many.make(), b = many.make();
    std::atomic<bool> stop{true};
    set_cancel(many.workspace, &stop);
    const Step steps[] = {{a, tokens, {}}, {b, std::span(tokens).first(70), {}}};
    CHECK(forward(many.workspace, steps).code == Code::cancelled);
    CHECK(a.kv_len() == 0);
    CHECK(many.pool.n_free_pages() == 20);
    stop = false;
    CHECK(forward(many.workspace, steps).ok());
    CHECK(a.kv_len() == 300);
    CHECK(many.pool.n_free_pages() == 20 - 5 - 2);
}

TEST_CASE("attention weights of several sequences are those of each alone") {
    const SmallModel small(config(), Type::f32);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size, n_heads = 6, n = 40;
    SmallSteps many(small.model, {.max_batch = 80, .max_sequences = 2}, {.max_sequences = 2});
    const auto tokens = some_tokens(2 * n, vocab_size);
    for (const bool per_head : {true, false}) {
        CAPTURE(per_head);
        const std::size_t matrix = std::size_t{n} * n, one = per_head ? n_heads * matrix : matrix;
        std::vector<float> weights(2 * one, -1.0f), want(one, -1.0f);
        Cache a = many.make(), b = many.make();
        REQUIRE(capture_attention(many.workspace,
                                  {.layer = 1, .per_head = per_head, .n_queries = n, .n_keys = n, .out = weights})
                    .ok());
        const Step steps[] = {{a, std::span(tokens).first(n), {}}, {b, std::span(tokens).subspan(n, n), {}}};
        REQUIRE(forward(many.workspace, steps).ok());
        SmallSession s(small.model, {});
        REQUIRE(
            capture_attention(s.session, {.layer = 1, .per_head = per_head, .n_queries = n, .n_keys = n, .out = want})
                .ok());
        REQUIRE(forward(s.session, steps[1].tokens, {}).ok());
        CHECK(std::memcmp(want.data(), weights.data() + one, one * sizeof(float)) == 0);
        CHECK(end_cache(a).ok());
        CHECK(end_cache(b).ok());
    }
}
