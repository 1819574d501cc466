#include "host/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "host/base/file_error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

/// The descriptor that a path is a name of.
std::optional<int> named_descriptor(std::string_view path) {
    if (path == "-" || path == "/dev/stdin") return STDIN_FILENO;
    constexpr std::string_view kFolder = "/dev/fd/";
    int fd = 0;
    if (!path.starts_with(kFolder)) return {};
    const char* end = path.data() + path.size();
    const auto [stopped, error] = std::from_chars(path.data() + kFolder.size(), end, fd);
    return error == std::errc{} && stopped == end ? std::optional(fd) : std::nullopt;
}

}  // namespace

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

void refuse_reading(const std::string& name, int error) {
    const Status status{Code::io_error, "an unknown error", 0, static_cast<std::uint64_t>(error)};
    throw host::FileError(name, status_words(status), error);
}

InputFile::InputFile(const std::string& path) : name_(input_name(path)) {
    const std::optional<int> given = named_descriptor(path);
    is_own_ = !given;
    fd_ = given ? *given : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) refuse_reading(name_, errno);
}

InputFile::~InputFile() {
    if (is_own_) ::close(fd_);
}

std::size_t InputFile::read(std::span<std::byte> bytes) const {
    ssize_t got = 0;
    while ((got = ::read(fd_, bytes.data(), bytes.size())) < 0)
        if (errno != EINTR) refuse_reading(name_, errno);
    return static_cast<std::size_t>(got);
}

bool InputFile::is_regular() const {
    struct stat facts {};
    return ::fstat(fd_, &facts) == 0 && S_ISREG(facts.st_mode);
}

}  // namespace fovea
