// Which tokens a request's penalties and biases are about: what stands beside its SamplerOptions.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/sampler.h"

namespace fovea::serve {

struct Penalized {
    std::vector<LogitBias> biases;          ///< of which the sampler's are a view, once the text starts
    std::uint32_t n_recent = 64;            ///< tokens that repeat_penalty looks back
    std::uint32_t n_counted = 0xffffffffu;  ///< tokens that the other two look back,
    bool counts_prompt = false;             ///< of the answer alone, or of the prompt too
};

/// "ids below 512, got 600" where one of the biases is of a token that a vocabulary has not; empty where none is.
[[nodiscard]] inline std::string foreign_bias(std::span<const LogitBias> biases, std::uint32_t vocab_size) {
    for (const LogitBias& b : biases)
        if (b.id >= vocab_size) return "ids below " + std::to_string(vocab_size) + ", got " + std::to_string(b.id);
    return {};
}

}  // namespace fovea::serve
