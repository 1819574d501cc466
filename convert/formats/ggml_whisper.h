// whisper.cpp's own files, which begin with ggml's first magic number: sizes, mel filters, tokens and tensors one after another.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/formats/gguf_blocks.h"
#include "fovea/mapping.h"

namespace fovea {

struct GgmlWhisper {
    struct Tensor {
        std::string name;
        const GgufBlocks* blocks = nullptr;
        std::vector<std::uint64_t> shape;  ///< row-major; the last a multiple of a block
        const std::byte* data = nullptr;   ///< of any alignment; all of it is in the file
        std::uint64_t bytes = 0;
    };
    std::uint32_t n_vocab, n_audio_ctx, n_audio_state, n_audio_head, n_audio_layer, n_text_ctx, n_text_state,
        n_text_head, n_text_layer, n_mels;
    std::uint32_t n_bins = 0;         ///< of each filter
    std::vector<float> filters;       ///< [n_mels][n_bins]
    std::vector<std::string> tokens;  ///< their bytes, by id; special ones are in no file
    std::vector<Tensor> tensors;
};

/// Whether a file begins so.
[[nodiscard]] bool looks_like_ggml(std::string_view start);

/// Reads a file's header, and its tensors as views of `mapping`. Every count is compared with the bytes. Throws host::Error, naming
/// `file`.
[[nodiscard]] GgmlWhisper read_ggml_whisper(const Mapping& mapping, const std::string& file);

}  // namespace fovea
