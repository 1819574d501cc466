// What decoders read beside their own text: memories of the sources that texts are written from, each computed once for all
// the texts of one source.
#pragma once
#include <span>
#include <vector>

#include "fovea/cache.h"
#include "fovea/encode.h"
#include "fovea/host/runtime.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {

struct Choice;

/// The encoder's results of one worker. If the model has no encoder, it takes no memory, and nothing is ever missing.
class SourceMemories {
public:
    /// Plans. `context`: positions of a written text. Throws host::Error.
    SourceMemories(const host::Opened& served, const WorkerOptions& options, std::uint32_t context);

    [[nodiscard]] std::uint32_t max_source() const { return max_source_; }  ///< tokens; 0: sources are not read
    void take_memory(const host::Opened& served);
    [[nodiscard]] const CachePool& pool() const { return *pool_; }
    [[nodiscard]] std::uint64_t memory_bytes() const { return pool_.plan.arena_bytes; }
    [[nodiscard]] std::uint32_t n_lost_pages() const { return max_source_ ? n_pages_ - pool_->n_free_pages() : 0; }
    /// Whether there is a place for that source beside those of the choices, some of which may have none yet.
    [[nodiscard]] bool has_room(std::span<const Token> source, std::span<const Choice> choices) const;
    /// Gives memories to the choices that miss one: one call of the encoder for as many as a pass has rows, the others next time.
    /// A failed one is in `missing`, whose choices get none.
    [[nodiscard]] Status read(std::span<Choice> choices, Workspace& workspace, std::uint32_t max_rows,
                              std::vector<Choice*>& missing);

private:
    [[nodiscard]] static bool share(Choice& choice, std::span<const Choice> choices);

    std::uint32_t max_source_ = 0, n_pages_ = 0;
    host::Runtime<CachePool> pool_;
    std::vector<Token> ids_;  // of one call,
    std::vector<std::uint32_t> lengths_;
    std::vector<Cache> memories_;
};

/// The constraint of that choice.
[[nodiscard]] Constrained constrain_target(const TargetRules& rules, std::span<const Token> source);

}  // namespace fovea::serve
