// The instructions that this CPU and its operating system can run.
#pragma once

namespace fovea {

/// One flag per feature that a kernel table may need; false means "not needed" there and "not there" here.
struct CpuFeatures {
    bool avx2 = false, fma = false, f16c = false;
    bool avx512 = false;  // F, BW, DQ, VL and the operating system's zmm state
    bool avx512vnni = false;
    bool amx = false;  // tiles of int8, in CPU and operating system: see may_use_tiles
    bool avxvnni = false;
    bool neon = false, dotprod = false, i8mm = false;
    bool mve = false;
    /// A matter of speed, which no kernel needs: a stream from memory comes faster when it is fetched into the
    /// second-level cache than into the first, as on AMD's Zen 4, whose first-level cache waits for few lines at a
    /// time.
    bool fetches_to_second_level = false;
};

/// The CPU's answer (CPUID with XGETBV; HWCAP) when it was first asked; later calls take a few instructions. Any
/// thread.
[[nodiscard]] CpuFeatures detect_features() noexcept;

/// Asks Linux for AMX's tiles, once; returns whether it gives them. From then on Linux refuses this process signal
/// stacks of less than some eleven kilobytes, so ask only before multiplying by tiles. If the process has such a stack
/// already, Linux refuses, and detect_features reports no AMX any more. Any thread.
[[nodiscard]] bool may_use_tiles() noexcept;

/// Whether `have` has all that `need` asks for.
[[nodiscard]] bool covers(const CpuFeatures& have, const CpuFeatures& need) noexcept;

}  // namespace fovea
