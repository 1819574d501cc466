#include "fovea/host/sound_file.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <memory>

#include "host/base/error.h"
#include "host/base/source_file.h"
#include "host/base/words.h"
#include "host/media/resample.h"
#include "host/media/sound_source.h"

namespace fovea {
namespace {

constexpr std::size_t kBlock = 1 << 15;                       // samples
constexpr std::uint64_t kMostInput = std::uint64_t{4} << 30;  // bytes of standard input

std::vector<std::byte> read_input() {
    std::vector<std::byte> bytes;
    for (;;) {
        const std::size_t n = bytes.size();
        if (n > kMostInput) throw host::Error("standard input: sound: expected at most 4 GB, got more");
        bytes.resize(n + (1 << 18));
        const ssize_t got = ::read(STDIN_FILENO, bytes.data() + n, bytes.size() - n);
        bytes.resize(n + static_cast<std::size_t>(got > 0 ? got : 0));
        if (got < 0 && errno != EINTR) throw host::Error("standard input: cannot be read: " + system_error(errno));
        if (got == 0) return bytes;
    }
}

Resampler resampler(std::uint32_t from, std::uint32_t to, const std::string& name) {
    if (from != to && (from < kLeastSampleRate || from > kMostSampleRate))
        throw host::Error(name + ": samples a second: expected " + with_separators(kLeastSampleRate) + " to " +
                          with_separators(kMostSampleRate) + ", got " + with_separators(from));
    return {from, to};
}

std::unique_ptr<SoundSource> open_source(std::span<const std::byte> bytes, const std::string& name) {
    std::unique_ptr<SoundSource> source = open_wav(bytes, name);
    if (!source) source = open_by_library(bytes);
    if (source) return source;
    if (has_sound_library())
        throw host::Error(name + ": expected a sound file that libsndfile reads, got another kind");
    throw host::Error(
        name +
        ": expected a WAV file of PCM or floats, got another kind (a build with libsndfile reads FLAC, Ogg and MP3)");
}

}  // namespace

std::vector<float> decode_sound(std::span<const std::byte> bytes, const std::string& name, std::uint32_t rate,
                                const SoundBounds& bounds, std::string* note) {
    const auto source = open_source(bytes, name);
    if (note && !source->note.empty()) *note = name + ": " + source->note;
    Resampler resample = resampler(source->rate, rate, name);
    const double most = bounds.most_seconds * source->rate;  // of the source's samples
    double n_read = 0;
    std::vector<float> block(kBlock), samples;
    while (const std::size_t n = source->read(block)) {
        if (bounds.between) bounds.between();
        n_read += static_cast<double>(n);
        if (n_read > most)
            throw host::Error(name + ": seconds: expected at most " +
                              with_separators(static_cast<std::uint64_t>(bounds.most_seconds)) + ", got more");
        for (std::size_t i = 0; i < n; ++i)
            if (!std::isfinite(block[i]))
                throw host::Error(name + ": samples: expected numbers, got NaN or an infinity");
        resample.push({block.data(), n}, samples);
    }
    resample.finish(samples);
    return samples;
}

std::vector<float> read_sound(const std::string& path, std::uint32_t rate, std::string* note) {
    if (path == "-") return decode_sound(read_input(), "standard input", rate, {}, note);
    return decode_sound(map_source(path).bytes(), path, rate, {}, note);
}

std::vector<float> resample(std::span<const float> samples, std::uint32_t from, std::uint32_t to,
                            const std::string& name) {
    Resampler resampler_of = resampler(from, to, name);
    std::vector<float> out;
    resampler_of.push(samples, out);
    resampler_of.finish(out);
    return out;
}

}  // namespace fovea
