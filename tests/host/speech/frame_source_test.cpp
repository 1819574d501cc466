// Frames that are made while samples come: those of the whole recording, but for the floor that its loudest sets.
#include "host/speech/frame_source.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "fovea/host/opened.h"
#include "fovea/sound.h"
#include "host/speech/speech_engine.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

/// Noise that grows louder, as 16-bit numbers.
std::string noise(std::size_t n) {
    std::string bytes;
    std::uint64_t state = 9;
    for (std::size_t i = 0; i < n; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double x = static_cast<double>(state >> 40) / (1 << 24) - 0.5;
        const auto sample =
            static_cast<std::int16_t>(x * 60000.0 * static_cast<double>(i + 1) / static_cast<double>(n + 1));
        bytes += static_cast<char>(sample), bytes += static_cast<char>(sample >> 8);
    }
    return bytes;
}

TEST_CASE("frame source: what a pipe brings has the frames of the whole, windows wherever they begin") {
    ConvertOptions options;
    options.source = fs::path(FOVEA_GOLDEN_DIR) / "speech/whisper_talking";
    const ModelSource source = read_source(options);
    const AlignedBytes file = write_bytes(source, write_options(options, source));
    const host::Opened opened = host::open_bytes(file, "m");
    const Sound& sound = opened.config().encoder.sound;
    const TemporaryFolder folder;
    const std::string pipe = (folder / "pipe").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const RawSound raw;
    for (const std::size_t n : {std::size_t{0}, std::size_t{100}, std::size_t{4000}, std::size_t{9600},
                                std::size_t{9601}, std::size_t{40077}}) {
        CAPTURE(n);
        const std::string bytes = noise(n);
        write_text((folder / "whole").string(), bytes);
        std::vector<float> samples;
        for (SoundReader reader((folder / "whole").string(), 16000, raw); reader.read(samples);) continue;
        const RecordingFrames whole = recording_frames(opened.model, samples, "whole");
        MadeFrames made(whole.view(), sound.n_mels);
        std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << bytes; });
        SoundReader reader(pipe, 16000, raw);
        LiveFrames live(opened.model, reader, "pipe");
        std::vector<float> a(std::size_t{sound.n_frames} * sound.n_mels), b = a;
        for (std::uint32_t first = 0, step = 7;; first += step, step = step % 50 + 9) {
            CAPTURE(first);
            const std::uint32_t n_live = live.read(first, a), n_made = made.read(first, b);
            REQUIRE(n_live == n_made);
            if (!n_live) break;
            float loudest = -9;
            for (std::size_t i = 0; i < std::size_t{n_live} * sound.n_mels; ++i) loudest = std::max(loudest, b[i]);
            for (std::size_t i = 0; i < a.size(); ++i)  // above every floor they are equal
                if (b[i] > 0.99f * loudest || n <= 9600) REQUIRE(std::abs(a[i] - b[i]) < 1e-6f);
        }
        writer.join();
        CHECK(live.n_content() == whole.n_content);
        CHECK(live.n_samples() == n);
    }
}

}  // namespace
