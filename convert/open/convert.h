// `fovea convert`: a model in another format becomes a Fovea file.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convert/calibrate/budget.h"
#include "convert/formats/safetensors.h"
#include "convert/weights/model_source.h"
#include "convert/writer/writer.h"

namespace fovea {

/// An adapter's folder, and what its products are multiplied with.
struct ScaledAdapter {
    std::filesystem::path folder;
    float scale = 1.0f;
};

struct ConvertOptions {
    std::filesystem::path source = {};  ///< a Hugging Face folder, a .safetensors, GGUF, llama2.c or Fovea file
    std::filesystem::path output = {};
    std::optional<Type> type = {};          ///< of the weights; the source's by default
    std::optional<Budget> budget = {};      ///< chooses each matrix's type instead, see convert/calibrate/budget.h
    std::filesystem::path tokenizer = {};   ///< what tokenizer_file.h reads; empty: beside the model
    std::filesystem::path config = {};      ///< a config.json; empty: the one beside the model
    std::filesystem::path base = {};        ///< the folder whose adapter `source` is; empty: it is a model
    std::vector<ScaledAdapter> loras = {};  ///< PEFT's folders, merged into the weights, see convert/sources/lora.h
    bool sparse = false;                    ///< the head is that of the folder's sparse_linear.pt (bge-m3)
    bool colbert = false;                   ///< the head is that of the folder's colbert_linear.pt (bge-m3)
    bool mtp = false;                       ///< the next-token head alone, see convert/sources/next_head.h
    bool reranker =
        false;  ///< of a Hugging Face model, whose folder does not say so: it scores pairs as Qwen3-Reranker does
    std::optional<std::string> calibration_text = {};  ///< to quantize by, see convert/calibrate/calibration.h
    bool calibrates_itself = false;                    ///< without that text: by one that the model writes
    bool column_scales = true;    ///< chosen by that text too, see convert/calibrate/column_scales.h
    std::uint32_t n_threads = 1;  ///< that read and quantize the weights
    QuantReport quantized = {};   ///< called after each tensor that is quantized
    Progress progress = {};       ///< called as the weights are written
    Progress writing_text = {};   ///< called with its own text's tokens
    Progress calibrating = {};    ///< called with tokens of that text
    std::function<void(const Calibration&)> calibrated = {};          ///< called with what that text showed
    Progress measuring = {};                                          ///< called with matrices, for the budget
    std::function<void(const std::vector<ChosenType>&)> chosen = {};  ///< called with what the budget gave
    std::function<void()> lacks_tokenizer = {};  ///< called once the file is there, where ids have no tokenizer
};

/// Whether `path` is a source that is converted where a model is to be opened: a folder, a GGUF file or a .safetensors file.
[[nodiscard]] bool is_source(const std::filesystem::path& path);

/// Reads `source`, whatever kind it is, tokenizer included. Throws host::Error; also where `output` is the source, or a file that is
/// neither empty nor a Fovea file.
[[nodiscard]] ModelSource read_source(const ConvertOptions& options);

/// The same of a folder's config.json and tokenizer with `weights` of the caller's, whose bytes must outlive the result.
[[nodiscard]] ModelSource read_source(const ConvertOptions& options, Safetensors weights);

/// What of `options` the writer is to know.
[[nodiscard]] WriteOptions write_options(const ConvertOptions& options, const ModelSource& source);

/// Converts, with the source's notes on stderr. The source is mapped and the result streamed: memory stays below 64 MB
/// beyond the mapping, and a few panels more for each thread. An older file at `output` is replaced only when the new one is whole. Throws host::Error; nothing has
/// changed then.
void convert_source(const ConvertOptions& options);

}  // namespace fovea
