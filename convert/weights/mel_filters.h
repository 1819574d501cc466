// The bank of filters between a window's powers and a frame.
#pragma once
#include <vector>

#include "fovea/config.h"

namespace fovea {

/// [n_mels][n_bins]: triangles between neighbours among n_mels + 2 frequencies from 0 to half the sample rate, evenly spaced
/// in mels, each of unit area. Source: Slaney, Auditory Toolbox, 1998, as librosa and transformers have it: a mel is 200/3 Hz
/// below 1000 Hz, where the scale becomes logarithmic, with 27 mels from a frequency to 6.4 times as much. The same bits on
/// every host.
[[nodiscard]] std::vector<float> mel_filters(const Sound& sound);

}  // namespace fovea
