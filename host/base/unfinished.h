// Files under temporary names, which a failure or a signal that ends the process must not leave behind.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace fovea {

/// What a path leads to by its links, whether that is there or not: who writes there leaves the links as they are.
[[nodiscard]] std::string behind_links(const std::string& path);

/// A new file beside `target`, under a name that nothing had (TARGET.part-NUMBER), until it is finished. If its scope
/// ends before, it vanishes; so it does by SIGHUP, SIGINT and SIGTERM, before they end the process as they always do. A
/// signal that the process was started to ignore stays ignored. Who kills the process leaves it, see remove_left_parts.
class Unfinished {
public:
    /// Where the file can't be made, fd() is negative and errno says why.
    explicit Unfinished(const std::string& target);
    Unfinished(const Unfinished&) = delete;
    Unfinished& operator=(const Unfinished&) = delete;
    ~Unfinished();

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] int fd() const noexcept { return fd_; }  ///< open for writing until finish

    /// Closes it and gives it the target's name. False, and errno, where either fails; it then vanishes later.
    [[nodiscard]] bool finish();

private:
    [[nodiscard]] bool take_lock() const noexcept;
    void remove_by_signal(const char* path) noexcept;

    std::string target_, path_;
    std::size_t slot_ = 0;
    int fd_ = -1;
    bool made_ = false;
};

/// Removes the unfinished files, for who ends the process himself; a signal handler may call it.
void remove_unfinished_files() noexcept;

/// Removes the unfinished files in a folder whose names begin with `prefix` and that no process is writing any more.
/// `is_left` is asked about each, for a person's file may have such a name.
void remove_left_parts(const std::filesystem::path& folder, const std::string& prefix,
                       const std::function<bool(const std::filesystem::path&)>& is_left);

}  // namespace fovea
