#include "host/base/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

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

/// What a path leads to: device and file. Nothing where that is no regular file.
using FileId = std::pair<dev_t, ino_t>;
std::optional<FileId> file_id(const std::string& path) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return {};
    return FileId{file.st_dev, file.st_ino};
}
std::vector<FileId> files_in_use;

}  // namespace

void keep_from_writing(const std::string& path) {
    if (const auto id = file_id(path)) files_in_use.push_back(*id);
}

OutputFile::OutputFile(const std::string& path)
    : path_(path), target_(behind_links(path == "-" ? "/dev/stdout" : path)), stream_(standard_stream(target_)) {
    if (const auto id = file_id(target_); id && std::count(files_in_use.begin(), files_in_use.end(), *id))
        throw host::Error(path + ": expected another file than what is read");
    if (stream_ >= 0) std::fflush(stdout);
    if (stream_ < 0 && !is_special(target_)) unfinished_.emplace(target_);
    if (!unfinished_ || unfinished_->fd() >= 0)
        file_.open(unfinished_ ? unfinished_->path() : target_,
                   stream_ >= 0 ? std::ios::binary | std::ios::app : std::ios::binary);
    if (!file_.is_open()) throw host::Error(path + ": cannot be written: " + system_error(errno));
}

void check_can_write(const std::string& path) {
    if (!is_special(behind_links(path))) (void)OutputFile(path);
}

void OutputFile::close() {
    file_.close();
    if (stream_ >= 0) lseek(stream_, 0, SEEK_END);  // what the stream is given next comes after this
    if (!file_ || (unfinished_ && !unfinished_->finish()))
        throw host::Error(path_ + ": cannot be written: " + system_error(errno));
}

void flush_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
        throw host::Error("standard output: cannot be written in full");
}

}  // namespace fovea
