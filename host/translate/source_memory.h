// The encoder's memory of a source, in a model of two stacks, with the workspace that computes it and the text's
// passes.
#pragma once
#include <span>
#include <string>

#include "fovea/generator.h"
#include "fovea/host/translator.h"
#include "host/model/two_stacks.h"

namespace fovea {

/// Exact memory for one text after another, before any is taken.
struct TargetPlan {
    TwoStackPlan stacks;
    GeneratorPlan generator{};       ///< of one beam
    std::uint64_t search_bytes = 0;  ///< of several: logits, masks and beginnings
    [[nodiscard]] std::uint64_t n_bytes() const { return stacks.n_bytes() + generator.arena_bytes + search_bytes; }
};
/// host::Error unless the model writes one text from another.
void need_target(const host::Opened& opened);
/// What passes of n_rows rows of n_texts texts take. Throws host::Error, also where the model writes no target.
[[nodiscard]] TwoStackPlan plan_target(const host::Opened& opened, const TargetLimits& limits, std::uint32_t n_rows,
                                       std::uint32_t n_texts);

/// All memory is taken by the constructor, exactly what the plan says.
class SourceMemory {
public:
    /// `opened` must outlive this. Throws host::Error.
    SourceMemory(const host::Opened& opened, const TargetLimits& limits, const TwoStackPlan& plan);

    /// In place of the last one. Throws host::Error.
    void read(std::span<const Token> source);

    [[nodiscard]] const Cache& memory() const { return memory_; }
    [[nodiscard]] Cache make_text() { return stacks_.make_text(); }
    [[nodiscard]] Workspace& workspace() { return stacks_.workspace(); }
    [[nodiscard]] std::uint32_t max_source() const { return max_source_; }
    [[nodiscard]] std::uint32_t max_positions() const { return max_positions_; }  ///< of a text

private:
    const host::Opened& opened_;
    std::uint32_t max_source_, max_positions_;
    TwoStacks stacks_;
    Cache memory_;
};

}  // namespace fovea
