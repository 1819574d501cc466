// Loops that do one thing. Functions are compiled for the instruction set their attribute names and are called only
// if the engine found that the CPU has it.
#include "tools/measure/ceilings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

// Enough chains to hide a latency of 4 or 5 cycles at two fma a cycle.
constexpr int kChains = 12;
constexpr std::uint64_t kFmaTurns = 1'000'000;  // of one run: some 2 ms at 3 GHz, long beside a thread's late start
constexpr auto kFmaTime = std::chrono::milliseconds(60);
constexpr int kLeastFmaRuns = 3;

// A run reads the whole range, so that a cache keeps as much of it from run to run as it does from token to token. It
// reads no more than this of a very large range, and a small one repeatedly.
constexpr std::size_t kMostReadBytes = std::size_t{1} << 30;
constexpr std::size_t kLeastReadBytes = std::size_t{16} << 20;
constexpr int kReadRuns = 2;
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kStepBytes = 4 * kLineBytes;  // of one stream before the next has its turn
constexpr std::uint32_t kMostStreams = 8;

/// Keeps the loop that made `value` from being dropped as useless.
template<class T>
void keep(const T& value) {
    asm volatile("" : : "m"(value) : "memory");
}

#if defined(__linux__)
/// Gives its thread back the CPUs that the thread could use before.
class MeasuredPlace {
public:
    MeasuredPlace() { sched_getaffinity(0, sizeof before_, &before_); }
    ~MeasuredPlace() { sched_setaffinity(0, sizeof before_, &before_); }
    MeasuredPlace(const MeasuredPlace&) = delete;
    MeasuredPlace& operator=(const MeasuredPlace&) = delete;

private:
    cpu_set_t before_{};
};
#else
struct MeasuredPlace {};
#endif

/// n_threads threads, the caller among them, that run the same work together again and again, each on a CPU of its own:
/// with all CPUs busy, a scheduler may leave two threads on one of them for all this time.
class Racers {
public:
    explicit Racers(std::uint32_t n_threads) : starts_(n_threads), ends_(n_threads) {
        for (std::uint32_t i = 1; i < n_threads; ++i) threads_.emplace_back([this, i] { follow(i); });
        pin_thread(0, n_threads);
    }
    ~Racers() {
        work_ = nullptr;
        lap_.fetch_add(1);
        for (std::thread& thread : threads_) thread.join();
    }
    Racers(const Racers&) = delete;
    Racers& operator=(const Racers&) = delete;

    /// Seconds from the first thread's start of work(thread) to the last one's end.
    template<class Work>
    double race(const Work& work) {
        context_ = &work;
        work_ = [](const void* context, std::uint32_t thread) { (*static_cast<const Work*>(context))(thread); };
        n_ready_ = n_done_ = 0;
        lap_.fetch_add(1);
        run(0);
        while (n_done_ < starts_.size()) std::this_thread::yield();
        const auto first = std::min_element(starts_.begin(), starts_.end());
        const auto last = std::max_element(ends_.begin(), ends_.end());
        return std::chrono::duration<double>(*last - *first).count();
    }

private:
    void run(std::uint32_t thread) {
        ++n_ready_;
        while (n_ready_ < starts_.size()) std::this_thread::yield();
        starts_[thread] = Clock::now();
        work_(context_, thread);
        ends_[thread] = Clock::now();
        ++n_done_;
    }

    void follow(std::uint32_t thread) {
        pin_thread(thread, static_cast<std::uint32_t>(starts_.size()));
        for (std::uint32_t lap = 1;; ++lap) {
            while (lap_ != lap) std::this_thread::yield();
            if (!work_) return;
            run(thread);
        }
    }

    MeasuredPlace place_;  // the caller's
    std::vector<Clock::time_point> starts_, ends_;
    std::vector<std::thread> threads_;
    void (*work_)(const void* context, std::uint32_t thread) = nullptr;
    const void* context_ = nullptr;
    std::atomic<std::uint32_t> lap_{0};
    std::atomic<std::size_t> n_ready_{0}, n_done_{0};
};

// ---- multiply-adds -------------------------------------------------------------------------------------------------

const volatile float g_half = 0.5f;

/// One way to do kFmaTurns · kChains · n_lanes multiply-adds. Every chain starts with another number, which the
/// compiler can't know, so that chains can't be merged or computed in advance. Sums settle at 1 or grow until rounding
/// stops them: no infinities or subnormal numbers come up, which are slower on some CPUs. Integers wrap.
struct Loop {
    void (*run)();
    int n_lanes;
};

/// Defines the loop `name`: chain i starts as `first`, and becomes `step` of chains[i] and of `x`, which is `operand`, again and again.
#define FOVEA_LOOP(name, attributes, Vector, operand, first, step)                         \
    attributes void name() {                                                               \
        [[maybe_unused]] const Vector x = operand;                                         \
        Vector chains[kChains];                                                            \
        for (int i = 0; i < kChains; ++i) chains[i] = first;                               \
        for (std::uint64_t turn = 0; turn < kFmaTurns; ++turn) {                           \
            _Pragma("GCC unroll 16") for (int i = 0; i < kChains; ++i) chains[i] = step;   \
        }                                                                                  \
        _Pragma("GCC unroll 16") for (int i = 1; i < kChains; ++i) chains[0] += chains[i]; \
        keep(chains[0]);                                                                   \
    }
#define FOVEA_TARGET(features) __attribute__((target(features)))

constexpr int kPlainLanes = 4;

#if defined(__x86_64__)
FOVEA_LOOP(fma_avx512, FOVEA_TARGET("avx512f"), __m512, _mm512_set1_ps(g_half),
           _mm512_set1_ps(static_cast<float>(i) * g_half), _mm512_fmadd_ps(x, x, chains[i]))
FOVEA_LOOP(fma_avx2, FOVEA_TARGET("avx2,fma"), __m256, _mm256_set1_ps(g_half),
           _mm256_set1_ps(static_cast<float>(i) * g_half), _mm256_fmadd_ps(x, x, chains[i]))
#endif
#if defined(__aarch64__)
FOVEA_LOOP(fma_plain, , float32x4_t, vdupq_n_f32(g_half), vdupq_n_f32(static_cast<float>(i) * g_half),
           vfmaq_f32(chains[i], x, x))
#else
using Plain = float __attribute__((vector_size(kPlainLanes * sizeof(float))));
FOVEA_LOOP(fma_plain, , Plain, Plain{} + g_half, static_cast<float>(i) * x, x + x * chains[i])
#endif

Loop fma_loop([[maybe_unused]] std::string_view isa) {
#if defined(__x86_64__)
    if (isa.starts_with("avx512")) return {fma_avx512, 16};
    if (isa.starts_with("avx")) return {fma_avx2, 8};
#endif
    return {fma_plain, kPlainLanes};
}

// ---- products of bytes ---------------------------------------------------------------------------------------------

const volatile char g_byte = 3;

#if defined(__x86_64__)
FOVEA_LOOP(bytes_avx512vnni, FOVEA_TARGET("avx512f,avx512vnni"), __m512i, _mm512_set1_epi8(g_byte),
           _mm512_set1_epi32(static_cast<int>(g_byte) * i), _mm512_dpbusd_epi32(chains[i], x, x))
FOVEA_LOOP(bytes_avxvnni, FOVEA_TARGET("avx2,avxvnni"), __m256i, _mm256_set1_epi8(g_byte),
           _mm256_set1_epi32(static_cast<int>(g_byte) * i), _mm256_dpbusd_avx_epi32(chains[i], x, x))
// Without an instruction for all of it: products added by twos, by fours, then to the sum. The operand changes with
// each product, or a compiler would multiply once.
FOVEA_LOOP(bytes_avx512, FOVEA_TARGET("avx512bw"), __m512i, _mm512_set1_epi8(g_byte),
           _mm512_set1_epi32(static_cast<int>(g_byte) * i),
           _mm512_add_epi32(chains[i], _mm512_madd_epi16(_mm512_maddubs_epi16(x, chains[i]), _mm512_set1_epi16(1))))
FOVEA_LOOP(bytes_avx2, FOVEA_TARGET("avx2"), __m256i, _mm256_set1_epi8(g_byte),
           _mm256_set1_epi32(static_cast<int>(g_byte) * i),
           _mm256_add_epi32(chains[i], _mm256_madd_epi16(_mm256_maddubs_epi16(x, chains[i]), _mm256_set1_epi16(1))))
#endif
using Words = std::uint32_t __attribute__((vector_size(kPlainLanes * sizeof(std::uint32_t))));
FOVEA_LOOP(bytes_plain, , Words, Words{}, Words{} + static_cast<std::uint32_t>(g_byte + i),
           chains[i] + chains[i] * chains[i])

Loop bytes_loop([[maybe_unused]] std::string_view isa) {
#if defined(__x86_64__)
    if (isa == "avx512vnni") return {bytes_avx512vnni, 64};
    if (isa == "avx512") return {bytes_avx512, 64};
    if (isa == "avxvnni") return {bytes_avxvnni, 32};
    if (isa == "avx2") return {bytes_avx2, 32};
#endif
    return {bytes_plain, kPlainLanes};
}

// ---- reading -------------------------------------------------------------------------------------------------------

/// A cache line that may lie anywhere; the compiler makes of it what the function's target has.
using Line = std::uint64_t __attribute__((vector_size(kLineBytes), aligned(8), may_alias));

/// Reads n_bytes, a multiple of kStepBytes · kMostPanels. Two results are enough for any number of streams: an exclusive
/// or takes a cycle, in which no CPU loads more than two lines.
template<std::uint32_t kMostPanels>
[[gnu::always_inline]] inline void read_streams(const std::byte* bytes, std::size_t n_bytes) {
    const std::size_t stream_bytes = n_bytes / kMostPanels;
    Line even{}, odd{};
    for (std::size_t at = 0; at < stream_bytes; at += kStepBytes) {
#pragma GCC unroll 8
        for (std::uint32_t stream = 0; stream < kMostPanels; ++stream) {
            const auto* line = reinterpret_cast<const Line*>(bytes + stream * stream_bytes + at);
            even ^= line[0];
            odd ^= line[1];
            even ^= line[2];
            odd ^= line[3];
        }
    }
    even ^= odd;
    keep(even);
}

[[gnu::always_inline]] inline void read_as(std::uint32_t n_streams, const std::byte* bytes, std::size_t n_bytes) {
    switch (n_streams) {
        case 1: return read_streams<1>(bytes, n_bytes);
        case 2: return read_streams<2>(bytes, n_bytes);
        case 4: return read_streams<4>(bytes, n_bytes);
        default: return read_streams<kMostStreams>(bytes, n_bytes);
    }
}

using ReadLoop = void (*)(std::uint32_t n_streams, const std::byte* bytes, std::size_t n_bytes);

void read_plain(std::uint32_t n_streams, const std::byte* bytes, std::size_t n_bytes) {
    read_as(n_streams, bytes, n_bytes);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void read_avx2(std::uint32_t n_streams, const std::byte* bytes, std::size_t n_bytes) {
    read_as(n_streams, bytes, n_bytes);
}
__attribute__((target("avx512f"))) void read_avx512(std::uint32_t n_streams, const std::byte* bytes,
                                                    std::size_t n_bytes) {
    read_as(n_streams, bytes, n_bytes);
}
#endif

ReadLoop read_loop([[maybe_unused]] std::string_view isa) {
#if defined(__x86_64__)
    if (isa.starts_with("avx512")) return read_avx512;
    if (isa.starts_with("avx")) return read_avx2;
#endif
    return read_plain;
}

}  // namespace

#if defined(__linux__)

namespace {
const std::vector<int>& all_cpus() {
    static const std::vector<int> cpus = [] {
        cpu_set_t mask;
        std::vector<int> allowed;
        if (sched_getaffinity(0, sizeof mask, &mask) == 0)
            for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
                if (CPU_ISSET(cpu, &mask)) allowed.push_back(cpu);
        return allowed;
    }();
    return cpus;
}
}  // namespace

void pin_thread(std::uint32_t thread, std::uint32_t n_threads) {
    if (n_threads > all_cpus().size()) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all_cpus()[thread], &one);
    sched_setaffinity(0, sizeof one, &one);
}

void unpin_thread() {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (const int cpu : all_cpus()) CPU_SET(cpu, &all);
    sched_setaffinity(0, sizeof all, &all);
}

#else

void pin_thread(std::uint32_t, std::uint32_t) {}
void unpin_thread() {}

#endif

namespace {
/// An instruction set with tiles counts by its vectors here.
std::string_view vectors_of(std::string_view isa) { return isa == "amx" ? "avx512vnni" : isa; }

/// Operations per second, two a multiply-add.
double measure_peak(const Loop& loop, std::uint32_t n_threads) {
    const double n_operations = 2.0 * kFmaTurns * kChains * loop.n_lanes * n_threads;
    Racers racers(n_threads);
    double best = 0;
    const auto end = Clock::now() + kFmaTime;
    for (int run = 0; run < kLeastFmaRuns || Clock::now() < end; ++run)
        best = std::max(best, n_operations / racers.race([&](std::uint32_t) { loop.run(); }));
    return best;
}
}  // namespace

double measure_fma_peak(std::string_view isa, std::uint32_t n_threads) {
    return measure_peak(fma_loop(vectors_of(isa)), n_threads);
}

double measure_int8_peak(std::string_view isa, std::uint32_t n_threads) {
    return measure_peak(bytes_loop(vectors_of(isa)), n_threads);
}

ReadRate measure_read_peak(std::string_view isa, std::span<const std::byte> bytes, std::uint32_t n_threads) {
    constexpr std::size_t kShareStep = kStepBytes * kMostStreams;
    const std::size_t share = std::min(bytes.size(), kMostReadBytes) / n_threads / kShareStep * kShareStep;
    ReadRate best;
    if (share == 0) return best;
    const std::size_t n_bytes = share * n_threads, n_passes = (kLeastReadBytes + n_bytes - 1) / n_bytes;
    const ReadLoop loop = read_loop(vectors_of(isa));
    Racers racers(n_threads);
    for (int run = 0; run < kReadRuns; ++run)
        for (std::uint32_t n_streams = 1; n_streams <= kMostStreams; n_streams *= 2) {
            const double seconds = racers.race([&](std::uint32_t thread) {
                for (std::size_t pass = 0; pass < n_passes; ++pass)
                    loop(n_streams, bytes.data() + thread * share, share);
            });
            const double rate = static_cast<double>(n_bytes) * static_cast<double>(n_passes) / seconds;
            if (rate > best.bytes_per_second) best = {rate, n_streams};
        }
    return best;
}

}  // namespace fovea
