// How much memory this process can still have.
#pragma once
#include <cstdint>

namespace fovea {

/// Bytes that the system could give without swapping, caches of files counted as free, within the limits of this
/// process's container; the largest number if the system does not tell.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace fovea
