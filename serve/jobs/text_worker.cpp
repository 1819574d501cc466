// A text worker's memory, and how choices come and go. Its passes: text_pass.cpp.
#include "serve/jobs/text_worker.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "fovea/host/generation.h"
#include "host/base/error.h"
#include "host/base/hash.h"
#include "host/model/context.h"
#include "host/text/turn_state.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kDefaultContexts = 4;
constexpr std::uint32_t kStopBytes = 2048;  // of a request, and those of a chat template
constexpr std::uint32_t kKeptPerSequence = 2;
constexpr std::uint32_t kStatesPerSequence = 4;  // the present one, one that a pass writes, two marks
constexpr std::uint32_t kStatesPerKept = 2;      // its end's, and that of a mark before its answer
constexpr std::uint32_t kPlacesPerSequence = 2;  // texts that are begun, some of which let others go on
constexpr std::uint32_t kLeastKept = 16;         // tokens that are worth keeping

}  // namespace

std::uint64_t positions_of(std::uint32_t asked, std::uint32_t context, std::uint32_t n_sequences) {
    return asked ? std::max(asked, context) : std::uint64_t{context} * std::min(n_sequences, kDefaultContexts);
}

TextWorker::TextWorker(const host::Opened& served, const WorkerOptions& options, ModelMetrics& metrics)
    : Worker(options.queue_capacity, options.n_sequences),
      served_(served),
      options_(options),
      metrics_(metrics),
      context_(checked_context(served.name, served.model, options.context, kDefaultContext)),
      memories_(served, options, context_),
      draft_(served, options, context_),
      n_kept_(memories_.max_source() ? 0 : options.n_sequences * kKeptPerSequence),
      kept_(0, context_),
      choices_(std::size_t{options.n_sequences} * (memories_.max_source() ? 1 : kPlacesPerSequence)) {
    const std::uint32_t n = options.n_sequences;
    const auto n_places = static_cast<std::uint32_t>(choices_.size());
    Limits limits{.max_kv_len = context_,
                  .max_batch = std::max({options.max_batch, n, memories_.max_source()}),
                  .n_threads = options.n_threads,
                  .max_sequences = n};
    served.plan_adapters(limits);
    require(make_workspace_plan(served.config(), limits, workspace_.plan), served.name);
    n_pages_ = pages_of(positions_of(options.n_positions, context_, n));
    require(make_pool_plan(
                served.config(),
                {.max_kv_len = context_,
                 .max_sequences = n_places + n_kept_ + (options.n_viewed ? 1 : 0),
                 .n_pages = n_pages_,
                 .kv_type = options.kv_type,
                 .max_marks = 2,  // a generator's, while it proposes, and one before an answer
                 .n_states = kStatesPerSequence * n_places + kStatesPerKept * n_kept_ + (options.n_viewed ? 2 : 0)},
                pool_.plan),
            served.name);
    require(make_generator_plan(served.model, served.tokenizer,
                                {.max_tokens = context_, .max_stop_bytes = kStopBytes, .max_proposed = host::kForced},
                                generator_plan_),
            served.name);
}

void TextWorker::take_memory() {
    workspace_ = plan_workspace(served_, workspace_.plan.limits, Pages::at_once);
    memories_.take_memory(served_);
    draft_.take_memory();
    pool_ = start_pool(served_, pool_.plan.limits, Pages::at_once);
    kept_ = KeptPrefixes(n_kept_, context_);
    generator_arena_ = take_arena(served_, all_generator_bytes(), Pages::at_once);
    attention_arena_ = take_arena(served_, attention_bytes(), Pages::at_once);
    const std::uint32_t n = options_.n_sequences;
    steps_.reserve(n);
    stepping_.reserve(n);
    handing_.reserve(n);
    reading_.reserve(n);
    set_gauges();
}

void TextWorker::begin() {
    make_workspace(served_, {.isa = options_.isa}, workspace_);
    draft_.begin(options_.isa);
}

std::uint64_t TextWorker::memory_bytes() const {
    return workspace_.plan.arena_bytes + pool_.plan.arena_bytes + all_generator_bytes() + attention_bytes() +
           memories_.memory_bytes() + draft_.memory_bytes() + std::uint64_t{n_kept_} * context_ * sizeof(Token);
}

/// Ends what nobody waits for, and what has had its time.
void TextWorker::give_up(Clock::time_point now) {
    for (const JobPtr& job : queue.take_ended(now)) fail(job, why_ended(*job, now));
    for (Choice& choice : choices_) {
        const JobPtr job = choice.job;
        if (job && job->is_over(now)) fail(job, kLate);
        if (choice.job && job->is_unread(now) && queue.size()) fail(job, kUnread);
    }
}

void TextWorker::fail(JobPtr job, const Failure& failure) {  // a copy: its choices let go of theirs
    for (Choice& choice : choices_)
        if (choice.job == job) end(choice, false);
    queue.pop(job);
    job->returned.clear();
    job->n_started = job->n_ended = job->n_choices();
    job->fail(failure);
}

void TextWorker::fail_all(const Failure& failure) {
    for (Choice& choice : choices_)
        if (choice.job) fail(choice.job, failure);
    fail_waiting(failure);
    while (kept_.drop_oldest()) {
    }
    set_gauges();
}

std::uint32_t TextWorker::n_of(const std::string& user) const {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(choices_, [&](const Choice& c) { return c.job && c.job->user == user; }));
}

/// The last of those that are asked for: a text that its client does not read, then one of who had the most tokens, then a
/// paused one, then the youngest. Null: there is none.
template<class Is>
Choice* TextWorker::heaviest(const Is& is) {
    const auto rank = [&](const Choice& c) {
        return std::tuple(c.job->is_slow(), queue.served(c.job->user), c.paused, c.order);
    };
    Choice* last = nullptr;
    for (Choice& c : choices_)
        if (c.job && std::invoke(is, c) && (!last || rank(c) > rank(*last))) last = &c;
    return last;
}

/// Gives the places of a pass to the users who had the fewest tokens: where one waits, the youngest text of the one who had the
/// most pauses, and goes on where it was. A text that its client does not read pauses first.
void TextWorker::share_places() {
    for (std::size_t i = 0; i < 2 * choices_.size() && share_place(); ++i) {
    }
}

/// One text fewer or more. False: places are as they should be.
bool TextWorker::share_place() {
    constexpr std::uint64_t kNobody = ~std::uint64_t{0} - kSlice;
    const auto served = [&](const Choice& c) { return queue.served(c.job->user); };
    JobPtr front = queue.front();
    const std::uint32_t n_fronts = front ? n_of(front->user) : 0;
    std::uint64_t of_front = front ? queue.served(front->user) : kNobody;
    const auto is_heavier = [&](const Choice& c, std::uint64_t margin) {
        return c.job->user != front->user && (c.job->is_slow() || served(c) > of_front + margin);
    };
    Choice* giver = nullptr;  // of the place that the waiting one lacks
    if (front && n_running() == choices_.size()) {
        giver = heaviest([&](const Choice& c) { return is_heavier(c, 0) && n_of(c.job->user) > n_fronts + 1; });
        if (!giver) front = nullptr, of_front = kNobody;
    }
    Choice* next = nullptr;  // of those that pause
    for (Choice& c : choices_)
        if (c.job && c.paused && !c.job->is_slow() &&
            (!next || std::tuple(served(c), c.order) < std::tuple(served(*next), next->order)))
            next = &c;
    if (!front && !next) return false;
    Choice* const heavy = heaviest(&Choice::is_active);
    const std::uint64_t of_next = next ? served(*next) : kNobody;
    const auto pause = [&] {
        heavy->paused = true;
        ++metrics_.n_pauses;
        return true;
    };
    if (front && of_front <= of_next) {
        if (giver) return give_back(*giver), true;
        const bool has_turn = n_active() < options_.n_sequences;
        if (has_turn && has_pages(front->prompts[front->next_choice() / front->n_each].size())) return false;
        // What loses pages is computed again.
        if (heavy && is_heavier(*heavy, has_turn && n_fronts ? kSlice : 0)) return pause();
        if (!next || n_active()) return false;
        next->paused = false;
        return true;
    }
    if (n_active() >= options_.n_sequences) {
        if (!heavy->job->is_slow() && served(*heavy) < of_next + kSlice) return false;
        (void)pause();
    }
    next->paused = false;
    return true;
}

/// A choice leaves its place, and starts again later.
void TextWorker::give_back(Choice& choice) {
    const JobPtr job = choice.job;
    job->returned.push_back({choice.index, choice.told});
    queue.put_back(job);
    ++metrics_.n_rests;
    end(choice, true);
}

/// Whether a prompt finds pages beside those that running texts may want for their next tokens.
bool TextWorker::has_pages(std::size_t n_prompt) {
    const std::uint32_t n_others = n_active();
    const auto lacks = [&] { return pool_->n_free_pages() + kept_.n_pages() < pages_of(n_prompt + 1) + n_others; };
    while (n_running() && lacks())
        if (!take_unread_pages() && !take_paused_pages()) return false;
    return true;
}

/// Starts choices while there are places, and pages for their prompts: what they need beyond, they take as they go. True
/// where it has computed: a text to look at has no place among the choices.
bool TextWorker::admit() {
    for (JobPtr job; share_places(), (job = queue.front());) {
        const std::uint64_t served = queue.served(job->user);
        const auto is_before = [&](const Choice& c) {  // it rests, and was first
            return c.wants_pages() && queue.served(c.job->user) <= served;
        };
        if (std::ranges::any_of(choices_, is_before)) return false;
        const std::uint32_t prompt = job->next_choice() / job->n_each;
        if (!has_pages(job->prompts[prompt].size())) return false;
        if (job->rules && !memories_.has_room(job->sources[prompt], choices_)) return false;
        if (job->view) return show_attention(job);
        if (!start_choice(job)) return false;
        if (job->has_started()) queue.pop(job);
    }
    return false;
}

bool TextWorker::start_choice(const JobPtr& job) {
    const auto place = std::find_if(choices_.begin(), choices_.end(), [](auto& c) { return c.job == nullptr; });
    if (place == choices_.end() || n_active() >= options_.n_sequences) return false;
    Choice& choice = *place;
    choice = {.job = job, .index = job->next_choice(), .order = ++n_started_, .logits_hash = kHashSeed};
    if (job->returned.empty()) {
        ++job->n_started;
    } else {
        choice.told = job->returned.back().told;
        job->returned.pop_back();
    }
    queue.hold(job->user);
    // Where a source was read its text's keys and values are of that source alone: nothing is kept of them.
    // A prompt whose tokens have probabilities is computed whole.
    const bool is_alone = job->rules || job->scores_prompt;
    const KeptPrefixes::Found found = is_alone ? KeptPrefixes::Found{} : kept_.find(choice.prompt());
    if (found.n_tokens >= kLeastKept)
        share(choice, found.cache, found.n_tokens);
    else
        (void)make_cache(*pool_, choice.cache);  // there is a place in the pool for each
    if (job->scores_prompt) hand_out_prompt(choice);
    return true;
}

void TextWorker::end(Choice& choice, bool keep) {
    const std::uint32_t n = choice.cache.kv_len();
    const std::span<const Token> all = choice.writes ? choice.generator.tokens() : choice.prompt();
    if (choice.memory.valid()) (void)end_cache(choice.memory);
    if (keep && n >= kLeastKept && n_kept_)
        kept_.keep(choice.cache, all.first(n));
    else
        (void)end_cache(choice.cache);
    queue.release(choice.job->user);
    draft_.leave(choice);
    choice = {};
}

/// The choice's cache becomes the first tokens of another's. Its own ends.
void TextWorker::share(Choice& choice, const Cache& from, std::uint32_t n_tokens) {
    const Cache source = from;
    if (choice.cache.valid()) (void)end_cache(choice.cache);
    const auto n = std::min(n_tokens, static_cast<std::uint32_t>(choice.prompt().size()) - 1);  // one is computed
    if (!fork_cache(source, choice.cache).ok() || !rewind(choice.cache, n).ok()) {              // to n or before it
        (void)end_cache(choice.cache);
        (void)make_cache(*pool_, choice.cache);
    }
    choice.n_shared = choice.cache.kv_len();
    if (!has_states()) return;
    (void)unmark(choice.cache, choice.n_shared);  // marks are the earlier text's
    host::unmark_before(choice.cache, choice.n_shared);
}

std::uint64_t TextWorker::attention_bytes() const {
    const Stack& stack = served_.model.config().decoder;
    std::uint32_t n_heads = 1;
    for (std::uint32_t layer = 0; layer < stack.n_layers; ++layer)
        n_heads = std::max(n_heads, std::uint32_t{stack.block(layer).attention.n_heads});
    const std::uint64_t n = std::min(options_.n_viewed, context_);
    return n_heads * n * n * sizeof(float);
}

/// A text to look at has a cache of its own, in a call of its own. False: it waits for pages that others have.
bool TextWorker::show_attention(const JobPtr& job) {
    const std::span<const Token> text = job->prompts[0];
    const auto n = static_cast<std::uint32_t>(text.size());
    const std::uint32_t n_heads = served_.model.config().decoder.block(job->view->layer).attention.n_heads;
    while (pool_->n_free_pages() < pages_of(n) && (kept_.drop_oldest() || take_paused_pages())) {
    }
    if (pool_->n_free_pages() < pages_of(n) && n_running()) return false;
    queue.pop(job);
    const bool mean = job->view->head < 0;
    const std::size_t n_weights = std::size_t{n} * n;
    const std::span<float> out(reinterpret_cast<float*>(attention_arena_.bytes().data()),
                               (mean ? 1 : n_heads) * n_weights);
    Cache cache;
    Status status = make_cache(*pool_, cache);
    if (status.ok())
        status = capture_attention(
            *workspace_, {.layer = job->view->layer, .per_head = !mean, .n_queries = n, .n_keys = n, .out = out});
    const Step step{cache, text, {}};
    if (status.ok()) status = forward(*workspace_, {&step, 1});
    (void)capture_attention(*workspace_, {});
    if (cache.valid()) (void)end_cache(cache);
    metrics_.n_rows += n;
    ++metrics_.n_passes;
    queue.charge(job->user, n);
    Event event{.ended = true};
    if (status.ok()) {
        const std::span<const float> chosen = out.subspan((mean ? 0 : job->view->head) * n_weights, n_weights);
        event.vector.assign(chosen.begin(), chosen.end());
    } else {
        event.failure = {500, StatusLine(status).c_str()};
    }
    job->n_started = job->n_ended = job->n_choices();
    job->events.push_back(std::move(event));
    job->hand_over();
    job->deliver = nullptr;
    return true;
}

void TextWorker::set_gauges() {
    metrics_.n_running = n_running();
    metrics_.n_waiting = queue.size();
    metrics_.n_pages = n_pages_;
    metrics_.n_free_pages = pool_->n_free_pages();
    metrics_.n_kept_pages = kept_.n_pages();
}

std::unique_ptr<Worker> make_text_worker(const host::Opened& served, const WorkerOptions& options,
                                         ModelMetrics& metrics) {
    return std::make_unique<TextWorker>(served, options, metrics);
}

}  // namespace fovea::serve
