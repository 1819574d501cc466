// The loop that makes a text of a recording: window by window, each read with the text before it (Radford et al. 2022,
// section 4.5).
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "fovea/host/speech.h"
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

class FrameSource;

/// The same tokens, options and logits give the same transcript. Throws host::Error, and what the model throws.
[[nodiscard]] Transcript transcribe(SpeechModel& model, const SpeechTokens& tokens, FrameSource& frames,
                                    const SpeechOptions& options, const SpeechCalls& calls = {});
/// The same of frames that have been made.
[[nodiscard]] Transcript transcribe(SpeechModel& model, const SpeechTokens& tokens, const SpeechFrames& frames,
                                    const SpeechOptions& options, const SpeechCalls& calls = {});

}  // namespace fovea
