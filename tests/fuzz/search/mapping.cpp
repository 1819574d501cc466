// Stands in for platform/mapping.cpp where targets search. A file's bytes are on the heap, so that the address sanitizer
// knows where they end, which a mapped page hides; and an input costs no calls of the system.
#include "fovea/mapping.h"

#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

/// What is on the disk does not change while a target runs.
const std::optional<std::string>& on_disk(const std::string& path) {
    static std::map<std::string, std::optional<std::string>> known;
    const auto [entry, is_new] = known.try_emplace(path);
    if (!is_new) return entry->second;
    std::ifstream file(path, std::ios::binary);
    if (file) entry->second.emplace(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    return entry->second;
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    Mapping taken(std::move(other));
    std::swap(data_, taken.data_);
    std::swap(size_, taken.size_);
    return *this;
}

Mapping::~Mapping() { ::operator delete(const_cast<std::byte*>(data_)); }

Status map_file(const char* path, Mapping& mapping) noexcept {
    std::string_view bytes = fuzz::held.bytes;
    if (fuzz::held.path != path) {
        const std::optional<std::string>& file = on_disk(path);
        if (!file) return {Code::io_error, "open", 0, ENOENT};
        bytes = *file;
    }
    Mapping fresh;
    if (!bytes.empty()) {
        auto* copy = static_cast<std::byte*>(::operator new(bytes.size()));
        std::memcpy(copy, bytes.data(), bytes.size());
        fresh.data_ = copy;
        fresh.size_ = bytes.size();
    }
    mapping = std::move(fresh);
    return {};
}

Status map_parts(const char*, std::span<const MappedPart>, std::size_t, Mapping&) noexcept {
    return {Code::unsupported, "parts of a file on the heap", 0, 0};
}

}  // namespace fovea
