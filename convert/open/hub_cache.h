// Models that `hf download` and transformers keep in the Hugging Face hub's cache folder.
#pragma once
#include <filesystem>
#include <string>

namespace fovea {

/// Whether a path that isn't there may be a model's name on the hub, "organization/model".
[[nodiscard]] bool is_hub_name(const std::string& path);

/// Where a source lies: at `path`, or, if that is a name of the hub that isn't there, in the folder of its main revision in the
/// cache: of HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub the first whose variable is set.
/// What was not downloaded is at `path`.
[[nodiscard]] std::filesystem::path find_source(const std::filesystem::path& path);

}  // namespace fovea
