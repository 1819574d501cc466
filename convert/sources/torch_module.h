// Modules of PyTorch as a ModelSource: attention alone, stacks of encoder or decoder layers, or both.
#pragma once
#include <string>

#include "convert/formats/safetensors.h"
#include "convert/weights/model_source.h"
#include "host/base/source_file.h"

namespace fovea {

/// Whether config.json's model_type is one of "torch.nn.MultiheadAttention", "torch.nn.TransformerEncoder",
/// "torch.nn.TransformerDecoder", "torch.nn.Transformer" and "attention" (separate q_proj, k_proj, v_proj, o_proj).
[[nodiscard]] bool is_torch_module(const std::string& model_type);

/// Joins such a configuration with the module's state dict. Every tensor it calls for must be there in its shape, and
/// none may be left over. Throws host::Error. The result keeps the mappings.
[[nodiscard]] ModelSource read_torch_module(const Fields& config, Safetensors weights);

}  // namespace fovea
