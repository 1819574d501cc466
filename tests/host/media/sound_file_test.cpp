// Sound files: every coding of WAV, other rates, standard refusals; and what libsndfile reads, where it is built in.
#include "fovea/host/sound_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "host/base/error.h"
#include "host/media/sound_source.h"
#include "tests/support/convert_fixtures.h"

namespace {

using namespace fovea;
using testing::TemporaryFolder, testing::write_text;

std::string little(std::uint64_t number, int n_bytes) {
    std::string bytes;
    for (int i = 0; i < n_bytes; ++i) bytes += static_cast<char>(number >> 8 * i);
    return bytes;
}

struct Coded {
    std::uint32_t coding, n_bits, n_channels = 1, rate = 16000;
};

std::string format_chunk(const Coded& c) {
    const std::uint32_t row = c.n_channels * c.n_bits / 8;
    return "fmt " + little(16, 4) + little(c.coding, 2) + little(c.n_channels, 2) + little(c.rate, 4) +
           little(c.rate * row, 4) + little(row, 2) + little(c.n_bits, 2);
}
std::string wav(const std::string& chunks) { return "RIFF" + little(chunks.size() + 4, 4) + "WAVE" + chunks; }
std::string data_chunk(const std::string& data) { return "data" + little(data.size(), 4) + data; }

std::vector<float> read_bytes(const std::string& bytes, std::uint32_t rate = 16000) {
    static const testing::TemporaryFolder folder;  // of this run alone
    const std::string path = (folder / "fovea_sound_test").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return read_sound(path, rate);
}
std::string refusal_of(const std::string& bytes) {
    try {
        (void)read_bytes(bytes);
    } catch (const host::Error& refusal) {
        const std::string line = refusal.what();
        return line.substr(line.find("test: ") + 6);
    }
    return "read";
}

/// Values in eighths as a coding has them.
std::string coded(const Coded& c, const std::vector<int>& eighths) {
    std::string bytes;
    for (const int e : eighths) {
        const double x = e / 8.0;
        if (c.coding == 3 && c.n_bits == 32) bytes += little(std::bit_cast<std::uint32_t>(static_cast<float>(x)), 4);
        if (c.coding == 3 && c.n_bits == 64) bytes += little(std::bit_cast<std::uint64_t>(x), 8);
        if (c.coding == 1 && c.n_bits == 8) bytes += little(static_cast<std::uint64_t>(x * 128 + 128), 1);
        if (c.coding == 1 && c.n_bits > 8)
            bytes += little(
                static_cast<std::uint64_t>(static_cast<std::int64_t>(std::ldexp(x, static_cast<int>(c.n_bits) - 1))),
                static_cast<int>(c.n_bits / 8));
    }
    return bytes;
}

TEST_CASE("sound file: WAV of every coding; channels are averaged; chunks that say nothing are passed over") {
    const std::vector<int> eighths{-8, -3, 0, 1, 7, 5};
    for (const Coded c : {Coded{1, 8}, Coded{1, 16}, Coded{1, 24}, Coded{1, 32}, Coded{3, 32}, Coded{3, 64}}) {
        CAPTURE(c.coding);
        CAPTURE(c.n_bits);
        const std::string data = coded(c, eighths);
        const auto mono = read_bytes(wav(format_chunk(c) + data_chunk(data)));
        CHECK(mono == std::vector<float>{-1.0f, -0.375f, 0.0f, 0.125f, 0.875f, 0.625f});
        Coded stereo = c;
        stereo.n_channels = 2;
        CHECK(read_bytes(wav(format_chunk(stereo) + data_chunk(data))) == std::vector<float>{-0.6875f, 0.0625f, 0.75f});
    }
    const Coded c{1, 16};
    const std::string list = "LIST" + little(3, 4) + "abc" + std::string(1, '\0');
    const std::string data = coded(c, {4, -4});
    CHECK(read_bytes(wav(list + format_chunk(c) + list + data_chunk(data) + list)) == std::vector<float>{0.5f, -0.5f});
    // Written into a pipe: the size is not known.
    CHECK(read_bytes(wav(format_chunk(c) + "data" + little(0xffffffff, 4) + data)) == std::vector<float>{0.5f, -0.5f});
    CHECK(read_bytes(wav(format_chunk(c) + "data" + little(0, 4) + data)) == std::vector<float>{0.5f, -0.5f});
}

TEST_CASE("sound file: samples lie in their containers as the block align says, at the top or at the bottom") {
    const std::vector<int> eighths{-8, -3, 0, 1, 7, 5};
    for (const std::uint32_t n_bits : {12u, 16u, 20u, 24u, 32u})
        for (std::uint32_t n_container = (n_bits + 7) / 8; n_container <= 4; ++n_container)
            for (const std::uint32_t n_channels : {1u, 2u})
                for (const bool at_top : {true, false})
                    for (const bool extensible : {false, true}) {
                        CAPTURE(n_bits);
                        CAPTURE(n_container);
                        CAPTURE(n_channels);
                        CAPTURE(at_top);
                        const std::uint32_t n_row = n_container * n_channels,
                                            n_used = at_top ? n_container : (n_bits + 7) / 8;
                        std::string format = little(extensible ? 0xfffe : 1, 2) + little(n_channels, 2) +
                                             little(16000, 4) + little(16000 * n_row, 4) + little(n_row, 2) +
                                             little(n_bits, 2);
                        if (extensible)
                            format +=
                                little(22, 2) + little(n_bits, 2) + little(0, 4) + little(1, 2) + std::string(14, 0);
                        std::string data;
                        for (const int e : eighths)
                            data += little(static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                               std::ldexp(e / 8.0, static_cast<int>(8 * n_used) - 1))),
                                           static_cast<int>(n_container));
                        const auto read =
                            read_bytes(wav("fmt " + little(format.size(), 4) + format + data_chunk(data)));
                        CHECK(read == (n_channels == 1
                                           ? std::vector<float>{-1.0f, -0.375f, 0.0f, 0.125f, 0.875f, 0.625f}
                                           : std::vector<float>{-0.6875f, 0.0625f, 0.75f}));
                    }
    // A block align that nothing bears out: samples of 16 bits lie side by side; others are refused, or left to libsndfile.
    const auto with_row = [](std::uint32_t n_row, std::uint32_t n_bits, const std::string& data) {
        return wav("fmt " + little(16, 4) + little(1, 2) + little(1, 2) + little(16000, 4) + little(16000 * n_row, 4) +
                   little(n_row, 2) + little(n_bits, 2) + data_chunk(data));
    };
    const std::vector<int> four{4, -4, 2, 1};
    const std::vector<float> read{0.5f, -0.5f, 0.25f, 0.125f};
    for (const std::uint32_t n_row : {0u, 1u, 4u, 77u})
        CHECK(read_bytes(with_row(n_row, 16, coded({1, 16}, four))) == read);
    const std::string floats = coded({3, 32}, {4, -4, 2, 1, 3});  // as an old editor wrote them
    if (!has_sound_library())
        CHECK(refusal_of(with_row(4, 24, floats)).starts_with("expected a WAV file of PCM or floats, got a WAV"));
}

TEST_CASE("sound file: samples without a header, as they are said to be") {
    const TemporaryFolder folder;
    const std::string path = (folder / "x.raw").string();
    const auto read = [&](const char* how, const std::string& data) {
        write_text(path, data);
        std::vector<float> samples;
        for (SoundReader reader(path, 16000, read_raw_sound(how, "--raw")); reader.read(samples);) continue;
        return samples;
    };
    const std::vector<int> eighths{-8, -3, 0, 1, 7, 5};
    const std::vector<float> mono{-1.0f, -0.375f, 0.0f, 0.125f, 0.875f, 0.625f};
    CHECK(read("16000:u8", coded({1, 8}, eighths)) == mono);
    CHECK(read("16000:s16", coded({1, 16}, eighths)) == mono);
    CHECK(read("16000:s24:1", coded({1, 24}, eighths)) == mono);
    CHECK(read("16000:s32", coded({1, 32}, eighths)) == mono);
    CHECK(read("16000:f32", coded({3, 32}, eighths)) == mono);
    CHECK(read("16000:f64", coded({3, 64}, eighths) + "abc") == mono);  // part of a sample at the end
    CHECK(read("16000:s16:2", coded({1, 16}, eighths)) == std::vector<float>{-0.6875f, 0.0625f, 0.75f});
    CHECK(read("8000:s16", coded({1, 16}, eighths)).size() == 12);
    CHECK(read("16000:s16", wav(format_chunk({1, 16}) + data_chunk("ab"))).size() == 23);  // a header is samples, too
    for (const char* bad : {"", "16000", "s16", "16000:", "16000:s8", "16000:u16", "16000:s16:0", "16000:s16:65",
                            "999:s16", "16000:s16:", "16000:s16:1:1", "-1:s16", "16000:s16le", " 16000:s16"})
        CHECK_THROWS_AS((void)read_raw_sound(bad, "--raw"), host::ArgumentError);
}

TEST_CASE("sound file: what a pipe brings is what a file has, as it comes") {
    const TemporaryFolder folder;
    const std::string pipe = (folder / "pipe").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::vector<int> eighths(50000);
    for (std::size_t i = 0; i < eighths.size(); ++i) eighths[i] = static_cast<int>(i * 7 % 15) - 7;
    const Coded c{1, 16, 1, 44100};
    const std::string data = coded(c, eighths), list = "LIST" + little(100000, 4) + std::string(100000, 'x');
    const auto piped = [&](const std::string& bytes, std::size_t step) {
        std::thread writer([&] {
            std::ofstream out(pipe, std::ios::binary);
            for (std::size_t i = 0; i < bytes.size(); i += step) out << bytes.substr(i, step) << std::flush;
        });
        std::vector<float> samples;
        SoundReader reader(pipe, 16000);
        CHECK(reader.is_piped());
        while (reader.read(samples)) continue;
        writer.join();
        return samples;
    };
    for (const std::string& bytes :
         {wav(format_chunk(c) + data_chunk(data)),
          wav(list + format_chunk(c) + list + data_chunk(data) + "LIST" + little(2, 4) + "ab"),
          wav(format_chunk(c) + "data" + little(0xffffffff, 4) + data),
          wav(format_chunk({1, 16, 2, 44100}) + data_chunk(data + "abc")),
          wav(format_chunk(c) + "data" + little(data.size() + 999, 4) + data)})
        for (const std::size_t step : {std::size_t{7919}, bytes.size()}) CHECK(piped(bytes, step) == read_bytes(bytes));
}

TEST_CASE("sound file: other formats are named, with the command that converts them") {
    const std::pair<std::string, const char*> kinds[] = {{" ftypM4A ", "MPEG-4 (m4a, mp4)"},
                                                         {"\x1a\x45\xdf\xa3", "Matroska (webm, mkv)"},
                                                         {"#!AMR\n", "AMR"},
                                                         {"\x30\x26\xb2\x75", "Windows Media (wma)"},
                                                         {"\xff\xf1", "AAC"}};
    for (const auto& [begin, name] : kinds) {
        const std::string bytes = (begin[0] == ' ' ? std::string(3, '\0') : "") + begin + std::string(64, '\1');
        std::string refusal;
        try {
            (void)decode_sound(std::as_bytes(std::span(bytes)), "talk.x", 16000);
        } catch (const host::Error& error) {
            refusal = error.what();
        }
        CHECK(refusal.find(std::string("got ") + name + ": `ffmpeg -i talk.x -f wav -` makes one") != refusal.npos);
    }
}

TEST_CASE("sound file: what is refused") {
    const Coded c{1, 16};
    CHECK(refusal_of(wav(format_chunk(c))) == "WAV file: expected data, got none");
    CHECK(refusal_of(wav(data_chunk("ab"))) == "WAV file: expected its format before its data, got none");
    CHECK(refusal_of(wav("fmt " + little(4, 4) + "abcd")) == "WAV format: expected 16 bytes, got 4");
    CHECK(refusal_of(wav(format_chunk({1, 16, 0}) + data_chunk("ab"))) == "WAV channels: expected at least 1, got 0");
    // Each sample at a rate of 1 would become 16,000.
    for (const std::uint32_t rate : {0u, 1u, 999u, 768001u, 4000000000u})
        CHECK(refusal_of(wav(format_chunk({1, 16, 1, rate}) + data_chunk("ab")))
                  .starts_with("samples a second: expected 1,000 to 768,000, got "));
    const std::string nan = coded({3, 32}, {1}) + little(0x7fc00000, 4);
    CHECK(refusal_of(wav(format_chunk({3, 32}) + data_chunk(nan))) ==
          "samples: expected numbers, got NaN or an infinity");
    CHECK(refusal_of("no sound at all").starts_with("expected a "));
    for (std::size_t n = 0; n < 60; ++n) (void)refusal_of(wav(format_chunk(c) + data_chunk("abcd")).substr(0, n));
}

TEST_CASE("sound file: bytes give what their file does, within bounds, and between blocks the work can be ended") {
    const Coded c{1, 16};
    const std::string bytes = wav(format_chunk(c) + data_chunk(std::string(200000, '\1')));
    const std::span<const std::byte> span = std::as_bytes(std::span(bytes));
    CHECK(decode_sound(span, "x", 16000) == read_bytes(bytes));
    CHECK(decode_sound(span, "x", 8000, {.most_seconds = 6.25}).size() == 50000);
    CHECK_THROWS_WITH((void)decode_sound(span, "x", 16000, {.most_seconds = 6}),
                      "x: seconds: expected at most 6, got more");
    int n_calls = 0;
    (void)decode_sound(span, "x", 16000, {.between = [&] { ++n_calls; }});
    CHECK(n_calls == 4);  // blocks of 32,768 samples
    CHECK_THROWS_AS((void)decode_sound(span, "x", 16000, {.between = [] { throw 5; }}), int);
}

/// The largest difference between a resampled sine and the sine, away from the ends.
double error_of(std::uint32_t from, std::uint32_t to, double hertz) {
    std::vector<float> x(from);
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(std::sin(2 * 3.14159265358979323846 * hertz * static_cast<double>(i) / from));
    const std::vector<float> y = resample(x, from, to, "x");
    REQUIRE(y.size() == to);
    double most = 0;
    for (std::size_t i = to / 10; i < to - to / 10; ++i)
        most = std::max(most, std::abs(static_cast<double>(y[i]) -
                                       std::sin(2 * 3.14159265358979323846 * hertz * static_cast<double>(i) / to)));
    return most;
}

TEST_CASE(
    "sound file: one that ends before its recording is read with a note, one whose length was not known without") {
    const TemporaryFolder folder;
    const std::string path = (folder / "cut.wav").string(), format = format_chunk({1, 16}), samples(64, '\1');
    const auto note_of = [&](std::uint64_t size) {
        std::string note;
        write_text(path, wav(format + "data" + little(size, 4) + samples));
        CHECK(read_sound(path, 16000, &note).size() == 32);
        return note;
    };
    CHECK(note_of(64).empty());
    CHECK(note_of(0).empty());
    CHECK(note_of(0xffffffff).empty());
    CHECK(note_of(0x7ffff000).empty());
    CHECK(note_of(32064) == path + ": the file ends 32,000 bytes before its recording does");
}

TEST_CASE("sound file: other rates keep what both can have, and lose what the lower cannot") {
    for (const std::uint32_t from : {8000u, 11025u, 22050u, 44100u, 48000u, 96000u}) {
        CAPTURE(from);
        CHECK(error_of(from, 16000, 440) < 2e-4);
        CHECK(error_of(from, 16000, 3000) < 2e-4);
    }
    // 11 kHz is no sound of 16,000 samples a second: where it would come back, at 5 kHz, is nothing.
    std::vector<float> x(44100);
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(std::sin(2 * 3.14159265358979323846 * 11000 * static_cast<double>(i) / 44100));
    const std::vector<float> y = resample(x, 44100, 16000, "x");
    for (std::size_t i = 2000; i < 14000; ++i) REQUIRE(std::abs(y[i]) < 2e-4);
    CHECK(resample(std::vector<float>(3, 0.5f), 16000, 16000, "x") == std::vector<float>(3, 0.5f));
    CHECK(resample({}, 44100, 16000, "x").empty());
    CHECK(resample(std::vector<float>(1), 44100, 16000, "x").size() == 1);
}

TEST_CASE("sound file: a recording longer than a block is resampled as one") {
    std::vector<int> eighths(100000);
    for (std::size_t i = 0; i < eighths.size(); ++i) eighths[i] = static_cast<int>(i * 7 % 15) - 7;
    const Coded c{1, 16, 1, 44100};
    const auto by_blocks = read_bytes(wav(format_chunk(c) + data_chunk(coded(c, eighths))));
    std::vector<float> x(eighths.begin(), eighths.end());
    for (float& v : x) v /= 8;
    CHECK(by_blocks == resample(x, 44100, 16000, "x"));
}

TEST_CASE("sound file: libsndfile's formats, where it is built in") {
    const std::vector<float> samples = {0.5f, -0.5f, 0.25f};
    std::string au = ".snd";  // Sun's: numbers are big-endian
    for (const std::uint32_t field : {24u, 6u, 3u, 16000u, 1u})
        for (int i = 3; i >= 0; --i) au += static_cast<char>(field >> 8 * i);
    au += std::string("\x40\x00\xc0\x00\x20\x00", 6);
    if (has_sound_library())
        CHECK(read_bytes(au) == samples);
    else
        CHECK(refusal_of(au).starts_with("expected a WAV file"));
}

}  // namespace
