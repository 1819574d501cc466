// A model of two stacks in a program with a heap: memory for passes, for what the encoder has read, and for texts.
#pragma once
#include <atomic>
#include <cstdint>

#include "fovea/encode.h"
#include "fovea/host/runtime.h"

namespace fovea {

struct TwoStackLimits {
    std::uint32_t n_threads = 1;
    Type kv_type = Type::f32;
    std::uint32_t max_source = 0, max_target = 0;  ///< rows of a source, tokens of a text; 0: the model's positions
    std::uint32_t n_rows = 1;                      ///< of all texts in a pass
    std::uint32_t n_sources = 1, n_texts = 1;      ///< at a time
};

/// Exact memory, before any is taken.
struct TwoStackPlan {
    Plan workspace;     ///< both stacks' passes
    PoolPlan memories;  ///< what the encoder made of each source
    PoolPlan texts;     ///< the decoder's keys and values
    [[nodiscard]] std::uint64_t n_bytes() const {
        return workspace.arena_bytes + memories.arena_bytes + texts.arena_bytes;
    }
};
/// Throws host::Error.
[[nodiscard]] TwoStackPlan plan_two_stacks(const host::Opened& opened, const TwoStackLimits& limits);

/// That memory, which the constructor takes. The opened model must outlive it.
class TwoStacks {
public:
    /// `cancel`, if there is one, ends calls early. Throws host::Error.
    TwoStacks(const host::Opened& opened, const TwoStackPlan& plan, const char* isa,
              const std::atomic<bool>* cancel = nullptr);

    /// A cache for a source, and one for a text. Throws host::Error when the plan has no more.
    [[nodiscard]] Cache make_memory() { return start_cache(opened_, memories_); }
    [[nodiscard]] Cache make_text() { return start_cache(opened_, texts_); }
    [[nodiscard]] Workspace& workspace() { return *workspace_; }

private:
    const host::Opened& opened_;
    host::Runtime<Workspace> workspace_;
    host::Runtime<CachePool> memories_, texts_;
};

}  // namespace fovea
