#include "features.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
#include <sys/auxv.h>
#endif

namespace fovea {

#if defined(__x86_64__) || defined(__i386__)

namespace {

struct Registers {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) noexcept {
    Registers r;
    if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
    return r;
}

bool bit(unsigned word, int i) noexcept { return (word >> i) & 1; }

/// XCR0: the register state that the operating system saves when it switches threads.
unsigned saved_state() noexcept {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

}  // namespace

CpuFeatures detect_features() noexcept {
    CpuFeatures f;
    const Registers basic = cpuid(1, 0), extended = cpuid(7, 0), further = cpuid(7, 1);
    constexpr int kXgetbvEnabled = 27, kAvx = 28;
    if (!bit(basic.ecx, kXgetbvEnabled) || !bit(basic.ecx, kAvx)) return f;
    constexpr unsigned kYmmState = 0x06, kZmmState = 0xe6;  // xmm and ymm; also masks and both halves of zmm
    const unsigned state = saved_state();
    if ((state & kYmmState) != kYmmState) return f;
    f.fma = bit(basic.ecx, 12);
    f.f16c = bit(basic.ecx, 29);
    f.avx2 = bit(extended.ebx, 5);
    f.avxvnni = f.avx2 && bit(further.eax, 4);
    if ((state & kZmmState) != kZmmState) return f;
    f.avx512 = bit(extended.ebx, 16) && bit(extended.ebx, 17) && bit(extended.ebx, 30) && bit(extended.ebx, 31);
    f.avx512vnni = f.avx512 && bit(extended.ecx, 11);
    return f;
}

#elif defined(__linux__) && defined(__aarch64__)

CpuFeatures detect_features() noexcept {
    CpuFeatures f;
    f.neon = true;  // every AArch64 has it
    f.dotprod = (getauxval(AT_HWCAP) >> 20) & 1;
    f.i8mm = (getauxval(AT_HWCAP2) >> 13) & 1;
    return f;
}

#elif defined(__linux__) && defined(__arm__)

CpuFeatures detect_features() noexcept {
    CpuFeatures f;
    const unsigned long capabilities = getauxval(AT_HWCAP);
    // The kernels keep floats in VFP registers and need its fused multiply-add: NEON alone (Cortex-A8, A9) won't do.
    f.neon = ((capabilities >> 12) & 1) && ((capabilities >> 16) & 1);
    f.dotprod = f.neon && ((capabilities >> 24) & 1);
    f.i8mm = f.neon && ((capabilities >> 27) & 1);
    return f;
}

#else

// Where nobody can be asked, what the compiler was told is what there is.
CpuFeatures detect_features() noexcept {
    CpuFeatures f;
#if defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
    f.neon = true;
#endif
#if defined(__ARM_FEATURE_DOTPROD)
    f.dotprod = true;
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
    f.i8mm = true;
#endif
#if defined(__ARM_FEATURE_MVE)
    f.mve = true;
#endif
    return f;
}

#endif

bool covers(const CpuFeatures& have, const CpuFeatures& need) noexcept {
    const auto ok = [](bool has, bool needs) { return has || !needs; };
    return ok(have.avx2, need.avx2) && ok(have.fma, need.fma) && ok(have.f16c, need.f16c) &&
           ok(have.avx512, need.avx512) && ok(have.avx512vnni, need.avx512vnni) && ok(have.avxvnni, need.avxvnni) &&
           ok(have.neon, need.neon) && ok(have.dotprod, need.dotprod) && ok(have.i8mm, need.i8mm) &&
           ok(have.mve, need.mve);
}

}  // namespace fovea
