#include "features.h"

#include <atomic>
#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
#include <sys/auxv.h>
#endif

namespace fovea {
namespace {

constexpr bool CpuFeatures::*kFlags[] = {
    &CpuFeatures::avx2,    &CpuFeatures::fma,  &CpuFeatures::f16c,    &CpuFeatures::avx512, &CpuFeatures::avx512vnni,
    &CpuFeatures::avxvnni, &CpuFeatures::neon, &CpuFeatures::dotprod, &CpuFeatures::i8mm,   &CpuFeatures::mve,
};
static_assert(sizeof kFlags / sizeof *kFlags == sizeof(CpuFeatures), "one bool each");

#if defined(__x86_64__) || defined(__i386__)

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

CpuFeatures ask() noexcept {
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

CpuFeatures ask() noexcept {
    CpuFeatures f;
    f.neon = true;  // every AArch64 has it
    f.dotprod = (getauxval(AT_HWCAP) >> 20) & 1;
    f.i8mm = (getauxval(AT_HWCAP2) >> 13) & 1;
    return f;
}

#elif defined(__linux__) && defined(__arm__)

CpuFeatures ask() noexcept {
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
CpuFeatures ask() noexcept {
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

constexpr std::uint32_t kAsked = 1u << 31;
constinit std::atomic<std::uint32_t> remembered{0};  // kAsked, and bit i for kFlags[i]

}  // namespace

CpuFeatures detect_features() noexcept {
    std::uint32_t bits = remembered.load(std::memory_order_relaxed);
    CpuFeatures f;
    if (!bits) {  // a hypervisor takes 50 us to answer the CPUIDs; two threads that both ask hear the same
        f = ask();
        bits = kAsked;
        for (int i = 0; const auto flag : kFlags) bits |= static_cast<std::uint32_t>(f.*flag) << i++;
        remembered.store(bits, std::memory_order_relaxed);
    }
    for (int i = 0; const auto flag : kFlags) f.*flag = (bits >> i++) & 1;
    return f;
}

bool covers(const CpuFeatures& have, const CpuFeatures& need) noexcept {
    for (const auto flag : kFlags)
        if (need.*flag && !(have.*flag)) return false;
    return true;
}

}  // namespace fovea
