#include "convert/sources/gguf_lora.h"

#include <string_view>

#include "convert/formats/gguf.h"
#include "host/base/error.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirst = ".lora_a", kSecond = ".lora_b";

const GgufTensor& factor(const Gguf& file, const std::string& name) {
    const auto found = file.tensors().find(name);
    const bool plain = found != file.tensors().end() && !found->second.blocks->dequantize;
    if (!plain || found->second.shape.size() != 2)
        file.refuse("tensor " + name, "a matrix of F32, F16 or BF16, a product's factor");
    return found->second;
}

LowRank::Factor rows(const GgufTensor& tensor) { return {tensor.data, tensor.blocks->plain, tensor.shape[1], 1}; }
LowRank::Factor columns(const GgufTensor& tensor) { return {tensor.data, tensor.blocks->plain, 1, tensor.shape[1]}; }

/// In a product of the table of tokens, the first factor's rows are the tokens.
LowRank product_of(const Gguf& file, const std::string& tensor, double alpha) {
    const std::string name = tensor + std::string(kFirst), second = tensor + std::string(kSecond);
    const GgufTensor &a = factor(file, name), &b = factor(file, second);
    const bool of_table = tensor == "token_embd.weight";
    LowRank low;
    low.rank = b.shape[1];
    if (low.rank != (of_table ? a.shape[1] : a.shape[0])) file.refuse("tensor " + name, "the rank of the other factor");
    low.left = rows(of_table ? a : b);
    low.right = of_table ? rows(b) : columns(a);
    low.n_rows = of_table ? a.shape[0] : b.shape[0];
    low.n_cols = of_table ? b.shape[0] : a.shape[1];
    low.scale = alpha != 0.0 ? static_cast<float>(alpha / static_cast<double>(low.rank)) : 1.0f;
    low.name = file.path().string() + ": tensor " + name;
    return low;
}

}  // namespace

bool is_gguf_adapter(const fs::path& path) {
    return Gguf(path, map_source(path)).text_or("general.type", "model") == "adapter";
}

GgufLora read_gguf_lora(const fs::path& path) {
    Gguf file(path, map_source(path));
    if (file.text_or("general.type", "model") != "adapter") file.refuse("general.type", "\"adapter\"");
    if (file.text("adapter.type") != "lora") file.refuse("adapter.type", "\"lora\"");
    GgufLora result;
    result.path = path;
    result.architecture = file.text("general.architecture");
    const double alpha = file.number_or("adapter.lora.alpha", -1e6, 1e6, 0.0);
    for (const auto& [name, unused] : file.tensors()) {
        const bool second = name.ends_with(kSecond);
        if (!second && !name.ends_with(kFirst)) file.refuse("tensor " + name, "a product's factor");
        const std::string tensor = name.substr(0, name.size() - kFirst.size());
        if (second)
            (void)factor(file, tensor + std::string(kFirst));
        else
            result.products.emplace(tensor, product_of(file, tensor, alpha));
    }
    if (result.products.empty()) throw host::Error(path.string() + ": expected at least one product, got none");
    result.mappings = file.release();
    return result;
}

}  // namespace fovea
