#include "host/base/error.h"

#include <cerrno>
#include <cstdio>

#include "host/base/file_error.h"
#include "host/base/status_error.h"
#include "host/base/words.h"

namespace fovea {

namespace host {

std::string Error::printable(std::string line) {
    constexpr std::size_t kMostBytes = 2000;  // every type of model that is read fits in
    if (line.size() > kMostBytes) line = line.substr(0, kMostBytes) + "...";
    return fovea::printable(line);
}

}  // namespace host

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
        throw host::FileError(subject, status_words(status), static_cast<int>(status.had));
    throw host::StatusError(status, subject.empty() ? status_words(status) : subject + ": " + status_words(status));
}

}  // namespace fovea
