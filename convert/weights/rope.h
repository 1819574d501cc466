// The inverse frequencies of rotary positions (Su et al. 2021) under the scalings that published models use.
#pragma once
#include <cstdint>
#include <vector>

namespace fovea {

enum class RopeScaling : std::uint8_t {
    none,
    linear,        ///< every frequency divided by `factor` (Chen et al. 2023)
    yarn,          ///< low frequencies divided, high ones kept, a ramp between (Peng et al. 2023)
    llama3,        ///< the same idea by wavelength, as Llama 3.1 has it
    proportional,  ///< pairs from a share of a head on do not turn, the others as in a whole one
    divided,       ///< each frequency by a number of its own (Ding et al. 2024)
};

struct Rope {
    RopeScaling scaling = RopeScaling::none;
    double base = 10000.0;
    double factor = 1.0;
    double original_positions = 0.0;             ///< yarn, llama3: what the model was trained on first
    double beta_fast = 32.0, beta_slow = 1.0;    ///< yarn: rotations over original_positions where the ramp ends
    bool truncate = true;                        ///< yarn: the ramp's ends are rounded outwards
    double low_factor = 1.0, high_factor = 4.0;  ///< llama3: original_positions over the ramp's wavelengths
    float attention_factor = 1.0f;               ///< multiplies sines and cosines: Block::rope_scale
    double share = 1.0;                          ///< proportional: what turns of a head
    std::vector<float> divisors = {};            ///< divided: one for each frequency
    std::vector<float> long_divisors = {};       ///< the same beyond original_positions; empty: positions end there
    std::uint32_t fixed_length = 0;              ///< above 0: what the settings are right for, positions
    bool halves =
        true;  ///< in the source dim i turns with dim i + rotary_dim / 2; else adjacent dims, as in a Fovea file

    bool operator==(const Rope&) const = default;
};

/// Radians per position of each of rotary_dim / 2 pairs; of long_divisors another such list behind it. base in (1, 1e30), factor in [1e-6, 1e6].
/// Computed in float32 in the order in which Hugging Face's transformers computes them.
[[nodiscard]] std::vector<float> rope_frequencies(const Rope& rope, std::uint32_t rotary_dim);

/// YaRN's attention factor for a model that does not state one: 0.1·mscale·ln(factor) + 1, at least 1.
[[nodiscard]] double yarn_attention_factor(double factor, double mscale) noexcept;

}  // namespace fovea
