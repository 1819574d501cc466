#include "fovea/mapping.h"

#if defined(_WIN32)
#include <stdint.h>
#include <windows.h>
#elif defined(__unix__) || defined(__APPLE__)
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#if defined(_WIN32) || defined(__unix__) || defined(__APPLE__)
#include <utility>

namespace fovea {
namespace {

template<typename Error>
Status failed(const char* step, Error error) noexcept {
    return {Code::io_error, step, 0, static_cast<std::uint64_t>(error)};
}

#if defined(_WIN32)

/// Maps what `file` is open on; leaves `file` open.
Status map_open_file(HANDLE file, const std::byte*& data, std::size_t& size) noexcept {
    LARGE_INTEGER bytes;
    if (!GetFileSizeEx(file, &bytes)) return failed("read the size", GetLastError());
    if (static_cast<std::uint64_t>(bytes.QuadPart) > PTRDIFF_MAX) return failed("map", ERROR_FILE_TOO_LARGE);
    data = nullptr;
    size = static_cast<std::size_t>(bytes.QuadPart);
    if (size == 0) return {};
    const HANDLE section = CreateFileMappingA(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (!section) return failed("map", GetLastError());
    data = static_cast<const std::byte*>(MapViewOfFile(section, FILE_MAP_READ, 0, 0, size));
    const DWORD error = GetLastError();
    CloseHandle(section);  // which the view keeps
    return data ? Status{} : failed("map", error);
}

Status map_path(const char* path, const std::byte*& data, std::size_t& size) noexcept {
    constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;  // as Unix has it
    const HANDLE file =
        CreateFileA(path, GENERIC_READ, kShared, nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
    if (file == INVALID_HANDLE_VALUE) return failed("open", GetLastError());
    const bool is_file = GetFileType(file) == FILE_TYPE_DISK;
    const Status status =
        is_file ? map_open_file(file, data, size) : failed("not a regular file", ERROR_INVALID_HANDLE);
    CloseHandle(file);
    return status;
}

void unmap(const std::byte* data, std::size_t) noexcept { UnmapViewOfFile(data); }

Status map_path_parts(const char*, std::span<const MappedPart>, std::size_t, const std::byte*&) noexcept {
    return {Code::unsupported, "parts of a file on Windows", 0, 0};
}

#else

/// Bytes of the regular file that `file` is open on.
Status size_of(int file, std::uint64_t& bytes) noexcept {
    struct stat about {};
    if (fstat(file, &about) != 0) return failed("read the size", errno);
    if (!S_ISREG(about.st_mode)) return failed("not a regular file", S_ISDIR(about.st_mode) ? EISDIR : EINVAL);
    bytes = static_cast<std::uint64_t>(about.st_size);
    return bytes > PTRDIFF_MAX ? failed("map", EFBIG) : Status{};
}

/// Maps what `file` is open on; leaves `file` open.
Status map_open_file(int file, const std::byte*& data, std::size_t& size) noexcept {
    std::uint64_t bytes = 0;
    if (const Status status = size_of(file, bytes); !status.ok()) return status;
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

/// Maps by `map` what `path` is a name of.
Status map_opened(const char* path, auto map) noexcept {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer must not block us
    if (file < 0) return failed("open", errno);
    const Status status = map(file);
    close(file);
    return status;
}

Status map_path(const char* path, const std::byte*& data, std::size_t& size) noexcept {
    return map_opened(path, [&](int file) { return map_open_file(file, data, size); });
}

void unmap(const std::byte* data, std::size_t size) noexcept { munmap(const_cast<std::byte*>(data), size); }

/// Puts a part of the file in its place of a mapping.
Status map_part(int file, std::uint64_t file_bytes, const MappedPart& part, std::byte* mapping,
                std::size_t size) noexcept {
    const auto fits = [&](std::uint64_t begin, std::uint64_t bytes) {
        return begin % kPartAlignment == 0 && begin <= bytes && part.bytes <= bytes - begin;
    };
    if (!part.bytes || !fits(part.in_file, file_bytes) || !fits(part.in_mapping, size))
        return {Code::bad_argument, "parts that lie in the file and in the mapping: bytes", file_bytes, part.bytes};
    void* place = mmap(mapping + part.in_mapping, static_cast<std::size_t>(part.bytes), PROT_READ,
                       MAP_PRIVATE | MAP_FIXED, file, static_cast<off_t>(part.in_file));
    return place == MAP_FAILED ? failed("map", errno) : Status{};
}

Status map_path_parts(const char* path, std::span<const MappedPart> parts, std::size_t size,
                      const std::byte*& data) noexcept {
    return map_opened(path, [&](int file) {
        std::uint64_t bytes = 0;
        if (const Status status = size_of(file, bytes); !status.ok()) return status;
        void* place = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED) return failed("map", errno);
        for (const MappedPart& part : parts)
            if (const Status status = map_part(file, bytes, part, static_cast<std::byte*>(place), size); !status.ok()) {
                munmap(place, size);
                return status;
            }
        data = static_cast<const std::byte*>(place);
        return Status{};
    });
}

#endif

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
    if (data_) unmap(data_, size_);
}

Status map_file(const char* path, Mapping& mapping) noexcept {
    Mapping fresh;
    const Status status = map_path(path, fresh.data_, fresh.size_);
    if (status.ok()) mapping = std::move(fresh);
    return status;
}

Status map_parts(const char* path, std::span<const MappedPart> parts, std::size_t size, Mapping& mapping) noexcept {
    Mapping fresh;
    const Status status = map_path_parts(path, parts, size, fresh.data_);
    if (!status.ok()) return status;
    fresh.size_ = size;
    mapping = std::move(fresh);
    return {};
}

}  // namespace fovea
#endif
