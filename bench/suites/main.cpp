// fovea_bench: all suites. --benchmark_filter picks, --benchmark_format=csv tabulates.
#include <cstring>
#include <optional>

#include "bench/suites/suites.h"
#include "convert/open/open.h"
#include "fovea/executors.h"
#include "fovea/host/runtime.h"
#include "tools/options/presets.h"

namespace fovea {

void add(const std::string& name, std::function<void(benchmark::State&)> run) {
    benchmark::RegisterBenchmark(name.c_str(), std::move(run))
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
}

void for_each_table(const std::function<void(const Kernels&)>& use) {
    std::size_t n = 0;
    const Kernels* const* tables = usable_kernels(n);
    for (std::size_t i = 0; i < n; ++i)
        if (!tables[i]->tiles || may_use_tiles()) use(*tables[i]);
}

const host::Opened& smollm2(Type type) {
    static std::optional<std::pair<Type, host::Opened>> made;
    if (!made || made->first != type) {
        made.reset();
        made.emplace(type, convert::open_random(preset_config("smollm2-135m"), {.type = type}, [](std::uint64_t) {}));
    }
    return made->second;
}

void fill_elements(Type type, Numbers& numbers, std::span<std::byte> bytes) {
    // Sign, exponents −3 to 0, any fraction; two 16-bit elements at a time. Quants are any bytes, scales such halves.
    const std::uint32_t base = type == Type::f32 ? 0x3e000000u : type == Type::bf16 ? 0x3e003e00u : 0x30003000u;
    const std::uint32_t free = type == Type::f32 ? 0x81ffffffu : type == Type::bf16 ? 0x81ff81ffu : 0x8fff8fffu;
    const bool quantized = is_quantized(type);
    const auto superblock = quantized ? panel_bytes(type, kSuperblock) : 4;
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        const bool quants = quantized && i % superblock >= 4 * kLanes;
        const std::uint32_t element = quants ? numbers.next() & 0x7f7f7f7fu : base | (numbers.next() & free);
        std::memcpy(bytes.data() + i, &element, 4);
    }
}

}  // namespace fovea

int main(int argc, char** argv) {
    using namespace fovea;
    host::use_executor(openmp_executor());
    for (AddSuite* add_suite : {add_matmul_suite, add_attention_suite, add_model_suite, add_constraint_suite,
                                add_speculation_suite, add_team_suite})
        add_suite();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
