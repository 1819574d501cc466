// A Hugging Face folder's config.json as a Config.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convert/families/family.h"

namespace fovea {

/// Models of the types that convert/families has. `generation` is the generation_config.json beside it,
/// read where it exists, for its end tokens. What predicts from a stack's rows is read too, unless they are pooled: then what is
/// read is an encoder, also of a decoder's family. Throws host::Error naming file, field, what was wanted and what was there.
[[nodiscard]] HfConfig read_hf_config(const std::filesystem::path& config, const std::filesystem::path& generation,
                                      bool pooled = false);

/// What sentence-transformers does with an encoder's rows.
struct SentenceModules {
    std::filesystem::path encoder;  ///< its folder
    Pooling pooling = Pooling::none;
    bool normalize = false;
    std::string sparse;                  ///< of a SpladePooling: the metadata's "scores"
    std::optional<ScoredTokens> scored;  ///< of a LogitScore, in place of pooling and what follows it
    bool is_late = false;                ///< its rows are compared one by one, by what Dense modules make of them
    std::filesystem::path late_mask;     ///< the folder of a MultiVectorMask; empty: there is none
    std::vector<HeadMap> maps;           ///< Dense modules,
    std::vector<Safetensors> map_files;  ///< and the weights of each
};

/// Reads a modules.json. Throws host::Error where there are modules of another kind or in another order.
[[nodiscard]] SentenceModules read_sentence_modules(const std::filesystem::path& modules);

}  // namespace fovea
