// PyTorch's own checkpoints: the tensors of a ZIP file that torch.save made of a state dict.
//
// Such a file holds a program for a stack machine (Python's pickle). This reader carries out the few instructions that a
// dictionary of tensors is made of, and knows three names: collections.OrderedDict, torch's storages, and
// torch._utils._rebuild_tensor_v2. Any other instruction or name is refused; nothing of the file is ever executed.
#pragma once
#include "convert/formats/safetensors.h"

namespace fovea {

/// The tensors of one file, as views of its mapping; each lies within its storage, row after row. Throws host::Error.
[[nodiscard]] Safetensors read_torch_file(const std::filesystem::path& path);

/// A folder's weights: model.safetensors or its shards, else `pytorch_model.bin` or its shards. Throws host::Error.
[[nodiscard]] Safetensors read_weights_folder(const std::filesystem::path& folder);

}  // namespace fovea
