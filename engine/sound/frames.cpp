// make_frames: eight frames at a time go through one transform of four lanes; two real frames make one complex one.
#include "fovea/sound.h"

#include <bit>

#include "engine/format/parts.h"
#include "engine/sound/transform.h"
#include "platform/float_env.h"

namespace fovea {
namespace {

constexpr std::size_t kFrames = 2 * kSideBySide;  // of a group
constexpr double kFloor = 1e-10;
constexpr std::uint64_t kMostProducts = 1u << 21;  // of a transform of 2^16, with eight steps of four

/// Where a band's filter is not zero.
struct Band {
    std::uint32_t begin, end;
};

[[nodiscard]] Status check_sound(const Sound& s) noexcept {
    if (!has(Part::vectors)) return {Code::unsupported, "vectors: left out of this build", 0, 0};
    const struct {
        std::uint32_t value, least, most;
        const char *too_small, *too_large;
    } fields[] = {
        {s.sample_rate, 1, 1u << 20, "sound: sample_rate at least", "sound: sample_rate at most"},
        {s.n_fft, 2, 1u << 16, "sound: n_fft at least", "sound: n_fft at most"},
        {s.hop_length, 1, 1u << 16, "sound: hop_length at least", "sound: hop_length at most"},
        {s.n_mels, 1, 1u << 16, "sound: n_mels at least", "sound: n_mels at most"},
        {s.n_frames, 1, 1u << 26, "sound: n_frames at least", "sound: n_frames at most"},
    };
    for (const auto& f : fields) {
        if (f.value < f.least) return {Code::config_invalid, f.too_small, f.least, f.value};
        if (f.value > f.most) return {Code::config_invalid, f.too_large, f.most, f.value};
    }
    if (const std::uint64_t n = transform_products(s.n_fft); n > kMostProducts)  // a large prime takes minutes a frame
        return {Code::config_invalid, "sound: products of n_fft's transform at most", kMostProducts, n};
    if (window_samples(s) <= s.n_fft / 2)  // a mirror image needs samples to mirror
        return {Code::config_invalid, "sound: samples of a window at least", s.n_fft / 2 + 1, window_samples(s)};
    return {};
}

/// The parts of the scratch, one behind the other.
struct Scratch {
    std::uint32_t n_fft, n_bins, n_mels;

    explicit Scratch(const Sound& s) noexcept : n_fft(s.n_fft), n_bins(s.n_bins()), n_mels(s.n_mels) {}
    [[nodiscard]] std::size_t n_lanes() const noexcept { return std::size_t{n_fft} * kSideBySide; }
    [[nodiscard]] std::size_t n_powers() const noexcept { return std::size_t{n_bins} * kFrames; }
    [[nodiscard]] std::size_t n_bytes() const noexcept {
        return n_fft * sizeof(Complex) + (n_fft + 4 * n_lanes() + n_powers()) * sizeof(double) + n_mels * sizeof(Band);
    }
};

/// One call's tables and rooms.
struct Maker {
    const Sound& sound;
    const float* filters;  // [n_mels, n_bins]
    std::span<const float> samples;
    std::uint32_t n_bins;
    Complex* roots;    // [n_fft]
    double* window;    // [n_fft] Hann's, periodic
    double* lanes[4];  // [n_fft, kSideBySide] real and imaginary parts, twice
    double* powers;    // [n_bins, kFrames]
    Band* bands;       // [n_mels]

    Maker(const Sound& s, std::span<const float> f, std::span<const float> x, std::byte* place) noexcept
        : sound(s), filters(f.data()), samples(x), n_bins(s.n_bins()) {
        const Scratch sizes(s);
        roots = reinterpret_cast<Complex*>(place);
        window = reinterpret_cast<double*>(roots + s.n_fft);
        double* next = window + s.n_fft;
        for (double*& lane : lanes) lane = next, next += sizes.n_lanes();
        powers = next;
        bands = reinterpret_cast<Band*>(powers + sizes.n_powers());
        for (std::uint32_t k = 0; k < s.n_fft; ++k) {
            roots[k] = unit_root(k, s.n_fft);
            window[k] = 0.5 - 0.5 * roots[k].re;
        }
        for (std::uint32_t i = 0; i < s.n_mels; ++i) bands[i] = band_of(filters + std::size_t{i} * n_bins);
    }

    [[nodiscard]] Band band_of(const float* filter) const noexcept {
        Band band{0, n_bins};
        while (band.end > 0 && filter[band.end - 1] == 0) --band.end;
        while (band.begin < band.end && filter[band.begin] == 0) ++band.begin;
        return band;
    }

    /// The frame's sample i, mirrored at the window's ends, with silence behind the samples.
    [[nodiscard]] double sample(std::uint32_t frame, std::uint32_t i) const noexcept {
        const auto last = static_cast<std::int64_t>(window_samples(sound)) - 1;
        std::int64_t at = std::int64_t{frame} * sound.hop_length + i - sound.n_fft / 2;
        if (at < 0) at = -at;
        if (at > last) at = 2 * last - at;
        return static_cast<std::uint64_t>(at) < samples.size()
                   ? static_cast<double>(samples[static_cast<std::size_t>(at)])
                   : 0.0;
    }

    /// Whether the frame reads only the silence behind the samples: its lowest place lies there.
    [[nodiscard]] bool silent(std::uint32_t frame) const noexcept {
        const auto last = static_cast<std::int64_t>(window_samples(sound)) - 1;
        const std::int64_t begin = std::int64_t{frame} * sound.hop_length - sound.n_fft / 2;
        const std::int64_t end = begin + sound.n_fft - 1;
        std::int64_t least = begin < 0 ? 0 : begin;
        if (end > last && 2 * last - end < least) least = 2 * last - end;
        return static_cast<std::uint64_t>(least) >= samples.size();
    }

    /// powers of the n frames from `first` on, n at most kFrames: frame 2l is lane l's real part, frame 2l + 1 its other.
    void transform(std::uint32_t first, std::uint32_t n) noexcept {
        double *re = lanes[0], *im = lanes[1], *out_re = lanes[2], *out_im = lanes[3];
        for (std::uint32_t i = 0; i < sound.n_fft; ++i)
            for (std::uint32_t l = 0; l < kSideBySide; ++l) {
                re[i * kSideBySide + l] = 2 * l < n ? sample(first + 2 * l, i) * window[i] : 0.0;
                im[i * kSideBySide + l] = 2 * l + 1 < n ? sample(first + 2 * l + 1, i) * window[i] : 0.0;
            }
        for (std::uint32_t len = sound.n_fft; len > 1;) {
            const std::uint32_t radix = next_radix(len);
            transform_step({sound.n_fft, len, radix}, roots, re, im, out_re, out_im);
            double *const old_re = re, *const old_im = im;
            re = out_re, im = out_im, out_re = old_re, out_im = old_im;
            len /= radix;
        }
        // Z = A + iB of two real sequences: A[k] = (Z[k] + Z*[n − k])/2, B[k] = (Z[k] − Z*[n − k])/2i.
        for (std::uint32_t k = 0; k < n_bins; ++k) {
            const std::size_t here = std::size_t{k} * kSideBySide,
                              there = std::size_t{(sound.n_fft - k) % sound.n_fft} * kSideBySide;
            for (std::size_t l = 0; l < kSideBySide; ++l) {
                const double a = re[here + l] + re[there + l], b = im[here + l] - im[there + l];
                const double c = im[here + l] + im[there + l], d = re[there + l] - re[here + l];
                powers[k * kFrames + 2 * l] = 0.25 * (a * a + b * b);
                powers[k * kFrames + 2 * l + 1] = 0.25 * (c * c + d * d);
            }
        }
    }

    /// The logarithms of one group's bands; returns the largest, or `most` if that is larger.
    [[nodiscard]] float add_bands(std::uint32_t first, std::uint32_t n, float most,
                                  std::span<float> frames) const noexcept {
        for (std::uint32_t mel = 0; mel < sound.n_mels; ++mel) {
            const float* filter = filters + std::size_t{mel} * n_bins;
            double sums[kFrames] = {};
            for (std::uint32_t k = bands[mel].begin; k < bands[mel].end; ++k) {
                const double weight = static_cast<double>(filter[k]);
                for (std::size_t t = 0; t < kFrames; ++t) sums[t] += weight * powers[k * kFrames + t];
            }
            for (std::uint32_t t = 0; t < n; ++t) {
                const auto x = static_cast<float>(log10_of(sums[t] > kFloor ? sums[t] : kFloor));
                frames[std::size_t{first + t} * sound.n_mels + mel] = x;
                most = x > most ? x : most;
            }
        }
        return most;
    }
};

/// The place of the first that is NaN or infinite; the size if none is.
[[nodiscard]] std::size_t first_not_finite(std::span<const float> numbers) noexcept {
    std::size_t i = 0;
    while (i < numbers.size() && (std::bit_cast<std::uint32_t>(numbers[i]) & 0x7f800000u) != 0x7f800000u) ++i;
    return i;
}

[[nodiscard]] Status check_call(const Sound& sound, std::span<const float> filters, std::span<const float> samples,
                                std::span<const std::byte> scratch, std::span<const float> frames) noexcept {
    if (const Status status = check_sound(sound); !status.ok()) return status;
    const std::uint64_t n_filters = std::uint64_t{sound.n_mels} * sound.n_bins();
    if (filters.size() != n_filters) return {Code::bad_shape, "filters", n_filters, filters.size()};
    const std::uint64_t n_numbers = std::uint64_t{sound.n_frames} * sound.n_mels;
    if (frames.size() != n_numbers) return {Code::bad_shape, "numbers of frames", n_numbers, frames.size()};
    if (samples.size() > window_samples(sound))
        return {Code::bad_shape, "samples at most", window_samples(sound), samples.size()};
    const std::size_t n_bytes = Scratch(sound).n_bytes();
    if (scratch.size() < n_bytes) return {Code::buffer_too_small, "scratch bytes at least", n_bytes, scratch.size()};
    const std::uint64_t past = reinterpret_cast<std::uintptr_t>(scratch.data()) % alignof(double);
    if (past) return {Code::misaligned, "the scratch's address modulo 8", 0, past};
    std::size_t bad = first_not_finite(filters);
    if (bad != filters.size())
        return {Code::bad_argument, "finite filters before the first other", filters.size(), bad};
    bad = first_not_finite(samples);
    if (bad != samples.size())
        return {Code::bad_argument, "finite samples before the first other", samples.size(), bad};
    return {};
}

}  // namespace

std::uint64_t window_samples(const Sound& sound) noexcept { return std::uint64_t{sound.n_frames} * sound.hop_length; }

Status frames_scratch(const Sound& sound, std::uint64_t& n_bytes) noexcept {
    const Status status = check_sound(sound);
    if (status.ok()) n_bytes = Scratch(sound).n_bytes();
    return status;
}

Status make_frames(const Sound& sound, std::span<const float> filters, std::span<const float> samples,
                   std::span<std::byte> scratch, std::span<float> frames) noexcept {
    if (!has(Part::vectors)) return check_sound(sound);
    const FloatEnv environment;
    if (const Status status = check_call(sound, filters, samples, scratch, frames); !status.ok()) return status;
    Maker maker(sound, filters, samples, scratch.data());
    const auto floor = static_cast<float>(log10_of(kFloor));
    float most = floor;
    for (std::uint32_t first = 0; first < sound.n_frames; first += kFrames) {
        const std::uint32_t rest = sound.n_frames - first, n = rest < kFrames ? rest : kFrames;
        bool silent = true;
        for (std::uint32_t t = 0; t < n; ++t) silent = silent && maker.silent(first + t);
        if (silent) {  // what the sums would come to
            for (float& x : frames.subspan(std::size_t{first} * sound.n_mels, std::size_t{n} * sound.n_mels)) x = floor;
            continue;
        }
        maker.transform(first, n);
        most = maker.add_bands(first, n, most, frames);
    }
    const float least = most - 8.0f;
    for (float& x : frames) x = ((x > least ? x : least) + 4.0f) * 0.25f;
    return {};
}

}  // namespace fovea
