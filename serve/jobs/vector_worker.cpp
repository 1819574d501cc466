// Vectors of texts: each turn encodes as many as one pass has rows for, of whichever requests they are.
#include <algorithm>

#include "fovea/encode.h"
#include "fovea/host/runtime.h"
#include "host/base/error.h"
#include "host/model/late_interaction.h"
#include "host/model/sparse_vectors.h"
#include "host/model/text_prompts.h"
#include "host/model/texts.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kRowsAtOnce = 512;  // of a pass at least
constexpr std::uint32_t kTexts = 64;        // of a pass at most

/// Tokens of a text without --context, at most: a pass has as many rows, and some models have 40,960 positions.
constexpr std::uint32_t kDefaultContext = 8192;

/// A text that is in the pass.
struct VectorPlace {
    JobPtr job;
    std::uint32_t choice = 0;
};

class VectorWorker final : public Worker {
public:
    VectorWorker(const host::Opened& served, const WorkerOptions& options, ModelMetrics& metrics)
        : Worker(options.queue_capacity),
          served_(served),
          how_{.isa = options.isa},
          metrics_(metrics),
          wanted_(*vector_of_text(served)),
          made_width_(wanted_.before_head ? served.config().encoder.d_model : served.config().encoder.result_width()),
          width_(served.vector_width()),
          score_width_(find_info(served.model, "task") == "text-classification" ? served.config().encoder.result_width()
                                                                                : 1),
          row_width_(served.makes_sparse() || served.has_late_interaction() ? served.config().encoder.result_width()
                                                                            : 0),
          context_(served.has_late_interaction()
                       ? served.config().encoder.max_positions  // sides have lengths of their own
                       : std::min(most_tokens(served.model), options.context ? options.context : kDefaultContext)) {
        if (served.has_late_interaction()) late_.emplace(served);
        Limits limits{
            .max_batch = std::max(kRowsAtOnce, context_), .n_threads = options.n_threads, .max_sequences = kTexts};
        served.plan_adapters(limits);
        require(make_workspace_plan(served.config(), limits, workspace_.plan), served.name);
    }

    void take_memory() override {
        workspace_ = plan_workspace(served_, workspace_.plan.limits, Pages::at_once);
        ids_.reserve(max_batch());
        types_.reserve(max_batch());
        out_.resize(n_out());
    }
    void begin() override { make_workspace(served_, how_, workspace_); }
    [[nodiscard]] bool turn() override;
    void fail_all(const Failure& failure) override { fail_waiting(failure); }
    [[nodiscard]] std::uint32_t context() const override { return context_; }
    [[nodiscard]] std::uint64_t memory_bytes() const override {
        return workspace_.plan.arena_bytes + n_out() * sizeof(float) + 2 * max_batch() * sizeof(Token);
    }
    [[nodiscard]] Work work() const override { return Work::vectors; }
    void follow(const Follow& by) override { by(*workspace_, {}, {}); }

private:
    [[nodiscard]] std::size_t n_out() const {
        return std::max(std::size_t{kTexts} * std::max(made_width_, score_width_),
                        std::size_t{max_batch()} * row_width_);
    }
    /// Values of a text's result in out_.
    [[nodiscard]] std::size_t n_values(std::size_t i) const {
        if (is_of_rows(result_)) return std::size_t{lengths_[i]} * row_width_;
        return result_ == EncoderResult::scores ? score_width_ : made_width_;
    }
    [[nodiscard]] static bool is_of_rows(EncoderResult result) {
        return result != EncoderResult::vectors && result != EncoderResult::scores;
    }
    [[nodiscard]] std::vector<float> vector_of(std::size_t i, std::span<const float> values) const;
    [[nodiscard]] std::vector<float> compared(std::size_t i, std::span<const float> rows) const;
    [[nodiscard]] std::uint32_t max_batch() const { return workspace_.plan.limits.max_batch; }
    void gather();
    void hand_out(std::size_t i, std::span<const float> values);

    const host::Opened& served_;
    SessionOptions how_;
    ModelMetrics& metrics_;
    WantedRows wanted_;
    std::uint32_t made_width_, width_;                 // of a vector as it is computed, and as it is given
    std::uint32_t score_width_, row_width_, context_;  // row_width_: of rows that become weights; 0: none do
    host::Runtime<Workspace> workspace_;
    std::vector<VectorPlace> places_;  // of this pass
    std::vector<Token> ids_, types_;
    EncoderResult result_ = EncoderResult::vectors;  // of all texts of the pass
    std::vector<std::uint32_t> lengths_, n_unpooled_, n_unseen_;
    std::vector<std::uint8_t> hidden_;
    std::vector<float> out_;
    std::optional<LateModel> late_;
};

void VectorWorker::gather() {
    places_.clear();
    ids_.clear();
    types_.clear();
    lengths_.clear();
    n_unpooled_.clear();
    n_unseen_.clear();
    for (JobPtr job; places_.size() < kTexts && (job = queue.front());) {
        const std::vector<Token>& text = job->prompts[job->n_started];
        if (ids_.size() + text.size() > max_batch()) return;
        if (!places_.empty() && job->result != result_) return;
        result_ = job->result;
        ids_.insert(ids_.end(), text.begin(), text.end());
        types_.resize(ids_.size());
        if (!job->types.empty() && !job->types[job->n_started].empty())
            std::copy(job->types[job->n_started].begin(), job->types[job->n_started].end(),
                      types_.end() - static_cast<std::ptrdiff_t>(text.size()));
        lengths_.push_back(static_cast<std::uint32_t>(text.size()));
        n_unpooled_.push_back(job->n_unpooled.empty() ? 0 : job->n_unpooled[job->n_started]);
        n_unseen_.push_back(job->n_unseen.empty() ? 0 : job->n_unseen[job->n_started]);
        places_.push_back({job, job->n_started++});
        queue.hold(job->user);
        queue.charge(job->user, text.size());
        if (job->n_started == job->n_choices()) queue.pop(job);
    }
}

/// A text's vectors or, behind the query's, its score. A job's texts come in their order, so the first is there.
std::vector<float> VectorWorker::compared(std::size_t i, std::span<const float> rows) const {
    const auto& [job, choice] = places_[i];
    const bool scores = result_ == EncoderResult::likenesses, is_query = scores ? choice == 0 : job->are_queries;
    std::vector<float> vectors = late_->vectors(is_query, job->prompts[choice], rows);
    if (!scores) return vectors;
    if (is_query) {
        job->query_vectors = std::move(vectors);
        return {};
    }
    return {static_cast<float>(late_->score(job->query_vectors, vectors))};
}

std::vector<float> VectorWorker::vector_of(std::size_t i, std::span<const float> values) const {
    if (result_ == EncoderResult::tokens || result_ == EncoderResult::likenesses) return compared(i, values);
    if (result_ == EncoderResult::vectors) return {values.begin(), values.begin() + width_};
    if (result_ == EncoderResult::scores) return {values.begin(), values.end()};
    const auto& [job, choice] = places_[i];
    std::vector<float> pairs;
    for (const auto& [id, weight] : sparse_vector(served_, job->prompts[choice], values))
        pairs.insert(pairs.end(), {static_cast<float>(id), weight});  // ids are below 2²⁴: exact
    return pairs;
}

void VectorWorker::hand_out(std::size_t i, std::span<const float> values) {
    const auto& [job, choice] = places_[i];
    queue.release(job->user);
    if (!job->deliver) return;
    Event event{.choice = choice, .vector = vector_of(i, values), .finish = FinishReason::length, .ended = true};
    event.n_prompt = lengths_[i];
    metrics_.n_prompt_tokens += lengths_[i];
    job->events.push_back(std::move(event));
    if (++job->n_ended < job->n_choices()) return;
    metrics_.request.observe(seconds_since(job->arrived));
    job->hand_over();
    job->deliver = nullptr;
}

bool VectorWorker::turn() {
    const auto now = Clock::now();
    for (const JobPtr& job : queue.take_ended(now)) job->fail(why_ended(*job, now));
    gather();
    metrics_.n_waiting = queue.size();
    metrics_.n_running = places_.size();
    if (places_.empty()) return false;
    const bool has_types = std::any_of(types_.begin(), types_.end(), [](Token type) { return type != 0; });
    Sequences texts{.ids = ids_, .lengths = lengths_};
    if (has_types) texts.types = types_;
    texts.masks.padding = mask_of_unseen(lengths_, n_unseen_, hidden_);
    EncodeInput input{.source = texts, .n_unpooled = n_unpooled_};
    const bool vectors = result_ == EncoderResult::vectors;
    if (vectors) input.before_head = wanted_.before_head;
    if (vectors && wanted_.pooling) input.pooling = &*wanted_.pooling;
    std::size_t n = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) n += n_values(i);
    const Status status = encode(*workspace_, input, std::span(out_).first(n));
    std::span<const float> left(out_);
    ++metrics_.n_passes;
    metrics_.n_rows += ids_.size();
    for (std::size_t i = 0; i < places_.size(); ++i) {
        if (!status.ok()) {
            queue.pop(places_[i].job);
            places_[i].job->fail({500, StatusLine(status).c_str()});
        }
        hand_out(i, left.first(n_values(i)));
        left = left.subspan(n_values(i));
    }
    places_.clear();
    return true;
}

}  // namespace

std::unique_ptr<Worker> make_worker(const host::Opened& served, const WorkerOptions& options, ModelMetrics& metrics) {
    (void)served.need_tokenizer();
    switch (served.kind()) {
        case host::Kind::text:
        case host::Kind::translation: return make_text_worker(served, options, metrics);
        case host::Kind::speech: return make_speech_worker(served, options, metrics);
        case host::Kind::vectors: return std::make_unique<VectorWorker>(served, options, metrics);
        default:
            throw host::Error(served.name +
                              ": model: expected one for logits, an encoder, or one for speech, got another");
    }
}

}  // namespace fovea::serve
