// The loop that makes a text of a recording: window by window, each read with the text before it (Radford et al. 2022,
// section 4.5).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/speech/speech_rules.h"

namespace fovea {

/// The model, as the transcribing loop sees it.
class SpeechModel {
public:
    virtual ~SpeechModel() = default;
    /// Another window, [n_frames, n_mels], and no text.
    virtual void hear(std::span<const float> frames) = 0;
    /// The text becomes its first n_tokens.
    virtual void rewind(std::size_t n_tokens) = 0;
    /// The text goes on; returns the next token's logits, [vocab_size], which stay until the next call.
    virtual std::span<const float> read(std::span<const Token> tokens) = 0;
    [[nodiscard]] virtual std::string text_of(std::span<const Token> tokens) = 0;
    /// Attention weights of the heads that follow the sound, while a text is read from its start: calls each(weights,
    /// stride) for every head, [n_tokens] rows of `stride` weights. Afterwards there is no text. Models that cannot
    /// tell throw host::Error.
    using EachHead = std::function<void(std::span<const float> weights, std::size_t stride)>;
    virtual void attend(std::span<const Token> tokens, const EachHead& each);

    std::uint32_t n_frames = 0, n_mels = 0;  ///< of a window
    std::uint32_t max_tokens = 0;            ///< of a prompt and what is written
    double frame_seconds = 0.01;
};

/// A recording's frames; [n_given, n_mels] numbers; n_content frames are of the recording, the others of silence behind
/// it.
struct SpeechFrames {
    std::span<const float> numbers;
    std::uint32_t n_content = 0;
};

struct SpeechOptions {
    std::string language;  ///< "en"; empty: the likeliest at the start of the recording
    std::string task = "transcribe";
    bool timestamps = true;     ///< false: the model writes none, and each window is all of 30 seconds
    bool previous_text = true;  ///< each window is read with what was written before
    std::vector<Token> before;  ///< read before the first window, as if it had been written
    /// Tried in order until a window's text is good. 0: the likeliest tokens; others: a sample.
    std::vector<float> temperatures{0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f};
    std::optional<double> max_compression = 2.4;  ///< a text that compresses better repeats itself: not good
    std::optional<double> min_logprob = -1.0;     ///< a text less likely, by the mean of its tokens, is not good
    std::optional<double> no_speech = 0.6;        ///< a window is silent if that is likelier, and its text not good
    std::uint32_t max_tokens = 0;                 ///< written in a window at most; 0: half of the model's
    std::uint64_t seed = 0;
    bool words = false;  ///< segments have the times of their words
};

/// A word, with the space before it and the marks around it.
struct SpeechWord {
    std::string text;
    double start = 0, end = 0;  ///< seconds
    double probability = 0;     ///< the mean of its tokens'
    std::size_t n_tokens = 0;
};

/// A stretch of the recording, in seconds, and its text.
struct SpeechSegment {
    double start = 0, end = 0;
    std::uint32_t window_start = 0;  ///< the first frame of its window
    std::string text;
    std::vector<Token> tokens;                                          ///< timestamps among them
    double avg_logprob = 0, no_speech_prob = 0, compression_ratio = 0;  ///< of its window
    float temperature = 0;
    std::vector<SpeechWord> words;  ///< if the options ask for them
};

struct Transcript {
    std::string language;                        ///< empty for a model of one language, and of no sound at all
    std::optional<double> language_probability;  ///< if it was detected
    std::string text;
    std::vector<SpeechSegment> segments;
};

/// Called with each window's segments, then with how far the work is.
struct SpeechCalls {
    std::function<void(const std::string& language, double probability)> detected;
    std::function<void(const SpeechSegment&)> segment;
    std::function<void(double seconds_done, double seconds)> progress;
};

/// The same tokens, options and logits give the same transcript. Throws host::Error, and what the model throws.
[[nodiscard]] Transcript transcribe(SpeechModel& model, const SpeechTokens& tokens, const SpeechFrames& frames,
                                    const SpeechOptions& options, const SpeechCalls& calls = {});

}  // namespace fovea
