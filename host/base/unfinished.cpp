#include "host/base/unfinished.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string_view>

namespace fovea {
namespace {

constexpr std::string_view kPart = ".part-";

// What a signal handler may read: no container, no lock. No command writes more files at a time.
constexpr std::size_t kSlots = 16;
std::atomic<const char*> paths[kSlots];

constexpr int kMostLinks = 40;    // as Linux follows
constexpr int kMostNames = 1000;  // that others may have left, where every process has the same number

extern "C" void end_by_signal(int signal) {
    remove_unfinished_files();
    raise(signal);  // by SA_RESETHAND its default action again, due when this handler returns
}

void catch_signals() {
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGXCPU}) {
        struct sigaction action {};
        if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
        action.sa_handler = end_by_signal;
        action.sa_flags = SA_RESETHAND;
        sigaction(signal, &action, nullptr);
    }
}

}  // namespace

std::string behind_links(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::path target = path;
    for (int n = 0; n < kMostLinks && !fs::exists(target, error) && fs::is_symlink(target, error); ++n) {
        const fs::path next = fs::read_symlink(target, error);
        if (error) break;
        target = target.parent_path() / next;
    }
    const fs::path canonical = fs::weakly_canonical(target, error);
    return error ? target.string() : canonical.string();
}

void remove_left_parts(const std::filesystem::path& folder, const std::string& prefix,
                       const std::function<bool(const std::filesystem::path&)>& is_left) {
    namespace fs = std::filesystem;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        const std::size_t number = name.rfind(kPart) + kPart.size();
        if (!name.starts_with(prefix) || number <= kPart.size() || number >= name.size() ||
            name.find_first_not_of("0123456789", number) != name.npos)
            continue;
        const int fd = open(at->path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) continue;
        struct stat file {};
        if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_left(at->path()))
            unlink(at->path().c_str());
        close(fd);
    }
}

void remove_unfinished_files() noexcept {
    for (const auto& path : paths)
        if (const char* name = path.load()) unlink(name);
}

Unfinished::Unfinished(const std::string& target) : target_(target) {
    catch_signals();
    for (const char* none = nullptr; slot_ < kSlots; ++slot_, none = nullptr)
        if (paths[slot_].compare_exchange_strong(none, "")) break;
    std::error_code error;
    if (std::filesystem::is_symlink(target, error)) {  // of a circle, or a chain too long: a link would be replaced
        errno = ELOOP;
        return;
    }
    for (int n = 0; n < kMostNames; ++n) {
        path_ = target + std::string(kPart) + std::to_string(getpid() + n);
        errno = EEXIST;
        struct stat there {};
        if (lstat(path_.c_str(), &there) == 0) continue;
        remove_by_signal(path_.c_str());  // before it is there, for a signal may come at any moment
        fd_ = open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        made_ = fd_ >= 0 && take_lock();
        if (fd_ >= 0 && !made_) {  // remove_left_parts took it for one that is left
            close(fd_);
            fd_ = -1;
            errno = EEXIST;
        }
        if (made_ && stat(target.c_str(), &there) == 0 && S_ISREG(there.st_mode))
            (void)fchmod(fd_, there.st_mode & 07777);  // whoever may not read the old one may not read the new one
        if (made_) return;
        remove_by_signal("");
        if (errno != EEXIST) return;
    }
}

/// Held as long as the file is open: a process that is killed gives it back. File systems without locks leave parts.
bool Unfinished::take_lock() const noexcept {
    struct stat file {};
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return fstat(fd_, &file) != 0 || file.st_nlink != 0;
}

void Unfinished::remove_by_signal(const char* path) noexcept {
    if (slot_ < kSlots) paths[slot_] = path;
}

bool Unfinished::finish() {
    const int fd = fd_;
    fd_ = -1;
    if (close(fd) != 0 || std::rename(path_.c_str(), target_.c_str()) != 0) return false;
    made_ = false;
    remove_by_signal("");  // the name may be another's now
    return true;
}

Unfinished::~Unfinished() {
    if (fd_ >= 0) close(fd_);
    if (made_) unlink(path_.c_str());
    remove_by_signal(nullptr);
}

}  // namespace fovea
