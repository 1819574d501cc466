#include "tools/generation/batch_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/words.h"

namespace fovea {
namespace {

/// Whether a line is the answer to request `i`.
bool is_answer(const std::string& line, std::size_t i, std::uint32_t hash) {
    const SortedJson answer = read_sorted_json(line);
    return answer.is_object() && answer.value("index", SortedJson()) == i &&
           answer.value("request", SortedJson()) == hash_text(hash);
}

/// Whether a line that ends too soon can be the beginning of answer `i`, and not of some other file.
bool begins_answer(std::string_view line, std::size_t i) {
    const std::string begin = "{\"index\":" + std::to_string(i) + ",";
    return line.substr(0, begin.size()) == std::string_view(begin).substr(0, line.size());
}

}  // namespace

std::string hash_text(std::uint32_t hash) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash));
    return text;
}

BatchOutput::BatchOutput(const std::string& path, std::span<const std::uint32_t> hashes) : path_(path) {
    if (path.empty() || path == "-") {
        path_ = "standard output";
        return;
    }
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EISDIR) fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);  // a pipe, a device
    if (fd_ < 0) throw host::Error(path + ": cannot be written: " + system_error(errno));
    struct stat file {};
    const bool is_file = fstat(fd_, &file) == 0 && S_ISREG(file.st_mode);
    if (!is_file) return;
    try {
        if (flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            throw host::Error(path + ": expected a file of its own, got one that another batch is writing");
        keep(hashes);
    } catch (...) {
        close(fd_);
        throw;
    }
}

BatchOutput::~BatchOutput() {
    if (fd_ != 1) close(fd_);
}

void BatchOutput::keep(std::span<const std::uint32_t> hashes) {
    std::ifstream file(path_, std::ios::binary);
    off_t n_bytes = 0;
    for (std::string line; std::getline(file, line); ++n_kept_) {
        const bool is_torn = file.eof();  // no line break: a process ended within it
        if (n_kept_ == hashes.size() && !is_torn)
            throw host::Error(path_ + ": answers: expected at most " + with_separators(hashes.size()) +
                              ", one for each request, got more; another -o begins anew");
        if (is_torn ? !begins_answer(line, n_kept_) : !is_answer(line, n_kept_, hashes[n_kept_]))
            throw host::Error(
                path_ + ": line " + std::to_string(n_kept_ + 1) + ": expected the answer to request " +
                std::to_string(n_kept_) +
                " of this batch, got something else (another model, other options or requests, another file); "
                "another -o begins anew");
        if (is_torn) break;
        n_bytes += static_cast<off_t>(line.size()) + 1;
    }
    if (ftruncate(fd_, n_bytes) != 0) throw host::Error(path_ + ": cannot be written: " + system_error(errno));
}

void BatchOutput::write(std::string_view line) {
    std::string bytes(line);
    bytes += '\n';
    for (std::string_view rest = bytes; !rest.empty();) {
        const ssize_t n = ::write(fd_, rest.data(), rest.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw host::Error(path_ + ": cannot be written: " + system_error(errno));
        rest.remove_prefix(static_cast<std::size_t>(n));
    }
}

}  // namespace fovea
