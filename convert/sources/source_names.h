// Names of tensors without what training programs put around a model.
#pragma once
#include <functional>
#include <string>

#include "convert/formats/safetensors.h"

namespace fovea {

/// Wrappers' parts of names are dropped wherever they stand (torch.compile's `_orig_mod`, those of shards and checkpoints), and what
/// all names begin with (`module.`, `state_dict.`). Throws host::Error where two names become one.
void use_plain_names(Safetensors& weights);

/// Gives every tensor the name that `plain` makes of its own. Throws host::Error where two become one.
void rename_tensors(Safetensors& weights, const std::function<std::string(std::string name)>& plain);

}  // namespace fovea
