#include "host/model/adapters.h"

#include <algorithm>
#include <vector>

#include "host/base/error.h"

namespace fovea::serve {

void plan_adapters(std::span<const NamedAdapter> adapters, Limits& limits) {
    limits.max_adapters = static_cast<std::uint32_t>(adapters.size());
    for (const NamedAdapter& one : adapters)
        limits.max_adapter_rank = std::max(limits.max_adapter_rank, adapter_rank(*one.adapter.model));
}

void use_adapters(std::span<const NamedAdapter> adapters, Workspace& workspace) {
    std::vector<Adapter> all;
    for (const NamedAdapter& one : adapters) {
        all.push_back(one.adapter);
        require(set_adapters(workspace, {&all.back(), 1}), one.name);  // by itself, so that a refusal names it
    }
    if (!all.empty()) require(set_adapters(workspace, all));
}

}  // namespace fovea::serve
