// Recordings as a model hears them: mono, at its rate.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

inline constexpr std::uint32_t kLeastSampleRate = 1000, kMostSampleRate = 768000;

/// The samples of a file, or of standard input if `path` is "-": WAV by a reader of our own, FLAC, Ogg, MP3 and others
/// by libsndfile if it is built in. Channels are averaged, and other rates resampled. Throws host::Error: "FILE: …".
/// `note`, if not null, becomes a line about a flaw in a file that is read all the same: "FILE: …".
[[nodiscard]] std::vector<float> read_sound(const std::string& path, std::uint32_t rate, std::string* note = nullptr);

/// Limits of decoding, for bytes from strangers.
struct SoundBounds {
    double most_seconds = std::numeric_limits<double>::infinity();  ///< a small file can hold days of silence
    std::function<void()> between = {};  ///< called between blocks of samples; an exception of it ends the work
};

/// The same for a file's bytes, which may be anything. Throws host::Error: "NAME: …".
[[nodiscard]] std::vector<float> decode_sound(std::span<const std::byte> bytes, const std::string& name,
                                              std::uint32_t rate, const SoundBounds& bounds = {},
                                              std::string* note = nullptr);

/// Samples at another rate. Throws host::Error if `from` is not kLeastSampleRate to kMostSampleRate, or `to` itself:
/// a rate of 1 would make 16,000 samples of each of a small file's.
[[nodiscard]] std::vector<float> resample(std::span<const float> samples, std::uint32_t from, std::uint32_t to,
                                          const std::string& name);

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
