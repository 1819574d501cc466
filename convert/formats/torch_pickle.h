// PyTorch's own checkpoints, as torch.save writes them: a ZIP file or, before PyTorch 1.6, pickles with the elements behind them.
//
// Such a file holds a program for a stack machine (Python's pickle). This reader carries out the few instructions that
// dictionaries of tensors are made of, and knows a few names: collections.OrderedDict, torch's storages, and the functions of
// torch._utils that make tensors and parameters. Any other instruction or name is refused; nothing of the file is ever executed.
#pragma once
#include <string_view>

#include "convert/formats/safetensors.h"

namespace fovea {

/// A checkpoint of tensors and whole numbers.
struct TorchCheckpoint {
    Safetensors tensors;
    std::map<std::string, std::int64_t> numbers;
};

/// What one file holds. Tensors are views of its mapping or, where their rows do not follow one another there, copies; each lies
/// within its storage. Throws host::Error.
[[nodiscard]] TorchCheckpoint read_torch_checkpoint(const std::filesystem::path& path);

/// The same of a file that holds tensors alone.
[[nodiscard]] Safetensors read_torch_file(const std::filesystem::path& path);

/// Whether a file begins as torch.save's do.
[[nodiscard]] bool looks_like_checkpoint(std::string_view start);

/// A folder's weights: model.safetensors or its shards, else `pytorch_model.bin` or its shards. Throws host::Error.
[[nodiscard]] Safetensors read_weights_folder(const std::filesystem::path& folder);

}  // namespace fovea
