#include "host/base/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <mutex>
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

/// What a path or a descriptor leads to: device and file.
using FileId = std::pair<dev_t, ino_t>;

/// Standard output or error where `path` is a name of it, or the shell made that very file it (`> FILE`); else null.
std::ostream* standard_stream(const std::string& path) {
    if (is_standard_output(path)) return &std::cout;
    struct stat file {
    }, stream{};
    if (::stat(path.c_str(), &file) != 0) return nullptr;
    const auto leads_to = [&](int fd) {
        return ::fstat(fd, &stream) == 0 && file.st_dev == stream.st_dev && file.st_ino == stream.st_ino;
    };
    return leads_to(STDOUT_FILENO) ? &std::cout : leads_to(STDERR_FILENO) ? &std::cerr : nullptr;
}

/// Nothing where it is no regular file.
std::optional<FileId> id_of(int error, const struct stat& file) {
    if (error || !S_ISREG(file.st_mode)) return {};
    return FileId{file.st_dev, file.st_ino};
}
std::optional<FileId> file_id(const std::string& path) {
    struct stat file {};
    return id_of(::stat(path.c_str(), &file), file);
}

std::mutex in_use;  // threads may open models at the same time
std::vector<FileId> files_in_use;

bool is_in_use(const std::string& path) {
    const auto id = file_id(path);
    struct stat input {};
    const std::lock_guard lock(in_use);
    return id && (std::count(files_in_use.begin(), files_in_use.end(), *id) ||
                  id == id_of(::fstat(STDIN_FILENO, &input), input));
}

void refuse_in_use(const std::string& path) {
    if (is_in_use(path)) throw host::Error(path + ": expected another file than what is read");
}

/// By their places where they are not there yet.
bool is_same_file(const std::string& a, const std::string& b) {
    const auto place = [](const std::string& path) {
        std::error_code ignored;
        return behind_links(std::filesystem::absolute(path, ignored).string());
    };
    const auto id = file_id(a);
    return (id && id == file_id(b)) || place(a) == place(b);
}

}  // namespace

bool is_standard_output(const std::string& path) { return path == "-" || path == "/dev/stdout"; }

void keep_from_writing(const std::string& path) {
    const auto id = file_id(path);
    const std::lock_guard lock(in_use);
    if (id && !std::count(files_in_use.begin(), files_in_use.end(), *id)) files_in_use.push_back(*id);
}

void check_outputs(std::span<const std::string> paths) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (is_standard_output(paths[i])) continue;
        refuse_in_use(paths[i]);
        for (const std::string& other : paths.first(i))
            if (!is_special(paths[i]) && is_same_file(paths[i], other))
                throw host::Error(paths[i] + ": expected a file for each result, got one for two");
    }
}

OutputFile::OutputFile(const std::string& path) : path_(path), standard_(standard_stream(path)) {
    refuse_in_use(path);
    if (standard_) return;
    const std::string target = behind_links(path);
    if (!is_special(target)) unfinished_.emplace(target);
    if (!unfinished_ || unfinished_->fd() >= 0)
        file_.open(unfinished_ ? unfinished_->path() : target, std::ios::binary);
    if (!file_.is_open()) throw host::Error(path + ": cannot be written: " + system_error(errno));
}

void check_can_write(const std::string& path) {
    if (!is_special(behind_links(path))) (void)OutputFile(path);
}

void OutputFile::close() {
    if (standard_)
        standard_->flush();
    else
        file_.close();
    if (!stream() || (unfinished_ && !unfinished_->finish()))
        throw host::Error(path_ + ": cannot be written: " + system_error(errno));
}

void flush_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
        throw host::Error("standard output: cannot be written in full");
}

}  // namespace fovea
