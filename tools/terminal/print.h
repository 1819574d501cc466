// How verbs print.
#pragma once
#include <cstdint>
#include <string>

#include "host/base/json.h"

namespace fovea {

/// The object of --json, on a line. What is no UTF-8 is replaced: a text may end within a character.
void print_line(const Json& object);

/// "1 thread", "2 threads".
[[nodiscard]] std::string counted(std::uint64_t n, const char* what);

}  // namespace fovea
