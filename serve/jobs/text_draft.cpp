#include "serve/jobs/text_draft.h"

#include <algorithm>

#include "fovea/host/generation.h"
#include "host/base/clock.h"
#include "host/model/compared_ranks.h"
#include "host/model/draft_vectors.h"
#include "serve/jobs/text_worker.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kProposed = host::kForced;  // tokens a pass at most: the generators have room for as many

}  // namespace

TextDraft::TextDraft(const host::Opened& served, const WorkerOptions& options, std::uint32_t context)
    : draft_(nullptr), always_(options.drafts_always) {
    const auto found = options.drafts.find(served.name);
    if (found == options.drafts.end()) return;
    draft_ = found->second;
    host::check_draft(served, *draft_);
    const std::uint32_t most = draft_->config().decoder.max_positions;
    const std::uint32_t max_kv_len = most ? std::min(context, most) : context;
    session_.plan = host::plan_alone(*draft_, {.max_kv_len = max_kv_len, .n_threads = options.n_threads});
    n_vectors_ = host::n_draft_vectors(*draft_, max_kv_len, kProposed);
}

void TextDraft::take_memory() {
    if (!draft_) return;
    session_.arena = host::take_arena(*draft_, session_.plan.arena_bytes, Pages::at_once);
    vectors_.assign(n_vectors_, 0.0f);
}

void TextDraft::begin(const char* isa) {
    if (draft_) host::make_alone(*draft_, {.isa = isa}, session_);
}

void TextDraft::propose_for(Choice& choice, bool is_alone) {
    if (!draft_ || (follows_ != &choice && !is_alone) || (follows_ == &choice && proposes_ == is_alone)) return;
    // Refused where a step waits: it goes on as it was, and so does a text with rows.
    if (follows_ && follows_ != &choice && !speculate(follows_->generator, {}).ok()) return;
    if (follows_ != &choice) follows_ = nullptr;
    const Speculation speculation{.n_proposed = is_alone ? kProposed : 0,
                                  .draft = {session_->workspace(), session_->cache(), vectors_},
                                  .clock = host::ticks_now,
                                  .always = always_};
    if (!speculate(choice.generator, speculation).ok()) return;
    follows_ = &choice;
    proposes_ = is_alone;
}

void TextDraft::leave(const Choice& choice) {
    if (follows_ == &choice) follows_ = nullptr;
}

}  // namespace fovea::serve
