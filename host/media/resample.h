// From one rate of samples to another, by a windowed sinc, with the same bits on every machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fovea {

/// Output sample i is the source at time i·from/to: a sum over the neighbours with sinc's weights in a Blackman window, cut off at
/// 15/16 of the lower rate's highest frequency. Before and behind the source is silence. In double; weights of each of the
/// to/gcd phases are made once.
class Resampler {
public:
    Resampler(std::uint32_t from, std::uint32_t to);

    /// Takes more of the source, and appends what is decided by then.
    void push(std::span<const float> samples, std::vector<float>& out);
    /// The source has ended: appends the rest, so that there are ceil(n·to/from) samples for n.
    void finish(std::vector<float>& out);

private:
    void make_row(std::uint32_t phase);
    void make_out(std::vector<float>& out);

    std::uint32_t up_, down_;                // to and from without common factors
    std::int64_t half_;                      // neighbours on each side
    std::vector<std::vector<double>> rows_;  // [up_][2·half_], made when first wanted
    std::vector<float> held_;                // the source from `first_` on
    std::int64_t first_ = 0;                 // begins before 0, in the silence
    std::uint64_t n_in_ = 0, n_out_ = 0;
};

}  // namespace fovea
