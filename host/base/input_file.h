// Bytes of a file, a pipe or standard input, as they come.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace fovea {

/// "-", /dev/stdin and /dev/fd/N are read by their descriptor, from where it stands; other paths are opened.
class InputFile {
public:
    /// Throws host::FileError.
    explicit InputFile(const std::string& path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    /// How many bytes were read into the front of `bytes`, at least one; 0 at the end. Throws host::FileError.
    [[nodiscard]] std::size_t read(std::span<std::byte> bytes) const;
    /// Not so a pipe, a socket or a terminal.
    [[nodiscard]] bool is_regular() const;
    [[nodiscard]] const std::string& name() const { return name_; }

private:
    std::string name_;
    int fd_ = -1;
    bool is_own_ = false;
};

/// "standard input" where `path` is "-", to begin a message with; else the path.
[[nodiscard]] std::string input_name(const std::string& path);

/// Throws the host::FileError of a system's error number.
[[noreturn]] void refuse_reading(const std::string& name, int error);

}  // namespace fovea
