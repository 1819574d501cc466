// Products of many rows by a unit that multiplies matrices: on a CPU that has one, or by emulated_tiles.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/emulated_tiles.h"
#include "tests/support/matmul_cases.h"
#include "tests/support/small_models.h"

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

void check_product(const Kernels& k, Type type, const MatmulCase& c, std::uint32_t seed) {
    CAPTURE(static_cast<int>(type));
    CAPTURE(c.n_rows);
    CAPTURE(c.n_cols);
    CAPTURE(c.seq_len);
    REQUIRE(k.by_tiles(type, c.seq_len));
    const MatmulRun run(c, type, seed);
    const Guarded<float> want = run.run(kernels_scalar);
    for (const Flush flush : {Flush::begin, Flush::end}) {
        const Guarded<float> got = run.run(k, flush);
        CHECK(tiles_are_released());
        CHECK((c.canonical ? same_bits(want, got) : same_bits_or_nan(want, got)));
    }
}

// Each way in which scales lie: over 128, 32 and 16 columns, with minima and without; quants that are bytes and others.
constexpr Type kWays[] = {Type::q8_128, Type::q8, Type::q4_k, Type::q6_k, Type::q2_k};

/// Blocks of rows packed for tiles, beside the same packed by kernels_scalar.
void check_packing(const Kernels& k, Type type, std::uint32_t n_all, std::uint32_t n_cols, Fill fill, bool scaled) {
    CAPTURE(static_cast<int>(type));
    CAPTURE(n_all);
    CAPTURE(n_cols);
    const std::size_t stride = round_up(n_cols, kLanes), n_units = quant_groups(n_cols) / 2;
    Random random(n_all * n_cols);
    Guarded<float> x((n_all - 1) * stride + n_cols), scales(n_cols);
    random.fill(x, fill);
    random.fill(scales, Fill::plain);
    const float* columns = scaled ? scales.data() : nullptr;
    const auto n_bytes = static_cast<std::size_t>(operand_bytes(type, n_all, n_cols));
    Guarded<std::byte> got(n_bytes, Flush::end, 4);
    const RowTiles tiles(n_all);
    const std::size_t width = n_units * kSuperblock,
                      n_factors = type == Type::q8 ? 2 * n_units * kTileFactors : (n_units + 1) / 2;
    const std::uint32_t block = row_block(n_all);
    for (std::uint32_t first = 0; first < n_all; first += block)
        k.pack(type, x.data() + first * stride, stride, columns, {first, std::min(block, n_all - first), n_all}, n_cols,
               got.data());
    for (std::uint32_t row = 0; row < n_all; ++row) {
        Guarded<std::byte> want(static_cast<std::size_t>(operand_bytes(type, 1, n_cols)), Flush::end, 4);
        kernels_scalar.pack(type, x.data() + row * stride, stride, columns, {0, 1, 1}, n_cols, want.data());
        const std::uint32_t tile = row / tiles.rows_each, first = tiles.first(tile), in = row - first,
                            n = tiles.n_rows(tile);
        const auto factor = [&](std::size_t i) {
            float value;
            std::memcpy(&value, got.data() + n_all * width + 4 * (first * n_factors + i * n + in), 4);
            return value;
        };
        for (std::size_t group = 0; group < 2 * n_units; ++group) {
            const std::byte* const of_row = want.data() + group * kQuantGroupBytes;
            const std::byte* const quants =
                got.data() + first * width + (group / 2 * n + in) * kSuperblock + group % 2 * kGroup;
            CHECK(std::memcmp(quants, of_row, kGroup) == 0);
            const std::size_t at = type == Type::q8 ? group * kTileFactors : group / 4;
            const float scale = factor(at);
            CHECK(std::memcmp(&scale, of_row + kGroup, 4) == 0);
            for (std::size_t half = 0; type == Type::q8 && half < 2; ++half) {
                int sum = 0;
                for (std::size_t i = 0; i < kGroup / 2; ++i)
                    sum += static_cast<std::int8_t>(of_row[half * kGroup / 2 + i]);
                const float minus = factor(at + 1 + half), expected = static_cast<float>(-sum);
                CHECK(std::memcmp(&minus, &expected, 4) == 0);
            }
        }
    }
}

}  // namespace

TEST_CASE("tiles: every width, number of rows and way to finish gives the scalar bits") {
    for (const Kernels* k : tables_with_tiles())
        for (const Type type : kWays) {
            std::uint32_t seed = 0;
            // Groups of one unit and of two, steps and blocks of columns, and what is left of them.
            for (const std::uint32_t n_cols :
                 {1u, 64u, 65u, 128u, 129u, 192u, 256u, 320u, 448u, 512u, 513u, 640u, 1100u})
                for (const std::uint32_t seq_len : {25u, 27u, 33u, 45u, 60u})
                    if (k->by_tiles(type, seq_len))
                        check_product(*k, type, {.n_rows = 40, .n_cols = n_cols, .seq_len = seq_len}, ++seed);
            for (std::uint32_t seq_len = 32; seq_len <= 50; ++seq_len)  // tiles of 11 to 16 rows, the last of fewer
                check_product(*k, type, {.n_rows = 33, .n_cols = 130, .seq_len = seq_len, .extra_stride = 1}, ++seed);
            check_product(*k, type, {.n_rows = 17, .n_cols = 200, .seq_len = 400},
                          ++seed);  // more than are kept together
        }
}

TEST_CASE("tiles: every type and every way to finish gives the scalar bits") {
    for (const Kernels* k : tables_with_tiles())
        for (int i = 0; i < kQuantTypeCount; ++i) {
            std::uint32_t seed = 0;
            const Type type = quant_type(i);
            for (const Epilogue epilogue : {Epilogue::store, Epilogue::add, Epilogue::gate})
                for (const Fill fill : {Fill::plain, Fill::wide, Fill::hostile})
                    for (const bool canonical : {false, true})
                        check_product(*k, type,
                                      {.n_rows = 77,
                                       .n_cols = 150,
                                       .seq_len = 35,
                                       .epilogue = epilogue,
                                       .bias = true,
                                       .canonical = canonical,
                                       .fill = fill},
                                      ++seed);
            check_product(*k, type, {.n_rows = 77, .n_cols = 150, .seq_len = 35, .bias = true, .n_outliers = 3},
                          ++seed);
            for (std::uint32_t front = 0; front <= 4; front += 2)  // what several threads are given
                for (std::uint32_t back = 0; back <= 4 - front; ++back)
                    check_product(*k, type,
                                  {.n_rows = 77, .n_cols = 70, .seq_len = 33, .skip_front = front, .skip_back = back},
                                  ++seed);
        }
}

TEST_CASE("tiles: packed rows hold the quants and scales of any other table, in their own order") {
    for (const Kernels* k : tables_with_tiles())
        for (const Type type : {Type::q8, Type::q8_128})
            for (const std::uint32_t n_all : {32u, 35u, 40u})
                for (const std::uint32_t n_cols : {1u, 17u, 63u, 64u, 65u, 127u, 128u, 129u, 192u, 193u, 515u})
                    for (const Fill fill : {Fill::plain, Fill::wide, Fill::hostile})
                        for (const bool scaled : {false, true}) check_packing(*k, type, n_all, n_cols, fill, scaled);
}

TEST_CASE("tiles: a session with them gives the bits of one without") {
    const EmulatedTiles wanted;
    if (tables_with_tiles().empty()) return;
    for (int i = 0; i < kQuantTypeCount; ++i) {
        CAPTURE(i);
        const SmallModel small(llama_config(), quant_type(i));
        const Limits limits{.max_batch = 64, .n_threads = 2};
        const std::uint32_t vocab_size = small.model.config().decoder.vocab_size;
        const std::vector<Token> tokens = some_tokens(40, vocab_size);
        std::vector<float> logits[2];
        for (const bool by_tiles : {false, true}) {
            SmallSession run(small.model, limits, by_tiles ? "amx" : "scalar");
            logits[by_tiles].resize(tokens.size() * vocab_size);
            REQUIRE(forward(run.session, tokens, logits[by_tiles]).ok());
        }
        CHECK(std::memcmp(logits[0].data(), logits[1].data(), logits[0].size() * sizeof(float)) == 0);
    }
}

TEST_CASE("tiles: they are asked for where a pass may have many rows of matrices that gain by them") {
    const EmulatedTiles wanted;
    for (const auto& [type, max_batch, tiles] :
         {std::tuple{Type::q4, 64u, true}, std::tuple{Type::q4, 24u, false}, std::tuple{Type::f32, 64u, false},
          std::tuple{Type::q2_k, 64u, false}}) {
        const SmallModel small(llama_config(), type);
        const SmallSession run(small.model, {.max_batch = max_batch});
        CHECK(std::string(run.session.isa()) == (tiles ? best_with_tiles() : best_without_tiles()));
    }
}
