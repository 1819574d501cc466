// The second promise, and what a session says to a wrong call.
#include "fovea/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "convert/writer/file_header.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("plan: for 200 random configurations and limits S bytes work and S - 1 is a clean error") {
    std::mt19937 random(7);
    const auto pick = [&](std::uint32_t low, std::uint32_t high) {
        return low + static_cast<std::uint32_t>(random() % (high - low + 1));
    };
    for (int i = 0; i < 200; ++i) {
        const std::uint32_t n_kv_heads = pick(1, 3), head_dim = 2 * pick(1, 20);
        Config config = llama_config(pick(1, 3), pick(1, 70), n_kv_heads * pick(1, 4), n_kv_heads, head_dim,
                                     pick(1, 90), pick(1, 1200));
        Block& b = config.decoder.blocks[0];
        b.attention.value_head_dim = pick(1, head_dim);
        b.attention.rotary_dim = 2 * pick(1, head_dim / 2);
        b.attention.window = pick(0, 1) ? pick(1, 300) : 0;
        b.feed.gated = pick(0, 1);
        const SmallModel small(config, static_cast<Type>(pick(0, kTypeCount - 1)), random());
        const std::uint32_t max_kv_len = pick(1, config.decoder.max_positions);
        const Limits limits{.max_kv_len = max_kv_len,
                            .max_batch = pick(1, max_kv_len),
                            .n_threads = pick(1, 4),
                            .kv_type = std::array{Type::f32, Type::f16, Type::q8, Type::q4}[pick(0, 3)]};
        Plan plan;
        REQUIRE(make_plan(small.model.config(), limits, plan).ok());
        // The arena ends where the buffer ends: a byte too many would be seen by the sanitizers and by what follows.
        AlignedBytes arena(plan.arena_bytes + 64, std::byte{0x5a});
        Session session;
        const Status short_by_one =
            make_session(small.model, limits, std::span(arena).first(plan.arena_bytes - 1), session);
        CHECK(short_by_one.code == Code::arena_too_small);
        CHECK(short_by_one.wanted == plan.arena_bytes);
        CHECK(short_by_one.had == plan.arena_bytes - 1);
        CHECK_FALSE(session.valid());
        REQUIRE(make_session(small.model, limits, std::span(arena).first(plan.arena_bytes), session).ok());
        const auto tokens = some_tokens(max_kv_len, small.model.config().decoder.vocab_size);
        std::vector<float> logits(small.model.config().decoder.vocab_size, NAN);
        REQUIRE(forward(session, tokens, logits).ok());
        for (const float x : logits) REQUIRE(std::isfinite(x));
        for (std::size_t past = 0; past < 64; ++past) REQUIRE(arena[plan.arena_bytes + past] == std::byte{0x5a});
    }
}

TEST_CASE("forward: keys and values beyond float16's numbers give finite logits in a cache of any type") {
    for (const Role large : {Role::key, Role::value})
        for (const float size : {1e5f, 1e8f, 1e12f}) {
            ModelSource source = random_model(llama_config(), 3);
            const RowReader read = source.read_rows;
            source.read_rows = [=](const TensorSpec& spec, std::uint32_t begin, std::uint32_t n, float* out) {
                read(spec, begin, n, out);
                for (std::size_t i = 0; spec.role == large && i < std::size_t{n} * spec.n_cols; ++i) out[i] *= size;
            };
            const AlignedBytes file = write_bytes(source, {.type = Type::f32});
            Model model;
            REQUIRE(open_model(file, model).ok());
            const auto tokens = some_tokens(40, model.config().decoder.vocab_size);
            for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4})
                for (const char* isa : model_isas()) {
                    const int of_cache = static_cast<int>(kv_type);
                    CAPTURE(of_cache);
                    CAPTURE(isa);
                    SmallSession small(model, {.kv_type = kv_type}, isa);
                    std::vector<float> logits(model.config().decoder.vocab_size, NAN);
                    REQUIRE(forward(small.session, tokens, logits).ok());
                    CHECK(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
                }
        }
}

TEST_CASE("plan: parts are in order, aligned, and end at the arena's size") {
    Plan plan;
    REQUIRE(make_plan(llama_config(), {.n_threads = 3}, plan).ok());
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i < plan.n_parts; ++i) {
        CHECK(plan.parts[i].offset == end);
        CHECK(plan.parts[i].offset % kArenaAlignment == 0);
        end = (plan.parts[i].offset + plan.parts[i].bytes + 63) / 64 * 64;
    }
    CHECK(end == plan.arena_bytes);
    CHECK(plan.limits.max_kv_len == 160);
    CHECK(plan.limits.max_batch == 160);
}

TEST_CASE("limits outside what the model allows are refused, and the plan stays as it was") {
    const Config config = llama_config();
    const Limits bad[] = {{.max_kv_len = 161},
                          {.max_batch = 161},
                          {.max_kv_len = 10, .max_batch = 11},
                          {.n_threads = 0},
                          {.n_threads = kMaxThreads + 1},
                          {.kv_type = Type::q6_k}};
    for (const Limits& limits : bad) {
        Plan plan;
        plan.arena_bytes = 123;
        CHECK(make_plan(config, limits, plan).code == Code::bad_limits);
        CHECK(plan.arena_bytes == 123);
    }
}

TEST_CASE("forward refuses what it cannot do and leaves the session as it was") {
    const SmallModel small(llama_config(), Type::f32);
    SmallSession s(small.model, {.max_kv_len = 20});
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
    std::vector<float> logits(vocab_size), want(vocab_size);
    const auto tokens = some_tokens(21, vocab_size);
    REQUIRE(forward(s.session, std::span(tokens).first(5), {}).ok());

    CHECK(forward(s.session, {}, logits).code == Code::bad_shape);
    CHECK(forward(s.session, std::span(tokens).first(3), std::span(logits).first(vocab_size - 1)).code ==
          Code::bad_shape);
    const Status full = forward(s.session, std::span(tokens).first(16), logits);
    CHECK(full.code == Code::context_full);
    CHECK(full.wanted == 21);
    CHECK(full.had == 20);
    const Token beyond[] = {1, vocab_size};
    const Status range = forward(s.session, beyond, logits);
    CHECK(range.code == Code::token_out_of_range);
    CHECK(range.had == vocab_size);
    CHECK(s.session.kv_len() == 5);

    REQUIRE(forward(s.session, std::span(tokens).subspan(5, 4), logits).ok());
    SmallSession fresh(small.model, {.max_kv_len = 20});
    REQUIRE(forward(fresh.session, std::span(tokens).first(9), want).ok());
    CHECK(std::memcmp(logits.data(), want.data(), vocab_size * sizeof(float)) == 0);
}

TEST_CASE("make_session: unknown instruction sets and misaligned arenas") {
    const SmallModel small(llama_config(), Type::f32);
    Plan plan;
    REQUIRE(make_plan(small.model.config(), {}, plan).ok());
    AlignedBytes arena(plan.arena_bytes + 64);
    Session session;
    CHECK(make_session(small.model, {}, arena, session, "z80").code == Code::isa_unavailable);
    CHECK(make_session(small.model, {}, std::span(arena).subspan(4), session).code == Code::misaligned);
    CHECK_FALSE(session.valid());
}

TEST_CASE("open_model: a known tensor that the configuration does not call for is refused") {
    Config config = llama_config(2, 64, 4, 2, 16, 96);
    const FileHead plain = make_head(random_model(config, 1), {.type = Type::f32});
    config.decoder.blocks[0].feed.up_bias = true;
    FileHead head = make_head(random_model(config, 1), {.type = Type::f32});
    const auto section = [](const FileHead& h) {
        SectionRecord record;  // the first: the configuration
        std::memcpy(&record, h.bytes.data() + sizeof(FileHeader), sizeof record);
        return record;
    };
    REQUIRE(section(plain).kind == 1);
    REQUIRE(section(plain).bytes == section(head).bytes);
    std::memcpy(head.bytes.data() + section(head).offset, plain.bytes.data() + section(plain).offset,
                section(plain).bytes);
    seal(head, 0);
    AlignedBytes file(head.bytes.begin(), head.bytes.end());
    file.resize(file.size() + head.weights_bytes);
    Model model;
    const Status status = open_model(file, model);
    CHECK(status.code == Code::tensor_invalid);
    CHECK(status.had == static_cast<std::uint64_t>(Role::up_bias));
}

TEST_CASE("make_session: maps of the same rows may take different operands") {
    const Config config = llama_config(2, 64, 4, 2, 16, 96);
    for (const Role role : {Role::query, Role::key, Role::value, Role::attention_output, Role::down}) {
        CAPTURE(static_cast<int>(role));
        FileHead head = make_head(random_model(config, 1), {.type = Type::f16});
        for (const TensorRecord& record : head.records) {
            if (record.role != static_cast<std::uint16_t>(role) || record.layer != 1) continue;
            TensorRecord quantized = record;  // its panels are longer than q8 wants, which the format allows
            quantized.type = static_cast<std::uint8_t>(Type::q8);
            const auto* bytes = reinterpret_cast<const std::byte*>(&record);
            const auto at = std::search(head.bytes.begin(), head.bytes.end(), bytes, bytes + sizeof record);
            REQUIRE(at != head.bytes.end());
            std::memcpy(&*at, &quantized, sizeof quantized);
        }
        seal(head, 0);
        AlignedBytes file(head.bytes.begin(), head.bytes.end());
        file.resize(file.size() + head.weights_bytes);
        Model model;
        REQUIRE(open_model(file, model).ok());
        Plan plan;
        REQUIRE(make_plan(model.config(), {}, plan).ok());
        AlignedBytes arena(plan.arena_bytes);
        Session session;
        REQUIRE(make_session(model, {}, arena, session).ok());
        std::vector<float> together(config.decoder.vocab_size), apart(together.size());
        const auto tokens = some_tokens(20, config.decoder.vocab_size);
        CHECK(forward(session, tokens, together).ok());
        REQUIRE(rewind(session, 0).ok());
        for (const Token& token : tokens) CHECK(forward(session, {&token, 1}, apart).ok());
        CHECK(std::memcmp(together.data(), apart.data(), together.size() * sizeof(float)) == 0);
    }
}

TEST_CASE("make_session: a session's own model and limits may plan what takes its place") {
    const SmallModel small(llama_config(), Type::f32);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
    const auto tokens = some_tokens(30, vocab_size);
    Plan plan;
    REQUIRE(make_plan(small.model.config(), {}, plan).ok());
    AlignedBytes arena(plan.arena_bytes);
    Session session;
    REQUIRE(make_session(small.model, {}, arena, session).ok());
    std::vector<float> first(vocab_size), second(vocab_size);
    REQUIRE(forward(session, tokens, first).ok());
    CHECK(make_session(session.model(), session.limits(), std::span(arena).first(64), session).code ==
          Code::arena_too_small);
    CHECK(session.kv_len() == tokens.size());
    REQUIRE(make_session(session.model(), session.limits(), arena, session).ok());
    CHECK(session.kv_len() == 0);
    CHECK(session.model().config().decoder.n_layers == small.model.config().decoder.n_layers);
    REQUIRE(forward(session, tokens, second).ok());
    CHECK(std::memcmp(first.data(), second.data(), vocab_size * sizeof(float)) == 0);
}

TEST_CASE("two sessions share a model and do not disturb each other") {
    const SmallModel small(llama_config(), Type::f32);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
    const auto tokens = some_tokens(30, vocab_size);
    std::vector<float> alone(vocab_size), together(vocab_size);
    SmallSession a(small.model, {}), b(small.model, {}), c(small.model, {});
    REQUIRE(forward(a.session, tokens, alone).ok());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const Token other = (tokens[i] + 5) % vocab_size;
        REQUIRE(forward(b.session, std::span(tokens).subspan(i, 1), together).ok());
        REQUIRE(forward(c.session, {&other, 1}, {}).ok());
    }
    CHECK(std::memcmp(alone.data(), together.data(), vocab_size * sizeof(float)) == 0);
}
