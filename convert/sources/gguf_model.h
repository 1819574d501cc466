// A GGUF file as a ModelSource: its metadata is the configuration, its tensors the weights.
#pragma once
#include <filesystem>

#include "convert/sources/gguf_lora.h"
#include "convert/weights/model_source.h"
#include "fovea/mapping.h"

namespace fovea {

/// An adapter whose products, times the scale, are merged into a model.
struct ScaledGgufLora {
    GgufLora adapter;
    float scale = 1.0f;
};

/// A model of convert/gguf's architectures, or with `next_head` its next-token head alone; with the tokenizer if `with_tokenizer`
/// and the file has one. Throws host::Error naming `path`. The result keeps the mappings.
[[nodiscard]] ModelSource read_gguf(const std::filesystem::path& path, Mapping mapping, bool with_tokenizer,
                                    std::vector<ScaledGgufLora> loras = {}, bool next_head = false);

/// An adapter of that model as a Fovea file of its own, as join_lora makes one. Throws host::Error.
[[nodiscard]] ModelSource join_gguf_lora(const std::filesystem::path& path, GgufLora adapter);

}  // namespace fovea
