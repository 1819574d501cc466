// Sources used as if they were Fovea files: converted once into the user's cache folder, found there the next time.
#pragma once
#include <filesystem>
#include <functional>

#include "convert/open/convert.h"

namespace fovea {

/// $XDG_CACHE_HOME/fovea, or ~/.cache/fovea. Throws host::Error where the environment names neither.
[[nodiscard]] std::filesystem::path cache_folder();

/// The Fovea file of options.source, whose `output` is not read. It is made where it is not there, by way of a temporary
/// file, so that processes that make it at the same time do no harm, and `made` is called with its path. Its name
/// holds a hash of the source's path, the sizes and times of its files, the tokenizer's and the config's, the type and this
/// version: a source that has changed is converted anew, and what it was before is removed. Throws host::Error.
[[nodiscard]] std::filesystem::path cached_file(ConvertOptions options,
                                                const std::function<void(const std::filesystem::path&)>& made);

}  // namespace fovea
