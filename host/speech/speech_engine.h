// A model of the engine as the loop over a recording asks for it: frames, windows, tokens.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/encode.h"
#include "host/model/two_stacks.h"
#include "host/speech/transcriber.h"

namespace fovea {

/// What a recording takes while its frames are made: its samples at the model's rate, the frames, and scratch. Scratch goes then.
struct RecordingBytes {
    std::uint64_t samples = 0, frames = 0, scratch = 0;
    [[nodiscard]] std::uint64_t all() const { return samples + frames + scratch; }
};
/// Throws host::Error, naming `name`, as recording_frames does.
[[nodiscard]] RecordingBytes recording_bytes(const Model& model, std::size_t n_samples, const std::string& name);

/// Exact memory for recordings, before any is taken.
struct SpeechPlan {
    TwoStackPlan stacks;
    std::uint64_t logits_bytes = 0;  ///< a row for each recording, which callers of read have
    std::uint64_t word_bytes = 0;    ///< attention weights of a layer, where words are asked for
    [[nodiscard]] std::uint64_t n_bytes() const { return stacks.n_bytes() + logits_bytes + word_bytes; }
};

/// What computes recordings, several at a time. All memory is taken by the constructor, exactly what the plan says. Used by
/// one thread.
class SpeechWorkspace {
public:
    struct Options {
        std::uint32_t n_threads = 1;
        const char* isa = nullptr;  ///< nullptr: the best of this CPU
        Type kv_type = Type::f32;
        const std::atomic<bool>* cancel = nullptr;  ///< if it is true, a call ends with Code::cancelled
        std::uint32_t n_recordings = 1;             ///< at a time
        bool words = false;                         ///< attend will be called
    };
    /// `opened` must outlive this. Throws host::Error.
    SpeechWorkspace(const host::Opened& opened, const Options& options);
    [[nodiscard]] static SpeechPlan plan(const host::Opened& opened, const Options& options);

    /// Recording i hears another window, [n_frames, n_mels], and has no text.
    [[nodiscard]] Status hear(std::size_t i, std::span<const float> frames);
    /// Its text becomes its first n_tokens.
    [[nodiscard]] Status rewind(std::size_t i, std::size_t n_tokens);
    /// Texts go on, each of another recording, in one pass; logits [vocab_size] of what comes next.
    struct Reading {
        std::size_t i = 0;
        std::span<const Token> tokens;
        std::span<float> logits;
    };
    [[nodiscard]] Status read(std::span<const Reading> readings);
    /// Recording i's text is these tokens and then none: see SpeechModel::attend. If the model's folder names no heads:
    /// all of the later half of its layers.
    [[nodiscard]] Status attend(std::size_t i, std::span<const Token> tokens, const SpeechModel::EachHead& each);
    /// Sets what a model says of itself.
    void describe(SpeechModel& model) const;

    [[nodiscard]] const SpeechTokens& tokens() const { return tokens_; }
    [[nodiscard]] std::uint64_t n_bytes() const { return plan_.n_bytes(); }  ///< the callers' logits too

private:
    const host::Opened& opened_;
    SpeechPlan plan_;
    SpeechTokens tokens_;
    TwoStacks stacks_;
    std::vector<Cache> memories_, texts_;  // of each recording
    std::vector<Step> steps_;
    std::vector<SpeechTokens::Head> heads_;  // by layer
    std::vector<float> weights_;             // of a layer
};

/// One recording after the other.
class SpeechEngine final : public SpeechModel {
public:
    using Options = SpeechWorkspace::Options;
    SpeechEngine(const host::Opened& opened, const Options& options);

    void hear(std::span<const float> frames) override;
    void rewind(std::size_t n_tokens) override;
    std::span<const float> read(std::span<const Token> tokens) override;
    std::string text_of(std::span<const Token> tokens) override;
    void attend(std::span<const Token> tokens, const EachHead& each) override;

    [[nodiscard]] const SpeechTokens& tokens() const { return workspace_.tokens(); }
    [[nodiscard]] std::uint64_t n_bytes() const { return workspace_.n_bytes(); }

private:
    void check(const Status& status) const;

    const host::Opened& opened_;
    SpeechWorkspace workspace_;
    std::vector<float> logits_;
};

/// A SpeechEngine's flag was set, or no one waits for a loop's text any more.
struct SpeechCancelled {};

}  // namespace fovea
