// Rows of vectors in place of tokens, and spans of rows that see each other: the bits of tokens, in company, split and shared.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <random>

#include "engine/model/model.h"
#include "engine/model/table.h"
#include "engine/pass/workspace.h"
#include "fovea/generator.h"
#include "tests/support/same_bits.h"
#include "tests/support/small_models.h"
#include "tests/support/small_pool.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// The tokens' embeddings, scaled as the model scales them: [n][width].
std::vector<float> embedded(const Session& session, std::span<const Token> tokens) {
    const WorkspaceState& w = *WorkspaceAccess::state(session.workspace());
    const TensorRecord& t = *w.stacks[static_cast<int>(StackIndex::decoder)].token_embedding;
    const Table table{w.weights(ModelAccess::offset(w.model, t)), static_cast<Type>(t.type),
                      t.layout == static_cast<std::uint8_t>(Layout::panels) ? t.panel_stride : 0, t.n_cols};
    std::vector<float> rows(tokens.size() * t.n_cols);
    for (std::size_t i = 0; i < tokens.size(); ++i)
        read_table_row(table, tokens[i], 0, t.n_cols, [&](std::uint32_t at, float value) {
            rows[i * t.n_cols + at] = value * w.model.config().decoder.embedding_scale;
        });
    return rows;
}

std::vector<float> random_rows(std::mt19937& random, std::size_t n, std::uint32_t width) {
    std::normal_distribution<float> normal(0.0f, 0.05f);
    std::vector<float> rows(n * width);
    for (float& x : rows) x = normal(random);
    return rows;
}

/// What a sequence holds: steps of tokens or rows, with their spans.
struct Stretch {
    std::vector<Token> tokens{};
    std::vector<float> rows{};
    std::vector<RowSpan> spans{};
    std::vector<std::uint32_t> positions{};
    std::uint32_t n = 0;

    [[nodiscard]] Step step(Cache cache, std::span<float> logits) const {
        return {cache, tokens, logits, {}, rows, positions, spans};
    }
    /// Its first rows, without spans that are not whole.
    [[nodiscard]] Stretch first(std::uint32_t m) const {
        Stretch part = *this;
        const std::size_t width = rows.size() / n;
        part.rows.resize(width * m);
        part.tokens.resize(rows.empty() ? m : 0);
        part.positions.resize(positions.empty() ? 0 : 3 * m);
        part.n = m;
        std::erase_if(part.spans, [&](const RowSpan& s) { return s.end > m; });
        return part;
    }
};

/// Logits after the last of all parts, in a session of their own.
std::vector<float> alone(const Model& model, std::span<const Stretch> parts) {
    SmallSession s(model, {});
    Workspace workspace = s.session.workspace();
    std::vector<float> logits(model.config().decoder.vocab_size);
    for (const Stretch& part : parts) {
        const Step step = part.step(s.session.cache(), logits);
        REQUIRE(forward(workspace, {&step, 1}).ok());
    }
    return logits;
}

}  // namespace

TEST_CASE("the rows of tokens' embeddings give the tokens' logits, in every bit, however they are split") {
    for (const NamedConfig& named : decoder_configs()) {
        if (named.config.decoder.blocks[0].inputs.width) continue;
        CAPTURE(named.name);
        for (const Type type : {Type::f32, Type::q8}) {
            const SmallModel small(named.config, type);
            const std::uint32_t vocab_size = small.model.config().decoder.vocab_size, n = 23;
            const auto tokens = some_tokens(n, vocab_size);
            SmallSession s(small.model, {.max_batch = 7});
            std::vector<float> want(n * vocab_size), got(want.size());
            REQUIRE(forward(s.session, tokens, want).ok());
            const std::vector<float> rows = embedded(s.session, tokens);
            const std::size_t width = rows.size() / n;
            Workspace workspace = s.session.workspace();
            for (const std::uint32_t first : {0u, 1u, 7u, 12u, 22u}) {  // tokens, rows, and a token behind them
                REQUIRE(rewind(s.session, 0).ok());
                const std::span<float> all(got);
                const std::span<const float> between = std::span(rows).subspan(first * width, (n - 1 - first) * width);
                if (first)
                    REQUIRE(forward(s.session, std::span(tokens).first(first), all.first(first * vocab_size)).ok());
                const Step step{
                    s.session.cache(), {}, all.subspan(first * vocab_size, (n - 1 - first) * vocab_size), {}, between};
                if (!between.empty()) REQUIRE(forward(workspace, {&step, 1}).ok());
                REQUIRE(forward(s.session, std::span(tokens).last(1), all.last(vocab_size)).ok());
                CHECK(same_bits(want, got));
            }
        }
    }
}

TEST_CASE(
    "steps of tokens, rows and spans in any company, forked, rewound and restored: logits of the sequence alone") {
    Config config = llama_config(3, 64, 4, 2, 16, 96, 400);
    SUBCASE("one position") {}
    SUBCASE("positions of three dimensions, one after the other") { config.decoder.blocks[0].attention.rope_plane = 3; }
    SUBCASE("positions of three dimensions, interleaved") {
        config.decoder.blocks[0].attention.rope_plane = 2;
        config.decoder.blocks[0].attention.rope_interleaved = true;
    }
    const bool planes = config.decoder.blocks[0].attention.rope_plane != 0;
    config.decoder.n_blocks = 2;
    config.decoder.blocks[1] = config.decoder.blocks[0];
    config.decoder.blocks[1].attention.window = 19;
    static constexpr std::uint8_t kLayers[] = {1, 0, 1};
    config.decoder.layer_blocks = kLayers;
    const SmallModel small(config, Type::q8);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size, n_sequences = 4;
    std::mt19937 random(7);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (const Limits& limits :
         {Limits{.max_batch = 26, .max_sequences = 4}, Limits{.max_batch = 70, .n_threads = 2, .max_sequences = 4}}) {
        SmallSteps many(small.model, limits, {.max_kv_len = 400, .max_sequences = n_sequences + 1});
        std::vector<Cache> caches;
        std::vector<std::vector<Stretch>> held(n_sequences);
        for (std::uint32_t i = 0; i < n_sequences; ++i) caches.push_back(many.make());
        const auto make_part = [&] {
            Stretch part;
            part.n = 1 + below(40);
            if (below(2)) {
                part.rows = random_rows(random, part.n, 64);
                if (planes && below(2))
                    for (std::uint32_t i = 0; i < 3 * part.n; ++i) part.positions.push_back(below(500));
                if (below(2))
                    for (std::uint32_t at = below(4); at < part.n;) {
                        const std::uint32_t end = std::min(part.n, at + 1 + below(26));
                        part.spans.push_back({at, end});
                        at = end + below(5);
                    }
            } else {
                for (std::uint32_t i = 0; i < part.n; ++i) part.tokens.push_back(below(vocab_size));
            }
            return part;
        };
        for (int turn = 0; turn < 30; ++turn) {
            std::vector<std::uint32_t> who;
            for (std::uint32_t i = 0; i < n_sequences; ++i)
                if (below(3) && caches[i].kv_len() < 350) who.push_back(i);
            std::vector<std::vector<float>> logits(who.size(), std::vector<float>(vocab_size));
            std::vector<Step> steps;
            for (std::size_t i = 0; i < who.size(); ++i) held[who[i]].push_back(make_part());
            for (std::size_t i = 0; i < who.size(); ++i)
                steps.push_back(held[who[i]].back().step(caches[who[i]], logits[i]));
            if (!steps.empty()) REQUIRE(forward(many.workspace, steps).ok());
            for (std::size_t i = 0; i < who.size(); ++i) {
                const bool is_same = same_bits(logits[i], alone(small.model, held[who[i]]));
                CHECK(is_same);
            }
            const std::uint32_t a = below(n_sequences), b = below(n_sequences);
            if (below(2) && a != b) {  // b becomes a fork of a, by pages or by bytes
                if (below(2)) {
                    REQUIRE(end_cache(caches[b]).ok());
                    REQUIRE(fork_cache(caches[a], caches[b]).ok());
                } else {
                    std::vector<std::byte> saved(cache_bytes(caches[a]));
                    std::size_t written = 0;
                    REQUIRE(save_cache(caches[a], saved, written).ok());
                    REQUIRE(restore_cache(caches[b], saved).ok());
                }
                held[b] = held[a];
            }
            if (const std::uint32_t c = below(n_sequences); below(3) == 0 && !held[c].empty()) {
                const Stretch last = held[c].back();
                std::uint32_t m = below(last.n);
                for (const RowSpan& span : last.spans)
                    if (span.first < m && m < span.end) m = span.first;
                REQUIRE(rewind(caches[c], caches[c].kv_len() - last.n + m).ok());
                held[c].pop_back();
                if (m) held[c].push_back(last.first(m));
            }
        }
    }
}

TEST_CASE("positions of three dimensions: a text has one, goes on behind the largest, and may say its own") {
    Config config = llama_config();
    const SmallModel plain(config, Type::f32);
    config.decoder.blocks[0].attention.rope_plane = 1;  // of four frequencies
    const SmallModel planes(config, Type::f32);
    const std::uint32_t vocab_size = plain.model.config().decoder.vocab_size;
    const auto tokens = some_tokens(30, vocab_size);
    SmallSession one(plain.model, {}), s(planes.model, {.max_batch = 7}), other(planes.model, {});
    std::vector<float> want(30 * vocab_size), got(want.size());
    REQUIRE(forward(one.session, tokens, want).ok());
    REQUIRE(forward(s.session, tokens, got).ok());
    CHECK(same_bits(want, got));

    std::mt19937 random(2);
    const std::vector<float> rows = random_rows(random, 4, 48);
    const std::vector<std::uint32_t> square{40, 40, 40, 40, 40, 41, 40, 41, 40, 40, 41, 41};  // its text goes on at 42
    std::vector<std::uint32_t> own;
    for (std::uint32_t i = 0; i < 30; ++i) own.insert(own.end(), 3, i + 42);
    REQUIRE(rewind(s.session, 3).ok());
    REQUIRE(forward(other.session, std::span(tokens).first(3), {}).ok());
    Workspace workspace = s.session.workspace(), alone = other.session.workspace();
    const Step image{s.session.cache(), {}, {}, {}, rows, square};
    const Step same_image{other.session.cache(), {}, {}, {}, rows, square};
    REQUIRE(forward(workspace, {&image, 1}).ok());
    REQUIRE(forward(alone, {&same_image, 1}).ok());
    REQUIRE(forward(s.session, tokens, got).ok());
    const Step text{other.session.cache(), tokens, want, {}, {}, own};
    REQUIRE(forward(alone, {&text, 1}).ok());
    CHECK(same_bits(want, got));

    const auto code = [&](std::vector<std::uint32_t> positions, std::size_t n) {
        const Step step{s.session.cache(), std::span(tokens).first(n), {}, {}, {}, positions};
        return forward(workspace, {&step, 1}).code;
    };
    CHECK(code({1, 2, 3, 4}, 1) == Code::bad_shape);
    CHECK(code({1, 2, 1u << 22}, 1) == Code::bad_shape);
    CHECK(code({1, 2, (1u << 22) - 1}, 1) == Code::ok);
    CHECK(code({}, 1) == Code::context_full);  // there is no position after the last that sines are made for
    REQUIRE(rewind(s.session, s.session.kv_len() - 1).ok());
    CHECK(code({}, 1) == Code::ok);
}

TEST_CASE("a row sees its span, and what is before it: neither more nor less") {
    const SmallModel small(llama_config(1), Type::f32);  // of one layer, so that only what a row sees itself counts
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size, width = 48, n = 20;
    std::mt19937 random(3);
    Stretch part{.n = n};
    part.rows = random_rows(random, n, width);
    part.spans = {{4, 9}, {12, 20}};
    const auto logits_of = [&](const Stretch& p) {
        SmallSession s(small.model, {.max_batch = 8});
        Workspace workspace = s.session.workspace();
        std::vector<float> logits(n * vocab_size);
        const Step step = p.step(s.session.cache(), logits);
        REQUIRE(forward(workspace, {&step, 1}).ok());
        return logits;
    };
    const std::vector<float> before = logits_of(part);
    for (std::uint32_t changed = 0; changed < n; ++changed) {
        Stretch other = part;
        other.rows[changed * width + 5] += 1.0f;
        const std::vector<float> after = logits_of(other);
        for (std::uint32_t row = 0; row < n; ++row) {
            bool sees = changed <= row;
            for (const RowSpan& s : part.spans)
                sees |= s.first <= row && row < s.end && s.first <= changed && changed < s.end;
            CAPTURE(changed);
            CAPTURE(row);
            CHECK(sees == (std::memcmp(&before[row * vocab_size], &after[row * vocab_size], vocab_size * 4) != 0));
        }
    }
}

TEST_CASE("bad rows and spans are refused, one status each, and change nothing") {
    const SmallModel small(llama_config(), Type::f32);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
    SmallSession s(small.model, {.max_batch = 8});
    Workspace workspace = s.session.workspace();
    const auto tokens = some_tokens(20, vocab_size);
    const std::vector<float> rows(200 * 48);
    REQUIRE(forward(s.session, tokens, {}).ok());
    const auto refused = [&](std::span<const Token> t, std::span<const float> r, std::vector<RowSpan> spans,
                             std::vector<std::uint32_t> positions = {}) {
        const Step step{s.session.cache(), t, {}, {}, r, positions, spans};
        const Status status = forward(workspace, {&step, 1});
        CHECK(s.session.kv_len() == 20);
        return std::string(StatusLine(status).c_str());
    };
    const std::span<const float> four = std::span(rows).first(4 * 48);
    CHECK(refused({}, {}, {}) == "bad shape: tokens: expected at least 1, got 0");
    CHECK(refused(tokens, four, {}) == "bad argument: a step: expected tokens or rows, got both");
    CHECK(refused({}, std::span(rows).first(47), {}) ==
          "bad shape: elements of rows as a multiple of: expected 48, got 47");
    CHECK(refused({}, rows, {}) == "context full: room for positions: expected at least 220, got 160");
    CHECK(refused({}, four, {{2, 2}}) == "bad shape: end of a span: expected at least 3, got 2");
    CHECK(refused({}, four, {{2, 5}}) == "bad shape: end of a span: expected at most 4, got 5");
    CHECK(refused({}, four, {{0, 3}, {2, 4}}) == "bad shape: first row of a span: expected at least 3, got 2");
    CHECK(refused(tokens, {}, {{1, 10}}) == "bad shape: rows of a span: expected at most 8, got 9");
    CHECK(refused({}, four, {}, std::vector<std::uint32_t>(12)) ==
          "unsupported: positions of three dimensions of this model");
    std::vector<float> logits(3 * vocab_size);
    const Step wrong{s.session.cache(), {}, logits, {}, four};
    CHECK(forward(workspace, {&wrong, 1}).code == Code::bad_shape);
    CHECK(s.session.kv_len() == 20);

    const SmallModel inputs(shared_keys_config(), Type::f32);
    SmallSession other(inputs.model, {});
    workspace = other.session.workspace();
    const Step step{other.session.cache(), {}, {}, {}, std::span(rows).first(40)};
    CHECK(forward(workspace, {&step, 1}).code == Code::unsupported);
}

TEST_CASE("keys of rows tell every bit of rows and spans, from the first row on") {
    std::mt19937 random(5);
    const std::vector<float> rows = random_rows(random, 6, 48);
    const auto keys_of = [](std::span<const float> r, std::vector<RowSpan> spans) {
        std::vector<Token> keys(6);
        row_keys({{}, {}, {}, {}, r, {}, spans}, keys);
        for (const Token key : keys) CHECK(key >= kFirstRowKey);
        return keys;
    };
    const std::vector<Token> keys = keys_of(rows, {});
    CHECK(keys == keys_of(rows, {}));
    std::map<Token, int> firsts{{keys[0], 0}};
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (const float changed : {-rows[i], std::nextafter(rows[i], 1.0f), 0.0f}) {
            std::vector<float> other = rows;
            other[i] = changed;
            ++firsts[keys_of(other, {})[0]];
        }
    ++firsts[keys_of(rows, {{0, 6}})[0]];
    ++firsts[keys_of(rows, {{0, 5}})[0]];
    CHECK(firsts.size() == 3 * rows.size() + 3);
}

TEST_CASE("generator: a text goes on behind rows, which it knows by their keys") {
    const SmallModel small(llama_config(), Type::f32);
    const std::uint32_t vocab_size = small.model.config().decoder.vocab_size, n_rows = 9;
    std::mt19937 random(11);
    SmallSession s(small.model, {});
    Workspace workspace = s.session.workspace();
    Cache cache = s.session.cache();
    AlignedBytes arena;
    GeneratorPlan plan;
    REQUIRE(make_generator_plan(small.model, {}, {.max_proposed = 4}, plan).ok());
    arena.resize(plan.arena_bytes);
    Generator generator;
    REQUIRE(make_generator(small.model, {}, cache, plan.limits, arena, generator).ok());

    const auto before = some_tokens(5, vocab_size), after = some_tokens(3, vocab_size);
    std::vector<Stretch> parts(3);
    parts[0] = {.tokens = before, .n = 5};
    parts[1] = {.rows = random_rows(random, n_rows, 48), .n = n_rows};
    parts[2] = {.tokens = after, .n = 3};
    std::vector<Token> prompt = before;
    prompt.resize(5 + n_rows);
    row_keys(parts[1].step({}, {}), std::span(prompt).last(n_rows));
    const std::vector<Token> computed = prompt;
    prompt.insert(prompt.end(), after.begin(), after.end());

    CHECK(start(generator, prompt, {}).code == Code::token_out_of_range);  // its rows are nowhere
    for (const Stretch& part : std::span(parts).first(2)) {
        const Step step = part.step(cache, {});
        REQUIRE(forward(workspace, {&step, 1}).ok());
    }
    REQUIRE(resume(generator, computed).ok());
    const GenerateOptions options{.n_new = 6, .speculation = {.n_proposed = 4, .always = true}};
    for (int time = 0; time < 2; ++time) {  // the second time all but the last token is kept
        REQUIRE(start(generator, prompt, options).ok());
        CHECK(generator.figures().n_kept == (time ? prompt.size() - 1 : computed.size()));
        std::vector<Stretch> all = parts;
        for (Piece piece; piece.finish == FinishReason::none;) {
            REQUIRE(generate(generator, workspace, piece).ok());
            for (std::size_t i = 0; i < piece.tokens.size(); ++i) {
                const bool is_same =
                    same_bits(piece.logits.subspan(i * vocab_size, vocab_size), alone(small.model, all));
                CHECK(is_same);
                all.push_back({.tokens = {piece.tokens[i]}, .n = 1});
            }
        }
    }
    std::vector<Token> other = prompt;
    other[7] ^= 1;  // another image
    CHECK(start(generator, other, options).code == Code::token_out_of_range);
    CHECK(start(generator, prompt, {.speculation = {.draft = {workspace, cache}}}).code == Code::unsupported);
    prompt.back() = vocab_size;
    CHECK(start(generator, prompt, options).code == Code::token_out_of_range);
}
