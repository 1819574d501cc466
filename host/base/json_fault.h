// What the library's parser complains of.
#pragma once
#include "host/base/json.h"

namespace fovea {

/// Its complaint, at a byte of the text, as a line of printable characters.
[[nodiscard]] JsonFault fault_of(std::size_t position, const nlohmann::detail::exception& error);

}  // namespace fovea
