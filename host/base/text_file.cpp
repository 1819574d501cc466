#include "host/base/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iostream>
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

[[noreturn]] void refuse_reading(const std::string& name, int error) {
    const Status status{Code::io_error, "an unknown error", 0, static_cast<std::uint64_t>(error)};
    throw host::FileError(name, status_words(status), error);
}

/// What is read from a descriptor that is given, or from a file that is opened.
class TextInput {
public:
    explicit TextInput(const std::string& path) : name_(input_name(path)) {
        const std::optional<int> given = named_descriptor(path);
        is_own_ = !given;
        fd_ = given ? *given : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd_ < 0) refuse_reading(name_, errno);
    }
    ~TextInput() {
        if (is_own_) ::close(fd_);
    }
    TextInput(const TextInput&) = delete;
    TextInput& operator=(const TextInput&) = delete;

    /// 0 at the end.
    [[nodiscard]] std::size_t read(char* bytes, std::size_t n) const {
        ssize_t got = 0;
        while ((got = ::read(fd_, bytes, n)) < 0)
            if (errno != EINTR) refuse_reading(name_, errno);
        return static_cast<std::size_t>(got);
    }

private:
    std::string name_;
    int fd_ = -1;
    bool is_own_ = false;
};

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string read_text_file(const std::string& path, std::size_t most_bytes) {
    const TextInput input(path);
    std::string text;
    char part[1 << 16];
    while (const std::size_t n = input.read(part, sizeof part)) {
        text.append(part, n);
        if (text.size() > most_bytes)
            throw host::Error(input_name(path) + ": text: expected at most " + with_separators(most_bytes) +
                              " bytes, got more");
    }
    text.erase(0, text.size() - without_byte_order_mark(text).size());
    return text;
}

bool has_input() {
    const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_WRONLY;
}

bool read_input_line(std::string& line) {
    errno = 0;
    if (std::getline(std::cin, line)) return true;
    if (std::ferror(stdin)) refuse_reading(input_name("-"), errno);
    return false;
}

}  // namespace fovea
