// Low-rank adapters (Hu et al. 2021) of a model, each a Fovea file of its own, while the model's file stays as it is.
//
//     open_model(adapter_bytes, adapter);                   // `fovea convert ADAPTER --base MODEL` makes such files
//     limits.max_adapters = 1;                              // before make_plan
//     limits.max_adapter_rank = adapter_rank(adapter);
//     const Adapter use[] = {{&adapter, 0.5f}};
//     set_adapters(session, use);                           // after make_session
#pragma once
#include <cstdint>
#include <span>

#include "fovea/model.h"
#include "fovea/session.h"
#include "fovea/status.h"
#include "fovea/workspace.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// An adapter's file, and the scale of its products.
struct Adapter {
    const Model* model = nullptr;  ///< the adapter's file; its bytes must outlive its use, the Model itself need not
    float scale = 1.0f;            ///< finite
};

/// The rank of an adapter's products; 0 for a model.
[[nodiscard]] std::uint32_t adapter_rank(const Model& model) noexcept;

/// From here on every pass adds the adapters' products, in their order, to those of the model's matrices. An empty span
/// removes all adapters. Results do not depend, in any bit, on threads, instruction sets or how tokens are split into
/// calls. Keys and values that are already cached stay as they were computed. Allocates nothing.
///
/// Errors, nothing changed: bad_argument (not made; no adapter; a scale that is not finite; a session with positions cached),
/// bad_limits (more adapters or a higher rank than was planned), bad_shape (an adapter of a model of another shape),
/// checksum_mismatch (of another model of that shape), unsupported (quantized adapters; a build without).
[[nodiscard]] Status set_adapters(Workspace& workspace, std::span<const Adapter> adapters) noexcept;
[[nodiscard]] Status set_adapters(Session& session, std::span<const Adapter> adapters) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
