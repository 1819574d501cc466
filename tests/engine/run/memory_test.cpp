// A decoder that reads a memory, token by token: the memory's keys and values are computed once and kept. What comes out is
// what encode computes of all rows at once, in every bit; that encode is right, the reference cases say.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "fovea/encode.h"
#include "fovea/generator.h"
#include "fovea/workspace.h"
#include "tests/support/encoder_models.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kWidth = 40, kVocab = 71;

/// As T5 has them, whose logits are scaled, too.
Config with_relative_positions(Config config) {
    config.decoder.logit_scale = 0.3f;
    config.decoder.logit_softcap = 20.0f;
    for (Stack* s : {&config.encoder, &config.decoder})
        for (std::uint32_t i = 0; i < s->n_blocks; ++i) {
            s->blocks[i].attention.position = Position::relative;
            s->blocks[i].attention.relative_max_distance = 20 + i;
        }
    return config;
}

/// A workspace for steps, a pool of texts and one of memories.
struct Memories : SmallWorkspace {
    SmallPool texts, memories;

    Memories(const Model& model, const Limits& limits, const PoolLimits& text_limits, PoolLimits memory_limits,
             const char* isa = nullptr)
        : SmallWorkspace(model, limits, isa), texts(model, text_limits), memories(model, of_memories(memory_limits)) {}
    Cache text() { return texts.make(); }
    Cache memory() { return memories.make(); }

    void step(const Step& step) {
        const Status status = forward(workspace, {&step, 1});
        CAPTURE(status.what);
        REQUIRE(status.ok());
    }

private:
    static PoolLimits of_memories(PoolLimits limits) {
        limits.memory = true;
        return limits;
    }
};

/// What the memories are made of, and the logits of every row of the texts, all at once.
struct Reference {
    bool encodes;
    std::vector<std::uint32_t> lengths, target_lengths;
    std::vector<float> vectors, logits;
    std::vector<Token> tokens;
    std::uint32_t n_rows = 0;

    Reference(const Model& model, std::vector<std::uint32_t> memory, std::vector<std::uint32_t> target, Type kv_type)
        : encodes(model.config().encoder.n_layers != 0), lengths(std::move(memory)), target_lengths(std::move(target)) {
        std::uint32_t n_tokens = 0;
        for (const std::uint32_t n : lengths) n_rows += n;
        for (const std::uint32_t n : target_lengths) n_tokens += n;
        vectors = some_floats(std::size_t{n_rows} * kWidth, 3);
        tokens = some_tokens(n_tokens, kVocab);
        logits.assign(std::size_t{n_tokens} * kVocab, 0.0f);
        EncodeInput in = input(0, lengths.size());
        in.target = {.ids = tokens, .lengths = target_lengths};
        SmallSession s(model,
                       {.max_batch = n_rows + n_tokens,
                        .kv_type = kv_type,
                        .max_sequences = static_cast<std::uint32_t>(lengths.size())},
                       "scalar");
        const Status status = encode(s.session, in, logits);
        CAPTURE(status.what);
        REQUIRE(status.ok());
    }
    /// Memories [first, first + n).
    [[nodiscard]] EncodeInput input(std::size_t first, std::size_t n) const {
        std::size_t row = 0, rows = 0;
        for (std::size_t i = 0; i < first; ++i) row += lengths[i];
        for (std::size_t i = first; i < first + n; ++i) rows += lengths[i];
        const auto floats = std::span(vectors).subspan(row * kWidth, rows * kWidth);
        const auto of = std::span(lengths).subspan(first, n);
        EncodeInput in;
        if (encodes)
            in.source = {.vectors = floats, .lengths = of};
        else
            in.memory = floats, in.memory_lengths = of;
        return in;
    }
    [[nodiscard]] std::size_t start(std::size_t sequence) const {
        std::size_t at = 0;
        for (std::size_t i = 0; i < sequence; ++i) at += target_lengths[i];
        return at;
    }
    [[nodiscard]] std::span<const Token> text(std::size_t sequence) const {
        return std::span(tokens).subspan(start(sequence), target_lengths[sequence]);
    }
    /// Whether rows of a sequence from `row` on have these logits.
    [[nodiscard]] bool has(std::size_t sequence, std::size_t row, std::span<const float> got) const {
        return std::memcmp(got.data(), logits.data() + (start(sequence) + row) * kVocab, got.size_bytes()) == 0;
    }
};

}  // namespace

TEST_CASE(
    "memory: steps give what encode gives of all rows, on every instruction set, number of threads and page length") {
    for (const bool encodes : {true, false})
        for (const Type kv_type : {Type::f32, Type::f16, Type::q8, Type::q4})
            for (const Type type : {Type::f32, Type::q8}) {
                if (kSanitized && type == Type::q8 && kv_type != Type::q8) continue;  // nothing new
                CAPTURE(encodes);
                CAPTURE(static_cast<int>(kv_type));
                CAPTURE(static_cast<int>(type));
                const Config plain = text_config(encodes, encodes ? NormPlace::post : NormPlace::pre);
                const Config config = encodes && type == Type::f32 ? with_relative_positions(plain) : plain;
                const SmallModel small(config, type);
                // Past the first chunk of attention with one type of cache; past a page with all.
                const std::uint32_t longest = kv_type == Type::f32 ? 600 : 130;
                const Reference want(small.model, {longest, 1, 33}, {21, 50, 9}, kv_type);
                for (const char* isa : model_isas())
                    for (const std::uint32_t n_threads : {1u, 3u}) {
                        CAPTURE(isa);
                        CAPTURE(n_threads);
                        const std::uint32_t page_len = n_threads == 1 ? 64 : 640;
                        Memories m(small.model,
                                   {.max_kv_len = 60,
                                    .max_batch = 640,
                                    .n_threads = n_threads,
                                    .kv_type = kv_type,
                                    .max_sequences = 3},
                                   {.max_kv_len = 60, .max_sequences = 3, .page_len = page_len, .kv_type = kv_type},
                                   {.max_kv_len = 600, .max_sequences = 3, .page_len = page_len, .kv_type = kv_type},
                                   isa);
                        Cache memories[] = {m.memory(), m.memory(), m.memory()};
                        REQUIRE(cache_memory(m.workspace, want.input(0, 2), std::span(memories).first(2)).ok());
                        REQUIRE(cache_memory(m.workspace, want.input(2, 1), std::span(memories).last(1)).ok());
                        const Cache texts[] = {m.text(), m.text(), m.text()};
                        // The first tokens of all, of which every row is wanted; then token by token, and one alone.
                        std::vector<float> rows(16 * kVocab);
                        std::vector<Step> steps;
                        for (std::size_t i = 0; i < 3; ++i)
                            steps.push_back({texts[i], want.text(i).first(5),
                                             std::span(rows).subspan(i * 5 * kVocab, 5 * kVocab), memories[i]});
                        REQUIRE(forward(m.workspace, steps).ok());
                        for (std::size_t i = 0; i < 3; ++i) CHECK(want.has(i, 0, steps[i].logits));
                        for (std::uint32_t pos = 5; pos < 9; ++pos) {
                            steps.clear();
                            for (std::size_t i = 0; i < 3; ++i)
                                steps.push_back({texts[i], want.text(i).subspan(pos, 1),
                                                 std::span(rows).subspan(i * kVocab, kVocab), memories[i]});
                            REQUIRE(forward(m.workspace, steps).ok());
                            for (std::size_t i = 0; i < 3; ++i) CHECK(want.has(i, pos, steps[i].logits));
                        }
                        const auto last = std::span(rows).first(kVocab);
                        m.step({texts[1], want.text(1).subspan(9), last, memories[1]});
                        CHECK(want.has(1, 49, last));
                    }
            }
}

TEST_CASE("memory: texts share one, its saved bytes are one, and forks of it") {
    const SmallModel small(text_config(true), Type::f32);
    const Reference want(small.model, {40}, {30}, Type::f32);
    Memories m(small.model, {.max_kv_len = 90, .max_batch = 90, .max_sequences = 4}, {.max_sequences = 4},
               {.max_kv_len = 64, .max_sequences = 3});
    const Cache memory = m.memory();
    REQUIRE(cache_memory(m.workspace, want.input(0, 1), {&memory, 1}).ok());
    CHECK(memory.kv_len() == 40);
    Cache fork, restored = m.memory();
    REQUIRE(fork_cache(memory, fork).ok());
    std::vector<std::byte> saved(cache_bytes(memory));
    std::size_t written = 0;
    REQUIRE(save_cache(memory, saved, written).ok());
    REQUIRE(restore_cache(restored, saved).ok());
    Cache text = m.text();
    CHECK(restore_cache(text, saved).code == Code::session_mismatch);
    std::vector<float> rows(3 * 30 * kVocab);
    std::vector<Step> steps;
    for (const Cache& of : {memory, fork, restored})
        steps.push_back({m.text(), want.text(0), std::span(rows).subspan(steps.size() * 30 * kVocab, 30 * kVocab), of});
    REQUIRE(forward(m.workspace, steps).ok());
    for (const Step& step : steps) CHECK(want.has(0, 0, step.logits));
}

TEST_CASE("memory: a copy in another pool serves as well, where the last layers read none") {
    Config config = text_config(true);
    static constexpr std::uint8_t kLayers[] = {0, 0, 1};
    config.decoder.layer_blocks = kLayers;
    for (const Type kv_type : {Type::f32, Type::q8}) {
        const SmallModel small(config, Type::f32);
        const Reference want(small.model, {80}, {30}, kv_type);
        const Limits limits{.max_kv_len = 90, .max_batch = 90, .kv_type = kv_type};
        const PoolLimits texts{.max_sequences = 1, .kv_type = kv_type};
        Memories from(small.model, limits, texts,
                      {.max_kv_len = 128, .max_sequences = 1, .page_len = 64, .kv_type = kv_type});
        Memories to(small.model, limits, texts,
                    {.max_kv_len = 100, .max_sequences = 1, .page_len = 128, .kv_type = kv_type});
        const Cache memory = from.memory();
        REQUIRE(cache_memory(from.workspace, want.input(0, 1), {&memory, 1}).ok());
        Cache copy = to.memory();
        REQUIRE(copy_cache(memory, copy).ok());
        std::vector<std::byte> saved[2];
        for (const Cache* cache : {&memory, static_cast<const Cache*>(&copy)}) {
            std::vector<std::byte>& bytes = saved[cache == &copy];
            bytes.resize(cache_bytes(*cache));
            std::size_t written = 0;
            REQUIRE(save_cache(*cache, bytes, written).ok());
        }
        CHECK(saved[0] == saved[1]);
        std::vector<float> rows(30 * kVocab);
        to.step({to.text(), want.text(0), rows, copy});
        CHECK(want.has(0, 0, rows));
    }
}

TEST_CASE("memory: a generator's text is the likeliest token after token") {
    const SmallModel small(text_config(true), Type::f32);
    const Reference want(small.model, {40}, {2}, Type::f32);
    Memories m(small.model, {.max_kv_len = 90, .max_batch = 90, .max_sequences = 1}, {},
               {.max_kv_len = 64, .max_sequences = 2});
    const Cache memory = m.memory(), other = m.memory(), by_hand = m.text();
    REQUIRE(cache_memory(m.workspace, want.input(0, 1), {&memory, 1}).ok());
    const auto vectors = some_floats(40 * kWidth, 9);
    EncodeInput in = want.input(0, 1);
    in.source.vectors = vectors;
    REQUIRE(cache_memory(m.workspace, in, {&other, 1}).ok());
    const auto likeliest = [&](const Cache& read) {
        Cache cache = by_hand;
        REQUIRE(rewind(cache, 0).ok());
        std::vector<Token> text(want.text(0).begin(), want.text(0).end());
        std::vector<float> logits(kVocab);
        for (std::size_t n = 0; text.size() < 22; n = text.size() - 1) {
            m.step({cache, std::span(text).subspan(n), logits, read});
            text.push_back(static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
        }
        return text;
    };
    const auto first = likeliest(memory), second = likeliest(other);
    CHECK(first != second);
    REQUIRE(end_cache(const_cast<Cache&>(by_hand)).ok());
    GeneratorPlan plan;
    REQUIRE(make_generator_plan(small.model, {}, {}, plan).ok());
    AlignedBytes arena(plan.arena_bytes);
    Generator generator;
    REQUIRE(make_generator(small.model, {}, m.text(), {}, arena, generator).ok());
    for (const auto& [read, text] : {std::pair{memory, first}, std::pair{other, second}, std::pair{memory, first}}) {
        REQUIRE(start(generator, want.text(0), {.n_new = 20, .memory = read}).ok());
        Piece piece;
        while (generator.finish() == FinishReason::none) REQUIRE(generate(generator, m.workspace, piece).ok());
        CHECK(std::equal(text.begin(), text.end(), generator.tokens().begin(), generator.tokens().end()));
    }
}

TEST_CASE("memory: attention to it is captured step by step") {
    const SmallModel small(text_config(false), Type::f32);
    const Reference want(small.model, {12}, {6}, Type::f32);
    std::vector<float> all(5 * 6 * 12), step(5 * 6 * 12, -1.0f), logits(6 * kVocab);
    SmallSession s(small.model, {.max_batch = 20});
    Workspace workspace = s.session.workspace();
    REQUIRE(capture_attention(workspace,
                              {.layer = 2, .cross = true, .per_head = true, .n_queries = 6, .n_keys = 12, .out = all})
                .ok());
    EncodeInput in = want.input(0, 1);
    in.target = {.ids = want.text(0), .lengths = want.target_lengths};
    REQUIRE(encode(s.session, in, logits).ok());
    Memories m(small.model, {.max_kv_len = 20, .max_batch = 20}, {.max_kv_len = 20}, {.max_kv_len = 20});
    const Cache memory = m.memory(), text = m.text();
    REQUIRE(cache_memory(m.workspace, want.input(0, 1), {&memory, 1}).ok());
    REQUIRE(capture_attention(m.workspace,
                              {.layer = 2, .cross = true, .per_head = true, .n_queries = 6, .n_keys = 12, .out = step})
                .ok());
    for (std::size_t i = 0; i < 6; ++i) m.step({text, want.text(0).subspan(i, 1), {}, memory});
    CHECK(std::memcmp(all.data(), step.data(), all.size() * sizeof(float)) == 0);
}

TEST_CASE("memory: with relative positions a text has as many as its workspace, too") {
    const SmallModel small(with_relative_positions(text_config(true)), Type::f32);
    const Reference want(small.model, {12}, {40}, Type::f32);
    Memories m(small.model, {.max_kv_len = 30, .max_batch = 20, .max_sequences = 1}, {.max_kv_len = 60},
               {.max_kv_len = 20});
    const Cache memory = m.memory(), text = m.text();
    REQUIRE(cache_memory(m.workspace, want.input(0, 1), {&memory, 1}).ok());
    std::vector<float> logits(30 * kVocab);
    const Step step{text, want.text(0).first(31), {}, memory};
    const Status status = forward(m.workspace, {&step, 1});
    CHECK(status.code == Code::context_full);
    CHECK(std::string(StatusLine(status).c_str()).find("positions of this workspace") != std::string::npos);
    m.step({text, want.text(0).first(30), logits, memory});
    CHECK(want.has(0, 0, logits));
}

TEST_CASE("memory: what cannot be is refused, and nothing has changed") {
    const SmallModel small(text_config(true), Type::f32), plain(llama_config(), Type::f32),
        vectors(both_config(NormPlace::pre), Type::f32);
    const Reference want(small.model, {40, 12}, {3, 3}, Type::f32);
    Plan plan;
    PoolPlan pool;
    CHECK(make_pool_plan(plain.model.config(), {.memory = true}, pool).code == Code::unsupported);
    CHECK(make_pool_plan(vectors.model.config(), {.memory = true}, pool).code == Code::unsupported);
    CHECK(make_workspace_plan(vectors.model.config(), {.max_kv_len = 4}, plan).code == Code::bad_limits);
    CHECK(make_workspace_plan(small.model.config(), {.max_kv_len = 91}, plan).code == Code::bad_limits);
    CHECK(make_plan(small.model.config(), {.max_kv_len = 4}, plan).code == Code::bad_limits);

    Memories m(small.model, {.max_kv_len = 90, .max_batch = 60, .max_sequences = 2}, {.max_sequences = 2},
               {.max_kv_len = 40, .max_sequences = 3, .n_pages = 2});
    Cache a = m.memory(), b = m.memory(), c = m.memory(), text = m.text();
    const auto fill = [&](const EncodeInput& in, std::vector<Cache> caches) {
        return cache_memory(m.workspace, in, caches).code;
    };
    EncodeInput with_target = want.input(0, 1), cut = want.input(0, 1);
    with_target.target = {.ids = want.text(0), .lengths = want.target_lengths};
    cut.source.vectors = cut.source.vectors.first(7);
    CHECK(fill(want.input(0, 1), {}) == Code::bad_shape);
    CHECK(fill(want.input(0, 1), {a, b}) == Code::bad_shape);
    CHECK(fill(want.input(0, 2), {a, b, c}) == Code::bad_shape);
    CHECK(fill(with_target, {a}) == Code::bad_shape);
    CHECK(fill(cut, {a}) == Code::bad_shape);
    CHECK(fill(want.input(0, 1), {text}) == Code::bad_argument);
    CHECK(fill(want.input(0, 1), {Cache{}}) == Code::bad_argument);
    CHECK(fill(want.input(0, 2), {a, a}) == Code::bad_argument);
    CHECK(m.memories.pool.n_free_pages() == 2);
    REQUIRE(fill(want.input(0, 1), {a}) == Code::ok);
    CHECK(fill(want.input(0, 1), {a}) == Code::bad_argument);
    CHECK(fill(want.input(0, 2), {b, c}) == Code::pool_full);
    CHECK(m.memories.pool.n_free_pages() == 1);

    std::vector<float> logits(kVocab);
    const auto run = [&](const Cache& cache, const Cache& memory) {
        const Step step{cache, want.text(0), logits, memory};
        return forward(m.workspace, {&step, 1}).code;
    };
    CHECK(run(text, {}) == Code::bad_argument);
    CHECK(run(text, b) == Code::bad_shape);
    CHECK(run(text, text) == Code::bad_argument);
    CHECK(run(a, a) == Code::bad_argument);
    CHECK(text.kv_len() == 0);
    CHECK(run(text, a) == Code::ok);
    std::atomic<bool> flag = true;
    set_cancel(m.workspace, &flag);
    CHECK(fill(want.input(1, 1), {b}) == Code::cancelled);
    CHECK(b.kv_len() == 0);
    CHECK(m.memories.pool.n_free_pages() == 1);
    flag = false;
    CHECK(fill(want.input(1, 1), {b}) == Code::ok);

    // A workspace that is not planned for steps computes none; a model without a memory takes none.
    AlignedBytes arena;
    REQUIRE(make_workspace_plan(small.model.config(), {.max_batch = 60}, plan).ok());
    arena.resize(plan.arena_bytes);
    Workspace workspace;
    REQUIRE(make_workspace(small.model, plan.limits, arena, workspace).ok());
    const Step step{text, want.text(0), logits, a};
    CHECK(forward(workspace, {&step, 1}).code == Code::unsupported);
    SmallSession session(plain.model, {});
    Workspace other = session.session.workspace();
    const Step foreign{session.session.cache(), want.text(0).first(1), {}, a};
    CHECK(forward(other, {&foreign, 1}).code == Code::bad_argument);
}
