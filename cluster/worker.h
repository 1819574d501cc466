// A worker: computes parts of products for programs elsewhere that run the same model file.
#pragma once
#include <functional>
#include <string>

#include "cluster/link.h"
#include "fovea/remote.h"

namespace fovea::cluster {

/// How a connection ended.
struct Served {
    bool greeted = false;  ///< by a program that runs the same file
    std::string why;       ///< one line; empty if the program closed
};

/// Serves one program until it closes the connection, one request after another. `workspace` was made of `model` without a Remote, for
/// `n_threads` threads.
[[nodiscard]] Served serve_link(Link& link, const Model& model, Workspace& workspace, std::uint32_t n_threads);

}  // namespace fovea::cluster
