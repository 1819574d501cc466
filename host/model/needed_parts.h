// Parts of the engine that a build may leave out (FOVEA_WITHOUT), and which of them a model needs.
#pragma once
#include "engine/format/parts.h"
#include "fovea/model.h"

namespace fovea {

/// Bits of Part: a build without any of these refuses the model. What a program asks for beside the model (speculation, penalties,
/// adapters, several threads, attention weights, names in messages) is not among them.
[[nodiscard]] unsigned needed_parts(const Model& model);

}  // namespace fovea
