// The words of a window's segments, with their times.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/speech/transcriber.h"

namespace fovea {

/// A segment, and the probability of each of its tokens.
struct WindowSegment {
    SpeechSegment segment;
    std::span<const double> probabilities;
};

/// A window of a recording, in frames from its beginning.
struct HeardWindow {
    std::uint32_t first = 0, size = 0;
    std::span<const float> frames;  ///< [n_frames, n_mels]
    const std::string& language;
};

/// Finds the words of one window after the other. Its arguments must outlive it.
class WordFinder {
public:
    WordFinder(SpeechModel& model, const SpeechTokens& tokens, const SpeechOptions& options)
        : model_(model), tokens_(tokens), options_(options) {}

    /// Gives segments their words, and the times of these. Returns the end of the last word in seconds; nothing if a text is too
    /// long to be read at once, and has no words.
    std::optional<double> find(std::span<WindowSegment> segments, const HeardWindow& window);

private:
    /// The words of all segments; ends: how many there are with each.
    [[nodiscard]] std::vector<SpeechWord> align(std::span<const WindowSegment> segments, const HeardWindow& window,
                                                std::vector<std::size_t>& ends);
    void cut_long(std::vector<SpeechWord>& words, double most, const HeardWindow& window) const;

    SpeechModel& model_;
    const SpeechTokens& tokens_;
    const SpeechOptions& options_;
    double speech_end_ = 0;  // of the last word before, in seconds
};

}  // namespace fovea
