// All 2^32 floats through each operation of every_float.h, on every instruction set that this CPU has, against scalar
// bit for bit.   fovea_exhaustive [OPERATION...]   Exit status 1 where a bit differs. Minutes for each operation.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include "tests/support/every_float.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint64_t kBlocks = (std::uint64_t{1} << 32) / kBlockFloats;
constexpr std::uint64_t kTakenBlocks = 1024;  // by a thread at a time

struct Progress {
    const char* name;
    bool is_terminal = isatty(2) != 0;
    std::atomic<std::uint64_t> next{0}, n_wrong{0};
    std::mutex printing{};

    void differs(const char* isa, std::uint64_t block) {
        if (n_wrong++ >= 10) return;
        const std::lock_guard lock(printing);
        const auto first = static_cast<unsigned>(block * kBlockFloats);
        std::printf("%s: %s differs from scalar in the block of floats from 0x%08x\n", name, isa, first);
    }
    void show(std::uint64_t done) {
        if (!is_terminal) return;
        const std::lock_guard lock(printing);
        std::fprintf(stderr, "\r%s %3.0f %%  ", name, 100.0 * static_cast<double>(done) / kBlocks);
        if (done == kBlocks) std::fprintf(stderr, "\r\033[K");
    }
};

void compare(const FloatOperation& operation, Progress& progress) {
    FloatComparison comparison(operation);
    alignas(64) float x[kBlockFloats];
    for (;;) {
        const std::uint64_t begin = progress.next.fetch_add(kTakenBlocks);
        if (begin >= kBlocks) return;
        for (std::uint64_t block = begin; block < begin + kTakenBlocks; ++block) {
            for (std::size_t i = 0; i < kBlockFloats; ++i)
                x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(block * kBlockFloats + i));
            if (const char* isa = comparison.first_difference(x)) progress.differs(isa, block);
        }
        progress.show(begin + kTakenBlocks);
    }
}

/// Whether no bit differs.
bool compare_all(const FloatOperation& operation) {
    const auto start = std::chrono::steady_clock::now();
    Progress progress{.name = operation.name};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
        threads.emplace_back(compare, std::cref(operation), std::ref(progress));
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const FloatComparison comparison(operation);
    std::printf("%-17s 4294967296 floats, %zu instruction sets as scalar but for %llu blocks, %.0f s\n", operation.name,
                comparison.n_others(), static_cast<unsigned long long>(progress.n_wrong.load()), seconds.count());
    std::fflush(stdout);
    return progress.n_wrong == 0;
}

}  // namespace

int main(int argc, char** argv) {
    bool same = true, any = false;
    for (const FloatOperation& operation : every_float::kOperations) {
        bool wanted = argc == 1;
        for (int i = 1; i < argc; ++i) wanted = wanted || std::string_view(argv[i]) == operation.name;
        if (!wanted) continue;
        any = true;
        same = compare_all(operation) && same;
    }
    if (any) return same ? 0 : 1;
    std::fprintf(stderr, "fovea_exhaustive: OPERATION: expected one of");
    for (const FloatOperation& operation : every_float::kOperations) std::fprintf(stderr, " '%s'", operation.name);
    std::fprintf(stderr, ", got %s\n", argv[1]);
    return 2;
}
