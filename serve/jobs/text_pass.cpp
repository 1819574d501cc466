// One pass of a text worker: whose rows go into it, and what becomes of its logits.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "fovea/host/generation.h"
#include "host/base/hash.h"
#include "host/text/turn_state.h"
#include "serve/jobs/text_worker.h"
#include "serve/jobs/token_rules.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kWorthWaiting = 32;  // a choice waits while another computes more than this many shared tokens
// Seconds in which a pass chooses tokens, unless computing takes longer. A form of many ways takes up to 5 ms for one.
constexpr double kChoosing = 0.003, kQuickChoice = 0.0005;

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
    const auto is_likelier = [&](Token a, Token b) { return logits[a] > logits[b]; };
    std::vector<Token> ids;  // of equals the first come first
    for (Token id = 0; id < logits.size() && n_likeliest; ++id) {
        if (ids.size() == n_likeliest && !is_likelier(id, ids.back())) continue;
        ids.insert(std::upper_bound(ids.begin(), ids.end(), id, is_likelier), id);
        if (ids.size() > n_likeliest) ids.pop_back();
    }
    for (const Token id : ids) made.likeliest.push_back(chance(id));
    return made;
}

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
    const auto begun = Clock::now();
    const Status status = compute();
    computing_ = seconds_since(begun);
    handing_ = stepping_;  // who chooses slowly comes last
    std::ranges::stable_sort(handing_, {}, &Choice::choosing);
    for (Choice* choice : handing_) {
        const JobPtr job = choice->job;
        if (!job) continue;  // it ended with another choice of its job
        if (!status.ok()) {
            fail(job, {500, StatusLine(status).c_str()});
            continue;
        }
        metrics_.n_rows += choice->n_rows;
        queue.charge(job->user, choice->n_rows);
        if (choice->takes)
            hand_out(*choice);
        else if (job->scores_prompt && !choice->writes)
            hand_out_prompt(*choice);
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
    if (choice.writes || choice.job->rules || choice.job->scores_prompt) return false;
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
    const auto lacks = [&](const Choice& c) {
        return pool_->n_free_pages() + kept_.n_pages() < pages_of(c.history().size() + 1) + options_.n_sequences;
    };
    for (Choice& c : choices_)
        while (c.wants_pages() && lacks(c) && take_unread_pages()) {
        }
    std::vector<Choice*> filling;
    for (Choice& c : choices_) {
        if (!c.is_active()) continue;
        c.resting = c.resting && lacks(c);
        if (c.job->scores_prompt && c.job->is_slow()) continue;
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
    double choosing = std::max(kChoosing, computing_);
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        Choice& c = choices_[(metrics_.n_passes + i) % choices_.size()];  // each is the first by turns
        c.n_rows = 0;
        if (!c.goes_on() || !c.writes || c.cache.kv_len() < c.history().size() || c.job->is_slow()) continue;
        if (c.choosing > kQuickChoice && choosing <= 0) continue;
        choosing -= c.choosing;
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
    const std::span<float> scores = prompt_logits(c);
    const std::size_t vocab_size = served_.model.config().decoder.vocab_size;
    if (!scores.empty()) n_rows = std::min(n_rows, static_cast<std::uint32_t>(scores.size() / vocab_size));
    if (!c.writes && has_states()) n_rows = std::min(n_rows, rows_to_mark(c));
    if (!c.writes && c.prompt().size() - n_cached <= (scores.empty() ? n_rows : 1)) {
        if (const Status status = start_generator(c); !status.ok())
            return fail(c.job, {500, StatusLine(status).c_str()});
        return add_generator_step(c);
    }
    const std::span<const Token> rest = c.history().subspan(n_cached);
    c.n_rows = std::min(n_rows, static_cast<std::uint32_t>(rest.size()));
    c.takes = false;
    steps_.push_back(
        {c.cache, rest.first(c.n_rows), scores.first(scores.empty() ? 0 : c.n_rows * vocab_size), c.memory});
    stepping_.push_back(&c);
}

/// Rows of a prompt up to where a later turn goes on from. Keeps the state if that is here.
std::uint32_t TextWorker::rows_to_mark(Choice& c) {
    const auto n_prompt = static_cast<std::uint32_t>(c.prompt().size()), n_cached = c.cache.kv_len();
    const std::uint32_t at = host::turn_begin(n_prompt);
    if (n_cached == at) (void)mark(c.cache);  // there is a state for it
    return n_cached < at ? at - n_cached : n_prompt - n_cached;
}

std::span<std::byte> TextWorker::generator_bytes(const Choice& c) {
    const auto at = static_cast<std::size_t>(&c - choices_.data());
    const auto bytes = static_cast<std::size_t>(generator_plan_.arena_bytes);
    return generator_arena_.bytes().subspan(at * bytes, bytes);
}

/// Room for logits of a prompt whose tokens have probabilities: that of the generator, which starts behind the prompt. Else empty.
std::span<float> TextWorker::prompt_logits(const Choice& c) {
    if (c.writes || !c.job->scores_prompt) return {};
    const std::span<std::byte> room = generator_bytes(c);
    return {reinterpret_cast<float*>(room.data()), room.size() / sizeof(float)};
}

Status TextWorker::start_generator(Choice& c) {
    const std::span<const Token> prompt = c.prompt();
    Status status = make_generator(served_.model, served_.tokenizer, c.cache, generator_plan_.limits,
                                   generator_bytes(c), c.generator);
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
    options.show_special = job.shows_special;
    options.shown = job.shown;
    options.memory = c.memory;
    if (job.rules) c.constraint = constrain_target(*job.rules, c.source());
    if (job.constrain) c.constraint = job.constrain();
    if (job.token_rules) c.constraint = constrain_tokens(job.token_rules, prompt.size(), std::move(c.constraint));
    options.filter = c.constraint.filter;
    status = start(c.generator, prompt, options);
    c.writes = status.ok();
    c.n_cached = c.cache.kv_len();
    return status;
}

void TextWorker::add_generator_step(Choice& c) {
    draft_.propose_for(c, n_active() == 1);
    Step step;
    if (const Status status = next_step(c.generator, step); !status.ok())
        return fail(c.job, {500, StatusLine(status).c_str()});
    c.n_rows = static_cast<std::uint32_t>(step.tokens.size());
    c.takes = true;
    steps_.push_back(step);
    stepping_.push_back(&c);
}

/// One forward call. Where pages lack, kept prefixes give theirs, then the youngest text that pauses, then the youngest of all, or of a
/// user who had more tokens than others.
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
    const auto is_behind = [&](const Choice& a, const Choice& b) {
        const std::uint64_t of_a = queue.served(a.job->user), of_b = queue.served(b.job->user);
        return of_a > of_b + kSlice || (of_a + kSlice >= of_b && a.order > b.order);
    };
    Choice* last = nullptr;
    int n_active = 0;
    for (Choice& c : choices_) {
        if (!c.goes_on() || c.lacks_memory()) continue;
        ++n_active;
        if (!last || is_behind(c, *last)) last = &c;
    }
    if (n_active < 2) return false;
    take_pages(*last);
    const auto at = std::find(stepping_.begin(), stepping_.end(), last) - stepping_.begin();
    if (at < static_cast<std::ptrdiff_t>(stepping_.size())) {
        steps_.erase(steps_.begin() + at);
        stepping_.erase(stepping_.begin() + at);
    }
    return !steps_.empty();
}

bool TextWorker::take_pages_of_youngest(bool (*is)(const Choice&)) {
    Choice* youngest = nullptr;
    for (Choice& c : choices_)
        if (c.job && c.cache.kv_len() && is(c) && (!youngest || c.order > youngest->order)) youngest = &c;
    if (youngest) take_pages(*youngest);
    return youngest != nullptr;
}

bool TextWorker::take_paused_pages() {
    return take_pages_of_youngest([](const Choice& c) { return c.paused; });
}

bool TextWorker::take_unread_pages() {
    return take_pages_of_youngest([](const Choice& c) { return c.job->is_slow(); });
}

/// The text is computed again when it goes on.
void TextWorker::take_pages(Choice& choice) {
    (void)rewind(choice.cache, 0);
    choice.resting = true;
    ++metrics_.n_rests;
    if (!choice.writes || choice.generator.figures().n_tokens) return;
    choice.writes = false;  // it starts again
    draft_.leave(choice);
}

/// What the pass adds to a text.
void TextWorker::hand_out(Choice& c) {
    Piece piece;
    const auto begun = Clock::now();
    if (const Status status = take(c.generator, piece); !status.ok())
        return fail(c.job, {500, StatusLine(status).c_str()});
    c.choosing = seconds_since(begun);
    Job& job = *c.job;
    Event event{.choice = c.index, .text = std::string(piece.text), .finish = piece.finish};
    const std::size_t vocab_size = served_.model.config().decoder.vocab_size;
    for (std::size_t i = 0; i < piece.tokens.size() && job.n_likeliest >= 0; ++i)
        event.tokens.push_back(chances(served_.tokenizer, piece.logits.subspan(i * vocab_size, vocab_size),
                                       piece.tokens[i], static_cast<std::uint32_t>(job.n_likeliest)));
    if (job.scores_prompt && piece.finish == FinishReason::end_token)
        event.tokens.push_back(end_chances(c, piece.tokens.size()));
    if (job.hash_logits) c.logits_hash = hash_bits(piece.logits, c.logits_hash);
    event.ended = event.finish != FinishReason::none;
    // What refused proposals took back with a state is computed with the generator's next step, unless it is much.
    const auto n_text = static_cast<std::uint32_t>(c.generator.tokens().size()), n_cached = c.cache.kv_len();
    c.n_cached = n_text > n_cached + host::kForced + 1 ? n_text - 1 : n_cached;
    const GenerateFigures figures = c.generator.figures();
    metrics_.n_proposed += figures.n_proposed - c.counted.n_proposed;
    metrics_.n_accepted += figures.n_accepted - c.counted.n_accepted;
    c.counted = figures;
    event.n_prompt = c.job->rules ? static_cast<std::uint32_t>(c.source().size()) : figures.n_prompt;
    event.n_shared = c.n_shared;
    event.n_new = figures.n_tokens;
    event.n_proposed = figures.n_proposed;
    event.n_accepted = figures.n_accepted;
    event.logits_hash = c.logits_hash;
    event.stop = piece.stop_text;
    if (job.shows_stop) event.text += event.stop;
    const bool ended = event.ended;
    job.n_ended += ended;
    tell(c, std::move(event));
    if (ended) end(c, true);
}

/// The token that ended a text, the likeliest of those that may: clients that ask for a token behind a prompt count on one.
///   row  of the step's logits that it was chosen from
ChosenToken TextWorker::end_chances(const Choice& c, std::size_t row) const {
    const auto at = std::find(stepping_.begin(), stepping_.end(), &c) - stepping_.begin();
    const std::size_t vocab_size = served_.model.config().decoder.vocab_size;
    const std::span<const float> logits =
        steps_[static_cast<std::size_t>(at)].logits.subspan(row * vocab_size, vocab_size);
    const std::vector<Token>& others = c.job->end_tokens;
    Token likeliest = Tokenizer::kNoToken;
    for (Token id = 0; id < vocab_size; ++id) {
        const bool ends =
            served_.tokenizer.ends_text(id) || std::find(others.begin(), others.end(), id) != others.end();
        if (ends && (likeliest == Tokenizer::kNoToken || logits[id] > logits[likeliest])) likeliest = id;
    }
    return chances(served_.tokenizer, logits, likeliest, static_cast<std::uint32_t>(c.job->n_likeliest));
}

/// The probabilities of a prompt's tokens that the pass has computed; before any pass, its first token, which has none.
void TextWorker::hand_out_prompt(Choice& c) {
    Event event{.choice = c.index};
    const std::span<const Token> prompt = c.prompt();
    if (c.n_scored == 0)
        event.tokens.push_back(
            {{std::string(token_bytes(served_.tokenizer, prompt[0])), prompt[0], std::nanf("")}, {}});
    const std::size_t vocab_size = served_.model.config().decoder.vocab_size, n_rows = c.n_rows;
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t at = c.cache.kv_len() - n_rows + i + 1;  // of the token that follows the row
        if (at < c.n_scored) continue;                             // it was computed before
        const std::span<const float> logits = prompt_logits(c).subspan(i * vocab_size, vocab_size);
        event.tokens.push_back(
            chances(served_.tokenizer, logits, prompt[at], static_cast<std::uint32_t>(c.job->n_likeliest)));
    }
    c.n_scored += static_cast<std::uint32_t>(event.tokens.size());
    tell(c, std::move(event));
}

/// What a pass adds to an answer, without what was told before the choice started again.
void TextWorker::tell(Choice& c, Event event) {
    const auto cut = [](auto& parts, std::size_t& n_told, std::size_t& n_made) {
        const std::size_t n_again = std::min(n_told - n_made, parts.size());
        n_made += parts.size();
        n_told = std::max(n_told, n_made);
        parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(n_again));
    };
    cut(event.text, c.told.n_bytes, c.made.n_bytes);
    cut(event.tokens, c.told.n_chances, c.made.n_chances);
    if (event.n_new > c.told.n_new) {
        metrics_.n_new_tokens += event.n_new - c.told.n_new;
        if (c.told.n_new == 0) {
            metrics_.first_token.observe(seconds_since(c.job->arrived));
            metrics_.n_prompt_tokens += event.n_prompt;
            metrics_.n_shared_tokens += event.n_shared;
        }
        c.told.n_new = event.n_new;
    }
    if (event.ended) metrics_.request.observe(seconds_since(c.job->arrived));
    if (event.ended || !event.text.empty() || !event.tokens.empty()) c.job->events.push_back(std::move(event));
}

}  // namespace fovea::serve
