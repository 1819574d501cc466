// The layer that predicts the token behind the next (multi-token prediction), as a model of its own: see Stack::joins_rows.
#pragma once
#include "convert/families/family.h"
#include "convert/formats/safetensors.h"
#include "convert/gguf/architectures.h"

namespace fovea {

/// Gives the layer's tensors the names that DeepSeek's and GLM's have, being the model's layer behind the last; Qwen's begin with
/// "mtp.". Throws host::Error where there is none.
void name_next_head(const HfConfig& config, Safetensors& weights);

/// Makes a model's configuration that of the layer: a block as the last that has attention, between the model's own embeddings and
/// output head. Leaves the layer's tensors and theirs, and puts the norms of embeddings and rows one behind the other.
void keep_next_head(HfConfig& config, Safetensors& weights);

/// The same of a GGUF file's: its layer behind the last, `blk.N.nextn.…` beside the block's own tensors.
void keep_next_head(const Gguf& file, GgufConfig& config);

}  // namespace fovea
