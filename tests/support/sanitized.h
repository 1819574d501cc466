// A flag for tests that sanitizers make twenty times as slow.
#pragma once
#include "fovea/workspace.h"

namespace fovea::testing {

/// Whether sanitizers watch this build. Cases that take them a minute and go through no code of their own are then left out, by
/// doctest::skip(kSanitized); --no-skip runs them all the same.
#if defined(FOVEA_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Instruction sets that whole models run on. Sanitizers see every set's kernels by themselves, and models only on the
/// best set.
[[nodiscard]] inline std::span<const char* const> model_isas() {
    return isa_names().first(kSanitized ? 1 : isa_names().size());
}

}  // namespace fovea::testing
