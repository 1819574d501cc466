// A host's thread whose floating-point environment is as unlike the engine's as it goes.
#pragma once
#include <fenv.h>

#include <cstdint>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

#if defined(FOVEA_EMULATED) && defined(__x86_64__)
constexpr bool kInValgrind = true;  // which is another processor than the kernel's, and always rounds to nearest
#else
constexpr bool kInValgrind = false;
#endif

/// Makes this thread's environment as unlike the engine's as it goes, as a host may, and undoes it.
class HostileHost {
public:
    HostileHost() {
        fegetenv(&saved_);
        fesetround(FE_DOWNWARD);
#if defined(__SSE__)
        _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#elif defined(__aarch64__)
        std::uint64_t fpcr;
        __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
        __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1u << 24));  // flush to zero
#elif defined(__arm__)
        std::uint32_t fpscr;
        __asm__ volatile("vmrs %0, fpscr" : "=r"(fpscr));
        __asm__ volatile("vmsr fpscr, %0" : : "r"(fpscr | 1u << 24));
#endif
    }
    ~HostileHost() { fesetenv(&saved_); }

private:
    fenv_t saved_;
};

// volatile: computed when and where it is written, not by the compiler.
bool rounds_to_nearest() {
    volatile float one = 1.0f, more_than_half = 0.6e-7f;
    return one + more_than_half > 1.0f;
}
bool keeps_denormals() {
    volatile float small = 1.5e-38f, half = 0.5f;
    volatile float denormal = small * half;
    return denormal != 0.0f && denormal + denormal == small;
}

}  // namespace
