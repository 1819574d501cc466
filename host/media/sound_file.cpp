#include "fovea/host/sound_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>

#include "host/base/error.h"
#include "host/base/source_file.h"
#include "host/base/words.h"
#include "host/media/resample.h"
#include "host/media/sound_source.h"

namespace fovea {
namespace {

constexpr std::size_t kBlock = 1 << 15;                       // samples
constexpr std::uint64_t kMostPiped = std::uint64_t{4} << 30;  // bytes of a pipe that are read before they are decoded

Resampler resampler(std::uint32_t from, std::uint32_t to, const std::string& name) {
    if (from != to && (from < kLeastSampleRate || from > kMostSampleRate))
        throw host::Error(name + ": samples a second: expected " + with_separators(kLeastSampleRate) + " to " +
                          with_separators(kMostSampleRate) + ", got " + with_separators(from));
    return {from, to};
}

/// Formats by the bytes they begin with.
struct SoundKind {
    std::size_t at;
    std::string_view bytes, name;
};
constexpr SoundKind kSoundKinds[] = {{4, "ftyp", "MPEG-4 (m4a, mp4)"},
                                     {0, "\x1a\x45\xdf\xa3", "Matroska (webm, mkv)"},
                                     {0, "OggS", "Ogg"},
                                     {0, "fLaC", "FLAC"},
                                     {0, "ID3", "MP3"},
                                     {0, "\xff\xfb", "MP3"},
                                     {0, "\xff\xf3", "MP3"},
                                     {0, "\xff\xf2", "MP3"},
                                     {0, "\xff\xf1", "AAC"},
                                     {0, "\xff\xf9", "AAC"},
                                     {0, "FORM", "AIFF"},
                                     {0, "caff", "Core Audio (caf)"},
                                     {0, "#!AMR", "AMR"},
                                     {0, "\x30\x26\xb2\x75", "Windows Media (wma)"},
                                     {8, "WAVE", "a WAV file of a rare coding"}};

/// What other bytes are and, if that is a sound, the command that converts it.
std::string kind_of(std::span<const std::byte> bytes, const std::string& name) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 16));
    for (const SoundKind& kind : kSoundKinds)
        if (text.size() >= kind.at && text.substr(kind.at).starts_with(kind.bytes))
            return std::string(kind.name) + ": `ffmpeg -i " + (name == "standard input" ? "-" : name) +
                   " -f wav -` makes one";
    return "another kind";
}

std::unique_ptr<SoundSource> open_source(std::span<const std::byte> bytes, const std::string& name,
                                         const std::optional<RawSound>& raw = {}) {
    std::unique_ptr<SoundSource> source = raw ? open_raw(bytes, *raw) : open_wav(bytes, name);
    if (!source) source = open_by_library(bytes);
    if (source) return source;
    const std::string kind = kind_of(bytes, name);
    if (has_sound_library()) throw host::Error(name + ": expected a sound file that libsndfile reads, got " + kind);
    throw host::Error(name + ": expected a WAV file of PCM or floats, got " + kind +
                      " (a build with libsndfile reads FLAC, Ogg and MP3)");
}

/// Whether what it names is read from where it stands: standard input, a pipe.
bool is_stream(const std::string& path) {
    using std::filesystem::file_type;
    std::error_code ignored;
    const file_type type = std::filesystem::status(path, ignored).type();
    return path == "-" || path.starts_with("/dev/") || type == file_type::fifo || type == file_type::socket;
}

}  // namespace

/// Samples of a source at another rate.
struct SoundDecoding {
    const std::string& name;
    std::unique_ptr<SoundSource> source;
    Resampler resample;
    std::vector<float> block = std::vector<float>(kBlock);
    bool ended = false;

    SoundDecoding(const std::string& n, std::unique_ptr<SoundSource> s, std::uint32_t rate)
        : name(n), source(std::move(s)), resample(resampler(source->rate, rate, name)) {}

    /// How many of the source's were read, of which `samples` has got what is decided; 0 at the end.
    std::size_t read(std::vector<float>& samples) {
        if (ended) return 0;
        const std::size_t n = source->read(block);
        for (std::size_t i = 0; i < n; ++i)
            if (!std::isfinite(block[i]))
                throw host::Error(name + ": samples: expected numbers, got NaN or an infinity");
        resample.push({block.data(), n}, samples);
        if (n == 0) ended = true, resample.finish(samples);
        return n;
    }
};

RawSound read_raw_sound(std::string_view text, const std::string& name) {
    const auto refuse = [&] {
        throw host::ArgumentError(name +
                                  ": expected RATE:FORMAT or RATE:FORMAT:CHANNELS, such as 16000:s16, with a rate of " +
                                  with_separators(kLeastSampleRate) + " to " + with_separators(kMostSampleRate) +
                                  ", u8, s16, s24, s32, f32 or f64, and 1 to 64 channels, got " + std::string(text));
    };
    RawSound raw;
    const auto number = [&](std::string_view part, std::uint32_t least, std::uint32_t most, std::uint32_t& value) {
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc{} || end != part.data() + part.size() || value < least || value > most) refuse();
    };
    const std::size_t first = text.find(':'), second = text.find(':', first + 1);
    if (first == text.npos) refuse();
    number(text.substr(0, first), kLeastSampleRate, kMostSampleRate, raw.rate);
    const std::string_view format = text.substr(first + 1, second == text.npos ? second : second - first - 1);
    constexpr std::string_view kFormats[] = {"u8", "s16", "s24", "s32", "f32", "f64"};
    if (std::find(std::begin(kFormats), std::end(kFormats), format) == std::end(kFormats)) refuse();
    raw.floats = format[0] == 'f';
    number(format.substr(1), 8, 64, raw.n_bits);
    if (second != text.npos) number(text.substr(second + 1), 1, 64, raw.n_channels);
    return raw;
}

struct SoundReader::Parts {
    std::string name;
    Mapping file{};
    std::optional<InputBytes> input{};
    std::optional<SoundDecoding> decoding{};

    /// What comes through a pipe is read as it comes if it is a WAV file, else whole.
    std::unique_ptr<SoundSource> open_input(const std::optional<RawSound>& raw) {
        if (input->is_pipe())
            if (auto source = raw ? open_piped_raw(*input, *raw) : open_piped_wav(*input)) return source;
        while (input->more())
            if (input->bytes().size() > kMostPiped)
                throw host::Error(name + ": sound: expected at most 4 GB, got more");
        return open_source(input->bytes(), name, raw);
    }
};

SoundReader::SoundReader(const std::string& path, std::uint32_t rate, const std::optional<RawSound>& raw)
    : parts_(new Parts{.name = input_name(path)}) {
    Parts& p = *parts_;
    const bool streams = is_stream(path);
    if (streams)
        p.input.emplace(path);
    else
        p.file = map_source(path);
    p.decoding.emplace(p.name, streams ? p.open_input(raw) : open_source(p.file.bytes(), p.name, raw), rate);
}

SoundReader::~SoundReader() = default;

bool SoundReader::read(std::vector<float>& samples) { return parts_->decoding->read(samples) != 0; }

bool SoundReader::is_piped() const { return parts_->input && parts_->input->is_pipe(); }

std::string SoundReader::note() const {
    const std::string& note = parts_->decoding->source->note;
    return note.empty() ? note : parts_->name + ": " + note;
}

std::vector<float> decode_sound(std::span<const std::byte> bytes, const std::string& name, std::uint32_t rate,
                                const SoundBounds& bounds, std::string* note) {
    SoundDecoding decoding(name, open_source(bytes, name), rate);
    if (note && !decoding.source->note.empty()) *note = name + ": " + decoding.source->note;
    const double most = bounds.most_seconds * decoding.source->rate;  // of the source's samples
    double n_read = 0;
    std::vector<float> samples;
    while (const std::size_t n = decoding.read(samples)) {
        if (bounds.between) bounds.between();
        n_read += static_cast<double>(n);
        if (n_read > most)
            throw host::Error(name + ": seconds: expected at most " +
                              with_separators(static_cast<std::uint64_t>(bounds.most_seconds)) + ", got more");
    }
    return samples;
}

std::vector<float> read_sound(const std::string& path, std::uint32_t rate, std::string* note) {
    SoundReader reader(path, rate);
    if (note && !reader.note().empty()) *note = reader.note();
    std::vector<float> samples;
    while (reader.read(samples)) continue;
    return samples;
}

std::vector<float> resample(std::span<const float> samples, std::uint32_t from, std::uint32_t to,
                            const std::string& name) {
    Resampler resampler_of = resampler(from, to, name);
    std::vector<float> out;
    resampler_of.push(samples, out);
    resampler_of.finish(out);
    return out;
}

}  // namespace fovea
