// Gives samples, block by block: a file's own reader, or libsndfile's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/host/sound_file.h"
#include "host/base/input_file.h"

namespace fovea {

class SoundSource {
public:
    virtual ~SoundSource() = default;
    /// Mono samples of full scale 1, the mean of the channels, into the front of `samples`; how many. 0 at the end.
    virtual std::size_t read(std::span<float> samples) = 0;

    std::uint32_t rate = 0;  ///< samples a second
    std::string note = {};   ///< a flaw of a file that is read all the same
};

/// Bytes of an input, read as they are wanted.
class InputBytes {
public:
    explicit InputBytes(const std::string& path) : input_(path) {}
    /// What has been read and not dropped.
    [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(bytes_).subspan(first_); }
    /// Reads some more; false at the end. Throws host::FileError.
    bool more();
    void drop(std::size_t n) { first_ += n; }
    [[nodiscard]] bool is_pipe() const { return !input_.is_regular(); }
    [[nodiscard]] const std::string& name() const { return input_.name(); }

private:
    InputFile input_;
    std::vector<std::byte> bytes_;
    std::size_t first_ = 0;
};

/// A WAV file of PCM (8 to 32 bits) or floats (32, 64 bits). Null if the bytes are no WAV file, or of another coding. `bytes`
/// must outlive it and may be anything. Throws host::Error if a WAV file contradicts itself.
[[nodiscard]] std::unique_ptr<SoundSource> open_wav(std::span<const std::byte> bytes, const std::string& name);
/// The same for one that is read while it comes. Null, and `input` as it was but for what it has read, if its samples can only be
/// told from all of it. Both must be outlived by `input`.
[[nodiscard]] std::unique_ptr<SoundSource> open_piped_wav(InputBytes& input);

/// Samples without a header.
[[nodiscard]] std::unique_ptr<SoundSource> open_raw(std::span<const std::byte> bytes, const RawSound& raw);
[[nodiscard]] std::unique_ptr<SoundSource> open_piped_raw(InputBytes& input, const RawSound& raw);

/// A source of libsndfile. Null in a build without it, or if it cannot read the bytes.
[[nodiscard]] std::unique_ptr<SoundSource> open_by_library(std::span<const std::byte> bytes);
/// Whether this build has libsndfile.
[[nodiscard]] bool has_sound_library();

}  // namespace fovea
