// A recording's frames, window by window: all at once, or made as its samples come.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/host/sound_file.h"
#include "fovea/host/speech.h"

namespace fovea {

class FrameSource {
public:
    virtual ~FrameSource() = default;
    /// The frames from `first` on fill `window`, [n_frames, n_mels], zeros what is behind them. Returns how many are the
    /// recording's; 0: it has ended before. `first` never goes back.
    virtual std::uint32_t read(std::uint32_t first, std::span<float> window) = 0;
    /// Frames of all of it, if that is known.
    [[nodiscard]] virtual std::optional<std::uint32_t> n_content() const = 0;
};

/// Frames that have been made. They must outlive it.
class MadeFrames final : public FrameSource {
public:
    MadeFrames(const SpeechFrames& frames, std::uint32_t n_mels) : frames_(frames), n_mels_(n_mels) {}
    std::uint32_t read(std::uint32_t first, std::span<float> window) override;
    [[nodiscard]] std::optional<std::uint32_t> n_content() const override { return frames_.n_content; }

private:
    SpeechFrames frames_;
    std::uint32_t n_mels_;
};

/// Frames of samples that are read as they are wanted. The loudest of what has been read takes the place of the recording's,
/// which the frames of a whole one are measured by. A recording of one window has the frames that it has as a whole.
class LiveFrames final : public FrameSource {
public:
    /// Both must outlive it. Throws host::Error unless the model hears.
    LiveFrames(const Model& model, SoundReader& reader, std::string name);
    std::uint32_t read(std::uint32_t first, std::span<float> window) override;
    [[nodiscard]] std::optional<std::uint32_t> n_content() const override;
    /// That have been read, at the model's rate.
    [[nodiscard]] std::uint64_t n_samples() const { return n_samples_; }

private:
    void read_samples(std::uint64_t n);
    void make_until(std::uint32_t last);

    const Model& model_;
    SoundReader& reader_;
    std::string name_;
    const Sound& sound_;
    const std::uint32_t n_beside_;  // frames on each side whose samples are a frame's, too
    std::vector<float> samples_;    // from first_sample_ hops on
    std::vector<float> frames_;     // from first_frame_ on; floors are those of when they were made
    std::uint32_t first_sample_ = 0, first_frame_ = 0, n_made_ = 0;
    std::uint64_t n_samples_ = 0;  // read so far
    float loudest_;
    bool ended_ = false;
};

}  // namespace fovea
