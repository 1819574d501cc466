// How tokens are chosen, as far as somebody has said so: options of a command line, fields of a request.
#pragma once
#include <cstdint>
#include <vector>

#include "fovea/generator.h"

namespace fovea {

struct SamplingOptions {
    SamplerOptions sampler{.temperature = 0};  ///< of what was given so far
    bool has_temperature = false;              ///< a temperature was given

    /// Where only others were given, which mean nothing at temperature 0, the temperature is 1.
    [[nodiscard]] SamplerOptions settled() const;
    bool others = false;
    /// Whether the text may be another than that of the model's likeliest tokens.
    [[nodiscard]] bool wanted() const;

    std::vector<LogitBias> biases;
    std::uint32_t n_recent = 64;  ///< tokens that penalties look back, the prompt's among them

    /// What a text is started with; views of `biases`.
    void apply(GenerateOptions& options) const;
};

}  // namespace fovea
