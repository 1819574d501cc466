// Which experts each row of a pass is computed by.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// What a pass lists of its rows' experts, in the arena. k is how many experts a row uses, at most. A *slot* is a row of one
/// expert's work: slots are ordered by expert, then by row.
struct RouteLists {
    ArenaOffset chosen = 0;  // [n_rows][k] of u32: a row's experts, ascending
    ArenaOffset slots = 0;   // [n_rows][k] of u32: their slots
    /// [n_rows][k + 1] of float: what their outputs are multiplied with; last, the shared one's
    ArenaOffset weights = 0;
    ArenaOffset rows = 0;   // [n_rows·k] of u32: each slot's row
    ArenaOffset first = 0;  // [n_experts + 1] of u32: each expert's first slot; behind them how many there are
    std::uint64_t bytes = 0;

    /// No bytes where k is 0.
    RouteLists(ArenaOffset start, std::uint64_t n_rows, std::uint64_t k, std::uint64_t n_experts) noexcept {
        if (k == 0) return;
        chosen = start;
        slots = chosen + n_rows * k * 4;
        weights = slots + n_rows * k * 4;
        rows = weights + n_rows * (k + 1) * 4;
        first = rows + n_rows * k * 4;
        bytes = first + (n_experts + 1) * 4 - start;
    }
};

/// Those lists while a block's experts run. A *batch* is an expert, for the rows that chose it; the last is the shared one, for all.
class Routes {
public:
    Routes(Pass& pass, const ExpertTensors& tensors, const ExpertShape& shape, const NormWeights& norm) noexcept;

    /// Phases: the router's logits of norm(stream), then who computes what.
    void choose() noexcept;

    [[nodiscard]] std::uint32_t n_batches() const noexcept { return shape_.n + (shape_.shared_d_ff ? 1 : 0); }
    [[nodiscard]] std::uint32_t first_slot(std::uint32_t batch) const noexcept {
        return batch < shape_.n ? first_[batch] : n_chosen();
    }
    [[nodiscard]] std::uint32_t n_slots(std::uint32_t batch) const noexcept {
        return batch < shape_.n ? first_[batch + 1] - first_[batch] : n_rows_;
    }
    [[nodiscard]] std::uint32_t row_of(std::uint32_t slot) const noexcept {
        return slot < n_chosen() ? rows_[slot] : slot - n_chosen();
    }
    /// The slot of a row's expert number i, of those it chose; behind them that of the shared one.
    [[nodiscard]] std::uint32_t slot(std::uint32_t row, std::uint32_t i) const noexcept {
        return i < shape_.n_used ? slots_[std::uint64_t{row} * shape_.n_used + i] : n_chosen() + row;
    }
    /// What the expert of a slot gives, or reads, is multiplied with.
    [[nodiscard]] float weight_of(std::uint32_t slot) const noexcept {
        const std::uint32_t row = row_of(slot);
        std::uint32_t i = 0;
        while (i < shape_.n_used && this->slot(row, i) != slot) ++i;
        return weights(row)[i];
    }
    /// [n_experts_used + 1]: what a row's outputs are multiplied with; last, the shared one's.
    [[nodiscard]] const float* weights(std::uint32_t row) const noexcept {
        return weights_ + std::uint64_t{row} * (shape_.n_used + 1u);
    }

private:
    [[nodiscard]] std::uint32_t* list(ArenaOffset at) const noexcept {
        return reinterpret_cast<std::uint32_t*>(pass_.workspace.arena + at);
    }
    [[nodiscard]] std::uint32_t n_chosen() const noexcept { return n_rows_ * shape_.n_used; }
    void make_logits() noexcept;
    void choose(std::uint32_t row) noexcept;
    float score(float* p) const noexcept;
    float* compared(float* p, float total) const noexcept;
    [[nodiscard]] float mixed(const float* p, std::uint32_t best) const noexcept;
    [[nodiscard]] float group_score(const float* c) const noexcept;
    void leave_out_groups(float* c, float* scores) const noexcept;
    void sort_by_expert() noexcept;

    Pass& pass_;
    const ExpertTensors& t_;
    const ExpertShape& shape_;
    const NormWeights norm_;
    const std::uint32_t n_rows_;
    std::uint32_t *chosen_, *slots_, *rows_, *first_;
    float* weights_;
};

}  // namespace fovea
