#include "tools/terminal/print.h"

#include <cstdio>

namespace fovea {

void print_line(const Json& object) { std::printf("%s\n", json_text(object).c_str()); }

std::string counted(std::uint64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

}  // namespace fovea
