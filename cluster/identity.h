// The identity of the file that a program and its workers must share.
#pragma once
#include "cluster/wire.h"
#include "fovea/model.h"
#include "fovea/workspace.h"

namespace fovea::cluster {

[[nodiscard]] inline Identity identity_of(const Model& model) noexcept {
    return {model.bytes().size(), model.fingerprint(), kNumericsVersion};
}

}  // namespace fovea::cluster
