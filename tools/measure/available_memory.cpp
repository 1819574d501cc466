#include "tools/measure/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace fovea {

std::uint64_t available_memory() {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max(), number = 0;
    std::ifstream lines("/proc/meminfo");
    for (std::string name, unit; lines >> name >> number; std::getline(lines, unit))
        if (name == "MemAvailable:") least = number * 1024;  // it counts in KB
    for (const char* limit : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
        if (std::ifstream file(limit); file >> number) least = std::min(least, number);  // "max" is no number
    return least;
}

}  // namespace fovea
