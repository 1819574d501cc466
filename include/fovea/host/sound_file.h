// Recordings as a model hears them: mono, at its rate.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

inline constexpr std::uint32_t kLeastSampleRate = 1000, kMostSampleRate = 768000;

/// Samples that no header describes, little-endian, those of all channels side by side.
struct RawSound {
    std::uint32_t rate = 16000, n_bits = 16, n_channels = 1;
    bool floats = false;
};
/// Reads "16000:s16", or "44100:f32:2" of two channels: u8, s16, s24, s32, f32 or f64. Throws host::ArgumentError, which
/// begins with `name`.
[[nodiscard]] RawSound read_raw_sound(std::string_view text, const std::string& name);

/// A recording whose samples are read as they are wanted: what comes through a pipe, as it comes.
class SoundReader {
public:
    /// A file, a pipe, or standard input if `path` is "-". The samples that it gives have this rate. Throws host::Error:
    /// "FILE: …".
    SoundReader(const std::string& path, std::uint32_t rate, const std::optional<RawSound>& raw = {});
    ~SoundReader();
    /// Appends some; false at the end. Throws host::Error.
    bool read(std::vector<float>& samples);
    /// Whether it comes through a pipe.
    [[nodiscard]] bool is_piped() const;
    /// A line about a flaw in a file that is read all the same: "FILE: …"; empty if there is none.
    [[nodiscard]] std::string note() const;

private:
    struct Parts;
    const std::unique_ptr<Parts> parts_;
};

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
