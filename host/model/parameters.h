// How many parameters a configuration calls for, part by part.
#pragma once
#include <cstdint>

#include "fovea/config.h"

namespace fovea {

/// Parameters per part, matrices only, biases and norms apart: what papers count. Exact for any accepted Config.
struct ParameterCount {
    std::uint64_t query_head = 0, key_head = 0, value_head = 0, output_head = 0;  ///< one head's four maps, first layer
    std::uint64_t head = 0;             ///< one query head with its share of everything: the four maps' sum
    std::uint64_t layer_attention = 0;  ///< first layer
    std::uint64_t layer_feed_forward = 0;
    std::uint64_t attention = 0;  ///< all layers
    std::uint64_t recurrent = 0;
    std::uint64_t feed_forward = 0;
    std::uint64_t idle_experts = 0;  ///< of those: matrices of experts that a token does not use
    std::uint64_t embedding = 0;     ///< token, position and token-type tables
    std::uint64_t output = 0;        ///< an output head of its own (0 where tied)
    std::uint64_t biases_and_norms = 0;
    std::uint64_t total = 0;
    std::uint64_t unfactored_value = 0;  ///< one head's value map were it d_model × d_model
};
[[nodiscard]] ParameterCount count_parameters(const Config& config) noexcept;

}  // namespace fovea
