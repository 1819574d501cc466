#include "output_file.h"

#include <fcntl.h>
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

/// An empty file that was not there, nor a link of that name.
bool make_new(const std::string& path) {
    const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    return fd >= 0 && ::close(fd) == 0;
}

}  // namespace

OutputFile::OutputFile(const std::string& path)
    : path_(path),
      target_(behind_links(path)),
      in_place_(is_special(target_)),
      temporary_(in_place_ ? target_ : target_ + ".part-" + std::to_string(getpid())) {
    const bool made = in_place_ || make_new(temporary_);
    if (made && !in_place_) unfinished_.emplace(temporary_);
    if (made) file_.open(temporary_, std::ios::binary);
    if (!made || !file_) throw Refusal(path + ": want a file that can be written, had " + std::strerror(errno));
}

void OutputFile::close() {
    file_.close();
    if (!file_ || (!in_place_ && std::rename(temporary_.c_str(), target_.c_str()) != 0))
        throw Refusal(path_ + ": want the whole file on the disk, had " + std::strerror(errno));
}

}  // namespace fovea
