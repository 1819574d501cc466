// Where somebody speaks, by a rule of energy.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace fovea {

/// Frames of a window, from its beginning.
struct VoicedStretch {
    std::uint32_t begin = 0, end = 0;
};

/// Looks at one window after the other. A frame's level is the mean of its bands; frames are loud that lie above a share of
/// the way from the quiet ones of their window to the loud ones. Where both are about as loud, the threshold of the last
/// window is asked.
class VoiceFinder {
public:
    /// The first stretch with a voice, with a moment before and behind it, or nothing. Pauses up to 2 s are part of it.
    /// `frames` [n, n_mels] as make_frames has them; a frame is 10 ms.
    [[nodiscard]] std::optional<VoicedStretch> find(std::span<const float> frames, std::uint32_t n_mels);

private:
    float threshold_ = std::numeric_limits<float>::infinity();
};

}  // namespace fovea
