#include "host/base/text_file.h"

#include <cerrno>
#include <fstream>

#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {

std::string read_text_file(const std::string& path) {
    constexpr std::size_t kMostBytes = 64u << 20;
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text;
    char part[1 << 16];
    while (text.size() <= kMostBytes && (file.read(part, sizeof part) || file.gcount()))
        text.append(part, static_cast<std::size_t>(file.gcount()));
    const int error = errno;
    if (!file.is_open() || file.bad())
        require({Code::io_error, "an unknown error", 0, static_cast<std::uint64_t>(error)}, path);
    if (text.size() > kMostBytes)
        throw host::Error(path + ": text: expected at most " + with_separators(kMostBytes) + " bytes, got more");
    return text;
}

}  // namespace fovea
