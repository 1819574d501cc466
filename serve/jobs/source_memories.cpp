#include "serve/jobs/source_memories.h"

#include <algorithm>

#include "host/base/error.h"
#include "host/translate/translation.h"
#include "serve/jobs/text_worker.h"

namespace fovea::serve {
namespace {

bool same(std::span<const Token> a, std::span<const Token> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

Constrained constrain_target(const TargetRules& rules, std::span<const Token> source) {
    const auto target = std::make_shared<TargetFilter>(rules, source);
    return {target, target->filter()};
}

SourceMemories::SourceMemories(const host::Opened& served, const WorkerOptions& options, std::uint32_t context) {
    if (served.kind() != host::Kind::translation) return;
    max_source_ = std::min(options.max_source ? options.max_source : context, served.config().encoder.max_positions);
    const std::uint32_t n = options.n_sequences;
    n_pages_ = pages_of(
        positions_of(options.n_source_positions ? options.n_source_positions : options.n_positions, max_source_, n));
    require(make_pool_plan(served.config(),
                           {.max_kv_len = max_source_,
                            .max_sequences = n,
                            .n_pages = n_pages_,
                            .kv_type = options.kv_type,
                            .memory = true},
                           pool_.plan),
            served.name);
}

void SourceMemories::take_memory(const host::Opened& served) {
    if (!max_source_) return;
    const std::uint32_t n = pool_.plan.limits.max_sequences;
    pool_ = start_pool(served, pool_.plan.limits, Pages::at_once);
    ids_.reserve(max_source_);
    lengths_.reserve(n);
    memories_.reserve(n);
}

bool SourceMemories::has_room(std::span<const Token> source, std::span<const Choice> choices) const {
    std::uint32_t n_needed = pages_of(source.size());
    for (const Choice& c : choices)
        if (c.lacks_memory()) n_needed += pages_of(c.source().size());
    return n_needed <= pool_->n_free_pages();
}

/// The memory of another text of the same source is this one's, too.
bool SourceMemories::share(Choice& choice, std::span<const Choice> choices) {
    const auto has_it = [&](const Choice& c) { return c.job && c.memory.valid() && same(c.source(), choice.source()); };
    const auto other = std::find_if(choices.begin(), choices.end(), has_it);
    return other != choices.end() && fork_cache(other->memory, choice.memory).ok();
}

Status SourceMemories::read(std::span<Choice> choices, Workspace& workspace, std::uint32_t max_rows,
                            std::vector<Choice*>& missing) {
    missing.clear(), ids_.clear(), lengths_.clear(), memories_.clear();
    for (Choice& c : choices) {
        if (!c.lacks_memory() || share(c, choices)) continue;
        const std::span<const Token> source = c.source();
        const auto is_his = [&](const Choice* one) { return same(one->source(), source); };
        if (std::any_of(missing.begin(), missing.end(), is_his) || ids_.size() + source.size() > max_rows) continue;
        Cache memory;
        if (!make_cache(*pool_, memory).ok()) continue;
        missing.push_back(&c);
        memories_.push_back(memory);
        ids_.insert(ids_.end(), source.begin(), source.end());
        lengths_.push_back(static_cast<std::uint32_t>(source.size()));
    }
    if (missing.empty()) return {};
    const Status status = cache_memory(workspace, {.source = {.ids = ids_, .lengths = lengths_}}, memories_);
    for (std::size_t i = 0; i < missing.size(); ++i) {
        if (status.ok())
            missing[i]->memory = memories_[i];
        else
            (void)end_cache(memories_[i]);
    }
    if (!status.ok()) return status;
    for (Choice& c : choices)
        if (c.lacks_memory()) (void)share(c, choices);
    return status;
}

}  // namespace fovea::serve
