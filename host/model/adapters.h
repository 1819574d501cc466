// Adapters that are in use for all that a model computes, each by the name of its file.
#pragma once
#include <span>
#include <string>

#include "fovea/adapter.h"
#include "fovea/plan.h"

namespace fovea::serve {

struct NamedAdapter {
    std::string name;  ///< for refusals
    Adapter adapter;
};

/// Makes room for them among a workspace's or a session's limits.
void plan_adapters(std::span<const NamedAdapter> adapters, Limits& limits);
/// Puts them to use. Throws host::Error, by its name, where one is another model's.
void use_adapters(std::span<const NamedAdapter> adapters, Workspace& workspace);

}  // namespace fovea::serve
