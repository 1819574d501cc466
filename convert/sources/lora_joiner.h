// An adapter's products in place of its model's matrices: what convert/sources/hf_model.cpp joins for an adapter's own file.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "convert/sources/lora.h"
#include "convert/sources/lora_file.h"
#include "convert/sources/source_rows.h"
#include "convert/weights/mapped_weights.h"

namespace fovea {

/// Takes a folder's products, by the names of the model's tensors. Throws host::Error for a tensor that it does not have, or for two
/// products of one.
[[nodiscard]] std::map<std::string, LowRank> products_of(LoraFolder& folder, const Safetensors& model);

class LoraJoiner {
public:
    /// Takes products by the names of the model's tensors.
    explicit LoraJoiner(std::map<std::string, LowRank> products);

    /// The largest of the products.
    [[nodiscard]] std::uint32_t rank() const { return rank_; }

    /// Rows of a product's second matrix in place of the model's tensor, times the product's scale; zeros where there is none.
    TensorView view(const std::string& name, const SourceRows& part);

    /// Adds both matrices of the product for `matrix`; `spec` is the second's. That has the rows of the model's own matrix,
    /// wherever they lie: `add_matrix` adds the spec that it is given to `weights`, with what `view` returns. A gate
    /// and an up have separate columns.
    void add(const Stack& stack, const TensorSpec& spec, Adapted matrix,
             const std::function<void(const TensorSpec&)>& add_matrix, MappedWeights& weights);
    /// Adds a factor of a latent matrix, which is the model's `name`.
    void add_latent(const Stack& stack, const TensorSpec& spec, const std::string& name, MappedWeights& weights);

    /// Throws host::Error where a product is for a matrix that was not added.
    void check_all_used() const;
    /// For which matrices there are products, of those that were added.
    [[nodiscard]] std::uint32_t adapted() const { return adapted_; }

private:
    [[nodiscard]] const LowRank* product_of(const std::string& name) const;

    std::map<std::string, LowRank> products_;  // by the model's names
    std::uint32_t rank_ = 0, adapted_ = 0;
    std::vector<std::string> seen_;  // what `view` was asked for since it was cleared
    std::set<std::string> used_;
};

}  // namespace fovea
