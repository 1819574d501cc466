// What a model of two stacks has read: its encoder's memory of a source, with the workspace that computed it and that computes the
// text's passes, too.
#pragma once
#include <span>
#include <string>

#include "fovea/arena.h"
#include "fovea/encode.h"
#include "fovea/model.h"

namespace fovea {

/// Whether it reads ids and writes others.
[[nodiscard]] bool writes_target(const Config& config) noexcept;

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
    /// For passes of n_rows rows of n_steps texts. The model is a view, whose bytes must outlive this. Throws host::Error.
    SourceMemory(const Model& model, const std::string& name, const TargetLimits& limits, std::uint32_t n_rows,
                 std::uint32_t n_steps);

    /// In place of the last one. Throws host::Error.
    void read(std::span<const Token> source);

    [[nodiscard]] const Cache& memory() const { return memory_; }
    [[nodiscard]] Workspace& workspace() { return workspace_; }
    [[nodiscard]] std::uint32_t max_positions() const { return max_positions_; }  ///< of a text
    [[nodiscard]] std::uint64_t n_bytes() const { return n_bytes_; }

private:
    std::string name_;
    std::uint32_t max_source_, max_positions_;
    Arena workspace_arena_, memory_arena_;
    Workspace workspace_;
    CachePool pool_;
    Cache memory_;
    std::uint64_t n_bytes_ = 0;
};

}  // namespace fovea
