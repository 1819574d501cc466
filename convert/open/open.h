// Opens any model or tokenizer, in whichever format it comes.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convert/writer/writer.h"
#include "host/base/progress.h"
#include "host/model/opened.h"

namespace fovea::convert {

/// Opens a Fovea file, or a source (convert/open/cached.h): that is converted the first time, which `progress` is told of, with a
/// line on standard error. Throws host::Error.
[[nodiscard]] host::Opened open(const std::string& path, const OpenOptions& options = {},
                                const Progress& progress = {});

/// A tokenizer by itself, and what it lies in. Movable.
struct OpenedTokenizer {
    host::Opened opened;                 ///< its model is valid where the tokenizer is a Fovea file's
    std::vector<std::uint64_t> section;  ///< the bytes of any other's
};
/// Opens the tokenizer of a Fovea file, or a tokenizer's own file (convert/tokenizers/tokenizer_file.h), of a folder the one in it;
/// notes go to standard error. Throws host::Error.
[[nodiscard]] OpenedTokenizer open_tokenizer(const std::string& path);

/// Opens a model of that shape with random weights (convert/weights/random_model.h): a temporary file that is mapped and then
/// forgotten, so that they are read as a real model's are. `check` is called first with the file's bytes, and may throw.
[[nodiscard]] host::Opened open_random(const Config& config, const WriteOptions& options,
                                       const std::function<void(std::uint64_t n_bytes)>& check);

}  // namespace fovea::convert
