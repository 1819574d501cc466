// The user's options cannot be taken.
#pragma once
#include <initializer_list>

#include "host/base/error.h"

namespace fovea {

/// Options that do not go together, or one that a verb does not have. The process exits with status 2.
struct UsageError : host::ArgumentError {
    using ArgumentError::ArgumentError;
};

/// An option's name, and whether it was given.
struct GivenOption {
    bool given;
    const char* name;
};
/// The first of them that was given, or nullptr.
[[nodiscard]] inline const char* first_given(std::initializer_list<GivenOption> options) {
    for (const GivenOption& option : options)
        if (option.given) return option.name;
    return nullptr;
}

}  // namespace fovea
