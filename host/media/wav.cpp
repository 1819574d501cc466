// WAV files (Microsoft and IBM 1991): chunks of a name and a size; "fmt " says how "data" is coded.
#include <bit>
#include <cmath>
#include <cstring>

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
bool is(Bytes bytes, const char* name) { return bytes.size() >= 4 && std::memcmp(bytes.data(), name, 4) == 0; }

enum class Coding { pcm = 1, floats = 3 };
constexpr std::uint32_t kExtensible = 0xfffe;  // the coding's number stands at the front of an identifier further on

struct Format {
    std::uint32_t coding = 0, n_channels = 0, rate = 0, n_bits = 0;

    explicit Format(Bytes chunk)
        : coding(static_cast<std::uint32_t>(little(chunk.subspan(0, 2)))),
          n_channels(static_cast<std::uint32_t>(little(chunk.subspan(2, 2)))),
          rate(static_cast<std::uint32_t>(little(chunk.subspan(4, 4)))),
          n_bits(static_cast<std::uint32_t>(little(chunk.subspan(14, 2)))) {
        if (coding == kExtensible && chunk.size() >= 26)
            coding = static_cast<std::uint32_t>(little(chunk.subspan(24, 2)));
    }
    [[nodiscard]] bool known() const {
        if (coding == static_cast<std::uint32_t>(Coding::floats)) return n_bits == 32 || n_bits == 64;
        return coding == static_cast<std::uint32_t>(Coding::pcm) && n_bits % 8 == 0 && n_bits >= 8 && n_bits <= 32;
    }
};

class Wav final : public SoundSource {
public:
    /// `missing`: bytes of its data that the file lacks.
    Wav(const Format& format, Bytes data, std::uint64_t missing) : format_(format), data_(data) {
        rate = format.rate;
        if (missing) note = "the file ends " + with_separators(missing) + " bytes before its recording does";
    }

    std::size_t read(std::span<float> samples) override {
        const std::size_t n_bytes = format_.n_bits / 8, n_row = n_bytes * format_.n_channels;
        std::size_t n = 0;
        for (; n < samples.size() && data_.size() >= n_row; ++n, data_ = data_.subspan(n_row)) {
            double sum = 0;
            for (std::size_t c = 0; c < format_.n_channels; ++c) sum += sample(data_.subspan(c * n_bytes, n_bytes));
            samples[n] = static_cast<float>(sum / format_.n_channels);
        }
        return n;
    }

private:
    [[nodiscard]] double sample(Bytes bytes) const {
        const std::uint64_t bits = little(bytes);
        if (format_.coding == static_cast<std::uint32_t>(Coding::floats))
            return format_.n_bits == 64 ? std::bit_cast<double>(bits)
                                        : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
        if (format_.n_bits == 8) return (static_cast<double>(bits) - 128) / 128;  // these alone have no sign
        const auto high = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits << (32 - format_.n_bits)));
        return static_cast<double>(high) * 0x1p-31;
    }

    Format format_;
    Bytes data_;
};

}  // namespace

std::unique_ptr<SoundSource> open_wav(Bytes bytes, const std::string& name) {
    if (bytes.size() < 12 || !is(bytes, "RIFF") || !is(bytes.subspan(8), "WAVE")) return nullptr;
    std::unique_ptr<Format> format;
    for (Bytes rest = bytes.subspan(12); rest.size() >= 8;) {
        const std::uint64_t size = little(rest.subspan(4, 4));
        // A program that writes into a pipe does not know the size, and writes 0 or the largest number.
        const bool to_end = is(rest, "data") && (size == 0 || size > rest.size() - 8);
        const Bytes chunk = rest.subspan(8, to_end || size > rest.size() - 8 ? rest.size() - 8 : size);
        if (is(rest, "fmt ")) {
            if (chunk.size() < 16)
                throw host::Error(name + ": WAV format: expected 16 bytes, got " + std::to_string(chunk.size()));
            format = std::make_unique<Format>(chunk);
        } else if (is(rest, "data")) {
            if (!format) throw host::Error(name + ": WAV file: expected its format before its data, got none");
            if (!format->known()) return nullptr;
            if (!format->n_channels) throw host::Error(name + ": WAV channels: expected at least 1, got 0");
            constexpr std::uint64_t kUnknown = 0x7ffff000;  // and more: what such a program may have written
            return std::make_unique<Wav>(*format, chunk, size && size < kUnknown ? size - chunk.size() : 0);
        }
        const std::uint64_t next = 8 + chunk.size() + chunk.size() % 2;
        rest = rest.subspan(next < rest.size() ? next : rest.size());
    }
    throw host::Error(name + ": WAV file: expected data, got none");
}

}  // namespace fovea
