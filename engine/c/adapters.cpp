// The C interface's adapters.
#include "engine/stream/adapters.h"
#include "engine/c/handles.h"
#include "engine/format/parts.h"
#include "fovea/adapter.h"

using namespace fovea;

namespace {

/// Sets the adapters of a Workspace or a Session.
template<class Place>
[[nodiscard]] Status set(Place& place, const fovea_adapter* given, std::size_t n) noexcept {
    if (!has(Part::adapters)) return set_adapters(place, {});  // refuses by itself
    if (n && !given) return is_null("adapters: NULL");
    if (n > kMostAdapters) return {Code::bad_limits, "adapters at most", kMostAdapters, n};
    Adapter adapters[kMostAdapters];
    for (std::size_t i = 0; i < n; ++i)
        adapters[i] = {given[i].model ? given[i].model->model : nullptr, given[i].scale};
    return set_adapters(place, {adapters, n});
}

}  // namespace

uint32_t fovea_adapter_rank(const fovea_model* model) { return model ? adapter_rank(*model->model) : 0; }

fovea_status fovea_set_adapters(fovea_workspace* workspace, const fovea_adapter* adapters, size_t n_adapters) {
    if (!workspace) return refuse_null("workspace: NULL");
    return to_c(set(workspace->workspace, adapters, n_adapters));
}

fovea_status fovea_set_session_adapters(fovea_session* session, const fovea_adapter* adapters, size_t n_adapters) {
    if (!session) return refuse_null("session: NULL");
    return to_c(set(session->session, adapters, n_adapters));
}
