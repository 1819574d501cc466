// Answers of `run --batch`: a line each, in the order of the requests, so that a file that was begun can be gone on with.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fovea {

class BatchOutput {
public:
    /// Opens `path`, "-" or "" being standard output. The whole lines of a file stay, where each is the answer to the
    /// request of its place, which the hash says; what follows the last line break is dropped. Throws host::Error where the file
    /// holds anything else, leaving it as it was, or is being written by somebody.
    BatchOutput(const std::string& path, std::span<const std::uint32_t> hashes);
    ~BatchOutput();
    BatchOutput(const BatchOutput&) = delete;
    BatchOutput& operator=(const BatchOutput&) = delete;

    [[nodiscard]] std::size_t n_kept() const { return n_kept_; }
    /// A line without its break. Throws host::Error where it cannot be written.
    void write(std::string_view line);

private:
    void keep(std::span<const std::uint32_t> hashes);

    std::string path_;
    int fd_ = 1;
    std::size_t n_kept_ = 0;
};

/// A request's hash as an answer has it.
[[nodiscard]] std::string hash_text(std::uint32_t hash);

}  // namespace fovea
