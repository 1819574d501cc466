#include "output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "refusal.h"

namespace fovea {
namespace {

std::string behind_links(const std::string& path) {
    std::error_code error;
    const auto target = std::filesystem::weakly_canonical(path, error);
    return error ? path : target.string();
}

bool is_special(const std::string& path) {
    std::error_code error;
    return std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
}

/// Standard output or error where the shell made that very file it (/dev/stdout with `> FILE`); else -1.
int standard_stream(const std::string& path) {
    struct stat file {
    }, stream{};
    if (::stat(path.c_str(), &file) != 0) return -1;
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
        if (::fstat(fd, &stream) == 0 && file.st_dev == stream.st_dev && file.st_ino == stream.st_ino) return fd;
    return -1;
}

/// An empty file that was not there, nor a link of that name.
bool make_new(const std::string& path) {
    const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    return fd >= 0 && ::close(fd) == 0;
}

}  // namespace

OutputFile::OutputFile(const std::string& path)
    : path_(path),
      target_(behind_links(path)),
      stream_(standard_stream(target_)),
      in_place_(stream_ >= 0 || is_special(target_)),
      temporary_(in_place_ ? target_ : target_ + ".part-" + std::to_string(getpid())) {
    const bool made = in_place_ || make_new(temporary_);
    if (made && !in_place_) unfinished_.emplace(temporary_);
    if (stream_ >= 0) std::fflush(stdout);
    if (made) file_.open(temporary_, stream_ >= 0 ? std::ios::binary | std::ios::app : std::ios::binary);
    if (!made || !file_) throw Refusal(path + ": want a file that can be written, had " + std::strerror(errno));
}

void OutputFile::close() {
    file_.close();
    if (stream_ >= 0) lseek(stream_, 0, SEEK_END);  // what the stream is given next comes after this
    if (!file_ || (!in_place_ && std::rename(temporary_.c_str(), target_.c_str()) != 0))
        throw Refusal(path_ + ": want the whole file on the disk, had " + std::strerror(errno));
}

}  // namespace fovea
