// The options that say how tokens are chosen: of every verb that makes text.
#pragma once
#include "fovea/model.h"
#include "host/model/sampling_options.h"
#include "tools/options/options.h"

namespace fovea {

/// --temp, --top-k, --top-p, --min-p, --seed, the penalties with --repeat-last-n, and --logit-bias.
void add_sampling(const Verb& verb, SamplingOptions& options);
/// Refuses biases of tokens that the model has not.
void check_biases(const SamplingOptions& options, const Model& model);

}  // namespace fovea
