// How far long work is, on standard error if that is a terminal.
#pragma once
#include <string>

#include "host/base/progress.h"

namespace fovea {

/// One line that is written over: "what: 12 %", ended when the last copy of the result goes. Nothing if standard error
/// is no terminal, or while the work has taken less than half a second.
[[nodiscard]] Progress progress_line(const std::string& what);

}  // namespace fovea
