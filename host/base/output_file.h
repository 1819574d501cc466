// A file that is there whole or not at all.
#pragma once
#include <fstream>
#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "host/base/unfinished.h"

namespace fovea {

/// Written under a temporary name beside `path` until close, so that a failure leaves no half file and an older one as it
/// was; nor does a signal that ends the process. A link stays, what it leads to changes; what is no regular file (a pipe)
/// is written as it is. Standard output, which "-" and /dev/stdout are, and standard error are written by their
/// descriptors, as is a file that the shell made one of them. Throws host::Error where it cannot be made or written.
class OutputFile {
public:
    explicit OutputFile(const std::string& path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    [[nodiscard]] std::ostream& stream() noexcept { return standard_ ? *standard_ : file_; }
    void close();

private:
    std::string path_;
    std::ostream* standard_;                // null: a file of its own
    std::optional<Unfinished> unfinished_;  // none: written in place
    std::ofstream file_;
};

/// Whether a path is a name of standard output.
[[nodiscard]] bool is_standard_output(const std::string& path);

/// From here on no OutputFile is made of this file, which is read while the process runs, whatever name it is given. A file that
/// standard input comes from is one of them in any case.
void keep_from_writing(const std::string& path);

/// Throws host::Error where one of these files, which a command is about to write, is one that keep_from_writing has, or
/// two are the same. "-" is none.
void check_outputs(std::span<const std::string> paths);

/// Throws the host::Error that writing `path` would end with, as far as it can be known before: work that is written when it is
/// done is not begun for nothing. Leaves the file as it is.
void check_can_write(const std::string& path);

/// Gives standard output what is still buffered, or throws host::Error where it did not take all of it.
void flush_output();

}  // namespace fovea
