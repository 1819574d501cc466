// A model of the engine as the loop over a recording asks for it: frames, windows, tokens.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convert/speech/transcriber.h"
#include "fovea/arena.h"
#include "fovea/encode.h"
#include "fovea/model.h"
#include "fovea/tokenizer.h"

namespace fovea {

/// Refusal unless it hears and writes.
void need_speech(const Model& model, const Tokenizer& tokenizer, const std::string& name);

/// A recording's frames; of one that is shorter than a window a whole window's, silence behind it.
struct RecordingFrames {
    std::vector<float> numbers;
    std::uint32_t n_content = 0;
    [[nodiscard]] SpeechFrames view() const { return {numbers, n_content}; }
};
/// Throws Refusal, naming `name`.
[[nodiscard]] RecordingFrames recording_frames(const Model& model, std::span<const float> samples,
                                               const std::string& name);

/// All memory is taken by the constructor, exactly what the plans say.
class SpeechEngine final : public SpeechModel {
public:
    struct Options {
        std::uint32_t n_threads = 1;
        const char* isa = nullptr;  ///< nullptr: the best of this CPU
        Type kv_type = Type::f32;
        const std::atomic<bool>* cancel = nullptr;  ///< where it is true, a call ends with SpeechCancelled
    };
    /// Model and tokenizer are views, whose bytes must outlive this. Throws Refusal.
    SpeechEngine(const Model& model, const Tokenizer& tokenizer, const std::string& name, const Options& options);

    void hear(std::span<const float> frames) override;
    void rewind(std::size_t n_tokens) override;
    std::span<const float> read(std::span<const Token> tokens) override;
    std::string text_of(std::span<const Token> tokens) override;

    [[nodiscard]] const SpeechTokens& tokens() const { return tokens_; }
    [[nodiscard]] std::uint64_t n_bytes() const { return n_bytes_; }

private:
    void check(const Status& status) const;

    Model model_;
    Tokenizer tokenizer_;
    std::string name_;
    SpeechTokens tokens_;
    Arena workspace_arena_, memory_arena_, text_arena_;
    Workspace workspace_;
    CachePool memory_pool_, text_pool_;
    Cache memory_, text_;
    std::vector<float> logits_;
    std::vector<char> piece_;
    std::uint64_t n_bytes_ = 0;
};

/// The flag of SpeechEngine::Options was set.
struct SpeechCancelled {};

}  // namespace fovea
