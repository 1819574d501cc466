// Words of whole recordings, with a model that writes and attends at random: whatever it does, words are short, in order and
// within their segments.
#include "host/speech/window_words.h"

#include <doctest/doctest.h>

namespace fovea::testing::rambling {
namespace {

// Ids of text below 60, of which the last ten are marks and ends of words; then steering tokens, and 1,501 timestamps.
constexpr Token kText = 60, kMarks = 50, kEnd = 60, kT = 70;
constexpr std::uint32_t kVocab = kT + 1501, kFrames = 3000, kMels = 2;

/// Writes whatever the rules let it; speaks each token for a moment, with pauses now and then.
struct Rambling final : SpeechModel {
    std::uint64_t state;
    std::vector<float> logits = std::vector<float>(kVocab);
    explicit Rambling(std::uint64_t seed) : state(seed) { n_frames = kFrames, n_mels = kMels, max_tokens = 448; }

    std::uint64_t below(std::uint64_t n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % n;
    }
    void hear(std::span<const float>) override {}
    void rewind(std::size_t) override {}
    std::span<const float> read(std::span<const Token> tokens) override {
        std::fill(logits.begin(), logits.end(), -10.0f);
        logits[below(kText)] = 10;
        if (below(40) == 0) logits[kEnd] = 12;
        const Token last = tokens.back() >= kT ? tokens.back() - kT : 0;
        if (below(6) == 0 || tokens.back() >= kT) logits[kT + std::min<std::uint64_t>(1500, last + below(400))] = 11;
        return logits;
    }
    std::string text_of(std::span<const Token> tokens) override {
        std::string text;
        for (const Token t : tokens)
            text += t < kMarks ? " w" + std::to_string(t) : std::string(1, ".,!?o'x-na"[t - kMarks]);
        return text;
    }
    void attend(std::span<const Token> tokens, const EachHead& each) override {
        const std::size_t stride = kFrames / 2;
        std::vector<float> weights(tokens.size() * stride, 0.01f);
        std::size_t frame = 0;
        for (std::size_t i = 2; i < tokens.size() && frame < stride; ++i) {
            const std::size_t n = below(8) == 0 ? below(900) : below(30);
            for (std::size_t end = std::min(frame + n, stride); frame < end; ++frame) weights[i * stride + frame] = 1;
        }
        each(weights, stride);
    }
};

TEST_CASE("words: of whatever text, none is longer than 3 s, none goes back, and segments hold theirs") {
    const SpeechTokens tokens = SpeechTokens::read(
        R"({"decoder_start_token_id": 61, "eos_token_id": 60, "no_timestamps_token_id": 69})", kVocab, "m");
    std::size_t n_words = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        Rambling model(seed);
        const auto n = static_cast<std::uint32_t>(100 + model.below(12000));
        std::vector<float> frames(std::size_t{n} * kMels);
        for (float& x : frames) x = static_cast<float>(model.below(100));
        SpeechOptions options;
        options.words = true, options.temperatures = {0}, options.no_speech = {};
        const Transcript result = transcribe(model, tokens, {frames, n}, options);
        double last = 0, last_segment = 0;
        for (const SpeechSegment& segment : result.segments) {
            REQUIRE(!segment.words.empty());
            CHECK(segment.start == segment.words.front().start);
            CHECK(segment.end == segment.words.back().end);
            CHECK(segment.start >= last_segment - 1e-9);
            last_segment = segment.end;
            for (const SpeechWord& word : segment.words) {
                ++n_words;
                CHECK(word.start >= last - 1e-9);
                CHECK(word.end > word.start);
                CHECK(word.end - word.start <= 3 + 1e-9);
                last = word.end;
            }
        }
        CHECK(last <= 0.01 * n + 1e-9);
    }
    CHECK(n_words > 2000);
}

}  // namespace
}  // namespace fovea::testing::rambling
