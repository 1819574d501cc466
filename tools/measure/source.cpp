#include "tools/measure/source.h"

#include <algorithm>

#include "fovea/host/arena.h"
#include "fovea/sound.h"
#include "host/base/error.h"
#include "host/model/stacks.h"

namespace fovea {
namespace {

constexpr std::uint32_t kVectors = 80;  // of a source that has no vocabulary

/// Knuth's MMIX generator.
class Noise {
public:
    std::uint64_t bits() { return state_ = state_ * 6364136223846793005u + 1442695040888963407u; }
    /// From −1 to 1.
    float next() { return static_cast<float>(static_cast<std::int32_t>(bits() >> 40) - (1 << 23)) / (1 << 23); }

private:
    std::uint64_t state_ = 1;
};

/// A window's frames of tones that come and go in noise.
std::vector<float> some_frames(const Model& model, const std::string& name) {
    const Sound& sound = model.config().encoder.sound;
    std::vector<float> samples(static_cast<std::size_t>(window_samples(sound)));
    Noise noise;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const std::size_t period = 20 + i / 4000 % 9 * 15;
        samples[i] = 0.4f * (i % period < period / 2 ? 1.0f : -1.0f) + 0.1f * noise.next();
    }
    std::uint64_t n_bytes = 0;
    require(frames_scratch(sound, n_bytes), name);
    Arena scratch(n_bytes);
    std::vector<float> frames(std::size_t{sound.n_frames} * sound.n_mels);
    require(make_frames(sound, mel_filters(model), samples, scratch, frames), name);
    return frames;
}

}  // namespace

std::vector<Token> spread_tokens(std::size_t n, std::uint32_t vocab_size) {
    std::vector<Token> tokens(n);
    Noise noise;
    for (Token& token : tokens) token = static_cast<Token>((noise.bits() >> 33) % vocab_size);
    return tokens;
}

bool has_two_stacks(const Config& config) {
    const Sides sides = sides_of(config);
    return sides.encodes && sides.reads_memory && config.decoder.vocab_size && config.decoder.has_output_head;
}

Source::Source(const Model& model, std::vector<Token> ids, const std::string& name) {
    const Stack& encoder = model.config().encoder;
    if (encoder.vocab_size) {
        ids_ = std::move(ids);
        length_ = n_rows_ = static_cast<std::uint32_t>(ids_.size());
    } else if (encoder.sound.is_speech()) {
        vectors_ = some_frames(model, name);
        length_ = encoder.sound.n_frames;
        n_rows_ = (length_ + 1) / 2;
    } else {
        length_ = n_rows_ = encoder.max_positions ? std::min(kVectors, encoder.max_positions) : kVectors;
        vectors_.resize(std::size_t{length_} * encoder.d_model);
        Noise noise;
        for (float& x : vectors_) x = noise.next();
    }
}

EncodeInput Source::input() const { return {.source = {.ids = ids_, .vectors = vectors_, .lengths = {&length_, 1}}}; }

}  // namespace fovea
