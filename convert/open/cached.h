// Sources used as if they were Fovea files: converted once into the user's cache folder, found there the next time.
#pragma once
#include <filesystem>
#include <functional>

#include "convert/open/convert.h"

namespace fovea {

/// $XDG_CACHE_HOME/fovea, or ~/.cache/fovea. Throws host::Error where the environment names neither.
[[nodiscard]] std::filesystem::path cache_folder();

/// The Fovea file of options.source, whose `output` is not read. It is made where it is not there, by way of a temporary
/// file, so that processes that make it at the same time do no harm, and `made` is called with its path. Its name holds
/// hashes of the source's path and the type; of this version; and of the sizes, times, numbers and some bytes of the files
/// of source, tokenizer and config. So a source that has changed is converted anew. What this version made of it before is
/// removed then, what a killed conversion left too, and what another version made where that was not used for 30 days.
/// Throws host::Error.
[[nodiscard]] std::filesystem::path cached_file(ConvertOptions options,
                                                const std::function<void(const std::filesystem::path&)>& made);

}  // namespace fovea
