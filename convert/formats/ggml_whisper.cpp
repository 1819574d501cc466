#include "convert/formats/ggml_whisper.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "host/base/error.h"

namespace fovea {
namespace {

constexpr std::string_view kGgmlMagic = "lmgg";  // 0x67676d6c
constexpr std::uint32_t kMostTokenText = 1024, kMostName = 256, kMostSizes = 4;

class GgmlParser {
public:
    GgmlParser(std::span<const std::byte> bytes, const std::string& file) : rest_(bytes), file_(file) {}

    GgmlWhisper parse() {
        (void)take(kGgmlMagic.size(), "a magic number");
        GgmlWhisper result;
        std::uint32_t* const sizes[] = {&result.n_vocab,      &result.n_audio_ctx,   &result.n_audio_state,
                                        &result.n_audio_head, &result.n_audio_layer, &result.n_text_ctx,
                                        &result.n_text_state, &result.n_text_head,   &result.n_text_layer,
                                        &result.n_mels};
        for (std::uint32_t* size : sizes) *size = number("sizes of a model");
        (void)number("the type of its weights");  // each tensor says its own
        read_filters(result);
        read_tokens(result);
        while (!rest_.empty()) result.tensors.push_back(read_tensor());
        return result;
    }

private:
    [[noreturn]] void refuse(const std::string& wanted, const std::string& got) const {
        throw host::Error(file_ + ": expected " + wanted + " as whisper.cpp's files have them, got " + got);
    }

    const std::byte* take(std::uint64_t n, const char* what) {
        if (n > rest_.size()) refuse(what, "the end of the file");
        const std::byte* at = rest_.data();
        rest_ = rest_.subspan(static_cast<std::size_t>(n));
        return at;
    }
    std::uint32_t number(const char* what) {
        std::uint32_t value;
        std::memcpy(&value, take(sizeof value, what), sizeof value);
        return value;
    }
    std::string text(std::uint32_t n, const char* what) { return {reinterpret_cast<const char*>(take(n, what)), n}; }

    void read_filters(GgmlWhisper& result) {
        const std::uint32_t n_filters = number("mel filters");
        result.n_bins = number("mel filters");
        if (n_filters != result.n_mels)
            refuse("as many mel filters as the " + std::to_string(result.n_mels) + " mels", std::to_string(n_filters));
        const std::uint64_t n = std::uint64_t{n_filters} * result.n_bins;
        const std::byte* values = take(n * sizeof(float), "mel filters");
        result.filters.resize(n);
        std::memcpy(result.filters.data(), values, n * sizeof(float));
    }

    void read_tokens(GgmlWhisper& result) {
        const std::uint32_t n = number("tokens");
        for (std::uint32_t i = 0; i < n; ++i) {
            const std::uint32_t n_bytes = number("tokens");
            if (n_bytes > kMostTokenText) refuse("tokens of at most 1024 bytes", std::to_string(n_bytes));
            result.tokens.push_back(text(n_bytes, "tokens"));
        }
    }

    GgmlWhisper::Tensor read_tensor() {
        GgmlWhisper::Tensor tensor;
        const std::uint32_t n_sizes = number("tensors"), n_name = number("tensors"), type = number("tensors");
        if (n_sizes < 1 || n_sizes > kMostSizes) refuse("tensors of 1 to 4 sizes", std::to_string(n_sizes));
        if (n_name > kMostName) refuse("names of at most 256 bytes", std::to_string(n_name));
        for (std::uint32_t i = 0; i < n_sizes; ++i) tensor.shape.push_back(number("sizes of a tensor"));
        std::reverse(tensor.shape.begin(), tensor.shape.end());
        tensor.name = text(n_name, "a tensor's name");
        const std::string place = "tensor " + tensor.name;
        tensor.blocks = find_gguf_blocks(type);
        if (!tensor.blocks || tensor.blocks->n_scale_bytes)
            refuse(place + " of " + known_gguf_blocks(), "type " + std::to_string(type));
        const std::uint32_t block = tensor.blocks->n_elements;
        if (tensor.shape.back() % block)
            refuse(place + " with rows of whole blocks", std::to_string(tensor.shape.back()) + " columns");
        tensor.bytes = tensor.blocks->n_bytes;
        for (std::size_t i = 0; i < n_sizes; ++i) {
            const std::uint64_t size = i + 1 < n_sizes ? tensor.shape[i] : tensor.shape[i] / block;
            if (size == 0 || tensor.bytes > std::numeric_limits<std::uint64_t>::max() / size)
                refuse(place + " of sizes from 1 to 2^64 bytes in all", std::to_string(size));
            tensor.bytes *= size;
        }
        tensor.data = take(tensor.bytes, "the elements of a tensor");
        return tensor;
    }

    std::span<const std::byte> rest_;
    const std::string& file_;
};

}  // namespace

bool looks_like_ggml(std::string_view start) { return start.starts_with(kGgmlMagic); }

GgmlWhisper read_ggml_whisper(const Mapping& mapping, const std::string& file) {
    return GgmlParser(mapping.bytes(), file).parse();
}

}  // namespace fovea
