#include "convert/open/foreign.h"

#include <algorithm>
#include <span>

#include "convert/formats/text_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

#define FOVEA_ORIGINAL "; give the folder of transformers that it was made of"

/// A file is one that ends so or begins so; a folder one that has such a file.
struct Foreign {
    std::string_view ending, beginning;
    const char* words;
};
constexpr Foreign kForeign[] = {
    {".onnx", {}, "an ONNX model" FOVEA_ORIGINAL},
    {".tflite", {}, "a TensorFlow Lite model" FOVEA_ORIGINAL},
    {".h5", "\x89HDF\r\n", "a TensorFlow or Keras model; load it with from_tf=True in transformers and save it again"},
    {".msgpack", {}, "a Flax model; load it with from_flax=True in transformers and save it again"},
    {".ot", {}, "a model for Rust" FOVEA_ORIGINAL},
    {".npz", {}, "an archive of NumPy's arrays; Python's fovea.convert takes arrays with their config.json"},
    {".nemo", {}, "a NeMo archive; its model may be on the hub for transformers too"},
    {".mlmodel", {}, "a Core ML model" FOVEA_ORIGINAL},
    {"openvino_model.xml", {}, "an OpenVINO model" FOVEA_ORIGINAL},
    {".gz", "\x1f\x8b", "an archive; unpack it first"},
    {{}, "tjgg", "a ggml file from before GGUF; llama.cpp's convert_llama_ggml_to_gguf.py converts it"},
    {{}, "fmgg", "a ggml file from before GGUF; llama.cpp's convert_llama_ggml_to_gguf.py converts it"},
    {{}, "algg", "a ggml adapter from before GGUF; give the folder of PEFT that it was made of"}};
#undef FOVEA_ORIGINAL

constexpr const char* kVocabularies[] = {"vocabulary.json", "vocabulary.txt", "shared_vocabulary.json",
                                         "shared_vocabulary.txt", "source_vocabulary.json"};
constexpr const char* kOwn[] = {"model.safetensors", "model.safetensors.index.json",
                                "pytorch_model.bin", "pytorch_model.bin.index.json",
                                "modules.json",      "adapter_config.json"};

bool has_any(const fs::path& folder, std::span<const char* const> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return is_there(folder / name); });
}

/// The first of a folder's files, and of those in its folder `onnx`, that is one.
std::string in_folder(const fs::path& folder) {
    if (has_any(folder, kOwn)) return {};
    if (is_there(folder / "model.bin") && has_any(folder, kVocabularies))
        return "a CTranslate2 folder; give the model of transformers that it was made of";
    for (const fs::path& place : {folder, folder / "onnx"}) {
        std::error_code error;
        for (fs::directory_iterator at(place, error), end; !error && at != end; at.increment(error))
            for (const Foreign& foreign : kForeign)
                if (!foreign.ending.empty() && at->path().filename().string().ends_with(foreign.ending))
                    return foreign.words;
    }
    return {};
}

}  // namespace

std::string foreign_model(const fs::path& path, std::string_view start) {
    std::error_code error;
    if (fs::is_directory(path, error)) return in_folder(path);
    if (!fs::is_regular_file(path, error)) return {};
    for (const auto& [ending, beginning, words] : kForeign)
        if ((!ending.empty() && path.filename().string().ends_with(ending)) ||
            (!beginning.empty() && start.starts_with(beginning)))
            return words;
    return {};
}

}  // namespace fovea
