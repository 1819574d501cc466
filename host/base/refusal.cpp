#include "host/base/refusal.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "host/base/file_refusal.h"

namespace fovea {

std::string with_separators(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
    return digits;
}

std::string shape_words(const std::vector<std::uint64_t>& shape) {
    std::string words = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) words += (i ? ", " : "") + std::to_string(shape[i]);
    return words + "]";
}

std::string system_error(int error) {
    std::string words = std::strerror(error);
    if (words.size() > 1 && std::islower(static_cast<unsigned char>(words[1])))
        words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
    return words;
}

std::string status_words(const Status& status) {
    const int error = static_cast<int>(status.had);
    switch (status.code) {
        case Code::io_error:
            if (error == ENOENT) return "no such file";
            if (error == EISDIR) return "expected a file, got a folder";
            return std::string("cannot be read: ") + (error == EINVAL || !error ? status.what : system_error(error));
        case Code::bad_magic: return "expected a Fovea file, got another kind";
        case Code::checksum_mismatch: {
            char line[256];
            std::snprintf(line, sizeof line, "%s: expected crc %08llx, got %08llx", status.what,
                          static_cast<unsigned long long>(status.wanted), static_cast<unsigned long long>(status.had));
            return line;
        }
        default: return StatusLine(status).c_str();
    }
}

void require(const Status& status, const std::string& subject) {
    if (status.ok()) return;
    if (status.code == Code::io_error && !subject.empty())
        throw FileRefusal(subject, status_words(status), static_cast<int>(status.had));
    throw Refusal(subject.empty() ? status_words(status) : subject + ": " + status_words(status));
}

}  // namespace fovea
