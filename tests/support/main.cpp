// Runs the tests and says which instruction sets they ran on. If FOVEA_EXPECT_ISAS names some ("avx512 avx2"), a run
// without one of them fails, so that a machine that cannot run a kernel does not count as one that tested it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "engine/kernels/kernels.h"
#include "tests/support/emulated_tiles.h"

/// For the leak sanitizer: Clang's OpenMP, a host's executor here, keeps its data of threads to the process's end.
extern "C" const char* __lsan_default_suppressions() { return "leak:libomp"; }

int main(int argc, char** argv) {
    static_cast<void>(fovea::may_use_tiles());  // tests of kernels have no session that asks for them
    std::size_t n = 0;
    const fovea::Kernels* const* tables = fovea::usable_kernels(n);
    const auto is_emulated = [](const fovea::Kernels* k) {
        return k->tiles && fovea::testing::emulates_tiles && fovea::testing::emulates_tiles();
    };
    std::printf("instruction sets:");
    for (std::size_t i = 0; i < n; ++i)
        std::printf(" %s%s", tables[i]->isa, is_emulated(tables[i]) ? " (emulated)" : "");
    std::printf("\n");
    std::fflush(stdout);

    const char* expected = std::getenv("FOVEA_EXPECT_ISAS");
    std::istringstream names(expected ? expected : "");
    for (std::string name; names >> name;)
        if (const fovea::Kernels* k = fovea::find_kernels(name.c_str()); !k || is_emulated(k)) {
            std::fprintf(stderr, "instruction set: wanted %s (FOVEA_EXPECT_ISAS), this build or CPU has it not\n",
                         name.c_str());
            return 1;
        }
    return doctest::Context(argc, argv).run();
}
