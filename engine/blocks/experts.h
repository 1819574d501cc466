// Mixture of experts as phases of a pass: choose each row's, then compute expert by expert, each for the rows that chose it.
#pragma once
#include "engine/pass/pass.h"

namespace fovea {

/// What a pass lists of its rows' experts, in the arena. k is how many experts a row uses, at most. A *slot* is a row of one
/// expert's work: slots are ordered by expert, then by row.
struct RouteLists {
    ArenaOffset chosen = 0;  // [n_rows][k] of u32: a row's experts, ascending
    ArenaOffset slots = 0;   // [n_rows][k] of u32: their slots
    ArenaOffset weights =
        0;                  // [n_rows][k + 1] of float: what their outputs are multiplied with; last, the shared one's
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

/// A block's feed-forward part where it has experts, added to the residual stream.
void run_experts(Pass& pass, const Layer& layer, const Block& block) noexcept;

}  // namespace fovea
