// Many sequences in one pass, by a schedule drawn at random: prompts of any length beside single tokens, forks, rewinds,
// copies, saved and restored caches, pools that run out of pages. Every logit must be the one that a session of its own
// gives for that sequence alone.
//
//     fovea_schedule [STEPS [SEQUENCES [ISA]]]      default: 800 steps, 16 sequences, every instruction set
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "tests/support/executors.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kPositions = 600;

[[noreturn]] void fail(const char* what, std::size_t step, const Status& status = {}) {
    std::fprintf(stderr, "schedule: %s in step %zu: %s\n", what, step, StatusLine(status).c_str());
    std::exit(1);
}

/// A text: its cache in the pool, and a session that computes it alone.
struct Text {
    Cache cache;
    std::unique_ptr<SmallSession> alone;
};

class Schedule {
public:
    Schedule(const Model& model, const PoolLimits& pool, const Limits& limits, std::uint32_t seed,
             const SessionOptions& options)
        : model_(model), random_(seed), texts_(pool.max_sequences), scarce_(pool.n_pages != 0) {
        PoolPlan plan;
        require(make_pool_plan(model.config(), pool, plan), "plan of the pool");
        pool_arena_.resize(plan.arena_bytes, std::byte{0xee});
        require(make_pool(model, pool, pool_arena_, pool_), "pool");
        Plan workspace;
        require(make_workspace_plan(model.config(), limits, workspace), "plan of the workspace");
        arena_.resize(workspace.arena_bytes, std::byte{0xee});
        require(make_workspace(model, limits, arena_, workspace_, options), "workspace");
        n_pages_ = plan.limits.n_pages;
        kv_type_ = pool.kv_type;
        most_steps_ = workspace.limits.max_sequences;
        for (Text& text : texts_) {
            text.alone = std::make_unique<SmallSession>(
                model, Limits{.max_kv_len = kPositions, .max_batch = 32, .kv_type = kv_type_}, options);
            require(make_cache(pool_, text.cache), "cache");
        }
    }

    void run(std::size_t n_steps) {
        while (n_done_ < n_steps) {
            switch (below(8)) {
                case 0: fork(); break;
                case 1: shorten(); break;
                case 2: save_and_restore(); break;
                default: step(); break;
            }
        }
        for (Text& text : texts_) require(end_cache(text.cache), "end");
        if (pool_.n_free_pages() != n_pages_) fail("a page that nobody gave back", n_done_);
        if (n_full_ == 0 && scarce_ && n_steps >= 200) fail("no call that found the pool full", n_done_);
    }

    [[nodiscard]] std::size_t n_passes() const { return n_passes_; }
    [[nodiscard]] std::size_t n_tokens() const { return n_tokens_; }
    [[nodiscard]] std::size_t n_full() const { return n_full_; }

private:
    [[nodiscard]] std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
    void require(const Status& status, const char* what) {
        if (!status.ok()) fail(what, n_done_, status);
    }
    [[nodiscard]] Text& any() { return texts_[below(static_cast<std::uint32_t>(texts_.size()))]; }

    void fork() {
        Text &from = any(), &to = any();
        if (&from == &to) return;
        require(end_cache(to.cache), "end");
        const Cache ended = to.cache;
        if (ended.valid()) fail("a cache that lives on", n_done_);
        require(fork_cache(from.cache, to.cache), "fork");
        require(copy_session(from.alone->session, to.alone->session), "copy");
        if (ended.valid()) fail("an old handle that is taken for the new cache's", n_done_);
    }

    void shorten() {
        Text& text = any();
        const std::uint32_t kv_len = below(text.cache.kv_len() + 1);
        require(rewind(text.cache, kv_len), "rewind");
        require(rewind(text.alone->session, kv_len), "rewind alone");
    }

    /// The bytes of a cache are those of the session, and go to another text's cache, or are refused whole.
    void save_and_restore() {
        Text &from = any(), &to = any();
        std::vector<std::byte> saved(cache_bytes(from.cache)), alone(session_bytes(from.alone->session));
        std::size_t n = 0;
        require(save_cache(from.cache, saved, n), "save");
        require(save_session(from.alone->session, alone, n), "save alone");
        if (saved != alone) fail("a cache saved as other bytes than alone", n_done_);
        const std::uint32_t kv_len = to.cache.kv_len(), n_free = pool_.n_free_pages();
        const Status status = below(2) ? restore_cache(to.cache, saved) : copy_cache(from.cache, to.cache);
        if (status.code == Code::pool_full) {
            if (to.cache.kv_len() != kv_len || pool_.n_free_pages() != n_free) fail("a refusal that changed", n_done_);
            ++n_full_;
            return;
        }
        require(status, "restore");
        require(restore_session(to.alone->session, alone), "restore alone");
    }

    void step() {
        const std::size_t vocab_size = model_.config().decoder.vocab_size;
        std::vector<Step> steps;
        std::vector<Text*> texts;
        std::vector<std::vector<Token>> tokens(most_steps_);
        std::vector<std::vector<float>> logits(most_steps_);
        const std::uint32_t n_wanted = 1 + below(most_steps_), start = below(static_cast<std::uint32_t>(texts_.size()));
        for (std::size_t i = 0; i < texts_.size() && steps.size() < n_wanted; ++i) {
            Text& text = texts_[(start + i * 7) % texts_.size()];
            bool twice = false;
            for (const Text* other : texts) twice |= other == &text;
            const std::uint32_t room = kPositions - text.cache.kv_len();
            if (twice || room == 0) continue;
            const std::uint32_t lengths[] = {1, 1, 1, 2 + below(24), 1 + below(90)};
            const std::uint32_t n = std::min(room, lengths[below(5)]);
            const std::size_t at = steps.size(), sizes[] = {0, vocab_size, n * vocab_size};
            for (std::uint32_t j = 0; j < n; ++j) tokens[at].push_back(below(static_cast<std::uint32_t>(vocab_size)));
            logits[at].resize(sizes[below(3)]);
            steps.push_back({text.cache, tokens[at], logits[at]});
            texts.push_back(&text);
        }
        if (steps.empty()) return shorten();
        const std::uint32_t n_free = pool_.n_free_pages();
        std::vector<std::uint32_t> before;
        for (const Step& s : steps) before.push_back(s.cache.kv_len());
        const Status status = forward(workspace_, steps);
        if (status.code == Code::pool_full) {
            for (std::size_t i = 0; i < steps.size(); ++i)
                if (steps[i].cache.kv_len() != before[i]) fail("a refusal that changed a cache", n_done_);
            if (pool_.n_free_pages() != n_free) fail("a refusal that took pages", n_done_);
            ++n_full_;
            Text& text = any();
            require(rewind(text.cache, 0), "rewind");
            return require(rewind(text.alone->session, 0), "rewind alone");
        }
        require(status, "forward");
        ++n_passes_;
        for (const Step& s : steps) n_tokens_ += s.tokens.size();
        for (std::size_t i = 0; i < steps.size(); ++i, ++n_done_) {
            std::vector<float> alone(logits[i].size());
            require(forward(texts[i]->alone->session, tokens[i], alone), "forward alone");
            if (!alone.empty() && std::memcmp(alone.data(), logits[i].data(), alone.size() * sizeof(float)) != 0)
                fail("logits other than alone", n_done_);
        }
    }

    const Model& model_;
    std::mt19937 random_;
    std::vector<Text> texts_;
    bool scarce_;  // fewer pages than all texts may want
    AlignedBytes pool_arena_, arena_;
    CachePool pool_;
    Workspace workspace_;
    std::uint32_t n_pages_ = 0, most_steps_ = 0;
    Type kv_type_ = Type::f32;
    std::size_t n_done_ = 0, n_passes_ = 0, n_full_ = 0, n_tokens_ = 0;
};

struct Setting {
    Type type, kv_type;
    std::uint32_t page_len, max_batch, n_threads;
    bool scarce;  // fewer pages than the texts may want
};

}  // namespace

int main(int argc, char** argv) {
    const std::size_t n_steps = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 800;
    const auto n_sequences = static_cast<std::uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 16);
    const Setting settings[] = {{Type::q8, Type::f16, 64, 48, 2, false},
                                {Type::f32, Type::f32, 128, 33, 1, true},
                                {Type::q4, Type::q8, 512, 192, 3, false},
                                {Type::q8, Type::q4, 64, 40, 2, true},
                                {Type::f16, Type::f16, 64, 24, 2, true}};
    std::uint32_t seed = 1;
    for (const char* isa : isa_names()) {
        if (argc > 3 && std::strcmp(argv[3], isa) != 0) continue;
        for (const Setting& s : settings) {
            ++seed;
            Config config = llama_config(2, 32, 6, 2, 8, 48, kPositions);
            const SmallModel small(config, s.type);
            const std::uint32_t n_pages = s.scarce ? n_sequences * kPositions / s.page_len / 6 : 0;
            for (const auto& [name, executor] : executors()) {
                Schedule schedule(
                    small.model,
                    {.max_kv_len = kPositions,
                     .max_sequences = n_sequences,
                     .page_len = s.page_len,
                     .n_pages = n_pages,
                     .kv_type = s.kv_type},
                    {.max_batch = s.max_batch, .n_threads = s.n_threads, .max_sequences = std::min(24u, s.max_batch)},
                    seed, {.isa = isa, .executor = executor});
                schedule.run(n_steps / std::size(settings));
                std::printf(
                    "%s, %s: %zu steps of %u sequences, %zu tokens, pages of %u, %zu passes, %zu times without "
                    "pages: equal\n",
                    isa, name, n_steps / std::size(settings), n_sequences, schedule.n_tokens(), s.page_len,
                    schedule.n_passes(), schedule.n_full());
                std::fflush(stdout);
            }
        }
    }
}
