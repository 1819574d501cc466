// What a model of two stacks has read: its encoder's memory of a source, with the workspace that computed it and that computes the
// text's passes, too.
#pragma once
#include <span>
#include <string>

#include "fovea/encode.h"
#include "host/model/runtime.h"

namespace fovea {

struct TargetLimits {
    std::uint32_t n_threads = 1;
    const char* isa = nullptr;  ///< nullptr: the best of this CPU
    Type kv_type = Type::f32;
    std::uint32_t max_source = 0, max_target = 0;  ///< tokens; 0: the model's positions
    const std::atomic<bool>* cancel = nullptr;
};

/// All memory is taken by the constructor, exactly what the plans say.
class SourceMemory {
public:
    /// For passes of n_rows rows of n_steps texts. `opened` must outlive this. Throws host::Error.
    SourceMemory(const host::Opened& opened, const TargetLimits& limits, std::uint32_t n_rows, std::uint32_t n_steps);

    /// In place of the last one. Throws host::Error.
    void read(std::span<const Token> source);

    [[nodiscard]] const Cache& memory() const { return memory_; }
    [[nodiscard]] Workspace& workspace() { return *workspace_; }
    [[nodiscard]] std::uint32_t max_positions() const { return max_positions_; }  ///< of a text
    [[nodiscard]] std::uint64_t n_bytes() const { return workspace_.arena.size() + pool_.arena.size(); }

private:
    const host::Opened& opened_;
    std::uint32_t max_source_, max_positions_;
    host::Runtime<Workspace> workspace_;
    host::Runtime<CachePool> pool_;
    Cache memory_;
};

}  // namespace fovea
