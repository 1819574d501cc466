// The matrix of latent attention that a source has for keys and values of all heads, [n_heads · (key + value dims), latent]: each
// head's rows in the order in which a Fovea file holds them, and those of an adapter's product for it.
#pragma once
#include <cstdint>

#include "convert/formats/safetensors.h"
#include "convert/weights/mapped_weights.h"

namespace fovea {

/// A head's map: of keys transposed, or of values.
[[nodiscard]] TensorView latent_head(const TensorView& all, const Block& block, bool is_key, std::uint32_t head);

/// Adds an adapter's tensor for those maps: `spec` is one of the four that a product for the source's matrix becomes, each
/// up to the adapter's rank with zeros. What lies on the heads' side is each head's own. Null: zeros. Throws host::Error.
void add_latent_factor(const TensorSpec& spec, const Stack& stack, const LowRank* product, MappedWeights& weights);

}  // namespace fovea
