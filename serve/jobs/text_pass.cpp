// One pass of a text worker: whose rows go into it, and what becomes of its logits.
#include <algorithm>
#include <string_view>

#include "serve/jobs/logits_hash.h"
#include "serve/jobs/text_worker.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kWorthWaiting = 32;  // tokens that a sequence waits for another to compute

double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

}  // namespace

bool TextWorker::turn() {
    give_up(Clock::now());
    bool computed = admit();
    computed |= read_sources();
    plan_pass();
    if (steps_.empty()) {
        set_gauges();
        return computed;
    }
    const Status status = compute();
    for (Sequence* sequence : stepping_) {
        const JobPtr job = sequence->job;
        if (!job) continue;  // it ended with another choice of its job
        if (!status.ok()) {
            fail(job, {500, StatusLine(status).c_str()});
            continue;
        }
        metrics_.n_rows += sequence->n_rows;
        queue.charge(job->user, sequence->n_rows);
        if (sequence->takes) hand_out(*sequence);
        job->hand_over();
        if (job->n_ended == job->n_choices()) job->deliver = nullptr;
    }
    ++metrics_.n_passes;
    set_gauges();
    return true;
}

/// Memories for the sequences that have none yet. True where it has computed.
bool TextWorker::read_sources() {
    const Status status = memories_.read(sequences_, *workspace_, workspace_.plan.limits.max_batch, reading_);
    if (reading_.empty()) return false;
    ++metrics_.n_passes;
    for (const Sequence* sequence : reading_) {
        const JobPtr job = sequence->job;
        if (!job) continue;  // it ended with another choice of its job
        metrics_.n_rows += sequence->source().size();
        queue.charge(job->user, static_cast<std::uint32_t>(sequence->source().size()));
        if (!status.ok()) fail(job, {500, StatusLine(status).c_str()});
    }
    return true;
}

/// Whether another sequence is about to compute what this one's prompt begins with. Takes what is there already.
bool TextWorker::waits_to_share(Sequence& sequence) {
    if (sequence.writes || sequence.job->rules) return false;
    const std::uint32_t n_cached = sequence.cache.kv_len();
    const auto n_useful = static_cast<std::uint32_t>(sequence.prompt().size()) - 1;
    const Sequence* best = nullptr;
    std::uint32_t n_best = n_cached + kWorthWaiting;
    for (const Sequence& other : sequences_) {
        if (!other.job || other.order >= sequence.order || other.resting) continue;
        const std::uint32_t n = std::min(n_same(other.prompt(), sequence.prompt()), n_useful);
        if (n <= n_best) continue;
        best = &other;
        n_best = n;
    }
    if (!best) return false;
    if (best->cache.kv_len() < n_best) return true;
    share(sequence, best->cache, n_best);
    return false;
}

/// Sequences whose history is to be computed in this pass, the shortest remainder first. A resting one comes back where
/// there are pages for all it had.
std::vector<Sequence*> TextWorker::that_fill() {
    std::vector<Sequence*> filling;
    for (Sequence& s : sequences_) {
        if (!s.job) continue;
        if (s.resting)
            s.resting = pool_->n_free_pages() + kept_.n_pages() <
                        pages_of(s.history().size() + 1) + static_cast<std::uint32_t>(sequences_.size());
        const bool fills = !s.writes || s.cache.kv_len() < s.history().size();
        if (fills && !s.resting && !s.lacks_memory() && !waits_to_share(s)) filling.push_back(&s);
    }
    // All rest: the oldest goes on, with pages for a whole context to itself.
    const auto active = [](const Sequence& s) { return s.job && !s.resting; };
    if (std::none_of(sequences_.begin(), sequences_.end(), active)) {
        Sequence* oldest = nullptr;
        for (Sequence& s : sequences_)
            if (s.job && (!oldest || s.order < oldest->order)) oldest = &s;
        if (oldest) {
            oldest->resting = false;
            filling.push_back(oldest);
        }
    }
    const auto remainder = [](const Sequence* s) { return s->history().size() - s->cache.kv_len(); };
    std::stable_sort(filling.begin(), filling.end(), [&](auto* a, auto* b) { return remainder(a) < remainder(b); });
    return filling;
}

/// A row for each text that goes on, and the rows that are left for prompts, in equal parts.
void TextWorker::plan_pass() {
    steps_.clear();
    stepping_.clear();
    std::uint32_t n_tokens = 0;
    const std::vector<Sequence*> filling = that_fill();
    for (Sequence& s : sequences_) {
        s.n_rows = 0;
        if (!s.job || !s.writes || s.resting || s.cache.kv_len() < s.history().size() || s.job->is_slow()) continue;
        add_generator_step(s);
        n_tokens += s.n_rows;
    }
    const std::uint32_t most = workspace_.plan.limits.max_batch - std::min(workspace_.plan.limits.max_batch, n_tokens);
    std::uint32_t left = n_tokens ? std::min(most, options_.n_beside) : most;
    auto n_filling = static_cast<std::uint32_t>(filling.size());
    for (Sequence* s : filling) {
        const std::uint32_t n_before = left, n_rows = left / n_filling--;
        if (!s->job) continue;  // one of the same request could not start, which ended them all
        fill(*s, n_rows);
        left = n_before - s->n_rows;
    }
}

/// The next piece of a sequence's history. Where it reaches a prompt's end the generator starts, and computes it.
void TextWorker::fill(Sequence& s, std::uint32_t n_rows) {
    if (n_rows == 0) return;
    const std::uint32_t n_cached = s.cache.kv_len();
    if (!s.writes && s.prompt().size() - n_cached <= n_rows) {
        if (const Status status = start_generator(s); !status.ok())
            return fail(s.job, {500, StatusLine(status).c_str()});
        return add_generator_step(s);
    }
    const std::span<const Token> rest = s.history().subspan(n_cached);
    s.n_rows = std::min(n_rows, static_cast<std::uint32_t>(rest.size()));
    s.takes = false;
    steps_.push_back({s.cache, rest.first(s.n_rows), {}, s.memory});
    stepping_.push_back(&s);
}

Status TextWorker::start_generator(Sequence& s) {
    const auto at = static_cast<std::size_t>(&s - sequences_.data());
    const auto bytes = static_cast<std::size_t>(generator_plan_.arena_bytes);
    const std::span<std::byte> arena = generator_arena_.bytes().subspan(at * bytes, bytes);
    const std::span<const Token> prompt = s.prompt();
    Status status =
        make_generator(served_.model, served_.tokenizer, s.cache, generator_plan_.limits, arena, s.generator);
    if (status.ok()) status = resume(s.generator, prompt.first(s.cache.kv_len()));
    if (!status.ok()) return status;
    const Job& job = *s.job;
    GenerateOptions options{.sampler = job.sampler,
                            .n_new = job.n_new,
                            .n_recent = job.penalized.n_recent,
                            .n_counted = job.penalized.n_counted,
                            .counts_prompt = job.penalized.counts_prompt};
    options.sampler.bias = job.penalized.biases;
    options.sampler.seed += s.choice % job.n_each;
    const std::vector<std::string_view> stop(job.stop.begin(), job.stop.end());
    options.stop = stop;
    options.end_tokens = job.end_tokens;
    options.memory = s.memory;
    if (job.rules) s.constraint = constrain_target(*job.rules, s.source());
    if (job.constrain) s.constraint = job.constrain();
    if (s.constraint) options.filter = s.constraint->filter();
    status = start(s.generator, prompt, options);
    s.writes = status.ok();
    return status;
}

void TextWorker::add_generator_step(Sequence& s) {
    Step step;
    if (const Status status = next_step(s.generator, step); !status.ok())
        return fail(s.job, {500, StatusLine(status).c_str()});
    s.n_rows = static_cast<std::uint32_t>(step.tokens.size());
    s.takes = true;
    steps_.push_back(step);
    stepping_.push_back(&s);
}

/// One forward call. Where pages lack, kept prefixes give theirs, then the youngest sequence its own.
Status TextWorker::compute() {
    // A step's sequence may have failed while others were planned.
    for (std::size_t i = steps_.size(); i-- > 0;) {
        if (stepping_[i]->job) continue;
        steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(i));
        stepping_.erase(stepping_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (steps_.empty()) return {};
    Status status = forward(*workspace_, steps_);
    while (status.code == Code::pool_full && take_pages_back()) status = forward(*workspace_, steps_);
    return status;
}

bool TextWorker::take_pages_back() {
    if (kept_.drop_oldest()) return true;
    Sequence* youngest = nullptr;
    int n_active = 0;
    for (Sequence& s : sequences_) {
        if (!s.job || s.resting || s.lacks_memory()) continue;
        ++n_active;
        if (!youngest || s.order > youngest->order) youngest = &s;
    }
    if (n_active < 2) return false;
    (void)rewind(youngest->cache, 0);
    youngest->resting = true;
    ++metrics_.n_rests;
    if (youngest->writes && youngest->generator.figures().n_tokens == 0) youngest->writes = false;  // it starts again
    const auto at = std::find(stepping_.begin(), stepping_.end(), youngest) - stepping_.begin();
    if (at < static_cast<std::ptrdiff_t>(stepping_.size())) {
        steps_.erase(steps_.begin() + at);
        stepping_.erase(stepping_.begin() + at);
    }
    return !steps_.empty();
}

/// What the pass adds to a text.
void TextWorker::hand_out(Sequence& s) {
    Piece piece;
    if (const Status status = take(s.generator, piece); !status.ok())
        return fail(s.job, {500, StatusLine(status).c_str()});
    Job& job = *s.job;
    Event event{.choice = s.choice, .text = std::string(piece.text), .finish = piece.finish};
    const std::size_t vocab_size = served_.model.config().decoder.vocab_size;
    for (std::size_t i = 0; i < piece.tokens.size() && job.n_likeliest >= 0; ++i)
        event.tokens.push_back(chances(served_.tokenizer, piece.logits.subspan(i * vocab_size, vocab_size),
                                       piece.tokens[i], static_cast<std::uint32_t>(job.n_likeliest)));
    if (job.hash_logits) s.logits_hash = hash_logits(piece.logits, s.logits_hash);
    event.ended = event.finish != FinishReason::none;
    const GenerateFigures figures = s.generator.figures();
    event.n_prompt = s.job->rules ? static_cast<std::uint32_t>(s.source().size()) : figures.n_prompt;
    event.n_shared = s.n_shared;
    event.n_new = figures.n_tokens;
    event.logits_hash = s.logits_hash;
    count(s, event, piece.tokens.size());
    if (!event.ended && event.text.empty() && event.tokens.empty()) return;
    job.n_ended += event.ended;
    const bool ended = event.ended;
    job.events.push_back(std::move(event));
    if (ended) end(s, true);
}

void TextWorker::count(const Sequence& s, const Event& event, std::size_t n_new) {
    metrics_.n_new_tokens += n_new;
    if (n_new && event.n_new == n_new) {
        metrics_.first_token.observe(seconds_since(s.job->arrived));
        metrics_.n_prompt_tokens += event.n_prompt;
        metrics_.n_shared_tokens += event.n_shared;
    }
    if (event.ended) metrics_.request.observe(seconds_since(s.job->arrived));
}

}  // namespace fovea::serve
