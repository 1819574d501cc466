// How a tool says no: one line for a person, and the process's exit status.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fovea/status.h"

namespace fovea {

/// Thrown by tools, caught once in main, which prints "fovea: " and what(). The line names the file or option it speaks
/// of and says "expected X, got Y". Names out of files may be in it: control characters, line breaks among
/// them, become question marks, and a long line is cut.
struct Refusal : std::runtime_error {
    explicit Refusal(const std::string& line, int status = 1)
        : std::runtime_error(printable(line)), exit_code(status) {}
    int exit_code = 1;  ///< 2 for a usage error

private:
    static std::string printable(std::string line) {
        constexpr std::size_t kMostBytes = 2000;  // every type of model that is read fits in
        if (line.size() > kMostBytes) line = line.substr(0, kMostBytes) + "...";
        for (char& c : line)
            if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
        return line;
    }
};

/// 1572864 becomes "1,572,864".
[[nodiscard]] std::string with_separators(std::uint64_t number);

/// A shape as refusals have it: "[2, 3]".
[[nodiscard]] std::string shape_words(const std::vector<std::uint64_t>& shape);

/// What an error number of the system means, to end a line with: "permission denied".
[[nodiscard]] std::string system_error(int error);

/// A status that is not ok in words: of files that cannot be read, why; of checksums, both in hexadecimal.
[[nodiscard]] std::string status_words(const Status& status);

/// Throws Refusal unless `status` is ok: its words, after `subject` (mostly a file's name) where there is one.
void require(const Status& status, const std::string& subject = {});

}  // namespace fovea
