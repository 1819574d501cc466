#include "platform/features.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
#include <sys/auxv.h>
#elif defined(__wasm_relaxed_simd__)
#include <wasm_simd128.h>
#endif
#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fovea {
namespace {

[[maybe_unused]] bool bit(unsigned long word, int i) noexcept { return (word >> i) & 1; }

#if defined(__x86_64__) || defined(__i386__)

struct Registers {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) noexcept {
    Registers r;
    if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
    return r;
}

/// XCR0: the register state that the operating system saves when it switches threads.
unsigned saved_state() noexcept {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

bool is_amd() noexcept {
    const Registers vendor = cpuid(0, 0);
    return vendor.ebx == 0x68747541 && vendor.edx == 0x69746e65 && vendor.ecx == 0x444d4163;  // "AuthenticAMD"
}

/// As CPUID counts: base and extended family together.
unsigned family(const Registers& basic) noexcept { return (basic.eax >> 8 & 0xf) + (basic.eax >> 20 & 0xff); }

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
    f.avx512 = true;  // F, DQ, CD, BW and VL
    for (const int i : {16, 17, 28, 30, 31}) f.avx512 = f.avx512 && bit(extended.ebx, i);
    f.avx512vnni = f.avx512 && bit(extended.ecx, 11);
#if defined(__linux__)                        // which may_use_tiles asks, and no other system
    constexpr unsigned kTileState = 0x60000;  // configuration and data
    f.amx = bit(extended.edx, 24) && bit(extended.edx, 25) && (state & kTileState) == kTileState;
#endif
    constexpr unsigned kZen3And4 = 0x19;  // of these only Zen 4 has AVX-512
    f.fetches_to_second_level = f.avx512 && is_amd() && family(basic) == kZen3And4;
    return f;
}

#elif defined(__linux__) && defined(__aarch64__)

CpuFeatures ask() noexcept {  // every AArch64 has NEON
    return {.neon = true, .dotprod = bit(getauxval(AT_HWCAP), 20), .i8mm = bit(getauxval(AT_HWCAP2), 13)};
}

#elif defined(__linux__) && defined(__arm__)

CpuFeatures ask() noexcept {
    const unsigned long has = getauxval(AT_HWCAP);
    // The kernels keep floats in VFP registers and need its fused multiply-add: NEON alone (Cortex-A8, A9) won't do.
    const bool neon = bit(has, 12) && bit(has, 16);
    return {.neon = neon, .dotprod = neon && bit(has, 24), .i8mm = neon && bit(has, 27)};
}

#elif defined(__wasm_relaxed_simd__)

/// relaxed_madd rounds once on some machines and twice on others, on each always alike. (1 + 2⁻¹²)² − (1 + 2⁻¹¹) is 2⁻²⁴, and 0 if
/// rounded twice.
CpuFeatures ask() noexcept {
    volatile float factor = 1.0f + 0x1p-12f;  // not for the compiler to compute
    const v128_t x = wasm_f32x4_splat(factor), less = wasm_f32x4_const_splat(-1.0f - 0x1p-11f);
    return {.fma = wasm_f32x4_extract_lane(wasm_f32x4_relaxed_madd(x, x, less), 0) == 0x1p-24f};
}

#else

// If the system can't be asked, the compiler's flags say what there is.
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

using Flags = std::array<bool, sizeof(CpuFeatures)>;  // those of a CpuFeatures
constexpr std::uint32_t kAsked = 1u << 31;
constinit std::atomic<std::uint32_t> remembered{0};  // kAsked, and bit i for flag i
enum class CpuidAnswer : std::uint8_t { none, given, refused };
constinit std::atomic<CpuidAnswer> tiles{CpuidAnswer::none};  // Linux's

}  // namespace

CpuFeatures detect_features() noexcept {
    std::uint32_t bits = remembered.load(std::memory_order_relaxed);
    Flags flags{};
    if (!bits) {  // a hypervisor takes 50 us to answer the CPUIDs; two threads that both ask hear the same
        flags = std::bit_cast<Flags>(ask());
        bits = kAsked;
        for (std::size_t i = 0; i < flags.size(); ++i) bits |= std::uint32_t{flags[i]} << i;
        remembered.store(bits, std::memory_order_relaxed);
    }
    for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = bit(bits, static_cast<int>(i));
    CpuFeatures f = std::bit_cast<CpuFeatures>(flags);
    f.amx = f.amx && tiles.load(std::memory_order_relaxed) != CpuidAnswer::refused;
    return f;
}

bool may_use_tiles() noexcept {
    if (tiles.load(std::memory_order_relaxed) == CpuidAnswer::given) return true;
    bool given = false;
#if defined(__linux__) && defined(__x86_64__)
    constexpr long kRequestState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
    given = detect_features().amx && syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
#endif
    tiles.store(given ? CpuidAnswer::given : CpuidAnswer::refused, std::memory_order_relaxed);
    return given;
}

bool covers(const CpuFeatures& have, const CpuFeatures& need) noexcept {
    const auto has = std::bit_cast<Flags>(have), needs = std::bit_cast<Flags>(need);
    for (std::size_t i = 0; i < has.size(); ++i)
        if (needs[i] && !has[i]) return false;
    return true;
}

}  // namespace fovea
