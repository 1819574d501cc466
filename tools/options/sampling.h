// The options that say how tokens are chosen: of every verb that makes text.
#pragma once

#include <vector>

#include "fovea/generator.h"
#include "fovea/model.h"
#include "tools/options/options.h"

namespace fovea {

struct SamplingOptions {
    SamplerOptions sampler{.temperature = 0};  ///< of what was given so far
    bool has_temperature = false;              ///< --temp was given

    /// Where only others were given, which mean nothing at temperature 0, the temperature is 1.
    [[nodiscard]] SamplerOptions settled() const;
    bool others = false;
    /// Whether the text may be another than that of the model's likeliest tokens.
    [[nodiscard]] bool wanted() const;

    std::vector<LogitBias> biases;
    std::uint32_t n_recent = 64;  ///< tokens that penalties look back, the prompt's among them

    /// What a text is started with; views of `biases`.
    void apply(GenerateOptions& options) const;
    /// Refuses biases of tokens that the model has not.
    void check(const Model& model) const;
};

/// --temp, --top-k, --top-p, --min-p, --seed, the penalties with --repeat-last-n, and --logit-bias.
void add_sampling(CLI::App& verb, SamplingOptions& options);

}  // namespace fovea
