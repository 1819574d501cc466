// Gives samples, block by block: a file's own reader, or libsndfile's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace fovea {

class SoundSource {
public:
    virtual ~SoundSource() = default;
    /// Mono samples of full scale 1, the mean of the channels, into the front of `samples`; how many. 0 at the end.
    virtual std::size_t read(std::span<float> samples) = 0;

    std::uint32_t rate = 0;  ///< samples a second
    std::string note = {};   ///< a flaw of a file that is read all the same
};

/// A WAV file of PCM (8, 16, 24, 32 bits) or floats (32, 64 bits). Null if the bytes are no WAV file, or of another
/// coding. `bytes` must outlive it and may be anything. Throws host::Error if a WAV file contradicts itself.
[[nodiscard]] std::unique_ptr<SoundSource> open_wav(std::span<const std::byte> bytes, const std::string& name);

/// A source of libsndfile. Null in a build without it, or if it cannot read the bytes.
[[nodiscard]] std::unique_ptr<SoundSource> open_by_library(std::span<const std::byte> bytes);
/// Whether this build has libsndfile.
[[nodiscard]] bool has_sound_library();

}  // namespace fovea
