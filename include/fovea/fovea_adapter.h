// The C interface's adapters: low-rank additions to a model's matrices (Hu et al. 2021), each a Fovea file of its own,
// while the model's file stays as it is. Included by fovea.h, whose rules hold here too; adapter.h says more.
//
//     fovea_open_model(file, file_bytes, 0, memory, sizeof memory, &adapter);   // `fovea convert ADAPTER --base MODEL`
//     limits.max_adapters = 1;                                                  // before the plan
//     limits.max_adapter_rank = fovea_adapter_rank(adapter);
//     const fovea_adapter use[] = {{adapter, 0.5f}};
//     fovea_set_session_adapters(session, use, 1);                              // before the first token
#ifndef FOVEA_FOVEA_ADAPTER_H
#define FOVEA_FOVEA_ADAPTER_H
#include "fovea/fovea.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// An adapter, and the scale of its products.
typedef struct {
    /// Handle of an adapter's file, whose bytes must outlive its use; the handle need not.
    const struct fovea_model* model;
    float scale;  ///< finite; 1: as it was trained, 0: nothing is added
} fovea_adapter;

/// The rank of an adapter's products; 0 for a model, and for NULL.
uint32_t fovea_adapter_rank(const struct fovea_model* model);

/// From here on every pass adds the products of adapters [n_adapters], in their order; without any it is as it was.
/// Allocates nothing, and copies the array. Keys and values that are already cached stay as they were computed.
/// Errors, nothing changed: those of adapter.h's set_adapters.
fovea_status fovea_set_adapters(fovea_workspace* workspace, const fovea_adapter* adapters, size_t n_adapters);
/// The same for a session, which must have no positions: rewind it to 0 before.
fovea_status fovea_set_session_adapters(fovea_session* session, const fovea_adapter* adapters, size_t n_adapters);

#ifdef __cplusplus
}
#endif
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
#endif
