// Recordings become text: a model of speech, its frames, and the loop over a recording's windows.
//
//     const std::vector<float> samples = read_sound("talk.wav", opened.config().encoder.sound.sample_rate);
//     host::Transcriber transcriber(opened);
//     const Transcript said = transcriber.transcribe(samples, {.language = "en"});
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

#include "fovea/host/opened.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// host::Error unless it hears and writes.
void need_speech(const host::Opened& opened);

/// A recording's frames; [n_given, n_mels] numbers; n_content frames are of the recording, the others of silence behind
/// it.
struct SpeechFrames {
    std::span<const float> numbers;
    std::uint32_t n_content = 0;
};

/// A recording's frames; a recording shorter than a window has a whole window's, with silence behind it.
struct RecordingFrames {
    std::vector<float> numbers;
    std::uint32_t n_content = 0;
    [[nodiscard]] SpeechFrames view() const { return {numbers, n_content}; }
};
[[nodiscard]] RecordingFrames recording_frames(const Model& model, std::span<const float> samples,
                                               const std::string& name);

/// A text that comes before the recording's own, as SpeechOptions::before has it. Special tokens in it are plain text.
/// If the text is longer than any model reads, its end is taken. Throws host::Error.
[[nodiscard]] std::vector<Token> tokens_before(const Tokenizer& tokenizer, std::string_view text);

/// A part of a recording, in seconds.
struct SpeechClip {
    double begin = 0, end = std::numeric_limits<double>::infinity();
};

struct SpeechOptions {
    std::string language;  ///< "en", "English" or "en-US"; empty: the likeliest of the first window
    std::string task = "transcribe";
    bool timestamps = true;         ///< false: the model writes none, and each window is all of 30 seconds
    bool previous_text = true;      ///< each window is read with what was written before
    bool multilingual = false;      ///< without a language: each window has the one that is likeliest there
    std::vector<Token> before;      ///< read before the first window, as if it had been written
    bool carry_before = false;      ///< and before every other, too
    std::vector<SpeechClip> clips;  ///< that are heard, in order; empty: all of it
    bool voice = false;             ///< only stretches are heard in which there is a voice, by a rule of energy
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
    std::string language = {};      ///< of its window, if the options are multilingual
};

struct Transcript {
    std::string language;  ///< of the first window: "en", also of a model for English alone; empty of no sound at all
    std::optional<double> language_probability;  ///< if it was detected
    std::string text;
    std::vector<SpeechSegment> segments;
};

/// Called with each window's segments, then with how far the work is.
struct SpeechCalls {
    std::function<void(const std::string& language, double probability)> detected;
    std::function<void(const SpeechSegment&)> segment;
    std::function<void(double seconds_done, double seconds)> progress;  ///< not of a recording whose end has not come
};

namespace host {

struct TranscriberOptions {
    std::uint32_t n_threads = 0;  ///< 0: default_threads()
    const char* isa = nullptr;    ///< nullptr: the best of this CPU
    bool words = false;           ///< a transcript may have times of words
};

/// Transcribes one recording after the other. All memory is taken by the constructor. Used by one thread.
class Transcriber {
public:
    /// `opened` must outlive this. Throws host::Error.
    explicit Transcriber(const Opened& opened, const TranscriberOptions& options = {});
    ~Transcriber();

    /// Throws ArgumentError for a language or a task that the model does not know.
    void check(const SpeechOptions& options) const;
    /// The transcript of samples at the model's rate. Throws host::Error, and what a callback throws.
    [[nodiscard]] Transcript transcribe(std::span<const float> samples, const SpeechOptions& options = {},
                                        const SpeechCalls& calls = {});

private:
    struct Engine;
    const Opened& opened_;
    const std::unique_ptr<Engine> engine_;
};

}  // namespace host
}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
