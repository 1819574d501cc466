// Late interaction, as folders say it: sentence-transformers' and PyLate's modules, ColBERT's own checkpoints, and bge-m3's head.
#pragma once
#include <filesystem>

#include "convert/families/family.h"
#include "convert/sources/hf_config.h"

namespace fovea {

/// The modules of a MultiVectorEncoder or of PyLate in the folder `given`, whose encoder lies in `folder`.
void use_late_interaction(const std::filesystem::path& given, const std::filesystem::path& folder,
                          SentenceModules modules, HfConfig& config);

/// Whether config.json is of ColBERT's own class, whose head lies among the encoder's weights.
[[nodiscard]] bool is_colbert(const Fields& fields);
/// That head, and what artifact.metadata says of texts.
void use_colbert(const std::filesystem::path& folder, HfConfig& config);

/// bge-m3's colbert_linear.pt (Chen et al. 2024, BGE M3, section 3.2).
void add_colbert_head(const std::filesystem::path& folder, HfConfig& config);

}  // namespace fovea
