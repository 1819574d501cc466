// Opens any tokenizer, in whichever format it comes, and models of random weights. fovea/host/opened.h opens any model.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convert/writer/writer.h"
#include "fovea/host/opened.h"

namespace fovea::convert {

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
