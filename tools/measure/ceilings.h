// This machine's best speeds, measured here and now, to compare others with. On a shared host they change from minute
// to minute: measure just before and just after the speed to be compared, and take the larger.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fovea {

/// Floating-point operations per second of n_threads threads that do nothing but fused multiply-adds in registers, two
/// operations each, at the width of the instruction set `isa` (one of isa_names()); multiply and add apart if it has
/// none. The best of several runs, 60 ms together.
[[nodiscard]] double measure_fma_peak(std::string_view isa, std::uint32_t n_threads);

/// The same for exact products of unsigned with signed bytes, summed as int32: vpdpbusd if the instruction set has it,
/// vpmaddubsw, vpmaddwd and vpaddd on other x86, else plain int32. For amx too it is the vectors' peak: products by
/// tiles may be several times as fast.
[[nodiscard]] double measure_int8_peak(std::string_view isa, std::uint32_t n_threads);

/// Bytes per second of n_threads threads that read `bytes`, each its share, as n_streams streams side by side.
struct ReadRate {
    double bytes_per_second = 0;
    std::uint32_t n_streams = 0;
};
/// The best of 1, 2, 4 and 8 streams, each tried twice over the whole range (the first GiB of a larger one). Zero for a
/// range of less than 2 KiB a thread.
[[nodiscard]] ReadRate measure_read_peak(std::string_view isa, std::span<const std::byte> bytes,
                                         std::uint32_t n_threads);

/// Lets the calling thread, the thread-th of n_threads, run on one CPU only: the thread-th of the CPUs that the first
/// caller of either function could use. Does nothing if those are fewer than n_threads, or on systems other than Linux.
void pin_thread(std::uint32_t thread, std::uint32_t n_threads);
/// Lets it run on all of them.
void unpin_thread();

}  // namespace fovea
