// Recurrent states beside keys and values: whatever is appended, forked, marked, rewound, saved or cut short, every logit is
// that of the sequence computed alone from its start. No model of today has a state, so that a toy runs within the real
// passes, told of each row by the tap: s = a·s + embedding(token). Its logits are the model's, of cached keys and values, plus s.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <random>

#include "engine/cache/kv_cache.h"
#include "fovea/checksum.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kPositions = 200, kWidth = 32, kMarks = 3;
constexpr std::uint64_t kStateBytes = kWidth * sizeof(float);
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Config config() { return llama_config(2, kWidth, 4, 2, 8, 48, kPositions); }

/// The recurrence: `to` may be `from`. Null: zeros.
void advance(const float* from, const float* x, float* to) {
    for (std::uint32_t i = 0; i < kWidth; ++i) to[i] = 0.75f * (from ? from[i] : 0.0f) + x[i];
}

/// A row of logits as the toy's.
void add_state(std::vector<float>& logits, std::size_t row, std::size_t vocab_size, const float* state) {
    for (std::size_t i = 0; i < vocab_size; ++i) logits[row * vocab_size + i] += state[i % kWidth];
}

/// Logits of every token of a text, from its start and with nothing beside it.
class Alone {
public:
    Alone(const Model& model, Type kv_type) : s_(model, {.max_batch = 64, .kv_type = kv_type}) {
        set_trace(s_.session, {take_row, this});
    }
    std::vector<float> logits(std::span<const Token> tokens) {
        const std::size_t vocab_size = s_.session.model().config().decoder.vocab_size;
        rows_.clear();
        REQUIRE(rewind(s_.session, 0).ok());
        std::vector<float> all(tokens.size() * vocab_size);
        REQUIRE(forward(s_.session, tokens, all).ok());
        std::vector<float> state(kWidth);
        for (std::size_t row = 0; row < tokens.size(); ++row) {
            advance(row ? state.data() : nullptr, rows_.data() + row * kWidth, state.data());
            add_state(all, row, vocab_size, state.data());
        }
        return all;
    }

private:
    static void take_row(void* context, std::uint32_t, std::uint32_t, const char* name, std::span<const float> row) {
        auto& self = *static_cast<Alone*>(context);
        if (std::string_view(name) == "embedding") self.rows_.insert(self.rows_.end(), row.begin(), row.end());
    }
    SmallSession s_;
    std::vector<float> rows_;
};

/// A pool with states, in exactly the memory that its plan says.
struct StatePool {
    AlignedBytes arena;
    PoolPlan plan;
    CachePool pool;

    StatePool(const Model& model, const PoolLimits& limits) {
        REQUIRE(plan_pool(model.config(), limits, kStateBytes, plan).ok());
        arena.resize(plan.arena_bytes, std::byte{0xff});  // NaN
        REQUIRE(make_pool(model, limits, kStateBytes, arena, pool).ok());
    }
    [[nodiscard]] States& states() const { return *CacheAccess::pool(pool)->states; }
    Cache make() {
        Cache cache;
        REQUIRE(make_cache(pool, cache).ok());
        return cache;
    }
    /// What nobody holds says nothing.
    void spoil_free_states() {
        for (std::uint32_t i = 0; i < states().n_free; ++i)
            std::memset(states().at(states().free_states[i]), 0xff, kStateBytes);
    }
};

States& states_of(const Cache& cache) { return *CacheAccess::pool(cache)->states; }

/// One workspace in whose passes the toy runs, for caches of any pool.
class Toy {
public:
    Toy(const Model& model, const Limits& limits) : vocab_size_(model.config().decoder.vocab_size) {
        Plan plan;
        REQUIRE(make_workspace_plan(model.config(), limits, plan).ok());
        arena_.resize(plan.arena_bytes, std::byte{0xee});
        REQUIRE(make_workspace(model, limits, arena_, workspace_).ok());
        set_trace(workspace_, {take_row, this});
        set_cancel(workspace_, &cancel_);
    }

    /// forward, with the states, and the states' share of the logits. It is cancelled when the tap was called n_calls times.
    Status forward(std::span<const Step> steps, std::vector<std::vector<float>>& logits, std::size_t n_calls = 0) {
        steps_ = steps;
        step_ = row_ = n_seen_ = 0;
        n_calls_ = n_calls;
        cancel_ = false;
        outputs_.assign(steps.size(), {});
        const Status status = fovea::forward(workspace_, steps);
        for (std::size_t i = 0; i < steps.size() && status.ok(); ++i) {
            const std::size_t n_rows = logits[i].size() / vocab_size_, first = steps[i].tokens.size() - n_rows;
            for (std::size_t row = 0; row < n_rows; ++row)
                add_state(logits[i], row, vocab_size_, outputs_[i].data() + (first + row) * kWidth);
        }
        return status;
    }
    [[nodiscard]] Workspace& workspace() { return workspace_; }

private:
    static void take_row(void* context, std::uint32_t, std::uint32_t, const char* name, std::span<const float> row) {
        auto& self = *static_cast<Toy*>(context);
        if (++self.n_seen_ == self.n_calls_) self.cancel_ = true;
        if (std::string_view(name) == "embedding") self.take(row);
    }
    void take(std::span<const float> x) {
        const Step& step = steps_[step_];
        const StateStep state = states_of(step.cache).step(CacheAccess::slot(step.cache), row_ == 0);
        auto* to = reinterpret_cast<float*>(state.to);
        if (row_ == 0) std::fill(to, to + kWidth, kNaN);  // it has been given no state yet
        advance(reinterpret_cast<const float*>(state.from), x.data(), to);
        outputs_[step_].insert(outputs_[step_].end(), to, to + kWidth);
        if (++row_ == step.tokens.size()) ++step_, row_ = 0;
    }

    std::size_t vocab_size_;
    AlignedBytes arena_;
    Workspace workspace_;
    std::atomic<bool> cancel_ = false;
    std::span<const Step> steps_;
    std::size_t step_ = 0, row_ = 0, n_seen_ = 0, n_calls_ = 0;
    std::vector<std::vector<float>> outputs_;
};

struct Text {
    Cache cache;
    std::size_t pool = 0;
    std::vector<Token> tokens;
    std::vector<std::uint32_t> marks;
};

/// Many texts over two pools of different page lengths, in passes of one workspace.
class Schedule {
public:
    Schedule(const Model& model, PoolLimits limits, std::uint32_t seed)
        : model_(model),
          alone_(model, limits.kv_type),
          toy_(model, {.max_batch = 24, .n_threads = 2, .max_sequences = 6}),
          random_(seed) {
        limits.max_marks = kMarks;
        pools_.emplace_back(model, limits);
        limits.page_len *= 2;
        limits.n_pages /= 2;
        pools_.emplace_back(model, limits);
        for (std::size_t i = 0; i < 2 * std::size_t{limits.max_sequences}; ++i)
            texts_.push_back({pools_[i % 2].make(), i % 2, {}, {}});
    }

    void run(std::size_t n_steps) {
        for (std::size_t i = 0; i < n_steps; ++i) {
            CAPTURE(i);
            switch (below(9)) {
                case 0: fork(); break;
                case 1: go_back(any()); break;
                case 2: save_and_restore(); break;
                case 3:
                case 4: mark_or_unmark(any()); break;
                default: step(); break;
            }
            check_lengths();
        }
        for (Text& text : texts_) CHECK(end_cache(text.cache).ok());
        for (StatePool& p : pools_) {
            CHECK(p.pool.n_free_pages() == p.plan.limits.n_pages);
            CHECK(p.pool.n_free_states() == p.plan.limits.n_states);
            for (std::uint32_t i = 0; i < p.plan.limits.n_states; ++i) CHECK(p.states().n_users[i] == 0);
        }
    }
    std::size_t n_passes = 0, n_cancelled = 0, n_out_of_pages = 0, n_out_of_states = 0, n_back_to_marks = 0;

private:
    [[nodiscard]] std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }
    [[nodiscard]] Text& any() { return texts_[below(texts_.size())]; }
    void count(const Status& status) {
        REQUIRE(status.code == Code::pool_full);
        ++(std::string_view(status.what) == "free states at least" ? n_out_of_states : n_out_of_pages);
    }
    [[nodiscard]] std::vector<std::uint32_t> free_counts() const {
        std::vector<std::uint32_t> n;
        for (const StatePool& p : pools_) n.push_back(p.pool.n_free_pages()), n.push_back(p.pool.n_free_states());
        return n;
    }
    void check_lengths() {
        for (const Text& text : texts_) REQUIRE(text.cache.kv_len() == text.tokens.size());
    }

    void fork() {
        Text &from = any(), &to = any();
        if (&from == &to || from.pool != to.pool) return;
        REQUIRE(end_cache(to.cache).ok());
        REQUIRE(fork_cache(from.cache, to.cache).ok());
        to.tokens = from.tokens;
        to.marks = from.marks;
    }

    void go_back(Text& text) {
        const std::uint32_t asked = below(4) ? below(text.tokens.size() + 1) : 0;
        std::uint32_t want = 0, reached = kPositions;
        for (const std::uint32_t mark : text.marks)
            if (mark <= asked) want = mark;
        if (asked == text.tokens.size()) want = asked;
        n_back_to_marks += want && want < text.tokens.size();
        CHECK(text.cache.reach(asked) == want);
        REQUIRE(rewind(text.cache, asked, &reached).ok());
        REQUIRE(reached == want);
        text.tokens.resize(want);
        std::erase_if(text.marks, [&](std::uint32_t mark) { return mark > want; });
    }

    void mark_or_unmark(Text& text) {
        const auto n = static_cast<std::uint32_t>(text.tokens.size());
        if (below(4) == 0 && !text.marks.empty()) {
            const std::uint32_t at = text.marks[below(text.marks.size())];
            CHECK(unmark(text.cache, at).ok());
            std::erase(text.marks, at);
            return;
        }
        const auto before = free_counts();
        const Status status = mark(text.cache);
        CHECK(free_counts() == before);
        const bool is_kept = n == 0 || std::count(text.marks.begin(), text.marks.end(), n);
        const bool is_full = text.marks.size() == kMarks || pools_[text.pool].pool.n_free_states() == 0;
        REQUIRE(status.code == (is_kept || !is_full ? Code::ok : Code::pool_full));
        if (!is_kept && !is_full) text.marks.push_back(n);
    }

    void save_and_restore() {
        Text &from = any(), &to = any();
        std::vector<std::byte> saved(cache_bytes(from.cache));
        std::size_t n = 0;
        REQUIRE(save_cache(from.cache, saved, n).ok());
        REQUIRE(n == saved.size());
        const auto before = free_counts();
        const Status status = below(2) ? restore_cache(to.cache, saved) : copy_cache(from.cache, to.cache);
        if (!status.ok()) {
            count(status);
            CHECK(free_counts() == before);
            return;
        }
        to.tokens = from.tokens;
        to.marks = from.marks;
        std::vector<std::byte> again(cache_bytes(to.cache));
        REQUIRE(save_cache(to.cache, again, n).ok());
        REQUIRE(again == saved);
    }

    void step() {
        const std::size_t vocab_size = model_.config().decoder.vocab_size;
        std::vector<Step> steps;
        std::vector<Text*> texts;
        std::vector<std::vector<Token>> tokens(6);
        std::vector<std::vector<float>> logits(6);
        for (std::uint32_t n = 1 + below(6); n > 0; --n) {
            Text& text = any();
            const std::size_t room = kPositions - text.tokens.size(), at = steps.size();
            if (std::count(texts.begin(), texts.end(), &text) || room == 0) continue;
            const std::size_t n_new = std::min<std::size_t>(room, below(3) ? 1 : 1 + below(60));
            for (std::size_t i = 0; i < n_new; ++i) tokens[at].push_back(below(vocab_size));
            const std::size_t sizes[] = {0, vocab_size, n_new * vocab_size};
            logits[at].resize(sizes[below(3)]);
            steps.push_back({text.cache, tokens[at], logits[at]});
            texts.push_back(&text);
        }
        if (steps.empty()) return;
        for (StatePool& p : pools_) p.spoil_free_states();
        const auto before = free_counts();
        const Status status = toy_.forward(steps, logits, below(4) ? 0 : 1 + below(400));
        if (status.code == Code::cancelled) {  // a page that was shared may have been copied
            ++n_cancelled;
            const auto after = free_counts();
            CHECK(after[1] == before[1]);
            CHECK(after[3] == before[3]);
            return;
        }
        if (!status.ok()) {
            CHECK(free_counts() == before);
            count(status);
            Text& text = any();
            text.tokens.clear();
            text.marks.clear();
            REQUIRE(rewind(text.cache, 0).ok());
            return;
        }
        ++n_passes;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            texts[i]->tokens.insert(texts[i]->tokens.end(), tokens[i].begin(), tokens[i].end());
            if (logits[i].empty()) continue;
            const std::vector<float> want = alone_.logits(texts[i]->tokens);
            REQUIRE(std::memcmp(want.data() + want.size() - logits[i].size(), logits[i].data(),
                                logits[i].size() * sizeof(float)) == 0);
        }
    }

    const Model& model_;
    Alone alone_;
    Toy toy_;
    std::mt19937 random_;
    std::vector<StatePool> pools_;
    std::vector<Text> texts_;
};

std::vector<std::byte> saved(const Cache& cache) {
    std::vector<std::byte> bytes(cache_bytes(cache));
    std::size_t n = 0;
    REQUIRE(save_cache(cache, bytes, n).ok());
    return bytes;
}

/// Bytes 28 to 31 are the checksum of all others.
void make_right(std::vector<std::byte>& bytes) {
    const std::span<const std::byte> all(bytes);
    const std::uint32_t crc = crc32c(all.subspan(32), crc32c(all.first(28)));
    std::memcpy(bytes.data() + 28, &crc, sizeof crc);
}

}  // namespace

TEST_CASE("states: a random schedule gives every sequence the logits it has alone") {
    const SmallModel small(config(), Type::f32);
    struct {
        std::uint32_t n_pages, n_states;
        Type kv_type;
    } const settings[] = {{0, 0, Type::f32}, {0, 9, Type::f16}, {9, 0, Type::q8}, {9, 10, Type::q4}};
    std::uint32_t seed = 0;
    std::size_t n_cancelled = 0, n_back_to_marks = 0;
    for (const auto& s : settings) {
        CAPTURE(s.n_states);
        CAPTURE(s.n_pages);
        Schedule schedule(small.model,
                          {.max_kv_len = kPositions,
                           .max_sequences = 5,
                           .page_len = 64,
                           .n_pages = s.n_pages,
                           .kv_type = s.kv_type,
                           .n_states = s.n_states},
                          ++seed);
        schedule.run(kSanitized ? 80 : 800);
        CHECK(schedule.n_passes > (kSanitized ? 5 : 150));
        if (kSanitized) continue;
        CHECK((schedule.n_out_of_states > 0) == (s.n_states != 0));
        CHECK((schedule.n_out_of_pages > 0) == (s.n_pages != 0));
        n_cancelled += schedule.n_cancelled;
        n_back_to_marks += schedule.n_back_to_marks;
    }
    if (kSanitized) return;
    CHECK(n_cancelled > 20);
    CHECK(n_back_to_marks > 20);
}

TEST_CASE("states: the planned size works, one byte less is refused, nothing beyond it is touched") {
    const SmallModel small(config(), Type::f32);
    for (const PoolLimits& limits :
         {PoolLimits{.max_kv_len = 64}, PoolLimits{.max_kv_len = 64, .max_sequences = 3, .max_marks = 1},
          PoolLimits{.max_kv_len = 64, .max_sequences = 7, .n_states = 4}}) {
        PoolPlan plan;
        REQUIRE(plan_pool(small.model.config(), limits, kStateBytes, plan).ok());
        CHECK(plan.limits.max_marks == (limits.max_marks ? limits.max_marks : 2));
        const std::uint32_t n_states = plan.limits.n_states;
        CHECK(n_states == (limits.n_states ? limits.n_states : limits.max_sequences * (2 + plan.limits.max_marks)));
        CHECK(plan.parts[3].bytes == n_states * kStateBytes);
        CHECK(plan.parts[3].offset + plan.parts[3].bytes == plan.arena_bytes);
        AlignedBytes bytes(plan.arena_bytes + 64, std::byte{0x5a});
        CachePool pool;
        const std::span<std::byte> all(bytes);
        CHECK(make_pool(small.model, limits, kStateBytes, all.first(plan.arena_bytes - 1), pool).code ==
              Code::arena_too_small);
        REQUIRE(make_pool(small.model, limits, kStateBytes, all.first(plan.arena_bytes), pool).ok());
        CHECK(pool.n_free_states() == n_states);
        Toy toy(small.model, {.max_batch = 64});
        const auto tokens = some_tokens(64, small.model.config().decoder.vocab_size);
        for (std::uint32_t i = 0; i < limits.max_sequences; ++i) {
            Cache cache;
            REQUIRE(make_cache(pool, cache).ok());
            std::vector<std::vector<float>> logits(1);
            for (std::uint32_t n = 1; n <= plan.limits.max_marks + 1 && pool.n_free_states(); ++n) {
                const Step step{cache, std::span(tokens).first(n), {}};
                REQUIRE(toy.forward({&step, 1}, logits).ok());
                (void)mark(cache);
            }
        }
        for (std::size_t past = 0; past < 64; ++past) REQUIRE(bytes[plan.arena_bytes + past] == std::byte{0x5a});
    }
    PoolPlan with, without;
    CHECK(plan_pool(small.model.config(), {.n_states = 1}, kStateBytes, with).code == Code::bad_limits);
    CHECK(plan_pool(small.model.config(), {.max_marks = 1u << 27}, kStateBytes, with).code == Code::bad_limits);
    CHECK(plan_pool(small.model.config(), {.n_states = 1u << 27}, kStateBytes, with).code == Code::bad_limits);
    // A model of keys and values alone plans none, whatever is asked.
    REQUIRE(make_pool_plan(small.model.config(), {.max_marks = 5, .n_states = 9}, with).ok());
    REQUIRE(make_pool_plan(small.model.config(), {}, without).ok());
    CHECK(with.arena_bytes == without.arena_bytes);
    CHECK(with.n_parts == 3);
    CHECK(with.limits.max_marks + with.limits.n_states == 0);
}

TEST_CASE("keys and values alone: rewind reaches every position, and marks keep nothing") {
    const SmallModel small(config(), Type::f32);
    SmallSession s(small.model, {});
    REQUIRE(forward(s.session, some_tokens(20, small.model.config().decoder.vocab_size), {}).ok());
    Cache cache = s.session.cache();
    const auto before = saved(cache);
    for (int i = 0; i < 9; ++i) CHECK(mark(cache).ok());
    CHECK(saved(cache) == before);
    CHECK(cache.reach(13) == 13);
    CHECK(cache.reach(99) == 20);
    std::uint32_t reached = 0;
    CHECK(rewind(s.session, 13, &reached).ok());
    CHECK(reached == 13);
    CHECK(unmark(cache, 20).ok());
    Cache none;
    CHECK(mark(none).code == Code::bad_argument);
    CHECK(unmark(none, 0).code == Code::bad_argument);
    CHECK(none.reach(3) == 0);
}

TEST_CASE("states: damaged, cut and foreign snapshots change nothing") {
    const SmallModel small(config(), Type::f32);
    StatePool pool(small.model, {.max_sequences = 2, .max_marks = 2}),
        narrow(small.model, {.max_marks = 1, .n_states = 2});
    Toy toy(small.model, {.max_batch = 8});
    Cache cache = pool.make(), other = pool.make(), small_one = narrow.make();
    const auto tokens = some_tokens(9, small.model.config().decoder.vocab_size);
    std::vector<std::vector<float>> logits(1);
    for (const std::uint32_t n : {3u, 2u, 4u}) {
        const Step step{cache, std::span(tokens).first(n), {}};
        REQUIRE(toy.forward({&step, 1}, logits).ok());
        if (n != 4) REQUIRE(mark(cache).ok());
    }
    const Step step{other, tokens, {}};
    REQUIRE(toy.forward({&step, 1}, logits).ok());
    const auto whole = saved(cache), before = saved(other);
    const std::size_t tail = 4 + 2 * 4 + 3 * kStateBytes, marks_at = whole.size() - tail;
    std::size_t n = 0;
    std::vector<std::byte> out(whole.size() - 1);
    CHECK(save_cache(cache, out, n).code == Code::buffer_too_small);
    const auto refused = [&](std::vector<std::byte> bytes, Code code) {
        make_right(bytes);
        CHECK(restore_cache(other, bytes).code == code);
        CHECK(saved(other) == before);
    };
    for (std::size_t cut = marks_at; cut < whole.size(); ++cut)
        refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)}, Code::truncated);
    const auto changed = [&](std::size_t at, std::uint32_t value) {
        auto bytes = whole;
        std::memcpy(bytes.data() + marks_at + at, &value, sizeof value);
        return bytes;
    };
    refused(changed(0, 3), Code::pool_full);
    refused(changed(0, 0xffffffff), Code::pool_full);
    refused(changed(0, 1), Code::bad_shape);   // a length that is not that of one mark
    refused(changed(4, 0), Code::bad_shape);   // at no position
    refused(changed(4, 5), Code::bad_shape);   // not ascending
    refused(changed(8, 10), Code::bad_shape);  // beyond what is cached
    refused(changed(8, 9), Code::bad_shape);   // the present state twice
    // A pool of fewer marks or states.
    CHECK(restore_cache(small_one, whole).code == Code::pool_full);
    CHECK(copy_cache(cache, small_one).code == Code::pool_full);
    REQUIRE(unmark(cache, 3).ok());
    CHECK(copy_cache(cache, small_one).ok());
    CHECK(saved(small_one) == saved(cache));
    CHECK(narrow.pool.n_free_states() == 0);
    // What the cache itself gives back counts, a state that is marked and present, too.
    const auto two = saved(small_one);
    CHECK(restore_cache(small_one, two).ok());
    REQUIRE(unmark(small_one, 5).ok());
    REQUIRE(mark(small_one).ok());
    CHECK(restore_cache(small_one, two).ok());
    CHECK(saved(small_one) == two);
    CHECK(restore_cache(other, whole).ok());
    CHECK(saved(other) == whole);
}
