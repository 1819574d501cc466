// Whisper's folders (Radford et al. 2022) as a ModelSource: an encoder that hears, and a decoder of text that reads its rows.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convert/formats/safetensors.h"
#include "convert/weights/model_source.h"
#include "host/base/source_file.h"

namespace fovea {

inline constexpr const char* kWhisperType = "whisper";  // config.json's model_type

/// Joins config.json with the tensors of WhisperForConditionalGeneration, or of WhisperModel, and with what else is in `folder`:
/// preprocessor_config.json, generation_config.json and the names of its added tokens. Every tensor that the configuration calls
/// for must be there in its shape, and none may be left over. Throws host::Error. The result keeps the mappings.
[[nodiscard]] ModelSource read_whisper(const Fields& config, const std::filesystem::path& folder, Safetensors weights);

/// Gives the filters [n_mels][n_bins], and completes what they are of.
using ReadFilters = std::function<std::vector<float>(Sound& sound)>;

/// The same of a config.json's fields, filters and "speech" metadata from elsewhere.
[[nodiscard]] ModelSource join_whisper(const Fields& config, const ReadFilters& read_filters, Safetensors weights,
                                       const std::string& speech);

}  // namespace fovea
