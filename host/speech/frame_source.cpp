#include "host/speech/frame_source.h"

#include <algorithm>
#include <limits>

#include "fovea/sound.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "host/speech/speech_engine.h"

namespace fovea {

std::uint32_t MadeFrames::read(std::uint32_t first, std::span<float> window) {
    const std::size_t begin = std::min(std::size_t{first} * n_mels_, frames_.numbers.size());
    const std::size_t n = std::min(window.size(), frames_.numbers.size() - begin);
    const auto from = frames_.numbers.begin() + static_cast<std::ptrdiff_t>(begin);
    std::fill(std::copy(from, from + static_cast<std::ptrdiff_t>(n), window.begin()), window.end(), 0.0f);
    return std::min(static_cast<std::uint32_t>(window.size() / n_mels_),
                    frames_.n_content - std::min(first, frames_.n_content));
}

LiveFrames::LiveFrames(const Model& model, SoundReader& reader, std::string name)
    : model_(model),
      reader_(reader),
      name_(std::move(name)),
      sound_(model.config().encoder.sound),
      n_beside_((sound_.n_fft / 2 + sound_.hop_length - 1) / sound_.hop_length),
      loudest_(-std::numeric_limits<float>::infinity()) {
    (void)recording_bytes(model, 0, name_);  // refuses a model that does not hear
}

std::optional<std::uint32_t> LiveFrames::n_content() const {
    if (!ended_) return std::nullopt;
    return static_cast<std::uint32_t>((n_samples_ + sound_.hop_length - 1) / sound_.hop_length);
}

/// At least n samples in all, if there are so many.
void LiveFrames::read_samples(std::uint64_t n) {
    while (!ended_ && n_samples_ < n) {
        const std::size_t before = samples_.size();
        ended_ = !reader_.read(samples_);
        n_samples_ += samples_.size() - before;
    }
    constexpr std::uint64_t kMost = 1u << 26;
    if (n_samples_ / sound_.hop_length > kMost)
        throw host::Error(name_ + ": frames: expected at most " + with_separators(kMost) + ", got more");
}

/// Makes those that are not made before `last`.
void LiveFrames::make_until(std::uint32_t last) {
    if (last <= n_made_) return;
    const std::uint32_t begin = n_made_ - std::min(n_made_, n_beside_), hop = sound_.hop_length;
    Sound sound = sound_;
    sound.n_frames = (last == n_content() ? last : last + n_beside_) - begin;
    const std::span<const float> there = std::span(samples_).subspan(std::size_t{begin - first_sample_} * hop);
    std::uint64_t n_bytes = 0;
    require(frames_scratch(sound, n_bytes), name_);
    Arena scratch(n_bytes);
    std::vector<float> made(std::size_t{sound.n_frames} * sound.n_mels);
    require(make_frames(sound, mel_filters(model_),
                        there.first(std::min<std::size_t>(there.size(), window_samples(sound))), scratch, made),
            name_);
    const auto own = std::span(made).subspan(std::size_t{n_made_ - begin} * sound.n_mels,
                                             std::size_t{last - n_made_} * sound.n_mels);
    loudest_ = std::max(loudest_, *std::max_element(own.begin(), own.end()));
    frames_.insert(frames_.end(), own.begin(), own.end());
    n_made_ = last;
    const std::uint32_t next = last - std::min(last, n_beside_);
    samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                            samples_.size(), std::size_t{next - first_sample_} * hop)));
    first_sample_ = next;
}

std::uint32_t LiveFrames::read(std::uint32_t first, std::span<float> window) {
    constexpr float kBelow = 2;  // eight powers of ten, as make_frames has them
    const auto n_window = static_cast<std::uint32_t>(window.size() / sound_.n_mels);
    read_samples((std::uint64_t{first} + n_window + n_beside_) * sound_.hop_length);
    if (ended_ && n_made_ == 0 && n_samples_ <= window_samples(sound_)) {
        frames_ = recording_frames(model_, samples_, name_).numbers;
        n_made_ = static_cast<std::uint32_t>(frames_.size() / sound_.n_mels);
    } else {
        make_until(std::min(first + n_window, n_content().value_or(first + n_window)));
    }
    const std::size_t n_past = std::min(std::size_t{first - first_frame_} * sound_.n_mels, frames_.size());
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(n_past));
    first_frame_ = first;
    const std::size_t n = std::min(frames_.size(), window.size());
    std::transform(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(n), window.begin(),
                   [&](float x) { return std::max(x, loudest_ - kBelow); });
    std::fill(window.begin() + static_cast<std::ptrdiff_t>(n), window.end(), 0.0f);
    const std::uint32_t n_all = n_content().value_or(first + n_window);
    return std::min(n_window, n_all - std::min(first, n_all));
}

}  // namespace fovea
