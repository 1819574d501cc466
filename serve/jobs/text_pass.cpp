// One pass of a text worker: whose rows go into it, and what becomes of its logits.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "serve/jobs/logits_hash.h"
#include "serve/jobs/text_worker.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kWorthWaiting = 32;  // a choice waits while another computes more than this many shared tokens

/// The chosen token of one row of logits with its chance, and the n likeliest ones with theirs.
ChosenToken chances(const Tokenizer& tokenizer, std::span<const float> logits, Token chosen,
                    std::uint32_t n_likeliest) {
    const double highest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - highest);
    const double normalizer = highest + std::log(sum);
    const auto chance = [&](Token id) {
        return TokenChance{std::string(token_bytes(tokenizer, id)), id, static_cast<float>(logits[id] - normalizer)};
    };
    ChosenToken made{chance(chosen), {}};
    std::vector<Token> ids(n_likeliest ? logits.size() : 0);
    std::iota(ids.begin(), ids.end(), Token{0});
    const auto n = std::min<std::size_t>(n_likeliest, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), ids.end(),
                      [&](Token a, Token b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    for (std::size_t i = 0; i < n; ++i) made.likeliest.push_back(chance(ids[i]));
    return made;
}

}  // namespace

bool TextWorker::turn() {
    give_up(Clock::now());
    share_places();
    bool computed = admit();
    computed |= read_sources();
    plan_pass();
    if (steps_.empty()) {
        set_gauges();
        return computed;
    }
    const Status status = compute();
    for (Choice* choice : stepping_) {
        const JobPtr job = choice->job;
        if (!job) continue;  // it ended with another choice of its job
        if (!status.ok()) {
            fail(job, {500, StatusLine(status).c_str()});
            continue;
        }
        metrics_.n_rows += choice->n_rows;
        queue.charge(job->user, choice->n_rows);
        if (choice->takes) hand_out(*choice);
        job->hand_over();
        if (job->n_ended == job->n_choices()) job->deliver = nullptr;
    }
    ++metrics_.n_passes;
    set_gauges();
    return true;
}

/// Memories for the choices that have none yet. True where it has computed.
bool TextWorker::read_sources() {
    const Status status = memories_.read(choices_, *workspace_, workspace_.plan.limits.max_batch, reading_);
    if (reading_.empty()) return false;
    ++metrics_.n_passes;
    for (const Choice* choice : reading_) {
        const JobPtr job = choice->job;
        if (!job) continue;  // it ended with another choice of its job
        metrics_.n_rows += choice->source().size();
        queue.charge(job->user, static_cast<std::uint32_t>(choice->source().size()));
        if (!status.ok()) fail(job, {500, StatusLine(status).c_str()});
    }
    return true;
}

/// Whether another choice is about to compute what this one's prompt begins with. Takes what is there already.
bool TextWorker::waits_to_share(Choice& choice) {
    if (choice.writes || choice.job->rules) return false;
    const std::uint32_t n_cached = choice.cache.kv_len();
    const auto n_useful = static_cast<std::uint32_t>(choice.prompt().size()) - 1;
    const Choice* best = nullptr;
    std::uint32_t n_best = n_cached + kWorthWaiting;
    for (const Choice& other : choices_) {
        if (!other.goes_on() || other.order >= choice.order) continue;
        std::uint32_t n = std::min(n_same(other.prompt(), choice.prompt()), n_useful);
        if (other.cache.kv_len() >= n) n = other.cache.reach(n);
        if (n <= n_best) continue;
        best = &other;
        n_best = n;
    }
    if (!best) return false;
    if (best->cache.kv_len() < n_best) return true;
    share(choice, best->cache, n_best);
    return false;
}

/// Sequences whose history is to be computed in this pass, the shortest remainder first. A resting one comes back where
/// there are pages for all it had.
std::vector<Choice*> TextWorker::that_fill() {
    std::vector<Choice*> filling;
    for (Choice& c : choices_) {
        if (!c.is_active()) continue;
        if (c.resting)
            c.resting =
                pool_->n_free_pages() + kept_.n_pages() < pages_of(c.history().size() + 1) + options_.n_sequences;
        const bool fills = !c.writes || c.cache.kv_len() < c.history().size();
        if (fills && !c.resting && !c.lacks_memory() && !waits_to_share(c)) filling.push_back(&c);
    }
    // All rest: the oldest goes on, with pages for a whole context to itself.
    if (std::ranges::none_of(choices_, &Choice::goes_on)) {
        Choice* oldest = nullptr;
        for (Choice& c : choices_)
            if (c.is_active() && (!oldest || c.order < oldest->order)) oldest = &c;
        if (oldest) {
            oldest->resting = false;
            filling.push_back(oldest);
        }
    }
    const auto remainder = [](const Choice* c) { return c->history().size() - c->cache.kv_len(); };
    std::stable_sort(filling.begin(), filling.end(), [&](auto* a, auto* b) { return remainder(a) < remainder(b); });
    return filling;
}

/// A row for each text that goes on, and the rows that are left for prompts, in equal parts.
void TextWorker::plan_pass() {
    steps_.clear();
    stepping_.clear();
    std::uint32_t n_tokens = 0;
    const std::vector<Choice*> filling = that_fill();
    for (Choice& c : choices_) {
        c.n_rows = 0;
        if (!c.goes_on() || !c.writes || c.cache.kv_len() < c.history().size() || c.job->is_slow()) continue;
        add_generator_step(c);
        n_tokens += c.n_rows;
    }
    const std::uint32_t most = workspace_.plan.limits.max_batch - std::min(workspace_.plan.limits.max_batch, n_tokens);
    std::uint32_t left = n_tokens ? std::min(most, options_.n_beside) : most;
    auto n_filling = static_cast<std::uint32_t>(filling.size());
    for (Choice* c : filling) {
        const std::uint32_t n_before = left, n_rows = left / n_filling--;
        if (!c->job) continue;  // one of the same request could not start, which ended them all
        fill(*c, n_rows);
        left = n_before - c->n_rows;
    }
}

/// The next piece of a choice's history. Where it reaches a prompt's end the generator starts, and computes it.
void TextWorker::fill(Choice& c, std::uint32_t n_rows) {
    if (n_rows == 0) return;
    const std::uint32_t n_cached = c.cache.kv_len();
    if (!c.writes && c.prompt().size() - n_cached <= n_rows) {
        if (const Status status = start_generator(c); !status.ok())
            return fail(c.job, {500, StatusLine(status).c_str()});
        return add_generator_step(c);
    }
    const std::span<const Token> rest = c.history().subspan(n_cached);
    c.n_rows = std::min(n_rows, static_cast<std::uint32_t>(rest.size()));
    c.takes = false;
    steps_.push_back({c.cache, rest.first(c.n_rows), {}, c.memory});
    stepping_.push_back(&c);
}

Status TextWorker::start_generator(Choice& c) {
    const auto at = static_cast<std::size_t>(&c - choices_.data());
    const auto bytes = static_cast<std::size_t>(generator_plan_.arena_bytes);
    const std::span<std::byte> arena = generator_arena_.bytes().subspan(at * bytes, bytes);
    const std::span<const Token> prompt = c.prompt();
    Status status =
        make_generator(served_.model, served_.tokenizer, c.cache, generator_plan_.limits, arena, c.generator);
    if (status.ok()) status = resume(c.generator, prompt.first(c.cache.kv_len()));
    if (!status.ok()) return status;
    const Job& job = *c.job;
    GenerateOptions options{.sampler = job.sampler.options(),
                            .n_new = job.n_new,
                            .n_recent = job.penalized.n_recent,
                            .n_counted = job.penalized.n_counted,
                            .counts_prompt = job.penalized.counts_prompt};
    options.sampler.bias = job.penalized.biases;
    options.sampler.seed += c.index % job.n_each;
    const std::vector<std::string_view> stop(job.stop.begin(), job.stop.end());
    options.stop = stop;
    options.end_tokens = job.end_tokens;
    options.shown = job.shown;
    options.memory = c.memory;
    if (job.rules) c.constraint = constrain_target(*job.rules, c.source());
    if (job.constrain) c.constraint = job.constrain();
    options.filter = c.constraint.filter;
    status = start(c.generator, prompt, options);
    c.writes = status.ok();
    return status;
}

void TextWorker::add_generator_step(Choice& c) {
    Step step;
    if (const Status status = next_step(c.generator, step); !status.ok())
        return fail(c.job, {500, StatusLine(status).c_str()});
    c.n_rows = static_cast<std::uint32_t>(step.tokens.size());
    c.takes = true;
    steps_.push_back(step);
    stepping_.push_back(&c);
}

/// One forward call. Where pages lack, kept prefixes give theirs, then the youngest text that pauses, then the youngest of all.
Status TextWorker::compute() {
    // A step's choice may have failed while others were planned.
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
    if (kept_.drop_oldest() || take_paused_pages()) return true;
    Choice* youngest = nullptr;
    int n_active = 0;
    for (Choice& c : choices_) {
        if (!c.goes_on() || c.lacks_memory()) continue;
        ++n_active;
        if (!youngest || c.order > youngest->order) youngest = &c;
    }
    if (n_active < 2) return false;
    take_pages(*youngest);
    const auto at = std::find(stepping_.begin(), stepping_.end(), youngest) - stepping_.begin();
    if (at < static_cast<std::ptrdiff_t>(stepping_.size())) {
        steps_.erase(steps_.begin() + at);
        stepping_.erase(stepping_.begin() + at);
    }
    return !steps_.empty();
}

bool TextWorker::take_paused_pages() {
    Choice* youngest = nullptr;
    for (Choice& c : choices_)
        if (c.job && c.paused && c.cache.kv_len() && (!youngest || c.order > youngest->order)) youngest = &c;
    if (youngest) take_pages(*youngest);
    return youngest != nullptr;
}

/// The text is computed again when it goes on.
void TextWorker::take_pages(Choice& choice) {
    (void)rewind(choice.cache, 0);
    choice.resting = true;
    ++metrics_.n_rests;
    if (choice.writes && choice.generator.figures().n_tokens == 0) choice.writes = false;  // it starts again
}

/// What the pass adds to a text.
void TextWorker::hand_out(Choice& c) {
    Piece piece;
    if (const Status status = take(c.generator, piece); !status.ok())
        return fail(c.job, {500, StatusLine(status).c_str()});
    Job& job = *c.job;
    Event event{.choice = c.index, .text = std::string(piece.text), .finish = piece.finish};
    const std::size_t vocab_size = served_.model.config().decoder.vocab_size;
    for (std::size_t i = 0; i < piece.tokens.size() && job.n_likeliest >= 0; ++i)
        event.tokens.push_back(chances(served_.tokenizer, piece.logits.subspan(i * vocab_size, vocab_size),
                                       piece.tokens[i], static_cast<std::uint32_t>(job.n_likeliest)));
    if (job.hash_logits) c.logits_hash = hash_logits(piece.logits, c.logits_hash);
    event.ended = event.finish != FinishReason::none;
    const GenerateFigures figures = c.generator.figures();
    event.n_prompt = c.job->rules ? static_cast<std::uint32_t>(c.source().size()) : figures.n_prompt;
    event.n_shared = c.n_shared;
    event.n_new = figures.n_tokens;
    event.logits_hash = c.logits_hash;
    event.stop = piece.stop_text;
    count(c, event, piece.tokens.size());
    if (!event.ended && event.text.empty() && event.tokens.empty()) return;
    job.n_ended += event.ended;
    const bool ended = event.ended;
    job.events.push_back(std::move(event));
    if (ended) end(c, true);
}

void TextWorker::count(const Choice& c, const Event& event, std::size_t n_new) {
    metrics_.n_new_tokens += n_new;
    if (n_new && event.n_new == n_new) {
        metrics_.first_token.observe(seconds_since(c.job->arrived));
        metrics_.n_prompt_tokens += event.n_prompt;
        metrics_.n_shared_tokens += event.n_shared;
    }
    if (event.ended) metrics_.request.observe(seconds_since(c.job->arrived));
}

}  // namespace fovea::serve
