// What outlier columns add to products with quantized weights: the promised order, and the same bits by every table.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/support/matmul_cases.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE(
    "scalar matmul: outlier columns are added to a quantized product in order, each by one fma, before the bias") {
    std::uint32_t seed = 0;
    for (int i = 0; i < kQuantTypeCount; ++i)
        for (std::uint32_t n_outliers = 1; n_outliers <= kMaxOutliers; ++n_outliers)
            for (const bool bias : {false, true}) {
                MatmulCase c{.n_rows = 35, .n_cols = 100, .seq_len = 14, .bias = bias, .n_outliers = n_outliers};
                const MatmulRun run(c, quant_type(i), ++seed);
                const Guarded<float> with = run.run(kernels_scalar),
                                     without = run.run(kernels_scalar, Flush::end, false);
                for (std::uint32_t row = 0; row < c.seq_len; ++row)
                    for (std::uint32_t out = 0; out < c.n_rows; ++out) {
                        float y = without[row * c.n_rows + out];
                        for (std::uint32_t j = 0; j < n_outliers; ++j)
                            y = std::fma(run.outlier(row, j), static_cast<float>(run.outlier_weight(out, j)), y);
                        if (bias) y = y + run.bias(out);
                        const float got = with[row * c.n_rows + out];
                        CHECK((got == y || (std::isnan(got) && std::isnan(y))));
                    }
            }
}

TEST_CASE("matmul with outlier columns: every instruction set gives the scalar bits, however it ends") {
    std::size_t n_tables = 0;
    const Kernels* const* tables = usable_kernels(n_tables);
    for (std::size_t table = 0; table < n_tables; ++table) {
        std::uint32_t seed = 0;
        for (int i = 0; i < kQuantTypeCount; ++i)
            for (const Epilogue epilogue : {Epilogue::store, Epilogue::add, Epilogue::gate})
                for (std::uint32_t n_outliers = 1; n_outliers <= kMaxOutliers; ++n_outliers)
                    for (const std::uint32_t seq_len : {1u, 2u, 7u, 13u, 25u, 40u})
                        for (const Fill fill : {Fill::plain, Fill::wide, Fill::hostile}) {
                            const MatmulCase c{.n_rows = 77,
                                               .n_cols = 70,
                                               .seq_len = seq_len,
                                               .epilogue = epilogue,
                                               .bias = n_outliers % 2 == 0,
                                               .fill = fill,
                                               .n_outliers = n_outliers};
                            CAPTURE(std::string(tables[table]->isa));
                            CAPTURE(i);
                            CAPTURE(seq_len);
                            const MatmulRun run(c, quant_type(i), ++seed);
                            CHECK(same_bits(run.run(kernels_scalar), run.run(*tables[table])));
                        }
    }
}
