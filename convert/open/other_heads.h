// Heads that a folder's config.json does not say.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "convert/families/family.h"

namespace fovea {

/// A reranker in the form of Qwen3-Reranker, where the folder's modules do not say so: of a model for logits those of "yes" and "no".
void add_reranker(const std::filesystem::path& config_path, const std::vector<std::byte>& tokenizer, HfConfig& config);

/// The weight and the bias of a checkpoint of one linear map, as linear.weight and linear.bias.
[[nodiscard]] Safetensors read_linear(const std::filesystem::path& path);

/// A weight for each token (Chen et al. 2024, BGE M3, section 3.2): that of the folder's sparse_linear.pt.
void add_sparse_head(const std::filesystem::path& folder, HfConfig& config);
/// Sparse vectors of the logits of a model for masked words (Formal et al. 2021, SPLADE v2). `scores`: what becomes of them.
void use_as_sparse(const std::string& scores, const std::filesystem::path& folder, HfConfig& config);

}  // namespace fovea
