#include "fovea/mapping.h"

#if defined(__unix__) || defined(__APPLE__)
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace fovea {
namespace {

Status failed(const char* step, int error) noexcept {
    return {Code::io_error, step, 0, static_cast<std::uint64_t>(error)};
}

/// Maps what `file` is open on; leaves `file` open.
Status map_open_file(int file, const std::byte*& data, std::size_t& size) noexcept {
    struct stat about {};
    if (fstat(file, &about) != 0) return failed("read the size", errno);
    if (!S_ISREG(about.st_mode)) return failed("not a regular file", S_ISDIR(about.st_mode) ? EISDIR : EINVAL);
    const auto bytes = static_cast<std::uint64_t>(about.st_size);
    if (bytes > PTRDIFF_MAX) return failed("map", EFBIG);
    data = nullptr;
    size = static_cast<std::size_t>(bytes);
    if (size == 0) return {};
    // Private, so that pages are shared with every other reader; no MAP_POPULATE: opening must not read the weights.
    void* place = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (place == MAP_FAILED) return failed("map", errno);
#if defined(MADV_HUGEPAGE)
    (void)madvise(place, size, MADV_HUGEPAGE);  // a hint to keep the bytes in large pages as they are read
#endif
    data = static_cast<const std::byte*>(place);
    return {};
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    Mapping taken(std::move(other));
    std::swap(data_, taken.data_);  // what was here ends with `taken`
    std::swap(size_, taken.size_);
    return *this;
}

Mapping::~Mapping() {
    if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

Status map_file(const char* path, Mapping& mapping) noexcept {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer must not block us
    if (file < 0) return failed("open", errno);
    Mapping fresh;
    const Status status = map_open_file(file, fresh.data_, fresh.size_);
    close(file);
    if (status.ok()) mapping = std::move(fresh);
    return status;
}

}  // namespace fovea
#endif
