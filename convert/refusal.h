// How a tool says no: one line for a person, and the process's exit status.
#pragma once
#include <stdexcept>
#include <string>

namespace fovea {

/// Thrown by tools, caught once in main, which prints "fovea: " and what(). The line says what was wanted and what was
/// there, and names the file it speaks of. Names out of files may be in it: control characters, line breaks among
/// them, become question marks, and a long line is cut.
struct Refusal : std::runtime_error {
    explicit Refusal(const std::string& line, int status = 1)
        : std::runtime_error(printable(line)), exit_code(status) {}
    int exit_code = 1;  ///< 2 for a usage error

private:
    static std::string printable(std::string line) {
        constexpr std::size_t kMostBytes = 600;
        if (line.size() > kMostBytes) line = line.substr(0, kMostBytes) + "...";
        for (char& c : line)
            if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
        return line;
    }
};

}  // namespace fovea
