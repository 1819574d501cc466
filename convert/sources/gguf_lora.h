// A low-rank adapter's GGUF file (Hu et al. 2021), as llama.cpp's converter writes it: products by the names of a model's tensors.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convert/formats/safetensors.h"

namespace fovea {

struct GgufLora {
    std::filesystem::path path;
    std::string architecture;
    std::map<std::string, LowRank> products;  ///< by the tensor that each adds to: "blk.0.attn_q.weight"
    std::vector<Mapping> mappings;            ///< that they lie in
};

/// Throws host::Error for a file that is none, and for one that holds anything else than such products.
[[nodiscard]] GgufLora read_gguf_lora(const std::filesystem::path& path);

/// Whether the file's metadata says that it is an adapter. Throws host::Error for what is no GGUF file.
[[nodiscard]] bool is_gguf_adapter(const std::filesystem::path& path);

}  // namespace fovea
