// The text of one window: attempts at several temperatures, until one is good (Radford et al. 2022, section 4.5).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/sampler.h"
#include "host/speech/transcriber.h"

namespace fovea {

/// The text of one attempt at a window.
struct Written {
    std::vector<Token> tokens;          ///< without the end
    std::vector<double> probabilities;  ///< of each
    std::string text;
    double avg_logprob = 0, no_speech = 0, compression = 0;
    float temperature = 0;
    float last_tried = 0;  ///< the temperature of the window's last attempt, which may be another
    bool ended = false;    ///< by the model, not at its limit of tokens, where texts that repeat themselves run into
};

/// The bytes of those tokens that are text.
[[nodiscard]] std::string speech_text(SpeechModel& model, const SpeechTokens& known, std::span<const Token> tokens);

/// Writes a window's text. Its arguments must outlive it.
class WindowWriter {
public:
    WindowWriter(SpeechModel& model, const SpeechTokens& tokens, const SpeechOptions& options);

    /// The first good attempt; if none is, the likeliest by the mean of its tokens, of those that ended if any did. `prompt`
    /// is read first, whose first n_start tokens end with the start token. `window` is its number, which chooses the samples.
    [[nodiscard]] Written write(std::span<const Token> prompt, std::size_t n_start, std::uint32_t window);

    /// Whether the window is passed over.
    [[nodiscard]] bool is_silent(const Written& written) const;

private:
    [[nodiscard]] Written attempt_at(std::uint32_t window, std::size_t attempt, std::size_t n_prompt);
    [[nodiscard]] bool is_good(const Written& written) const;

    SpeechModel& model_;
    const SpeechTokens& tokens_;
    const SpeechOptions& options_;
    std::vector<float> logits_;
    std::vector<Candidate> candidates_;
    const std::uint32_t most_;  // tokens
};

}  // namespace fovea
