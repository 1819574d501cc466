// What a configuration's encoder and decoder read, for those who gather it.
#pragma once
#include <cstdint>

#include "fovea/config.h"

namespace fovea {

/// The sides of a call: an encoder reads a source, a decoder a target, and layers with cross-attention a memory.
struct Sides {
    bool encodes = false, decodes = false, reads_memory = false;
};
[[nodiscard]] Sides sides_of(const Config& config) noexcept;

/// How many heads every attention of a stack has; 1 where layers differ, so that no mask tells heads apart.
[[nodiscard]] std::uint32_t heads_of_all(const Stack& stack) noexcept;

}  // namespace fovea
