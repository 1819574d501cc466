#include "output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "refusal.h"

namespace fovea {

OutputFile::OutputFile(const std::string& path)
    : path_(path), temporary_(path + ".partial"), file_(temporary_, std::ios::binary) {
    if (!file_) throw Refusal(path + ": want a file that can be written, had " + std::strerror(errno));
}

OutputFile::~OutputFile() {
    if (closed_) return;
    file_.close();
    std::remove(temporary_.c_str());
}

void OutputFile::close() {
    file_.close();
    if (!file_ || std::rename(temporary_.c_str(), path_.c_str()) != 0)
        throw Refusal(path_ + ": want the whole file on the disk, had " + std::strerror(errno));
    closed_ = true;
}

}  // namespace fovea
