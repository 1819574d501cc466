// What sanitizers make twenty times as slow.
#pragma once

namespace fovea::testing {

/// Whether sanitizers watch this build. Cases that take them a minute and go through no code of their own are then left out, by
/// doctest::skip(kSanitized); --no-skip runs them all the same.
#if defined(FOVEA_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace fovea::testing
