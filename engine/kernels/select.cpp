// The list of tables, best first, and the choice of one that this CPU runs.
#include <array>
#include <string_view>

#include "engine/kernels/kernels.h"
#include "fovea/session.h"

namespace fovea {

template<>
const FloatKernels FloatsOf<Isa::avx2>::kernels;
template<>
const FloatKernels FloatsOf<Isa::avx512>::kernels;
template<>
const FloatKernels FloatsOf<Isa::neon>::kernels;
template<>
const FloatKernels FloatsOf<Isa::simd128>::kernels;
template<>
const FloatKernels FloatsOf<Isa::relaxed_simd>::kernels;
template<>
const TileKernels TilesOf<Isa::amx>::kernels;

namespace {

template<Isa kIsa, Type kType>
constexpr TypeKernels type_kernels() {
    using Quants = QuantsOf<kIsa, kType>;
    if (!has_caches(kType)) return {Quants::matmul, nullptr, nullptr};
    return {Quants::matmul, Quants::attend, Quants::attend_weights};
}
template<Isa kIsa, int... i>
constexpr QuantKernels make_quants(std::integer_sequence<int, i...>) {
    return {{type_kernels<kIsa, quant_type(i)>()...}};
}
template<Isa kIsa>
[[maybe_unused]] constexpr QuantKernels kQuants = make_quants<kIsa>(QuantIndices());

/// An instruction set, by its number: the CPU features that it needs, and whose kernels its table has. FoveaIsa.cmake builds
/// those.
struct Set {
    const char* name;
    Isa floats, quants;
    bool tiles;
    CpuFeatures needs;
};
constexpr Set kSets[] = {
    {"avx2", Isa::avx2, Isa::avx2, false, {.avx2 = true, .fma = true, .f16c = true}},
    {"avxvnni", Isa::avx2, Isa::avxvnni, false, {.avx2 = true, .fma = true, .f16c = true, .avxvnni = true}},
    {"avx512", Isa::avx512, Isa::avx512, false, {.avx2 = true, .fma = true, .f16c = true, .avx512 = true}},
    {"avx512vnni",
     Isa::avx512,
     Isa::avx512vnni,
     false,
     {.avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512vnni = true}},
    {"amx",
     Isa::avx512,
     Isa::avx512vnni,
     true,
     {.avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512vnni = true, .amx = true}},
    {"neon", Isa::neon, Isa::neon, false, {.neon = true}},
    {"neon_dotprod", Isa::neon, Isa::neon_dotprod, false, {.neon = true, .dotprod = true}},
    {"neon_i8mm", Isa::neon, Isa::neon_i8mm, false, {.neon = true, .dotprod = true, .i8mm = true}},
    {"simd128", Isa::simd128, Isa::simd128, false, {}},  // a machine without it refuses the whole module
    {"relaxed_simd", Isa::relaxed_simd, Isa::relaxed_simd, false, {.fma = true}}};

template<Isa kIsa>
constexpr Kernels make_table() {
    constexpr Set kSet = kSets[static_cast<int>(kIsa)];
    const TileKernels* tiles = nullptr;
    if constexpr (kSet.tiles) tiles = &TilesOf<kIsa>::kernels;
    return {kSet.name, kSet.needs, FloatsOf<kSet.floats>::kernels, kQuants<kSet.quants>, tiles};
}
template<Isa kIsa>
[[maybe_unused]] constexpr Kernels kTable = make_table<kIsa>();

/// A table and its name, Kernels::isa, which the compiler cannot look up in another file.
struct Entry {
    const char* isa;
    const Kernels* kernels;
};
#if !defined(FOVEA_TABLES)  // FoveaIsa.cmake: FOVEA_TABLE(best) FOVEA_TABLE(next) ...
#define FOVEA_TABLES
#endif
#define FOVEA_TABLE(isa) {#isa, &kTable<Isa::isa>},
constexpr Entry kTables[] = {FOVEA_TABLES{"scalar", &kernels_scalar}};
constexpr std::size_t kTableCount = sizeof(kTables) / sizeof(kTables[0]);
constexpr std::size_t kVectorTables = kTableCount - 1;  // all but scalar, which every CPU runs

struct List {
    const Kernels* tables[kTableCount];
    const char* names[kTableCount];
    std::size_t n;
};

/// Every list that a CPU could call for, by the set of vector tables it runs (bit i: kTables[i]). Made by the compiler,
/// so that there is nothing to initialise, lock or allocate.
constexpr auto kLists = [] {
    std::array<List, std::size_t{1} << kVectorTables> lists{};
    for (std::size_t set = 0; set < lists.size(); ++set) {
        List& list = lists[set];
        for (std::size_t i = 0; i < kTableCount; ++i)
            if (i == kVectorTables || (set >> i & 1)) {
                list.tables[list.n] = kTables[i].kernels;
                list.names[list.n++] = kTables[i].isa;
            }
    }
    return lists;
}();

const List& usable() noexcept {
    const CpuFeatures have = detect_features();
    std::size_t set = 0;
    for (std::size_t i = 0; i < kVectorTables; ++i)
        if (covers(have, kTables[i].kernels->needs)) set |= std::size_t{1} << i;
    return kLists[set];
}

}  // namespace

const Kernels* const* usable_kernels(std::size_t& n) noexcept {
    const List& list = usable();
    n = list.n;
    return list.tables;
}

const Kernels* find_kernels(const char* isa, bool wants_tiles) noexcept {
    const List& list = usable();
    for (std::size_t i = 0; i < list.n; ++i) {
        const Kernels* k = list.tables[i];
        if (isa ? std::string_view(isa) != list.names[i] : k->tiles && !wants_tiles) continue;
        if (!k->tiles || may_use_tiles()) return k;
    }
    return nullptr;
}

std::span<const char* const> isa_names() noexcept {
    const List& list = usable();
    return {list.names, list.n};
}

}  // namespace fovea
