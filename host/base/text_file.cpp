#include "host/base/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <span>

#include "host/base/error.h"
#include "host/base/input_file.h"
#include "host/base/words.h"

namespace fovea {

std::string_view without_byte_order_mark(std::string_view text) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

std::string read_text_file(const std::string& path, std::size_t most_bytes) {
    const InputFile input(path);
    std::string text;
    char part[1 << 16];
    while (const std::size_t n = input.read(std::as_writable_bytes(std::span(part)))) {
        text.append(part, n);
        if (text.size() > most_bytes)
            throw host::Error(input.name() + ": text: expected at most " + with_separators(most_bytes) +
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
