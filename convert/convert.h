// `fovea convert`: a model in another format becomes a Fovea file.
#pragma once
#include <filesystem>
#include <optional>

#include "convert/model_source.h"
#include "convert/writer.h"

namespace fovea {

struct ConvertOptions {
    std::filesystem::path source = {};  ///< a Hugging Face folder, a .safetensors, GGUF, llama2.c or Fovea file
    std::filesystem::path output = {};
    std::optional<Type> type = {};         ///< of the weights; the source's by default
    std::filesystem::path tokenizer = {};  ///< tokenizer.json, vocab.txt or tokenizer.bin; empty: beside the model
    std::filesystem::path config = {};     ///< a config.json; empty: the one beside the model
    std::uint32_t n_threads = 1;           ///< that read and quantize the weights
    QuantReport quantized = {};            ///< called after each tensor that is quantized
    Progress progress = {};                ///< called as the weights are written
};

/// Reads `source`, whatever kind it is, tokenizer included. Throws Refusal.
[[nodiscard]] ModelSource read_source(const ConvertOptions& options);

/// Converts, with the source's notes on stderr. The source is mapped and the result streamed: memory stays below 64 MB
/// beyond the mapping, and a few panels more for each thread. An older file at `output` is replaced only when the new one is whole. Throws Refusal; nothing has
/// changed then.
void convert(const ConvertOptions& options);

}  // namespace fovea
