// Steps become passes: what is checked, which pages are taken, and which rows go together.
#include <cstring>

#include "engine/pass/pass.h"
#include "engine/pass/ranks.h"
#include "platform/float_env.h"

namespace fovea {
namespace {

[[nodiscard]] Status check_memory(const WorkspaceState& w, const Step& step) noexcept {
    if (reads_memory(w.model.config())) {
        if (Status status = check_cache(w, step.memory, true); !status.ok()) return status;
        return step.memory.kv_len() ? Status{} : Status{Code::bad_shape, "rows of the memory at least", 1, 0};
    }
    return CacheAccess::pool(step.memory) ? Status{Code::bad_argument, "memory: the model reads none", 0, 1} : Status{};
}

/// The position of what follows a cache's last token or row.
[[nodiscard]] std::uint64_t next_position(const Cache& cache) noexcept {
    const std::uint32_t kv_len = cache.kv_len();
    return kv_len ? CacheAccess::pool(cache)->view(CacheAccess::slot(cache)).next_position(kv_len - 1) : 0;
}

/// Keeps, for each of a step's n rows, the position that follows.
void keep_positions(const Step& step, std::uint32_t n) noexcept {
    const KvPages pages = CacheAccess::pool(step.cache)->view(CacheAccess::slot(step.cache));
    const std::uint32_t kv_len = step.cache.kv_len();
    auto next = static_cast<std::uint32_t>(next_position(step.cache));
    for (std::uint32_t i = 0; i < n; ++i) {
        if (step.positions.empty()) ++next;
        for (std::size_t d = 0; d < 3 && !step.positions.empty(); ++d)
            if (const std::uint32_t at = step.positions[3 * std::size_t{i} + d]; at >= next) next = at + 1;
        pages.next_position(kv_len + i) = next;
    }
}

/// Spans lie apart within the step's n rows, and each goes into a pass.
[[nodiscard]] Status check_spans(const WorkspaceState& w, std::span<const RowSpan> spans, std::uint64_t n) noexcept {
    std::uint32_t before = 0;
    for (const RowSpan& span : spans) {
        if (span.first < before) return {Code::bad_shape, "first row of a span at least", before, span.first};
        if (span.end <= span.first)
            return {Code::bad_shape, "end of a span at least", span.first + std::uint64_t{1}, span.end};
        if (span.end > n) return {Code::bad_shape, "end of a span at most", n, span.end};
        if (const std::uint32_t rows = span.end - span.first; rows > w.limits.max_batch)
            return {Code::bad_shape, "rows of a span at most", w.limits.max_batch, rows};
        before = span.end;
    }
    return {};
}

/// Positions are the model's and the step's, and none goes beyond what sines are made for.
[[nodiscard]] Status check_positions(const Stack& stack, const Step& step, std::uint64_t n) noexcept {
    if (!has_planes(stack))
        return step.positions.empty() ? Status{}
                                      : Status{Code::unsupported, "positions of three dimensions of this model", 0, 0};
    if (step.positions.empty()) {
        const std::uint64_t end = next_position(step.cache) + n;
        return end <= kMaxPositions ? Status{} : Status{Code::context_full, "position at most", kMaxPositions, end};
    }
    if (step.positions.size() != 3 * n) return {Code::bad_shape, "elements of positions", 3 * n, step.positions.size()};
    for (const std::uint32_t position : step.positions)
        if (position >= kMaxPositions) return {Code::bad_shape, "position at most", kMaxPositions - 1, position};
    return {};
}

[[nodiscard]] Status check_rows(const WorkspaceState& w, const Step& step) noexcept {
    if (!has(Part::rows)) {
        const bool any = step.rows.size() | step.positions.size() | step.spans.size() | step.vectors.size();
        return any ? Status{Code::unsupported, "rows: left out of this build", 0, 0} : Status{};
    }
    const Stack& stack = w.model.config().decoder;
    const std::uint64_t d_model = stack.d_model;
    if (stack.joins_rows && step.rows.size() != step.tokens.size() * d_model)
        return {Code::bad_shape, "elements of rows, one row for each token of a next-token head",
                step.tokens.size() * d_model, step.rows.size()};
    if (!stack.joins_rows && !step.rows.empty()) {
        if (!step.tokens.empty()) return {Code::bad_argument, "a step: expected tokens or rows, got both", 0, 0};
        if (has(Part::layer_inputs) && stack.blocks[0].inputs.width)
            return {Code::unsupported, "rows of a model whose tokens give each layer an input", 0, 0};
        if (const std::uint32_t width = row_width(stack); step.rows.size() % width)
            return {Code::bad_shape, "elements of rows as a multiple of", width, step.rows.size()};
    }
    const std::uint64_t n = n_rows(stack, step);
    if (step.vectors.size() % d_model)
        return {Code::bad_shape, "elements of vectors as a multiple of", d_model, step.vectors.size()};
    if (step.vectors.size() / d_model > n)
        return {Code::bad_shape, "elements of vectors at most", n * d_model, step.vectors.size()};
    if (Status status = check_spans(w, step.spans, n); !status.ok()) return status;
    return check_positions(stack, step, n);
}

[[nodiscard]] Status check_step(const WorkspaceState& w, const Step& step) noexcept {
    if (Status status = check_cache(w, step.cache, false); !status.ok()) return status;
    if (Status status = check_rows(w, step); !status.ok()) return status;
    const Stack& stack = w.model.config().decoder;
    const std::uint64_t vocab_size = stack.vocab_size, n = n_rows(stack, step);
    if (has(Part::vectors))
        if (Status status = check_memory(w, step); !status.ok()) return status;
    const PoolState& pool = *CacheAccess::pool(step.cache);
    if (n == 0) return {Code::bad_shape, "tokens at least", 1, 0};
    const std::uint32_t kv_len = step.cache.kv_len();
    if (n > pool.limits.max_kv_len - kv_len)
        return {Code::context_full, "room for positions at least", kv_len + n, pool.limits.max_kv_len};
    if (has(Part::vectors) && has_relative_positions(w.model.config().decoder) && kv_len + n > w.map.distance_reach)
        return {Code::context_full, "positions of this workspace at least", kv_len + n, w.map.distance_reach};
    if (!step.logits.empty() && step.logits.size() != vocab_size && step.logits.size() != n * vocab_size)
        return {Code::bad_shape, "logits", vocab_size, step.logits.size()};
    for (const Token token : step.tokens)
        if (token >= vocab_size) return {Code::token_out_of_range, "token at most", vocab_size - 1, token};
    return {};
}

/// Checks that the caller's buffer holds the requested attention weights of all steps.
[[nodiscard]] Status check_capture(const WorkspaceState& w, const StepList& steps) noexcept {
    if (!has(Part::attention_weights) || w.attention_capture.out.empty()) return {};
    std::uint64_t n_positions = 0, n_all = 0, n_keys = 0;
    for (std::size_t i = 0; i < steps.n; ++i) {
        const Step step = steps[i];
        const std::uint64_t n_new = n_rows(w.model.config().decoder, step), n = step.cache.kv_len() + n_new;
        const std::uint64_t keys = has(Part::vectors) && w.attention_capture.cross ? step.memory.kv_len() : n;
        n_positions = n > n_positions ? n : n_positions;
        n_keys = keys > n_keys ? keys : n_keys;
        n_all += n_new;
    }
    if (steps.n > 1 && n_all > w.limits.max_batch)
        return {Code::bad_shape, "rows of several sequences with weights at most", w.limits.max_batch, n_all};
    return check_weights(w, steps.n, n_positions, n_keys);
}

/// The next pass's rows, in the order of the steps: as many as go together.
class Passes {
public:
    Passes(WorkspaceState& w, const StepList& steps) noexcept
        : w_(w),
          steps_(steps),
          reads_memory_(has(Part::vectors) && reads_memory(w.model.config())),
          has_planes_(has_planes(w.model.config().decoder)),
          lists_(w.map.steps, w.limits, reads_memory_),
          vocab_size_(w.model.config().decoder.vocab_size) {}

    [[nodiscard]] bool done() const noexcept { return step_ == steps_.n; }

    /// Valid until the next call.
    [[nodiscard]] PassInput next() noexcept {
        PassInput pass;
        pass.positions_go_on = true;
        if (kRanks) pass.goes_on = step_ || n_done_;
        const PassSteps here{&steps_, step_, n_done_};
        if (steps_.n == 1 ? take_one(pass) : take_several(pass)) pass.steps = here;
        return pass;
    }

private:
    [[nodiscard]] std::size_t length(const Step& step) const noexcept {
        return n_rows(w_.model.config().decoder, step);
    }
    /// How many of a step's rows go next: at most `room`, and no span in part.
    [[nodiscard]] std::uint32_t n_next(const Step& step, std::uint32_t room) const noexcept {
        const std::size_t left = length(step) - n_done_, n = left < room ? left : room;
        if (has(Part::rows))
            for (const RowSpan& span : step.spans)
                if (span.first < n_done_ + n && n_done_ + n < span.end)
                    return static_cast<std::uint32_t>(span.first - n_done_);
        return static_cast<std::uint32_t>(n);
    }
    [[nodiscard]] bool is_asked_for(const Step& step) const noexcept {
        if (has(Part::states) && has_states(*CacheAccess::pool(step.cache))) return true;
        if (!has(Part::rows)) return false;
        return has_planes_ || !step.rows.empty() || !step.spans.empty() || !step.vectors.empty();
    }

    /// The next n rows of a step as rows from `row` on.
    [[nodiscard]] Sequence sequence(const Step& step, std::uint32_t row, std::uint32_t n) const noexcept {
        const auto pos = static_cast<std::uint32_t>(step.cache.kv_len() + n_done_);
        return {.row = row,
                .n_rows = n,
                .kv_row = row,
                .n_new = n,
                .pos = pos,
                .n_keys = pos + n,
                .causal_offset = static_cast<std::int32_t>(pos)};
    }
    [[nodiscard]] static KvPages pages(const Cache& cache) noexcept {
        return CacheAccess::pool(cache)->view(CacheAccess::slot(cache));
    }
    /// The same rows, beside the keys and values of the memory, all of which are there.
    [[nodiscard]] static Sequence beside_memory(const Step& step, const Sequence& rows) noexcept {
        return {.row = rows.row, .n_rows = rows.n_rows, .pos = step.memory.kv_len(), .n_keys = step.memory.kv_len()};
    }
    [[nodiscard]] bool wants_all(const Step& step) const noexcept {
        return step.logits.size() == std::uint64_t{length(step)} * vocab_size_;  // may be more than a size_t
    }
    /// How many of the next n rows, the last ones, want logits, and where those of the first of these go.
    [[nodiscard]] std::uint32_t n_logits(const Step& step, std::uint32_t n) const noexcept {
        if (step.logits.empty()) return 0;
        return wants_all(step) ? n : n_done_ + n == length(step);
    }
    [[nodiscard]] float* logits(const Step& step) const noexcept {
        return step.logits.data() + (wants_all(step) ? n_done_ * vocab_size_ : 0);
    }
    void advance(const Step& step, std::uint32_t n) noexcept {
        n_done_ += n;
        if (n_done_ < length(step)) return;
        ++step_;
        n_done_ = 0;
    }

    /// Rows of a step's next pass. Where ranks are in stages, a prompt goes in pieces that several stages have at a time.
    [[nodiscard]] std::uint32_t room_for(const Step& step) const noexcept {
        constexpr std::uint32_t kPiecesOfStage = 4, kLeast = 4 * kRowBlock;
        const std::uint32_t most = w_.limits.max_batch;
        const StageOf stage(w_.limits);
        if (!stage.several() || !step.spans.empty() || step.logits.size() > vocab_size_) return most;
        const std::uint64_t piece = at_least(length(step) / (kPiecesOfStage * stage.n), kLeast);
        return piece < most ? static_cast<std::uint32_t>(piece) : most;
    }

    /// One step needs no lists. Whether who computes it asks for more than its tokens; so take_several.
    bool take_one(PassInput& pass) noexcept {
        const Step step = steps_[0];
        const std::uint32_t n = n_next(step, room_for(step));
        one_ = sequence(step, 0, n);
        one_pages_ = pages(step.cache);
        if (!step.tokens.empty()) pass.tokens = step.tokens.subspan(n_done_, n);
        pass.n_logits = n_logits(step, n);
        pass.logits = {logits(step), vocab_size_};
        pass.pos = one_.pos;
        pass.seq_len = n;
        pass.self = {&one_, 1};
        pass.kv = {&one_pages_, 1};
        if (reads_memory_) {
            one_beside_memory_ = beside_memory(step, one_);
            memory_pages_ = pages(step.memory);
            pass.cross = {&one_beside_memory_, 1};
            pass.memory_kv = {&memory_pages_, 1};
        }
        advance(step, n);
        return is_asked_for(step);
    }

    bool take_several(PassInput& pass) noexcept {
        bool asked_for = false;
        Sequence* sequences = w_.sequences();
        auto* kv = reinterpret_cast<KvPages*>(w_.arena + lists_.pages);
        auto* tokens = reinterpret_cast<Token*>(w_.arena + lists_.tokens);
        auto** logit_rows = reinterpret_cast<float**>(w_.arena + lists_.rows);
        float** outputs = logit_rows + w_.limits.max_batch;
        const Rows hidden{w_.floats(w_.map.hidden), w_.map.hidden_stride};
        Sequence* cross = sequences + w_.limits.max_sequences;  // both where there are memories
        KvPages* memory_kv = kv + w_.limits.max_sequences;
        std::size_t n_sequences = 0;
        while (!done() && pass.seq_len < w_.limits.max_batch) {
            const Step step = steps_[step_];
            const std::uint32_t row = pass.seq_len, n = n_next(step, w_.limits.max_batch - row);
            if (n == 0) break;  // a span, for which the next pass has room
            sequences[n_sequences] = sequence(step, row, n);
            kv[n_sequences] = pages(step.cache);
            if (reads_memory_) {
                cross[n_sequences] = beside_memory(step, sequences[n_sequences]);
                memory_kv[n_sequences] = pages(step.memory);
            }
            ++n_sequences;
            asked_for |= is_asked_for(step);
            if (!step.tokens.empty()) std::memcpy(tokens + row, step.tokens.data() + n_done_, n * sizeof(Token));
            const std::uint32_t n_wanted = n_logits(step, n);
            for (std::uint32_t i = 0; i < n_wanted; ++i, ++pass.n_logits) {
                logit_rows[pass.n_logits] = hidden[row + n - n_wanted + i];
                outputs[pass.n_logits] = logits(step) + i * vocab_size_;
            }
            pass.seq_len += n;
            advance(step, n);
        }
        pass.tokens = {tokens, pass.seq_len};
        pass.logit_rows.each = logit_rows;
        pass.logits.each = outputs;
        pass.self = {sequences, n_sequences};
        pass.kv = {kv, n_sequences};
        if (reads_memory_) {
            pass.cross = {cross, n_sequences};
            pass.memory_kv = {memory_kv, n_sequences};
        }
        return asked_for;
    }

    WorkspaceState& w_;
    const StepList& steps_;
    bool reads_memory_, has_planes_;
    StepLists lists_;
    std::size_t vocab_size_, step_ = 0, n_done_ = 0;  // where the next pass starts
    Sequence one_, one_beside_memory_;
    KvPages one_pages_, memory_pages_;
};

}  // namespace

Status check_cache(const WorkspaceState& w, const Cache& cache, bool memory) noexcept {
    if (!cache.valid())
        return {Code::bad_argument, memory ? "memory: not made, or ended" : "cache: not made, or ended", 0, 0};
    const PoolState& pool = *CacheAccess::pool(cache);
    // The very same bytes, not a fingerprint: sizes must agree whatever a hostile model says it is.
    if (pool.model->bytes().data() != w.model.bytes().data())
        return {Code::session_mismatch, "a cache of the workspace's model", 0, 0};
    if (has(Part::vectors) && pool.limits.memory != memory)
        return {Code::bad_argument,
                memory ? "memory: expected a cache of a pool for memories, got one for texts"
                       : "cache: expected one of a pool for texts, got one for memories",
                0, 0};
    return {};
}

Status run_steps(WorkspaceState& w, const StepList& steps) noexcept {
    if (has(Part::vectors) && !w.limits.max_kv_len) return {Code::unsupported, "logits of this model", 0, 0};
    if (steps.n == 0) return {Code::bad_shape, "steps at least", 1, 0};
    const std::uint64_t most = w.limits.max_sequences ? w.limits.max_sequences : 1;
    if (steps.n > most) return {Code::bad_shape, "steps at most", most, steps.n};
    for (std::size_t i = 0; i < steps.n; ++i)
        if (Status status = check_step(w, steps[i]); !status.ok()) return status;
    if (Status status = check_capture(w, steps); !status.ok()) return status;
    if (leads(w))
        if (Status status = lead_ranks(w, steps); !status.ok()) return status;
    const auto cache = [&](std::size_t i) { return steps[i].cache; };
    const auto n_new = [&](std::size_t i) {
        return static_cast<std::uint32_t>(n_rows(w.model.config().decoder, steps[i]));
    };
    if (Status status = take_all_pages(steps.n, cache, n_new); !status.ok()) return status;

    const FloatEnv env;
    Status status;
    const std::uint64_t macs = w.stacks[static_cast<int>(StackIndex::decoder)].macs_per_row;
    for (Passes passes(w, steps); status.ok() && !passes.done();) {
        const PassInput pass = passes.next();
        status = run(w, pass, macs * pass.seq_len);
    }
    for (std::size_t i = 0; i < steps.n; ++i) {
        const Cache at = cache(i);
        PoolState& pool = *CacheAccess::pool(at);
        const std::uint32_t kv_len = at.kv_len();
        if (status.ok() && has_positions(pool)) keep_positions(steps[i], n_new(i));
        if (status.ok())
            CacheAccess::state(at).kv_len = kv_len + n_new(i);
        else
            shorten(pool, CacheAccess::slot(at), kv_len);
        if (has_states(pool)) pool.states->settle(CacheAccess::slot(at), status.ok());
    }
    return status;
}

Status forward(Workspace& workspace, std::span<const Step> steps) noexcept {
    if (!workspace.valid()) return {Code::bad_argument, "workspace: not made", 0, 0};
    return run_steps(*WorkspaceAccess::state(workspace), {steps.data(), steps.size()});
}

}  // namespace fovea
