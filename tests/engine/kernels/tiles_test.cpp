// Products of many rows by a unit that multiplies matrices: on a CPU that has one, or by emulated_tiles.cpp.
#include <doctest/doctest.h>

#include <string>

#include "emulated_tiles.h"
#include "kernel_cases.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

std::vector<const Kernels*> tables_with_tiles() {
    std::size_t n = 0;
    const Kernels* const* first = usable_kernels(n);
    std::vector<const Kernels*> found;
    for (std::size_t i = 0; i < n; ++i)
        if (first[i]->tiles) found.push_back(first[i]);
    return found;
}

constexpr Type kType = Type::q8_128;

void check_product(const Kernels& k, const MatmulCase& c, std::uint32_t seed) {
    CAPTURE(c.n_rows);
    CAPTURE(c.n_cols);
    CAPTURE(c.seq_len);
    REQUIRE(k.by_tiles(kType, c.seq_len));
    const MatmulRun run(c, kType, seed);
    const Guarded<float> want = run.run(kernels_scalar);
    for (const Flush flush : {Flush::begin, Flush::end}) {
        const Guarded<float> got = run.run(k, flush);
        CHECK(tiles_are_released());
        CHECK((c.canonical ? same_bits(want, got) : same_bits_or_nan(want, got)));
    }
}

}  // namespace

TEST_CASE("tiles: every width, number of rows and way to finish gives the scalar bits") {
    for (const Kernels* k : tables_with_tiles()) {
        std::uint32_t seed = 0;
        // Groups of one unit and of two, and blocks of columns; blocks of 9 to 12 rows and what is left of them.
        for (const std::uint32_t n_cols : {1u, 64u, 65u, 128u, 129u, 192u, 448u, 512u, 513u, 640u, 1100u})
            for (const std::uint32_t seq_len : {25u, 27u, 29u, 37u, 45u, 60u})
                check_product(*k, {.n_rows = 40, .n_cols = n_cols, .seq_len = seq_len}, ++seed);
        for (std::uint32_t seq_len = 133; seq_len <= 144; ++seq_len)  // blocks of 12, and a last one of 1 to 12
            check_product(*k, {.n_rows = 33, .n_cols = 130, .seq_len = seq_len, .extra_stride = 1}, ++seed);
        check_product(*k, {.n_rows = 17, .n_cols = 200, .seq_len = 400}, ++seed);  // more than are kept together
        for (const Epilogue epilogue : {Epilogue::store, Epilogue::add, Epilogue::gate})
            for (const Fill fill : {Fill::plain, Fill::wide, Fill::hostile})
                for (const bool canonical : {false, true})
                    check_product(*k,
                                  {.n_rows = 77,
                                   .n_cols = 150,
                                   .seq_len = 26,
                                   .epilogue = epilogue,
                                   .bias = true,
                                   .canonical = canonical,
                                   .fill = fill},
                                  ++seed);
        for (std::uint32_t front = 0; front <= 4; ++front)  // what several threads are given
            for (std::uint32_t back = 0; back <= 4 - front; ++back)
                check_product(*k, {.n_rows = 77, .n_cols = 70, .seq_len = 30, .skip_front = front, .skip_back = back},
                              ++seed);
    }
}

TEST_CASE("tiles: packed rows hold the quants and scales of any other table, in their own order") {
    for (const Kernels* k : tables_with_tiles())
        for (std::uint32_t n_rows = 1; n_rows <= kRowBlock; ++n_rows)
            for (const std::uint32_t n_cols : {1u, 17u, 63u, 64u, 65u, 127u, 128u, 129u, 192u, 193u, 515u})
                for (const Fill fill : {Fill::plain, Fill::wide, Fill::hostile})
                    for (const bool scaled : {false, true}) {
                        CAPTURE(n_rows);
                        CAPTURE(n_cols);
                        const std::size_t stride = round_up(n_cols, kLanes);
                        Random random(n_rows * n_cols);
                        Guarded<float> x((n_rows - 1) * stride + n_cols), scales(n_cols);
                        random.fill(x, fill);
                        random.fill(scales, Fill::plain);
                        const float* columns = scaled ? scales.data() : nullptr;
                        const auto n_bytes = static_cast<std::size_t>(operand_bytes(kType, n_rows, n_cols));
                        Guarded<std::byte> want(n_bytes, Flush::end, 4), got(n_bytes, Flush::end, 4);
                        kernels_scalar.floats.pack_broad(x.data(), stride, columns, n_rows, n_cols, want.data());
                        k->tiles->pack(x.data(), stride, columns, n_rows, n_cols, got.data());
                        const std::size_t width = round_up(n_cols, kSuperblock), of_group = kQuantGroupBytes * n_rows;
                        for (std::size_t row = 0; row < n_rows; ++row)
                            for (std::size_t col = 0; col < width; ++col) {
                                const std::size_t first = col / kBroadGroup * kBroadGroup, in = col - first,
                                                  n = std::min<std::size_t>(kBroadGroup, width - first);
                                const std::byte* const tiles = got.data() + first / kGroup * of_group;
                                const std::byte* const group = want.data() + col / kGroup * of_group;
                                CHECK(tiles[(in / 64 * n_rows + row) * 64 + in % 64] ==
                                      group[(col % kGroup / 4 * n_rows + row) * 4 + col % 4]);
                                CHECK(std::memcmp(tiles + (n * n_rows + row * 4), group + kGroup * n_rows + row * 4,
                                                  4) == 0);
                            }
                    }
}
