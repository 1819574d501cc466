// Files under temporary names, which a signal that ends the process must not leave behind.
#pragma once
#include <cstddef>
#include <string>

namespace fovea {

/// Removes the file at `path`, unless it has another name by then, when its scope ends; so do SIGHUP, SIGINT and
/// SIGTERM meanwhile, before they end the process as they always do. A signal that the process was started to ignore
/// stays ignored.
class Unfinished {
public:
    explicit Unfinished(std::string path);
    Unfinished(const Unfinished&) = delete;
    Unfinished& operator=(const Unfinished&) = delete;
    ~Unfinished();

private:
    std::string path_;
    std::size_t slot_;
};

/// The same for who ends the process himself; a signal handler may call it.
void remove_unfinished_files() noexcept;

}  // namespace fovea
