"""Frames of sound as Whisper's feature extractor defines them (Radford et al. 2022, section 2.2), in NumPy's float64.

    python3 make_sound.py            # writes sound/*.npy beside itself
    python3 make_sound.py --check    # compares with transformers' WhisperFeatureExtractor, where it is installed

frames_test.cpp makes the same samples and compares. Sounds here are noise and triangle waves in whole numbers, so that both
languages have the same floats.
"""
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent / "sound"
# name: (sample_rate, n_fft, hop_length, n_mels, n_frames), samples given
CASES = {
    "whole": ((16000, 400, 160, 80, 50), 8000),
    "short": ((16000, 400, 160, 80, 50), 5003),
    "one": ((16000, 400, 160, 80, 50), 1),
    "silence": ((16000, 400, 160, 80, 50), 0),
    "odd": ((8000, 63, 17, 12, 31), 400),
    "prime": ((8000, 46, 46, 7, 9), 414),
    "even": ((8000, 64, 20, 9, 17), 340),
}


def samples_of(n):
    """A wave whose loudness falls by eight powers of two, and noise."""
    noise, x = 1, np.zeros(n, np.float32)
    for i in range(n):
        noise = (noise * 1664525 + 1013904223) % 2**32
        wave = abs((i * 61) % 2048 - 1024) - 512
        x[i] = np.float32(wave * 2.0 ** -(10 + i * 8 // max(n, 1)) + ((noise >> 20) - 2048) * 2.0**-20)
    return x


def mel_filters(sample_rate, n_fft, n_mels):
    """Triangles on Slaney's scale, of equal area (Slaney 1998): linear up to 1000 Hz, logarithmic beyond."""
    step, start = 27.0 / np.log(6.4), 15.0

    def to_mel(f):
        return np.where(f < 1000, f * 3 / 200, start + np.log(np.maximum(f, 1000) / 1000) * step)

    def to_hertz(m):
        return np.where(m < start, m * 200 / 3, 1000 * np.exp((m - start) / step))

    edges = to_hertz(np.linspace(to_mel(np.array(0.0)), to_mel(np.array(sample_rate / 2)), n_mels + 2))
    bins = np.linspace(0, sample_rate // 2, n_fft // 2 + 1)
    up = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return (np.maximum(0, np.minimum(up, down)) * (2 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)


def frames_of(sound, filters, samples):
    sample_rate, n_fft, hop, n_mels, n_frames = sound
    x = np.zeros(n_frames * hop)
    x[: len(samples)] = samples
    x = np.pad(x, n_fft // 2, mode="reflect")
    x = np.pad(x, (0, 1))  # an odd window's last one reaches one further, into a frame that is dropped
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
    parts = np.stack([x[t * hop : t * hop + n_fft] * window for t in range(n_frames)])
    power = np.abs(np.fft.rfft(parts, axis=1)) ** 2
    logs = np.log10(np.maximum(power @ filters.T.astype(np.float64), 1e-10))
    return ((np.maximum(logs, logs.max() - 8) + 4) / 4).astype(np.float32)


def check():
    from transformers import WhisperFeatureExtractor

    for n in (0, 1, 16000, 100001, 480000):
        extractor = WhisperFeatureExtractor()
        samples = samples_of(n)
        theirs = extractor(samples, sampling_rate=16000, return_tensors="np").input_features[0].T if n else None
        filters = mel_filters(16000, 400, 80)
        print("filters", np.abs(filters - extractor.mel_filters.T).max())
        if n:
            print(n, np.abs(frames_of((16000, 400, 160, 80, 3000), filters, samples) - theirs).max())


def main():
    if "--check" in sys.argv:
        return check()
    HERE.mkdir(exist_ok=True)
    for name, (sound, n) in CASES.items():
        filters = mel_filters(sound[0], sound[1], sound[3])
        np.save(HERE / f"{name}_frames.npy", frames_of(sound, filters, samples_of(n)))
        if name not in ("short", "one", "silence"):
            np.save(HERE / f"{name}_filters.npy", filters)


if __name__ == "__main__":
    main()
