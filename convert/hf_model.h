// A Hugging Face folder as a ModelSource, without its tokenizer.
#pragma once
#include "convert/hf_config.h"
#include "convert/safetensors.h"

namespace fovea {

/// Joins a configuration with its weights: every tensor the configuration calls for must be there in its shape, and
/// none may be left over. Throws Refusal. The result keeps the mappings.
[[nodiscard]] ModelSource join_hf_model(HfConfig config, Safetensors weights);

}  // namespace fovea
