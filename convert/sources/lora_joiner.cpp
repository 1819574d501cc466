#include "convert/sources/lora_joiner.h"

#include <algorithm>
#include <utility>

#include "convert/sources/latent_rows.h"
#include "host/base/error.h"

namespace fovea {

std::map<std::string, LowRank> products_of(LoraFolder& folder, const Safetensors& model) {
    std::map<std::string, LowRank> products;
    for (LoraProduct& product : folder.products) {
        const std::string name = find_module(model, product.module, "weight", product.low.name);
        if (!products.emplace(name, std::move(product.low)).second)
            throw host::Error(folder.config.string() + ": expected one product for " + name + ", got two");
    }
    return products;
}

LoraJoiner::LoraJoiner(std::map<std::string, LowRank> products) : products_(std::move(products)) {
    for (const auto& [name, low] : products_) rank_ = std::max(rank_, static_cast<std::uint32_t>(low.rank));
}

const LowRank* LoraJoiner::product_of(const std::string& name) const {
    const auto found = products_.find(name);
    return found == products_.end() ? nullptr : &found->second;
}

TensorView LoraJoiner::view(const std::string& name, const SourceRows& part) {
    seen_.push_back(name);
    used_.insert(name);
    const LowRank* low = product_of(name);
    if (low && low->n_rows != part.n_all)
        throw host::Error(low->name + ": expected a product of " + std::to_string(part.n_all) + " rows, got " +
                          std::to_string(low->n_rows));
    return second_view(low, rank_, part.begin);
}

void LoraJoiner::add(const Stack& stack, const TensorSpec& spec, Adapted matrix,
                     const std::function<void(const TensorSpec&)>& add_matrix, MappedWeights& weights) {
    seen_.clear();
    TensorSpec of_model = spec;
    of_model.role = adapted_role(matrix);
    add_matrix(of_model);
    weights.rename(of_model, spec.role);
    for (const std::string& name : seen_)
        if (products_.count(name)) adapted_ |= static_cast<std::uint32_t>(matrix);
    const bool gated = spec.n_cols > rank_;  // seen: up, then the gate
    TensorSpec in = spec;
    in.role = static_cast<Role>(static_cast<int>(spec.role) - 1);
    const std::uint32_t n_cols = n_inputs(stack, matrix, spec.layer);
    const LowRank* const firsts[] = {product_of(seen_.back()), product_of(seen_.front())};
    for (const LowRank* low : firsts)
        if (low && low->n_cols != n_cols)
            throw host::Error(low->name + ": expected " + std::to_string(n_cols) + " columns, got " +
                              std::to_string(low->n_cols));
    weights.add(in, first_view(firsts, rank_, gated, n_cols));
}

void LoraJoiner::add_latent(const Stack& stack, const TensorSpec& spec, const std::string& name,
                            MappedWeights& weights) {
    used_.insert(name);
    const LowRank* low = product_of(name);
    if (low) adapted_ |= static_cast<std::uint32_t>(Adapted::latent);
    add_latent_factor(spec, stack, low, weights);
}

void LoraJoiner::check_all_used() const {
    for (const auto& [name, low] : products_)
        if (!used_.count(name))
            throw host::Error(low.name + ": expected a matrix of a layer's attention or feed-forward part, got " +
                              name + "; convert MODEL --lora merges it");
}

}  // namespace fovea
