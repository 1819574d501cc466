#include "convert/formats/zip_entries.h"

#include <cstdint>
#include <cstring>

#include "host/base/error.h"

namespace fovea {
namespace {

// ZIP File Format Specification (APPNOTE) 4.3: signatures, sizes of the fixed parts, and where their fields are.
constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50, kCentral = 0x02014b50,
                        kLocal = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kLocator64Bytes = 20, kEnd64Bytes = 56, kCentralBytes = 46, kLocalBytes = 30;
constexpr std::size_t kMostComment = 65535;
constexpr std::uint64_t kMostEntries = 1u << 20;
constexpr std::uint32_t kIn64 = 0xffffffffu;  // a field whose value stands in the extra part

class ZipReader {
public:
    ZipReader(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {}

    std::map<std::string, std::span<const std::byte>> read() {
        std::uint64_t at = 0, n = 0;
        find_directory(at, n);
        if (n > kMostEntries) refuse("at most 1048576 entries, got " + std::to_string(n));
        std::map<std::string, std::span<const std::byte>> entries;
        for (std::uint64_t i = 0; i < n; ++i) at = add_entry(at, entries);
        return entries;
    }

private:
    [[noreturn]] void refuse(const std::string& wanted) const {
        throw host::Error(name_ + ": expected a ZIP file as torch.save writes it, with " + wanted);
    }

    template<class T>
    [[nodiscard]] T load(std::uint64_t at) const {
        if (at > file_.size() || file_.size() - at < sizeof(T))
            refuse("fields within the file, got one beyond its end");
        T value;
        std::memcpy(&value, file_.data() + at, sizeof value);
        return value;
    }

    /// Where the directory starts, and how many entries it lists.
    void find_directory(std::uint64_t& at, std::uint64_t& n) const {
        if (file_.size() < kEndBytes) refuse("a directory at its end, got a file of " + std::to_string(file_.size()));
        std::uint64_t end = file_.size() - kEndBytes;
        const std::uint64_t first = end > kMostComment ? end - kMostComment : 0;
        while (load<std::uint32_t>(end) != kEnd) {
            if (end == first) refuse("a directory at its end, got none");
            --end;
        }
        n = load<std::uint16_t>(end + 10);
        at = load<std::uint32_t>(end + 16);
        if (end < kLocator64Bytes || load<std::uint32_t>(end - kLocator64Bytes) != kLocator64) return;
        const auto end64 = load<std::uint64_t>(end - kLocator64Bytes + 8);
        if (end64 > file_.size() || file_.size() - end64 < kEnd64Bytes || load<std::uint32_t>(end64) != kEnd64)
            refuse("a 64-bit directory where it says, got none");
        n = load<std::uint64_t>(end64 + 32);
        at = load<std::uint64_t>(end64 + 48);
    }

    /// The values of 64 bits that stand in the extra part for fields of 32 that are full, in their order.
    void widen(std::uint64_t extra, std::uint64_t end, std::uint64_t& size, std::uint64_t& offset) const {
        while (end - extra >= 4) {
            const std::uint32_t tag = load<std::uint16_t>(extra), bytes = load<std::uint16_t>(extra + 2);
            extra += 4;
            if (bytes > end - extra) refuse("extra fields within their entry, got one beyond it");
            if (tag == 1) {
                const std::uint64_t stop = extra + bytes;
                const auto next = [&](std::uint64_t& field) {
                    if (field != kIn64) return;
                    if (stop - extra < 8) refuse("sizes of 64 bits where they are needed, got fewer");
                    field = load<std::uint64_t>(extra);
                    extra += 8;
                };
                std::uint64_t compressed = size;
                next(size), next(compressed), next(offset);
                return;
            }
            extra += bytes;
        }
    }

    std::uint64_t add_entry(std::uint64_t at, std::map<std::string, std::span<const std::byte>>& entries) const {
        if (load<std::uint32_t>(at) != kCentral)
            refuse("an entry of its directory at byte " + std::to_string(at) + ", got other bytes");
        const auto flags = load<std::uint16_t>(at + 8), method = load<std::uint16_t>(at + 10);
        std::uint64_t stored = load<std::uint32_t>(at + 20), size = load<std::uint32_t>(at + 24);
        const std::uint32_t name_bytes = load<std::uint16_t>(at + 28), extra_bytes = load<std::uint16_t>(at + 30),
                            comment_bytes = load<std::uint16_t>(at + 32);
        std::uint64_t offset = load<std::uint32_t>(at + 42);
        const std::uint64_t name_at = at + kCentralBytes, extra_at = name_at + name_bytes,
                            next = extra_at + extra_bytes + comment_bytes;
        if (next > file_.size()) refuse("entries of its directory within the file, got one beyond its end");
        const std::string name(reinterpret_cast<const char*>(file_.data()) + name_at, name_bytes);
        const bool equal = stored == size;
        widen(extra_at, extra_at + extra_bytes, size, offset);
        if (flags & 1) refuse("plain entries, got " + name + " encrypted");
        if (method != 0 || !equal) refuse("entries stored as they are, got " + name + " compressed");
        if (load<std::uint32_t>(offset) != kLocal) refuse("the entry " + name + " where the directory says, got none");
        const std::uint64_t data =
            offset + kLocalBytes + load<std::uint16_t>(offset + 26) + load<std::uint16_t>(offset + 28);
        if (data > file_.size() || size > file_.size() - data)
            refuse("entries within the file, got " + name + " beyond its end");
        if (!entries.emplace(name, file_.subspan(static_cast<std::size_t>(data), static_cast<std::size_t>(size)))
                 .second)
            refuse("entries of different names, got " + name + " twice");
        return next;
    }

    std::span<const std::byte> file_;
    const std::string& name_;
};

}  // namespace

std::map<std::string, std::span<const std::byte>> zip_entries(std::span<const std::byte> file,
                                                              const std::string& name) {
    return ZipReader(file, name).read();
}

}  // namespace fovea
