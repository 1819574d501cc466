#include "host/model/sampling_options.h"

namespace fovea {

SamplerOptions SamplingOptions::settled() const {
    SamplerOptions made = sampler;
    if (!has_temperature && others) made.temperature = 1;
    return made;
}

bool SamplingOptions::wanted() const {
    bool penalizes = false;
#define FOVEA_SAMPLER_TEMPERATURE(...)
#define FOVEA_SAMPLER_REAL(field, neutral, least, most, draws, ...) penalizes |= !draws && sampler.field != neutral;
#include "fovea/sampler_options.inc"
    return settled().temperature > 0 || penalizes || !biases.empty();
}

void SamplingOptions::apply(GenerateOptions& options) const {
    options.sampler = settled();
    options.sampler.bias = biases;
    options.n_recent = options.n_counted = n_recent;
    options.counts_prompt = true;
}

}  // namespace fovea
