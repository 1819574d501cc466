// A Hugging Face folder as a ModelSource, without its tokenizer.
#pragma once
#include "convert/formats/safetensors.h"
#include "convert/sources/hf_config.h"
#include "convert/sources/lora.h"

namespace fovea {

/// Joins a configuration with its weights: every tensor the configuration calls for must be there in its shape, and
/// none may be left over. Throws host::Error. The result keeps the mappings.
[[nodiscard]] ModelSource join_hf_model(HfConfig config, Safetensors weights);

/// An adapter's folder as a Fovea file of its own, for the model of that configuration: only the names of `weights` are
/// read. Every product has its rows in the order of the model's, is multiplied with its scale, and has zeros up to the
/// largest rank. Throws host::Error for what only a merge can do: embeddings, output heads, experts, whole modules.
[[nodiscard]] ModelSource join_lora(HfConfig config, Safetensors weights, LoraFolder folder);

}  // namespace fovea
