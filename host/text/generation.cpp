#include "fovea/host/generation.h"

#include <sys/resource.h>
#include <algorithm>

#include "host/base/clock.h"
#include "host/base/error.h"
#include "host/model/compared_ranks.h"
#include "host/model/draft_vectors.h"
#include "host/text/session_file.h"
#include "host/text/turn_state.h"

namespace fovea::host {
namespace {

/// Page faults of this process so far, of all its threads.
std::uint64_t page_faults() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_minflt) + static_cast<std::uint64_t>(usage.ru_majflt);
}

}  // namespace

const char* name_of(FinishReason reason) {
    static constexpr const char* kNames[] = {"none", "end", "stop", "length", "context"};
    return kNames[static_cast<std::size_t>(reason)];
}

Generation::Generation(const Opened& opened, const Limits& limits, const SessionOptions& how, GeneratorLimits generator)
    : opened_(opened), session_(start_session(opened, limits, how)) {
    generator.max_tokens = session_->max_kv_len();
    generator_ = start_generator(opened, session_->cache(), generator);
}

void Generation::propose_by(const Opened& draft, const Limits& limits, const SessionOptions& how) {
    check_draft(opened_, draft);
    draft_ = start_alone(draft, limits, how);  // of ranks the first alone guesses
    vectors_.assign(n_draft_vectors(draft, draft_->max_kv_len(), generator_.plan.limits.max_proposed), 0.0f);
}

void Generation::resume(const SavedText& saved, const std::string& path) {
    restore(saved, *session_, path);
    require(fovea::resume(*generator_, saved.tokens), opened_.name);
}

Generated Generation::generate(const Prompt& prompt, const GenerateOptions& options,
                               const std::function<void(std::string_view)>& on_text) {
    return generate_until(prompt, options, [&](const Piece& piece) {
        on_text(piece.text);
        return true;
    });
}

Status Generation::compute_ahead(const Prompt& prompt, std::uint32_t& n_kept) {
    const std::span<const Token> keys = prompt.keys(), have = tokens();
    const auto n_same = std::mismatch(keys.begin(), keys.end(), have.begin(), have.end()).first - keys.begin();
    const std::uint32_t mark_at = keeps_turns_ && plan().limits.max_marks ? turn_begin(keys.size()) : 0;
    const std::uint32_t n = std::max(prompt.n_with_rows(), mark_at);
    n_kept = session_->cache().reach(prompt.whole(static_cast<std::uint32_t>(n_same)));
    if (n_kept >= n) return {};
    Workspace workspace = session_->workspace();
    Status status = rewind(*session_, n_kept);
    while (status.ok() && session_->kv_len() < n) {
        const Step step = prompt.step(session_->cache(), n - session_->kv_len());
        status = forward(workspace, {&step, 1});
    }
    require(fovea::resume(*generator_, keys.first(session_->kv_len())), opened_.name);
    if (status.ok() && n == mark_at) {
        Cache cache = session_->cache();
        unmark_before(cache, n);
        (void)mark(cache);  // there is a state for it
    }
    return status;
}

Generated Generation::generate_until(const Prompt& prompt, const GenerateOptions& options,
                                     const std::function<bool(const Piece&)>& on_piece,
                                     const std::atomic<bool>* cancel) {
    GenerateOptions timed = options;
    timed.speculation.clock = ticks_now;
    if (draft_->valid()) timed.speculation.draft = {draft_->workspace(), draft_->cache(), vectors_};
    Generated made;
    Workspace workspace = session_->workspace();
    set_cancel(workspace, cancel);
    const std::uint64_t n_faults = page_faults();
    double started = seconds_now();
    std::uint32_t n_kept = 0;
    Status status = compute_ahead(prompt, n_kept);
    if (status.ok()) status = start(*generator_, prompt.keys(), timed);
    if (!status.ok()) set_cancel(workspace, nullptr);
    if (cancel && status.code == Code::cancelled) return made;
    require(status, opened_.name);
    for (Piece piece; piece.finish == FinishReason::none;) {
        const bool first = made.prefill_seconds == 0;
        status = fovea::generate(*generator_, workspace, piece);
        if (cancel && status.code == Code::cancelled) break;
        require(status, opened_.name);
        if (first) {
            made.prefill_seconds = seconds_now() - started;
            made.n_page_faults = page_faults() - n_faults;
            started = seconds_now();
        }
        if (!on_piece(piece)) break;
    }
    set_cancel(workspace, nullptr);
    made.decode_seconds = seconds_now() - started;
    made.figures = generator_->figures();
    made.figures.n_kept = std::min(made.figures.n_kept, n_kept);
    made.finish = generator_->finish();
    made.n_decoded =
        session_->kv_len() - std::min(session_->kv_len(), made.figures.n_prompt);  // fewer where it was cancelled
    return made;
}

}  // namespace fovea::host
