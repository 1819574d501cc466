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

/// A word that is far longer than the others has a pause in it: at a sentence's end that part is cut off. Seconds.
void cut_pauses(std::vector<SpeechWord>& words);

/// How far a segment's first and last word may reach beyond the segment's own times.
void keep_within(SpeechSegment& segment);

}  // namespace fovea
