#include "platform/float_env.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace fovea {
namespace {

#if defined(__SSE__)

// MXCSR: every exception masked, round to nearest, neither flush-to-zero nor denormals-are-zero.
std::uint64_t control() noexcept { return _mm_getcsr(); }
void set_control(std::uint64_t word) noexcept { _mm_setcsr(static_cast<unsigned>(word)); }
constexpr std::uint64_t kPlainMode = 0x1f80, kKeptMode = 0;

#elif defined(__aarch64__)

// FPCR: zero is round to nearest, gradual underflow, NaNs propagated, no traps.
std::uint64_t control() noexcept {
    std::uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}
void set_control(std::uint64_t word) noexcept { __asm__ volatile("msr fpcr, %0" : : "r"(word) : "memory"); }
constexpr std::uint64_t kPlainMode = 0, kKeptMode = 0;

#elif defined(__arm__) && defined(__ARM_FP)

// FPSCR: zero as on AArch64. With Helium, bits 16 to 18 hold the loop tail's element size and are not ours to change.
std::uint64_t control() noexcept {
    std::uint32_t word;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(word));
    return word;
}
void set_control(std::uint64_t word) noexcept {
    __asm__ volatile("vmsr fpscr, %0" : : "r"(static_cast<std::uint32_t>(word)) : "memory");
}
#if defined(__ARM_FEATURE_MVE)
constexpr std::uint64_t kPlainMode = 0, kKeptMode = 0x70000;
#else
constexpr std::uint64_t kPlainMode = 0, kKeptMode = 0;
#endif

#elif defined(__riscv_flen)

// Only the rounding mode: RISC-V has neither flushing nor traps.
std::uint64_t control() noexcept {
    unsigned long mode;
    __asm__ volatile("frrm %0" : "=r"(mode));
    return mode;
}
void set_control(std::uint64_t mode) noexcept {
    __asm__ volatile("fsrm %0" : : "r"(static_cast<unsigned long>(mode)) : "memory");
}
constexpr std::uint64_t kPlainMode = 0, kKeptMode = 0;

#else

// WebAssembly and software floating point have one environment, and it is the right one.
std::uint64_t control() noexcept { return 0; }
void set_control(std::uint64_t) noexcept {}
constexpr std::uint64_t kPlainMode = 0, kKeptMode = 0;

#endif

}  // namespace

FloatEnv::FloatEnv() noexcept : saved_(control()) { set_control((saved_ & kKeptMode) | kPlainMode); }

FloatEnv::~FloatEnv() { set_control(saved_); }

}  // namespace fovea
