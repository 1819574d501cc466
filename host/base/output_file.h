// A file that is there whole or not at all.
#pragma once
#include <fstream>
#include <optional>
#include <string>

#include "host/base/output_file.h"
#include "host/base/unfinished.h"

namespace fovea {

/// Written under a temporary name beside `path` until close, so that a failure leaves no half file and an older one as
/// it was; nor does a signal that ends the process. A link stays, what it leads to changes; what is no regular file
/// (a pipe), and what a standard stream goes to (/dev/stdout; "-" is that), is written as it is, the latter at its end. Throws
/// host::Error where it cannot be made or written.
class OutputFile {
public:
    explicit OutputFile(const std::string& path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    [[nodiscard]] std::ofstream& stream() noexcept { return file_; }
    void close();

private:
    std::string path_, target_;
    int stream_;
    std::optional<Unfinished> unfinished_;  // none: written in place
    std::ofstream file_;
};

/// From here on no OutputFile is made of this file, which is read while the process runs, whatever name it is given.
void keep_from_writing(const std::string& path);

/// Throws the host::Error that writing `path` would end with, as far as it can be known before: work that is written when it is
/// done is not begun for nothing. Leaves the file as it is.
void check_can_write(const std::string& path);

/// Gives standard output what is still buffered, or throws host::Error where it did not take all of it.
void flush_output();

}  // namespace fovea
