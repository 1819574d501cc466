// FLAC, Ogg, MP3 and all else that libsndfile reads, out of memory.
#include <algorithm>
#include <cstring>
#include <vector>

#include "host/media/sound_source.h"
#ifdef FOVEA_SNDFILE
#include <sndfile.h>
#endif

namespace fovea {

#ifdef FOVEA_SNDFILE
namespace {

constexpr std::size_t kMostNumbers = 1 << 18;  // of all channels, decoded at a time

/// Bytes as libsndfile reads them.
struct MemoryFile {
    std::span<const std::byte> bytes;
    sf_count_t at = 0;

    [[nodiscard]] sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }

    static MemoryFile& of(void* file) { return *static_cast<MemoryFile*>(file); }
    static sf_count_t length(void* file) { return of(file).size(); }
    static sf_count_t tell(void* file) { return of(file).at; }
    static sf_count_t seek(sf_count_t offset, int whence, void* file) {
        MemoryFile& f = of(file);
        const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? f.at : f.size();
        if (offset < -base || offset > f.size() - base) return -1;
        return f.at = base + offset;
    }
    static sf_count_t read(void* to, sf_count_t n, void* file) {
        MemoryFile& f = of(file);
        if (n > f.size() - f.at) n = f.size() - f.at;
        if (n <= 0) return 0;
        std::memcpy(to, f.bytes.data() + f.at, static_cast<std::size_t>(n));
        f.at += n;
        return n;
    }
    static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
};

class LibrarySource final : public SoundSource {
public:
    explicit LibrarySource(std::span<const std::byte> bytes) : memory_{bytes} {
        SF_VIRTUAL_IO io{MemoryFile::length, MemoryFile::seek, MemoryFile::read, MemoryFile::write, MemoryFile::tell};
        file_ = sf_open_virtual(&io, SFM_READ, &info_, &memory_);
        if (file_) rate = static_cast<std::uint32_t>(info_.samplerate);
    }
    ~LibrarySource() override {
        if (file_) sf_close(file_);
    }
    LibrarySource(const LibrarySource&) = delete;
    LibrarySource& operator=(const LibrarySource&) = delete;

    [[nodiscard]] bool good() const { return file_ && info_.channels > 0 && info_.samplerate > 0; }

    std::size_t read(std::span<float> samples) override {
        const auto n_channels = static_cast<std::size_t>(info_.channels);
        samples = samples.first(std::min(samples.size(), std::max(kMostNumbers / n_channels, std::size_t{1})));
        rows_.resize(samples.size() * n_channels);
        const sf_count_t got = sf_readf_float(file_, rows_.data(), static_cast<sf_count_t>(samples.size()));
        for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
            double sum = 0;
            for (std::size_t c = 0; c < n_channels; ++c) sum += static_cast<double>(rows_[i * n_channels + c]);
            samples[i] = static_cast<float>(sum / static_cast<double>(n_channels));
        }
        return static_cast<std::size_t>(got);
    }

private:
    MemoryFile memory_;
    SF_INFO info_{};
    SNDFILE* file_ = nullptr;
    std::vector<float> rows_;
};

}  // namespace

std::unique_ptr<SoundSource> open_by_library(std::span<const std::byte> bytes) {
    auto source = std::make_unique<LibrarySource>(bytes);
    return source->good() ? std::move(source) : nullptr;
}
bool has_sound_library() { return true; }

#else

std::unique_ptr<SoundSource> open_by_library(std::span<const std::byte>) { return nullptr; }
bool has_sound_library() { return false; }

#endif

}  // namespace fovea
