#include "convert/weights/distance_tables.h"

#include <algorithm>
#include <cmath>

#include "convert/weights/mapped_table.h"
#include "host/base/exact_math.h"

namespace fovea {
namespace {

/// Both sides: distance d has bucket span + of(d), its opposite span − of(d), as far as there are such.
template<class Bucket>
DistanceBuckets both_sides(std::uint32_t span, const Bucket& of) {
    std::uint32_t most = 1;
    while (most < kMaxPositions && of(most) < span) ++most;
    DistanceBuckets result{span, std::vector<float>(2 * std::size_t{most} + 1)};
    for (std::uint32_t d = 0; d <= most; ++d) {
        const std::uint32_t bucket = std::min(of(d), span);
        result.of[most - d] = static_cast<float>(std::min(span + bucket, 2 * span - 1));
        result.of[most + d] = static_cast<float>(span - bucket);
    }
    return result;
}

std::vector<float> vector_of(const TensorView& view, std::uint32_t n) {
    std::vector<float> values(n);
    read_vector(view, n, values.data());
    return values;
}

/// The table's rows, normed where it has a norm.
std::vector<float> read_table(const DistanceTables& tables, const Stack& stack, const ViewTensor& view) {
    const std::uint32_t n_rows = 2 * tables.buckets.span, d = stack.d_model;
    const TensorView table = view(tables.table, n_rows, d);
    std::vector<float> rows(std::size_t{n_rows} * d);
    for (std::uint32_t row = 0; row < n_rows; ++row) read_row(table, row, d, rows.data() + std::size_t{row} * d);
    if (tables.norm.empty()) return rows;
    const std::vector<float> weight = vector_of(view(tables.norm + ".weight", d, 1), d),
                             bias = vector_of(view(tables.norm + ".bias", d, 1), d);
    for (std::uint32_t row = 0; row < n_rows; ++row) {
        float* x = rows.data() + std::size_t{row} * d;
        double mean = 0, squares = 0;
        for (std::uint32_t i = 0; i < d; ++i) mean += x[i];
        mean /= d;
        for (std::uint32_t i = 0; i < d; ++i) squares += (x[i] - mean) * (x[i] - mean);
        const double factor = 1.0 / std::sqrt(squares / d + static_cast<double>(stack.final_norm_epsilon));
        for (std::uint32_t i = 0; i < d; ++i) x[i] = static_cast<float>((x[i] - mean) * factor * weight[i] + bias[i]);
    }
    return rows;
}

}  // namespace

DistanceBuckets plain_buckets(std::uint32_t span) {
    return both_sides(span, [](std::uint32_t d) { return d; });
}

DistanceBuckets log_buckets(std::uint32_t span, std::uint32_t max_position) {
    const std::uint32_t middle = span / 2;
    const auto float_log = [](float x) { return static_cast<float>(exact_log(x)); };
    const float scale = float_log(static_cast<float>((max_position - 1.0) / middle));
    return both_sides(span, [&](std::uint32_t d) {
        if (d <= middle) return d;
        const float log = float_log(static_cast<float>(d) / static_cast<float>(middle));
        return static_cast<std::uint32_t>(std::ceil(log / scale * static_cast<float>(middle - 1))) + middle;
    });
}

std::vector<float> distance_vectors(const DistanceTables& tables, const Stack& stack, const TensorSpec& spec,
                                    const std::string& module, const ViewTensor& view) {
    std::vector<float> values(std::size_t{spec.n_rows} * spec.n_cols);
    if (!(spec.role == Role::distance_keys ? tables.keys : tables.queries)) return values;
    const Block& block = stack.block(spec.layer);
    const std::uint32_t d = stack.d_model, width = block.attention.n_heads * block.attention.head_dim,
                        rows_each = bucket_rows(block);
    const std::vector<float> rows = read_table(tables, stack, view),
                             bias = vector_of(view(module + ".bias", width, 1), width);
    const TensorView table{reinterpret_cast<const std::byte*>(rows.data()), Type::f32, d};
    const TensorView projected = mapped_table(table, view(module + ".weight", width, d), d, width, false);
    std::vector<float> row(width);
    for (std::uint32_t bucket = 0; bucket < block.attention.relative_buckets; ++bucket) {
        projected.dequantize(bucket, row.data());
        for (std::uint32_t i = 0; i < width; ++i) {
            const std::size_t at = std::size_t{i / block.attention.head_dim} * rows_each + bucket;
            values[at * block.attention.head_dim + i % block.attention.head_dim] =
                (row[i] + bias[i]) * block.attention.softmax_scale;
        }
    }
    return values;
}

}  // namespace fovea
