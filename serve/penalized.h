// Which tokens a request's penalties and biases are about: what stands beside its SamplerOptions.
#pragma once
#include <cstdint>
#include <vector>

#include "fovea/sampler.h"

namespace fovea::serve {

struct Penalized {
    std::vector<LogitBias> biases;          ///< of which the sampler's are a view, once the text starts
    std::uint32_t n_recent = 64;            ///< tokens that repeat_penalty looks back
    std::uint32_t n_counted = 0xffffffffu;  ///< tokens that the other two look back,
    bool counts_prompt = false;             ///< of the answer alone, or of the prompt too
};

}  // namespace fovea::serve
