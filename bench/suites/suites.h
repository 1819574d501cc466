// The suites, one file each, and what they share.
#pragma once
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/kernels/kernels.h"
#include "fovea/host/opened.h"
#include "host/base/aligned_bytes.h"

namespace fovea {

using AddSuite = void();
AddSuite add_matmul_suite, add_attention_suite, add_model_suite, add_constraint_suite, add_speculation_suite,
    add_team_suite;

using AlignedFloats = std::vector<float, Aligned64<float>>;

// How every suite measures: speed and ceiling take turns within one benchmark, because on a shared machine both change
// from second to second and only neighbours can be compared.

/// What a speed is set beside: operations or bytes per second.
struct Ceiling {
    const char* unit;  ///< of both, in 10⁹ a second: "GFLOPS", "GOPS" or "GB_s"
    std::function<double()> measure;
};

/// Calls `once`, which does `amount` operations or bytes, in rounds of some half a second or one call, with the ceiling
/// measured before and after each; the larger of the two is the round's ceiling. Five rounds whose ceilings are within
/// a tenth of the highest are wanted, fifteen at most are run, and only those within that tenth count.
///
/// The benchmark's time is the median call's. Counters: the speed in `unit`, `ceiling` in the same, `share_of_peak`
/// (median over rounds of the median call's speed by the round's ceiling), `best_share`, and how many `rounds` counted.
void run_rounds(benchmark::State& state, const Ceiling& ceiling, double amount, const std::function<void()>& once);

/// Ceilings of this machine, see tools/measure/ceilings.h.
[[nodiscard]] Ceiling fma_ceiling(const char* isa, std::uint32_t n_threads);
[[nodiscard]] Ceiling int8_ceiling(const char* isa, std::uint32_t n_threads);
[[nodiscard]] Ceiling read_ceiling(const char* isa, std::span<const std::byte> bytes, std::uint32_t n_threads);

/// The same numbers on every machine (xorshift; Marsaglia 2003).
class Numbers {
public:
    std::uint32_t next() noexcept {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        return state_ ^= state_ << 5;
    }

private:
    std::uint32_t state_ = 1;
};

/// Registers one benchmark, which run_rounds times.
void add(const std::string& name, std::function<void(benchmark::State&)> run);

/// Calls use for every kernel table that this CPU can run.
void for_each_table(const std::function<void(const Kernels&)>& use);

/// SmolLM2-135M's shape with random weights of `type`, in a file that is mapped as any model's is. The one of another type is
/// forgotten: memory holds one at a time.
[[nodiscard]] const host::Opened& smollm2(Type type);

/// Elements of `type`, those of q8 and q4 as panels without gaps; floats of either sign, in size from an eighth to 2.
void fill_elements(Type type, Numbers& numbers, std::span<std::byte> bytes);

}  // namespace fovea
