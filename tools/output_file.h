// A file that is there whole or not at all.
#pragma once
#include <fstream>
#include <string>

namespace fovea {

/// Written under a temporary name beside `path` until close, so that a failure leaves no half file and an older one as
/// it was. Throws Refusal where it cannot be made or written.
class OutputFile {
public:
    explicit OutputFile(const std::string& path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile();
    [[nodiscard]] std::ofstream& stream() noexcept { return file_; }
    void close();

private:
    std::string path_, temporary_;
    std::ofstream file_;
    bool closed_ = false;
};

}  // namespace fovea
