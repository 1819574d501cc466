// WAV files (Microsoft and IBM 1991): chunks of a name and a size; "fmt " says how "data" is coded. And samples without either.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "host/base/error.h"
#include "host/base/words.h"
#include "host/media/sound_source.h"

namespace fovea {
namespace {

using Bytes = std::span<const std::byte>;

std::uint64_t little(Bytes bytes) {
    std::uint64_t number = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return number;
}
std::uint32_t little_at(Bytes bytes, std::size_t at, std::size_t n) {
    return static_cast<std::uint32_t>(little(bytes.subspan(at, n)));
}
bool is(Bytes bytes, const char* name) { return bytes.size() >= 4 && std::memcmp(bytes.data(), name, 4) == 0; }

enum : std::uint32_t { kPcm = 1, kFloats = 3, kExtensible = 0xfffe };  // the last: the coding stands further on

struct Format {
    std::uint32_t coding = 0, n_channels = 0, rate = 0, n_bits = 0;
    std::uint32_t n_container = 0;  // bytes of a sample, which may be more than its bits need
    std::uint32_t n_used = 0;       // bits of a container, from the lowest up, that hold the sample; 0: not known

    explicit Format(const RawSound& raw)
        : coding(raw.floats ? kFloats : kPcm), n_channels(raw.n_channels), rate(raw.rate), n_bits(raw.n_bits) {
        pack();
    }
    explicit Format(Bytes chunk)
        : coding(little_at(chunk, 0, 2)),
          n_channels(little_at(chunk, 2, 2)),
          rate(little_at(chunk, 4, 4)),
          n_bits(little_at(chunk, 14, 2)) {
        if (coding == kExtensible && chunk.size() >= 26) coding = little_at(chunk, 24, 2);
        pack();
        const std::uint32_t n_row = little_at(chunk, 12, 2);
        if (!n_channels || n_row % n_channels || n_row <= n_container * n_channels || n_row > 8 * n_channels) return;
        n_container = n_row / n_channels, n_used = 0;
    }
    void pack() { n_container = n_bytes(), n_used = 8 * n_bytes(); }

    [[nodiscard]] std::uint32_t n_bytes() const { return (n_bits + 7) / 8; }
    [[nodiscard]] std::size_t n_row() const { return std::size_t{n_container} * n_channels; }
    [[nodiscard]] bool known() const {
        if (coding == kFloats) return (n_bits == 32 || n_bits == 64) && n_container == n_bytes();
        return coding == kPcm && n_bits >= 8 && n_container <= 4;
    }

    /// Finds where in their containers narrower samples lie: at the top over zeros, as the format has it, or at the bottom with
    /// their sign above them, as ALSA records.
    void find_used(Bytes data) {
        const std::uint32_t n = n_bytes(), n_all = n_container;
        bool top = true, bottom = true;
        for (; n_used == 0 && data.size() >= n_all; data = data.subspan(n_all)) {
            const bool negative = (data[n - 1] & std::byte{0x80}) != std::byte{};
            const std::uint64_t sign = negative ? (std::uint64_t{1} << 8 * (n_all - n)) - 1 : 0;
            top = top && little(data.first(n_all - n)) == 0;
            bottom = bottom && little(data.subspan(n, n_all - n)) == sign;
            if (!top && !bottom) break;
        }
        if (n_used) return;
        if (top || bottom)
            n_used = 8 * (bottom ? n : n_all);  // of both, the louder
        else if (n <= 2)
            pack();  // the row's size is wrong: nobody spreads 16 bits
    }
};

class Wav final : public SoundSource {
public:
    Wav(const Format& format, Bytes data) : format_(format), data_(data) { rate = format.rate; }
    /// `n_most` bytes of `piped`, which follow what it has.
    Wav(const Format& format, InputBytes& piped, std::uint64_t n_most)
        : format_(format), piped_(&piped), n_most_(n_most) {
        rate = format.rate;
        take();
    }

    std::size_t read(std::span<float> samples) override {
        const std::size_t n_bytes = format_.n_container, n_row = format_.n_row();
        std::size_t n = 0;
        while (data_.size() < n_row && piped_ && n_most_ >= n_row && piped_->more()) take();
        for (; n < samples.size() && data_.size() >= n_row; ++n, data_ = data_.subspan(n_row)) {
            double sum = 0;
            for (std::size_t c = 0; c < format_.n_channels; ++c) sum += sample(data_.subspan(c * n_bytes, n_bytes));
            samples[n] = static_cast<float>(sum / format_.n_channels);
        }
        if (piped_) piped_->drop(n * n_row), n_most_ -= n * n_row;
        return n;
    }

private:
    void take() { data_ = piped_->bytes().first(std::min<std::uint64_t>(piped_->bytes().size(), n_most_)); }

    [[nodiscard]] double sample(Bytes bytes) const {
        const std::uint64_t bits = little(bytes);
        if (format_.coding == kFloats)
            return format_.n_bits == 64 ? std::bit_cast<double>(bits)
                                        : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
        if (format_.n_bits == 8) return (static_cast<double>(bits) - 128) / 128;  // these alone have no sign
        const auto high = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits << (32 - format_.n_used)));
        return static_cast<double>(high) * 0x1p-31;
    }

    Format format_;
    Bytes data_;
    InputBytes* piped_ = nullptr;
    std::uint64_t n_most_ = 0;
};

// A program that writes into a pipe does not know the size, and writes 0 or a number from here on.
constexpr std::uint64_t kUnknownSize = 0x7ffff000;

/// A file's format, and where its samples begin.
struct WavHead {
    Format format;
    std::size_t begin;
    std::uint64_t size;  // as the file says
};

bool is_wav(Bytes bytes) { return bytes.size() >= 12 && is(bytes, "RIFF") && is(bytes.subspan(8), "WAVE"); }

/// The head of a WAV file, or of its first bytes. None: more are needed.
std::optional<WavHead> find_head(Bytes bytes, const std::string& name, bool whole) {
    std::optional<Format> format;
    for (std::size_t at = 12; at + 8 <= bytes.size();) {
        const Bytes rest = bytes.subspan(at);
        const std::uint64_t size = little(rest.subspan(4, 4));
        if (is(rest, "data")) {
            if (!format) throw host::Error(name + ": WAV file: expected its format before its data, got none");
            if (!format->n_channels) throw host::Error(name + ": WAV channels: expected at least 1, got 0");
            return WavHead{*format, at + 8, size};
        }
        const Bytes chunk = rest.subspan(8, std::min<std::uint64_t>(size, rest.size() - 8));
        if (is(rest, "fmt ")) {
            if (!whole && chunk.size() < std::min<std::uint64_t>(size, 26)) return {};
            if (chunk.size() < 16)
                throw host::Error(name + ": WAV format: expected 16 bytes, got " + std::to_string(chunk.size()));
            format.emplace(chunk);
        }
        if (chunk.size() < size) return {};
        at += 8 + chunk.size() + chunk.size() % 2;
    }
    return {};
}

}  // namespace

bool InputBytes::more() {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    const std::size_t n = bytes_.size();
    bytes_.resize(n + std::max<std::size_t>(n, 1 << 16));  // all of a long one in few steps
    const std::size_t got = input_.read(std::span(bytes_).subspan(n));
    bytes_.resize(n + got);
    return got != 0;
}

std::unique_ptr<SoundSource> open_wav(Bytes bytes, const std::string& name) {
    if (!is_wav(bytes)) return nullptr;
    std::optional<WavHead> head = find_head(bytes, name, true);
    if (!head) throw host::Error(name + ": WAV file: expected data, got none");
    const std::uint64_t size = head->size, n_there = bytes.size() - head->begin;
    const Bytes data = bytes.subspan(head->begin, size == 0 || size > n_there ? n_there : size);
    head->format.find_used(data);
    if (!head->format.known() || !head->format.n_used) return nullptr;
    auto wav = std::make_unique<Wav>(head->format, data);
    if (size > data.size() && size < kUnknownSize)
        wav->note = "the file ends " + with_separators(size - data.size()) + " bytes before its recording does";
    return wav;
}

std::unique_ptr<SoundSource> open_piped_wav(InputBytes& input) {
    while (input.bytes().size() < 12 && input.more()) continue;
    if (!is_wav(input.bytes())) return nullptr;
    std::optional<WavHead> head;
    while (!(head = find_head(input.bytes(), input.name(), false)))
        if (!input.more()) return nullptr;
    if (!head->format.known() || !head->format.n_used) return nullptr;
    input.drop(head->begin);
    const bool is_unknown = head->size == 0 || head->size >= kUnknownSize;
    return std::make_unique<Wav>(head->format, input, is_unknown ? ~std::uint64_t{0} : head->size);
}

std::unique_ptr<SoundSource> open_raw(Bytes bytes, const RawSound& raw) {
    return std::make_unique<Wav>(Format(raw), bytes);
}

std::unique_ptr<SoundSource> open_piped_raw(InputBytes& input, const RawSound& raw) {
    return std::make_unique<Wav>(Format(raw), input, ~std::uint64_t{0});
}

}  // namespace fovea
