// When each word of a window is said: by the attention of some heads to the sound.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/speech/transcriber.h"

namespace fovea {

/// Attention weights averaged over heads, so that each frame's weight says which token it belongs to. For every head:
/// its weights among the frames that count; then each frame's less its mean over the tokens, divided by its deviation;
/// then a median of seven frames.
class Alignment {
public:
    /// [n_tokens][n_frames]; n_tokens and n_frames at least 1.
    Alignment(std::size_t n_tokens, std::size_t n_frames) : n_tokens_(n_tokens), n_frames_(n_frames) {
        sums_.resize(n_tokens * n_frames);
        head_.resize(n_tokens * n_frames);
    }
    /// Adds a head's weights: rows of `stride` frames; the first n_frames count.
    void add(std::span<const float> weights, std::size_t stride);

    /// The frame at which each of the rows [first, first + n) begins, on the cheapest way through them: each frame
    /// belongs to one row, and the way never goes back (dynamic time warping; Sakoe and Chiba 1978).
    [[nodiscard]] std::vector<std::uint32_t> begins(std::size_t first, std::size_t n) const;

private:
    std::size_t n_tokens_, n_frames_;
    std::vector<double> sums_, head_;
};

/// A word's place among a window's tokens of text.
struct WordTokens {
    std::string text;
    std::size_t first = 0, n = 0;
};
/// Words begin with a space, are marks of punctuation or, in languages that are written without spaces, are as few tokens as make
/// whole characters. `text_of` gives the bytes of tokens.
[[nodiscard]] std::vector<WordTokens> split_words(std::span<const Token> tokens, const std::string& language,
                                                  const std::function<std::string(std::span<const Token>)>& text_of);

/// Joins marks to the words they belong to: opening ones to the next, others to the one before.
void join_marks(std::vector<SpeechWord>& words);

/// The median duration of words that last, at most 0.7 s; 0 if none does.
[[nodiscard]] double median_duration(std::span<const SpeechWord> words);

/// A word longer than `most` seconds at a sentence's end has a pause in it, which is cut off.
void cut_pauses(std::vector<SpeechWord>& words, double most);

/// Whisper's rules for words at a segment's borders. `speech_end`: seconds where the segment before ended. After a pause the
/// first and the second word last at most twice the median; the first and the last reach at most half a second beyond the
/// segment. The segment's times become its words', but where these reach beyond it. Returns where it ends.
/// Source: Radford et al. 2022, whose program has these rules (whisper/timing.py, add_word_timestamps).
[[nodiscard]] double settle_borders(SpeechSegment& segment, double median, double speech_end);

/// Moves words between `begin` and `end`, seconds, as little as has each last a frame of 20 ms (less, if there is no room) and
/// none begin before the one before it ends.
void put_in_order(std::span<SpeechWord* const> words, double begin, double end);

}  // namespace fovea
