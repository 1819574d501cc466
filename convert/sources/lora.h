// Low-rank adapters (Hu et al. 2021) as PEFT's folders hold them, merged into a model's weights.
#pragma once
#include <filesystem>
#include <set>
#include <vector>

#include "convert/formats/safetensors.h"

namespace fovea {

struct HfConfig;

/// One product of a folder, and the module it is for.
struct LoraProduct {
    std::string module;  ///< "model.layers.0.self_attn.q_proj"
    bool embedding = false;
    LowRank low;  ///< its scale: lora_alpha over the rank or, with use_rslora, over the rank's root
};

/// A folder of adapter_config.json and adapter_model.safetensors or .bin.
struct LoraFolder {
    std::filesystem::path config;
    Safetensors files;
    std::vector<LoraProduct> products;  ///< in the order of their names
    std::map<std::string, SourceTensor>
        replaced;  ///< biases and whole modules that were trained too, by the model's names
    /// Tensors among these that stand beside the model's own, which something tied to those keeps: modules_to_save.
    std::set<std::string> copied;
};

/// Reads one. Every tensor is a factor of a product or replaces one of the model's. Throws host::Error for what adds anything
/// else than such products: DoRA, biases of products, bases that were changed, and other methods than LoRA.
[[nodiscard]] LoraFolder read_lora_folder(const std::filesystem::path& folder);

/// The tensor of `weights` that a module's `tensor` ("weight") is. Prefixes may differ: that of a class with a head may lack
/// on either side. An output head of which the files have no tensor is by its name: it is tied. Throws host::Error
/// naming `place` where there is none.
[[nodiscard]] std::string find_module(const Safetensors& weights, const std::string& module, const std::string& tensor,
                                      const std::string& place);

/// Adds the folder's products, times `scale`, to the tensors of `weights`, which keeps the folder's mappings; what it
/// replaces is replaced where `scale` is 1 and else refused. Throws host::Error.
void add_lora(LoraFolder folder, float scale, Safetensors& weights);

/// out [low.n_cols] += scale · left · right, of one row. The sum over the rank runs in order.
void add_low_rank(const LowRank& low, std::uint64_t row, float* out);

/// out [n]: element i is (row, i) of `factor` where `by_rank`, else (i, row).
void read_factor(const LowRank::Factor& factor, std::uint64_t row, bool by_rank, std::uint64_t n, float* out);

}  // namespace fovea
