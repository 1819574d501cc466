// `fovea convert --shard`: a model's file is cut up, a part for each rank.
#pragma once
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "fovea/plan.h"
#include "host/base/progress.h"

namespace fovea {

/// Writes what each of n_ranks reads of the model to OUTPUT.0ofN, OUTPUT.1ofN, …, each of which is there whole or not at all. Returns
/// their paths. Throws host::Error.
std::vector<std::string> write_shards(const host::Opened& whole, const RankSplit& split, std::uint32_t n_ranks,
                                      const std::string& output, const Progress& progress);

}  // namespace fovea
