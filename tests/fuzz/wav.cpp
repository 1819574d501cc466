// WAV files: a host::Error, no WAV file, or samples that lie in the file, at any rate.
#include <vector>

#include "fovea/host/sound_file.h"
#include "host/media/sound_source.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(wav) {
    using namespace fovea;
    try {
        const auto source = open_wav({reinterpret_cast<const std::byte*>(data), size}, "fuzz.wav");
        if (!source) return 0;
        std::vector<float> samples(300), all;
        std::size_t n_all = 0;
        while (const std::size_t n = source->read(samples)) {
            fuzz::promise(n <= samples.size(), "no more samples than there is room for");
            n_all += n;
            if (all.size() < 1000)
                all.insert(all.end(), samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(n));
        }
        fuzz::promise(n_all <= size, "samples lie in the file");
        if (source->rate > 2000) (void)resample(all, source->rate, 16000, "fuzz.wav");  // others grow a lot
    } catch (const host::Error&) {
    }
    return 0;
}
