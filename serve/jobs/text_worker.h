// Texts of one model, many at a time: each turn is one pass over the rows of all choices. Choices join and leave
// between passes, long prompts go in pieces beside others' tokens, and what prompts have in common is computed once.
//
// Nothing of this changes a text: logits do not depend on what else is in a pass, on pages, forks or pieces.
// Source: Yu et al. 2022 (batching by iterations); Kwon et al. 2023 (pages); Agrawal et al. 2024 (prompts in pieces).
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "fovea/host/runtime.h"
#include "serve/jobs/kept_prefixes.h"
#include "serve/jobs/source_memories.h"
#include "serve/jobs/text_draft.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {

/// One choice of a job while it is computed.
struct Choice {
    JobPtr job;  ///< null: the place is free
    std::uint32_t index = 0, n_shared = 0;
    std::uint64_t order = 0;  ///< when it came: the youngest gives its pages up first
    Cache cache{}, memory{};
    Generator generator{};
    bool writes = false;   ///< its generator has started
    bool paused = false;   ///< it is others' turn
    bool resting = false;  ///< its pages went to others; it is computed again when there are some
    Constrained constraint{};
    std::uint64_t logits_hash = 0;
    std::uint32_t n_scored = 0;  ///< tokens of the prompt that were handed out
    std::uint32_t n_rows = 0;    ///< of this pass
    double choosing = 0;         ///< seconds that its last token took to be chosen
    bool takes = false;          ///< whether its step gives logits
    std::uint32_t n_cached = 0;  ///< positions that its generator goes on from
    GenerateFigures counted{};   ///< of its generator, in metrics
    Told told{}, made{};  ///< what its client has, and what has come since it started: less where it has started again

    [[nodiscard]] bool is_active() const { return job && !paused; }
    [[nodiscard]] bool goes_on() const { return is_active() && !resting; }
    /// It rests, and its client reads.
    [[nodiscard]] bool wants_pages() const { return is_active() && resting && !job->is_slow(); }
    [[nodiscard]] std::span<const Token> prompt() const { return job->prompts[index / job->n_each]; }
    /// What its memory is of; only where its job has rules.
    [[nodiscard]] std::span<const Token> source() const { return job->sources[index / job->n_each]; }
    [[nodiscard]] bool lacks_memory() const { return job && job->rules && !memory.valid(); }
    /// What its cache must hold before the generator goes on, or starts.
    [[nodiscard]] std::span<const Token> history() const {
        return writes ? generator.tokens().first(n_cached) : prompt().first(prompt().size() - 1);
    }
};

inline constexpr std::uint32_t kSlice = 64;  // tokens that a user may be ahead of another whose text waits

class TextWorker final : public Worker {
public:
    TextWorker(const host::Opened& served, const WorkerOptions& options, ModelMetrics& metrics);

    void take_memory() override;
    [[nodiscard]] bool turn() override;
    void fail_all(const Failure& failure) override;
    void begin() override;
    [[nodiscard]] std::uint32_t context() const override { return context_; }
    [[nodiscard]] std::uint32_t max_prompt() const override {
        return memories_.max_source() ? memories_.max_source() : context_;
    }
    [[nodiscard]] std::uint64_t memory_bytes() const override;
    [[nodiscard]] Work work() const override { return Work::text; }
    [[nodiscard]] std::uint32_t n_lost_pages() const override {
        return n_pages_ - pool_->n_free_pages() + memories_.n_lost_pages();
    }
    void follow(const Follow& by) override { by(*workspace_, *pool_, memories_.pool()); }

private:
    void give_up(Clock::time_point now);
    [[nodiscard]] std::uint32_t n_of(const std::string& user) const;
    template<class Is>
    [[nodiscard]] Choice* heaviest(const Is& is);
    void share_places();
    [[nodiscard]] bool share_place();
    void give_back(Choice& choice);
    [[nodiscard]] bool admit();
    [[nodiscard]] bool has_pages(std::size_t n_prompt);
    [[nodiscard]] std::uint64_t attention_bytes() const;
    [[nodiscard]] std::uint64_t all_generator_bytes() const { return generator_plan_.arena_bytes * choices_.size(); }
    [[nodiscard]] bool show_attention(const JobPtr& job);
    [[nodiscard]] bool start_choice(const JobPtr& job);
    void end(Choice& choice, bool keep);
    void fail(JobPtr job, const Failure& failure);

    [[nodiscard]] bool read_sources();
    [[nodiscard]] bool waits_to_share(Choice& choice);
    void share(Choice& choice, const Cache& from, std::uint32_t n_tokens);
    [[nodiscard]] std::vector<Choice*> that_fill();
    void plan_pass();
    [[nodiscard]] bool has_states() const { return pool_.plan.limits.n_states != 0; }
    [[nodiscard]] std::uint32_t rows_to_mark(Choice& choice);
    void fill(Choice& choice, std::uint32_t n_rows);
    [[nodiscard]] std::span<std::byte> generator_bytes(const Choice& choice);
    [[nodiscard]] Status start_generator(Choice& choice);
    void add_generator_step(Choice& choice);
    [[nodiscard]] Status compute();
    [[nodiscard]] bool take_pages_back();
    /// Takes the pages of the youngest that is asked for. False: none has any.
    [[nodiscard]] bool take_pages_of_youngest(bool (*is)(const Choice&));
    [[nodiscard]] bool take_paused_pages();
    /// Those of a text that its client does not read. Between passes alone: what a client reads changes while one runs.
    [[nodiscard]] bool take_unread_pages();
    void take_pages(Choice& choice);
    void hand_out(Choice& choice);
    [[nodiscard]] std::span<float> prompt_logits(const Choice& choice);
    void hand_out_prompt(Choice& choice);
    [[nodiscard]] ChosenToken end_chances(const Choice& choice, std::size_t row) const;
    void tell(Choice& choice, Event event);
    void set_gauges();
    [[nodiscard]] std::uint32_t n_active() const {
        return static_cast<std::uint32_t>(std::ranges::count_if(choices_, &Choice::is_active));
    }
    [[nodiscard]] std::uint32_t n_running() const {
        return static_cast<std::uint32_t>(
            std::ranges::count_if(choices_, [](const Choice& c) { return c.job != nullptr; }));
    }

    const host::Opened& served_;
    const WorkerOptions options_;
    ModelMetrics& metrics_;
    std::uint32_t context_ = 0, n_pages_ = 0;
    SourceMemories memories_;
    TextDraft draft_;
    host::Runtime<Workspace> workspace_;
    host::Runtime<CachePool> pool_;
    GeneratorPlan generator_plan_;
    Arena generator_arena_, attention_arena_;
    std::uint32_t n_kept_ = 0;  // texts at most
    KeptPrefixes kept_;
    std::vector<Choice> choices_;
    std::uint64_t n_started_ = 0;
    double computing_ = 0;           // seconds of the last pass's products
    std::vector<Step> steps_;        // of this pass,
    std::vector<Choice*> stepping_;  // and whose they are,
    std::vector<Choice*> handing_;   // in the order in which tokens are chosen
    std::vector<Choice*> reading_;   // whose sources are read
};

/// Pages that hold so many positions of a text.
[[nodiscard]] inline std::uint32_t pages_of(std::uint64_t n_positions) {
    constexpr std::uint32_t kPage = PoolLimits{}.page_len;
    return static_cast<std::uint32_t>((n_positions + kPage - 1) / kPage);
}
/// Positions of all caches together: as many as were asked for, but at least one context; 0: a few whole contexts.
[[nodiscard]] std::uint64_t positions_of(std::uint32_t asked, std::uint32_t context, std::uint32_t n_sequences);

}  // namespace fovea::serve
