#include "convert/weights/mapped_table.h"

#include <memory>

namespace fovea {
namespace {

std::vector<float> row_of(const TensorView& view, std::uint64_t row, std::uint32_t n_cols) {
    std::vector<float> values(n_cols);
    read_row(view, row, n_cols, values.data());
    return values;
}

/// [n_inner][n_cols], so that a sum's next products lie side by side.
std::vector<double> by_inner_columns(const TensorView& matrix, std::uint32_t n_inner, std::uint32_t n_cols,
                                     bool transposed) {
    std::vector<double> factors(std::size_t{n_inner} * n_cols);
    for (std::uint32_t row = 0; row < (transposed ? n_inner : n_cols); ++row) {
        const std::vector<float> values = row_of(matrix, row, transposed ? n_cols : n_inner);
        for (std::size_t col = 0; col < values.size(); ++col)
            factors[transposed ? row * std::size_t{n_cols} + col : col * n_cols + row] = values[col];
    }
    return factors;
}

}  // namespace

TensorView mapped_table(const TensorView& table, const TensorView& matrix, std::uint32_t n_inner, std::uint32_t n_cols,
                        bool transposed) {
    const auto factors =
        std::make_shared<const std::vector<double>>(by_inner_columns(matrix, n_inner, n_cols, transposed));
    TensorView view = table;
    if (!table.dequantize) view.group_type = table.type;
    view.groups = {};
    view.col_stride = 1;  // rows come whole
    view.dequantize = [table, factors, n_inner, n_cols](std::uint64_t row, float* out) {
        const std::vector<float> inner = row_of(table, row, n_inner);
        std::vector<double> sums(n_cols);
        const double* products = factors->data();
        for (std::uint32_t k = 0; k < n_inner; ++k, products += n_cols)
            for (std::uint32_t i = 0; i < n_cols; ++i) sums[i] += inner[k] * products[i];
        for (std::uint32_t i = 0; i < n_cols; ++i) out[i] = static_cast<float>(sums[i]);
    };
    return view;
}

}  // namespace fovea
