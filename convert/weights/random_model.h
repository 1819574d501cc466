// A model of any shape with random weights, for benchmarks and tests.
#pragma once
#include <cstdint>

#include "convert/weights/model_source.h"

namespace fovea {

/// The same (config, seed) gives the same weights on every machine. Matrices are uniform with a variance of
/// 1 / n_cols, so that activations keep their size from layer to layer; norms are near 1, biases near 0, rotary
/// frequencies those of base 10000. `config.layer_blocks` is copied.
[[nodiscard]] ModelSource random_model(const Config& config, std::uint64_t seed);

}  // namespace fovea
