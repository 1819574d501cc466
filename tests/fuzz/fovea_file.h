// Fovea files as fuzz input: a mutator that keeps checksums right, so that what lies behind them is reached.
#pragma once
#include <cstring>
#include <new>

#include "engine/format/format.h"
#include "fovea/checksum.h"
#include "tests/fuzz/fuzz.h"

namespace fovea::fuzz {

/// A copy that open_model accepts: at a multiple of 64, and not a byte longer. A vector would copy byte by byte here.
class Aligned {
public:
    Aligned(const std::uint8_t* data, std::size_t size)
        : bytes_(static_cast<std::byte*>(::operator new(size, kAlignment))), size_(size) {
        if (size) std::memcpy(bytes_, data, size);
    }
    Aligned(const Aligned&) = delete;
    Aligned& operator=(const Aligned&) = delete;
    ~Aligned() { ::operator delete(bytes_, kAlignment); }
    operator std::span<const std::byte>() const { return {bytes_, size_}; }

private:
    static constexpr std::align_val_t kAlignment{64};

    std::byte* bytes_;
    std::size_t size_;
};

/// Makes length and checksums those of the bytes, as far as the directory can be followed.
inline void make_right(std::uint8_t* data, std::size_t size) {
    if (size < sizeof(FileHeader)) return;
    const auto crc_of = [&](std::uint64_t offset, std::uint64_t bytes) {
        return crc32c({reinterpret_cast<const std::byte*>(data) + offset, static_cast<std::size_t>(bytes)});
    };
    FileHeader header;
    std::memcpy(&header, data, sizeof header);
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.major = kFormatMajor;
    header.file_bytes = size;
    const std::uint64_t most = (size - sizeof header) / sizeof(SectionRecord);
    const std::uint64_t n = header.n_sections < most ? header.n_sections : most;
    for (std::uint64_t i = 0; i < n; ++i) {
        SectionRecord section;
        std::uint8_t* at = data + sizeof header + i * sizeof section;
        std::memcpy(&section, at, sizeof section);
        if (section.offset > size || section.bytes > size - section.offset) continue;
        section.crc = crc_of(section.offset, section.bytes);
        std::memcpy(at, &section, sizeof section);
    }
    header.directory_crc = crc_of(sizeof header, n * sizeof(SectionRecord));
    std::memcpy(data, &header, sizeof header);
    header.header_crc = crc_of(0, sizeof header - sizeof header.header_crc);
    std::memcpy(data, &header, sizeof header);
}

}  // namespace fovea::fuzz

#ifdef FOVEA_FUZZ

/// One input in sixteen is left with the checksums it has. Half of the changes go to one section alone (the
/// configuration, the tensors, the tokenizer: small beside the weights), which keeps its length.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    using namespace fovea;
    FileHeader header{};
    if (size >= sizeof header) std::memcpy(&header, data, sizeof header);
    const std::uint64_t at = sizeof header + (seed >> 8) % 5 * sizeof(SectionRecord);
    SectionRecord section{};
    if (at + sizeof section <= size) std::memcpy(&section, data + at, sizeof section);
    const bool inside = section.bytes && section.offset < size && section.bytes <= size - section.offset;
    if (seed & 1 && inside)
        (void)fovea::fuzz::LLVMFuzzerMutate(data + section.offset, section.bytes, section.bytes);
    else
        size = fovea::fuzz::LLVMFuzzerMutate(data, size, max_size);
    if (seed >> 1 & 15) fuzz::make_right(data, size);
    return size;
}

#endif
