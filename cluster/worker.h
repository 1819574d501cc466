// A worker: computes parts of products for programs elsewhere that run the same model file.
#pragma once
#include <functional>
#include <string>

#include "cluster/link.h"
#include "fovea/remote.h"

namespace fovea::cluster {

/// Serves one program until it closes the connection, one request after another. Returns what ended it: empty where the program
/// closed, else one line. `workspace` was made of `model` without a Remote, for `n_threads` threads.
[[nodiscard]] std::string serve_link(Link& link, const Model& model, Workspace& workspace, std::uint32_t n_threads);

}  // namespace fovea::cluster
