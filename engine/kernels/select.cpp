// Which tables there are, best first, and which of them this CPU runs.
#include <array>

#include "kernels.h"

namespace fovea {
namespace {

constexpr const Kernels* kTables[] = {
#if defined(FOVEA_HAVE_AVX512)
    &kernels_avx512,
#endif
#if defined(FOVEA_HAVE_AVX2)
    &kernels_avx2,
#endif
    &kernels_scalar,
};
constexpr std::size_t kTableCount = sizeof(kTables) / sizeof(kTables[0]);
constexpr std::size_t kVectorTables = kTableCount - 1;  // all but scalar, which every CPU runs

struct List {
    const Kernels* tables[kTableCount];
    std::size_t n;
};

/// Every list that a CPU could call for, by the set of vector tables it runs (bit i: kTables[i]). Made by the compiler,
/// so that there is nothing to initialise, lock or allocate.
constexpr auto kLists = [] {
    std::array<List, std::size_t{1} << kVectorTables> lists{};
    for (std::size_t set = 0; set < lists.size(); ++set) {
        List& list = lists[set];
        for (std::size_t i = 0; i < kTableCount; ++i)
            if (i == kVectorTables || (set >> i & 1)) list.tables[list.n++] = kTables[i];
    }
    return lists;
}();

bool same_name(const char* a, const char* b) {
    while (*a != '\0' && *a == *b) ++a, ++b;
    return *a == *b;
}

}  // namespace

const Kernels* const* usable_kernels(std::size_t& n) noexcept {
    const CpuFeatures have = detect_features();
    std::size_t set = 0;
    for (std::size_t i = 0; i < kVectorTables; ++i)
        if (covers(have, kTables[i]->needs)) set |= std::size_t{1} << i;
    n = kLists[set].n;
    return kLists[set].tables;
}

const Kernels* find_kernels(const char* isa) noexcept {
    std::size_t n = 0;
    const Kernels* const* tables = usable_kernels(n);
    if (!isa) return tables[0];
    for (std::size_t i = 0; i < n; ++i)
        if (same_name(tables[i]->isa, isa)) return tables[i];
    return nullptr;
}

}  // namespace fovea
