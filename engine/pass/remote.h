// A product of a pass as fovea/remote.h shows it to those who compute a part of it elsewhere.
#pragma once
#include "engine/pass/pass.h"
#include "fovea/remote.h"

namespace fovea {

/// One member's view of it.
struct RemoteState {
    const Pass& pass;
    std::span<const Linear> products;
    const void* operand;
};

/// Columns that `n_panels` panels from `begin` on have in the rows of a product's outputs.
struct OutputColumns {
    std::uint32_t first, n;
};
[[nodiscard]] OutputColumns columns_of(const Linear& product, std::uint32_t begin, std::uint32_t n_panels) noexcept;

/// Whether all of a product's matrices lie in the model's file, and are no more than a job has parts.
[[nodiscard]] bool may_be_shared(std::span<const Linear> products) noexcept;
/// `n_units`: pairs of panels of all its matrices. `state` must outlive the job.
[[nodiscard]] RemoteJob job_of(const RemoteState& state, std::uint32_t n_rows, std::uint32_t n_units) noexcept;

}  // namespace fovea
