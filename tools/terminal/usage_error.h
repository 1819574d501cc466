// The user's options cannot be taken.
#pragma once
#include "host/base/error.h"

namespace fovea {

/// Options that do not go together, or one that a verb does not have. The process exits with status 2.
struct UsageError : host::ArgumentError {
    using ArgumentError::ArgumentError;
};

}  // namespace fovea
