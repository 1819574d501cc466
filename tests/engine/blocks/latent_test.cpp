// Latent attention: what is cached, what a plan takes, and what of a configuration is refused. Its bits on every instruction
// set, for every number of threads, split and company are held by the tests that walk decoder_configs(), its numbers by the
// golden models of families.
#include <doctest/doctest.h>

#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kRotary = 8, kRank = 20;

Config latent_config() {
    Config config = llama_config(2, 52, 6, 1, kRotary + kRank, 40, 256);
    Block& b = config.decoder.blocks[0];
    b.attention.value_head_dim = kRank, b.attention.rotary_dim = kRotary;
    b.latent.query_rank = 17;
    b.latent.query_dim = 11, b.latent.value_dim = 9;
    return config;
}

}  // namespace

TEST_CASE("latent attention: a position's cache is one key and one value, whatever the number of heads") {
    Config config = latent_config();
    PoolPlan plan;
    REQUIRE(make_pool_plan(config, {.max_kv_len = 256}, plan).ok());
    const std::uint64_t rows_of_value = (kRank + 15) / 16 * 16;  // values are padded to whole lanes
    CHECK(part_bytes(plan, "pages") == 2 * 256 * (kRotary + kRank + rows_of_value) * sizeof(float));
    config.decoder.blocks[0].attention.n_heads = 12;
    PoolPlan more;
    REQUIRE(make_pool_plan(config, {.max_kv_len = 256}, more).ok());
    CHECK(part_bytes(more, "pages") == part_bytes(plan, "pages"));
}

TEST_CASE("latent attention: the planned size works, and a byte less is refused") {
    for (const std::uint32_t rank : {0u, 17u, 600u})
        for (const Type type : {Type::f32, Type::q8, Type::q6_k}) {
            Config config = latent_config();
            config.decoder.blocks[0].latent.query_rank = rank;
            const SmallModel small(config, type);
            for (const std::uint32_t batch : {1u, 2u, 17u}) {
                CAPTURE(rank);
                CAPTURE(batch);
                Plan plan;
                REQUIRE(make_plan(config, {.max_batch = batch, .n_threads = 2}, plan).ok());
                AlignedBytes arena(plan.arena_bytes + 64, std::byte{0x5a});
                Session session;
                const std::span<std::byte> planned = std::span(arena).first(plan.arena_bytes);
                CHECK(make_session(small.model, plan.limits, planned.first(planned.size() - 1), session).code ==
                      Code::arena_too_small);
                REQUIRE(make_session(small.model, plan.limits, planned, session).ok());
                const auto tokens = some_tokens(40, config.decoder.vocab_size);
                std::vector<float> logits(config.decoder.vocab_size);
                REQUIRE(forward(session, tokens, logits).ok());
                for (std::size_t i = plan.arena_bytes; i < arena.size(); ++i) CHECK(arena[i] == std::byte{0x5a});
            }
        }
}

TEST_CASE("latent attention: a configuration that cannot be is refused by the field's name") {
    struct Case {
        const char* what;
        void (*change)(Block&);
    };
    static constexpr const char* kOther = "latent attention with what it cannot have";
    static constexpr Case kCases[] = {
        {"query_rank", [](Block& b) { b.latent.query_rank = (1u << 20) + 1; }},
        {"query_rank", [](Block& b) { b.attention.query_bias = true; }},
        {"query_rank", [](Block& b) { b.attention.query_width = 52; }},
        {"latent_query_dim", [](Block& b) { b.latent.query_dim = 0xffffffff; }},
        {"latent_value_dim", [](Block& b) { b.latent.value_dim = 0; }},
        {"latent_value_dim", [](Block& b) { b.latent.query_dim = 0; }},
        {"n_heads times latent_query_dim", [](Block& b) { b.latent.query_dim = 1u << 20; }},
        {"n_heads times latent_value_dim", [](Block& b) { b.latent.value_dim = 1u << 20; }},
        {"n_kv_heads of latent attention", [](Block& b) { b.attention.n_kv_heads = 2; }},
        {"rotary positions of latent attention",
         [](Block& b) { b.attention.position = Position::none, b.attention.rotary_dim = 0; }},
        {"head_dim of latent attention", [](Block& b) { b.attention.head_dim = kRotary + kRank + 2; }},
        {kOther, [](Block& b) { b.attention.key_bias = true; }},
        {kOther, [](Block& b) { b.feed.parallel = true; }},
        {kOther, [](Block& b) { b.attention.query_key_norm = Norm::rms; }},
        {kOther, [](Block& b) { b.attention.projection_clip = 1.0f; }},
        {"n_heads",
         [](Block& b) {
             b.attention.n_heads = b.attention.n_kv_heads = b.attention.head_dim = b.attention.value_head_dim = 0;
         }},
    };
    CHECK(check(latent_config()).ok());
    for (const Case& c : kCases) {
        CAPTURE(c.what);
        Config config = latent_config();
        c.change(config.decoder.blocks[0]);
        const Status status = check(config);
        CHECK(status.code == Code::config_invalid);
        CHECK(std::string_view(status.what) == c.what);
    }
}

TEST_CASE("latent attention: queries by way of a narrower row are refused by name without a stack") {
    Config config = latent_config();
    Stack& stack = config.decoder;
    stack.n_layers = 1, stack.vocab_size = 0, stack.has_output_head = stack.tied_output = false;
    stack.final_norm = Norm::none;
    Block& b = stack.blocks[0];
    b.latent.query_dim = b.latent.value_dim = b.attention.rotary_dim = b.feed.d_ff = 0;
    b.attention.position = Position::none, b.norm = Norm::none, b.feed.activation = Activation::none,
    b.feed.gated = false;
    Plan plan;
    const Status status = make_plan(config, {}, plan);
    CHECK(status.code == Code::unsupported);
    CHECK(std::string_view(status.what) == "latent attention without a stack");
}
