#include "serve/jobs/source_memories.h"

#include <algorithm>

#include "host/base/error.h"
#include "host/translate/target_writer.h"
#include "serve/jobs/text_worker.h"

namespace fovea::serve {
namespace {

struct TargetConstraint final : Constrained {
    TargetConstraint(const TargetRules& rules, std::span<const Token> source) : target(rules, source) {}
    TokenFilter filter() override { return target.filter(); }
    TargetFilter target;
};

bool same(std::span<const Token> a, std::span<const Token> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

std::unique_ptr<Constrained> constrain_target(const TargetRules& rules, std::span<const Token> source) {
    return std::make_unique<TargetConstraint>(rules, source);
}

SourceMemories::SourceMemories(const host::Opened& served, const WorkerOptions& options, std::uint32_t context) {
    if (served.kind() != host::Kind::translation) return;
    max_source_ = std::min(options.max_source ? options.max_source : context, served.config().encoder.max_positions);
    const std::uint32_t n = options.n_sequences;
    n_pages_ = pages_of(
        positions_of(options.n_source_positions ? options.n_source_positions : options.n_positions, max_source_, n));
    pool_ = start_pool(served,
                       {.max_kv_len = max_source_,
                        .max_sequences = n,
                        .n_pages = n_pages_,
                        .kv_type = options.kv_type,
                        .memory = true},
                       Pages::at_once);
    ids_.reserve(max_source_);
    lengths_.reserve(n);
    memories_.reserve(n);
}

std::uint32_t SourceMemories::pages_of(std::size_t n_tokens) {
    constexpr std::uint32_t kPage = PoolLimits{}.page_len;
    return static_cast<std::uint32_t>((n_tokens + kPage - 1) / kPage);
}

bool SourceMemories::has_room(std::span<const Token> source, std::span<const Sequence> sequences) const {
    std::uint32_t n_needed = pages_of(source.size());
    for (const Sequence& s : sequences)
        if (s.lacks_memory()) n_needed += pages_of(s.source().size());
    return n_needed <= pool_->n_free_pages();
}

/// The memory of another text of the same source is this one's, too.
bool SourceMemories::share(Sequence& sequence, std::span<const Sequence> sequences) {
    const auto has_it = [&](const Sequence& s) {
        return s.job && s.memory.valid() && same(s.source(), sequence.source());
    };
    const auto other = std::find_if(sequences.begin(), sequences.end(), has_it);
    return other != sequences.end() && fork_cache(other->memory, sequence.memory).ok();
}

Status SourceMemories::read(std::span<Sequence> sequences, Workspace& workspace, std::uint32_t max_rows,
                            std::vector<Sequence*>& missing) {
    missing.clear(), ids_.clear(), lengths_.clear(), memories_.clear();
    for (Sequence& s : sequences) {
        if (!s.lacks_memory() || share(s, sequences)) continue;
        const std::span<const Token> source = s.source();
        const auto is_his = [&](const Sequence* one) { return same(one->source(), source); };
        if (std::any_of(missing.begin(), missing.end(), is_his) || ids_.size() + source.size() > max_rows) continue;
        Cache memory;
        if (!make_cache(*pool_, memory).ok()) continue;
        missing.push_back(&s);
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
    for (Sequence& s : sequences)
        if (s.lacks_memory()) (void)share(s, sequences);
    return status;
}

}  // namespace fovea::serve
