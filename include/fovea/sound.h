// From sound to the frames that an encoder of speech reads: samples become [n_frames, n_mels] numbers.
//
//     const Sound& sound = model.config().encoder.sound;   // what the model hears: rate, window, bands
//     std::uint64_t n_bytes;
//     frames_scratch(sound, n_bytes);                      // 1. the size, before any memory is taken
//     make_frames(sound, mel_filters(model), samples, scratch, frames);   // 2. as often as there is sound
//     cache_memory(workspace, {.source = {.vectors = frames, .lengths = {&sound.n_frames, 1}}}, {&memory, 1});
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/config.h"
#include "fovea/status.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

/// Samples that one window of frames covers: n_frames · hop_length, 30 seconds for Whisper. 0 for a model without sound.
[[nodiscard]] std::uint64_t window_samples(const Sound& sound) noexcept;

/// Exact bytes of make_frames' scratch, about 75 KB for Whisper. With one byte less make_frames is an error.
/// Errors, `n_bytes` unchanged: config_invalid (no sound, a value outside its range, or an n_fft of large primes, whose
/// transform would take longer than that of 2^16 samples), unsupported (a build without encoders).
[[nodiscard]] Status frames_scratch(const Sound& sound, std::uint64_t& n_bytes) noexcept;

/// The logarithm of how loud each band is at each time, as Whisper's feature extractor computes it.
///
///   filters  [n_mels, n_fft / 2 + 1]  how much of each frequency a band has; mel_filters(model), or the caller's own
///   samples  [at most window_samples(sound)]  mono, sound.sample_rate a second, full scale 1; silence follows them
///   scratch  frames_scratch(sound) bytes, 8-aligned, overwritten
///   frames   [n_frames, n_mels]  written
///
/// Frame t is centred on sample t · hop_length; beyond its ends the window is mirrored. A periodic Hann window, the
/// squared magnitudes of the discrete Fourier transform, the filters, log10 of at least 1e-10, then (max(x, most − 8) + 4)
/// / 4 with `most` the window's largest. A caller's own Sound may have more frames than the model's: a whole recording's,
/// up to 2^26. Computed in double with tables and logarithms of our own, in one fixed order on one thread, so that the
/// same samples give the same bits on every machine. Allocates nothing.
/// Errors, `frames` unchanged: those of frames_scratch; bad_shape (filters, frames, more samples than a window has);
/// buffer_too_small, misaligned (scratch); bad_argument (a sample or filter that is NaN or infinite).
/// Source: Radford et al. 2022, section 2.2; Stockham 1966 (the transform's order).
[[nodiscard]] Status make_frames(const Sound& sound, std::span<const float> filters, std::span<const float> samples,
                                 std::span<std::byte> scratch, std::span<float> frames) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
