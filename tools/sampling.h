// The options that say how tokens are chosen: of every verb that makes text.
#pragma once
#include <CLI/CLI.hpp>

#include "fovea/sampler.h"

namespace fovea {

struct SamplingOptions {
    SamplerOptions sampler{.temperature = 0};  ///< of what was given so far
    bool has_temperature = false;              ///< --temp was given

    /// Where only others were given, which mean nothing at temperature 0, the temperature is 1.
    [[nodiscard]] SamplerOptions settled() const;
    bool others = false;
};

/// --temp, --top-k, --top-p, --min-p, --repeat-penalty and --seed.
void add_sampling(CLI::App& verb, SamplingOptions& options);

}  // namespace fovea
