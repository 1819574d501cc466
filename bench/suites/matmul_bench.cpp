// Matrices times rows, on one thread, every instruction set and type: many rows beside the peak of FMA or of exact
// products of bytes, one row beside the read bandwidth over the same weights, few rows beside one; and packing rows.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <string>

#include "bench/suites/suites.h"
#include "convert/writer/writer.h"
#include "host/base/clock.h"
#include "host/base/words.h"

namespace fovea {
namespace {

constexpr std::size_t kStreamedBytes = std::size_t{256} << 20;  // of weights for one row: more than most caches hold
constexpr double kMostScalarOperations = 1e8;                   // its fma may be emulated: seconds, not minutes

struct Shape {
    std::uint32_t n_rows, n_cols, seq_len;
};

/// The plain square, then SmolLM2-135M's: query and output, key and value, up, down and output head.
constexpr Shape kShapes[] = {{2048, 2048, 512}, {576, 576, 512}, {192, 576, 512}, {1536, 576, 512},
                             {576, 1536, 512},  {2048, 2048, 1}, {576, 576, 1},   {192, 576, 1},
                             {1536, 576, 1},    {576, 1536, 1},  {49152, 576, 1}};

/// Few rows, as of sequences that are decoded together: gate and up of SmolLM2-135M and of TinyLlama-1.1B.
constexpr Shape kFewShapes[] = {{3072, 576, 0}, {11264, 2048, 0}};
constexpr std::uint32_t kFew[] = {2, 4, 5, 6, 8, 12, 13, 16, 20, 24};

/// One of each way to multiply few rows: floats, 8 bits, and fewer in every kind of cell and scale.
constexpr Type kFewTypes[] = {Type::f32,   Type::f16, Type::q8,     Type::q8_128, Type::q6_k, Type::q5_k,
                              Type::q4_k,  Type::q4,  Type::iq4_nl, Type::iq4_xs, Type::q3_k, Type::q2_k,
                              Type::tq2_0, Type::q5,  Type::q4_1,   Type::q5_1};

/// A matrix in panels, as often as it takes so that one row's product finds none of it in a cache, and rows for it.
class Operands {
public:
    Operands(Type type, const Shape& shape)
        : shape_(shape),
          type_(type),
          stride_(panel_stride_for(type, shape.n_cols)),
          matrix_bytes_(stride_ * n_panels()),
          n_copies_(shape.seq_len > kFewRows ? 1 : (kStreamedBytes + matrix_bytes_ - 1) / matrix_bytes_),
          weights_(matrix_bytes_ * n_copies_),
          rows_(std::size_t{shape.seq_len} * shape.n_cols),
          packed_(static_cast<std::size_t>(operand_bytes(type, shape.seq_len, shape.n_cols))),
          out_(std::size_t{shape.seq_len} * n_panels() * kLanes),
          n_packed_(shape.seq_len) {
        Numbers numbers;
        fill_elements(type, numbers, weights_);
        fill_elements(Type::f32, numbers, std::as_writable_bytes(std::span(rows_)));
        pack(kernels_scalar);
    }

    [[nodiscard]] std::span<const std::byte> weights() const { return weights_; }
    [[nodiscard]] double n_operations() const { return 2.0 * shape_.n_rows * shape_.n_cols * shape_.seq_len; }

    [[nodiscard]] std::span<const std::byte> rows() const { return std::as_bytes(std::span(rows_)); }

    void pack(const Kernels& kernels) { pack(kernels, shape_.seq_len); }

    /// The first n_rows rows, for the products that follow.
    void pack(const Kernels& kernels, std::uint32_t n_rows) {
        n_packed_ = n_rows;
        for (std::uint32_t row = 0, block = row_block(n_rows); row < n_rows; row += block) {
            const std::uint32_t n = std::min(block, n_rows - row);
            kernels.pack(type_, rows_.data() + std::size_t{row} * shape_.n_cols, shape_.n_cols, nullptr,
                         {row, n, n_rows}, shape_.n_cols, packed_.data());
        }
    }

    /// The product with every copy.
    void multiply(const Kernels& kernels) {
        for (std::size_t copy = 0; copy < n_copies_; ++copy)
            kernels.matmul(type_, Matmul{.panels = weights_.data() + copy * matrix_bytes_,
                                         .panel_stride = static_cast<std::size_t>(stride_),
                                         .n_rows = shape_.n_rows,
                                         .n_cols = shape_.n_cols,
                                         .panel_begin = 0,
                                         .panel_end = n_panels(),
                                         .operand = packed_.data(),
                                         .seq_len = n_packed_,
                                         .bias = nullptr,
                                         .out = out_.data(),
                                         .out_stride = std::size_t{n_panels()} * kLanes,
                                         .epilogue = Epilogue::store,
                                         .activation = Activation::none,
                                         .canonical = false,
                                         .second_level = detect_features().fetches_to_second_level});
    }

private:
    [[nodiscard]] std::uint32_t n_panels() const { return (shape_.n_rows + kLanes - 1) / kLanes; }

    Shape shape_;
    Type type_;
    std::uint64_t stride_;
    std::size_t matrix_bytes_, n_copies_;
    AlignedBytes weights_;
    AlignedFloats rows_;
    AlignedBytes packed_;
    AlignedFloats out_;
    std::uint32_t n_packed_;
};

void multiply(benchmark::State& state, const Kernels& kernels, Type type, const Shape& shape) {
    Operands operands(type, shape);
    const bool many = shape.seq_len > 1;
    const Ceiling ceiling = !many                ? read_ceiling(kernels.isa, operands.weights(), 1)
                            : is_quantized(type) ? int8_ceiling(kernels.isa, 1)
                                                 : fma_ceiling(kernels.isa, 1);
    const double amount = many ? operands.n_operations() : static_cast<double>(operands.weights().size());
    operands.pack(kernels);
    run_rounds(state, ceiling, amount, [&] { operands.multiply(kernels); });
}

/// Bytes of weights a second that one row's product reads: what few rows reach while they wait for memory alone.
Ceiling one_row_ceiling(const Kernels& kernels, Operands& operands, std::uint32_t n_rows) {
    return {"GB_s", [&kernels, &operands, n_rows] {
                operands.pack(kernels, 1);
                double fastest = 1e9;
                for (int i = 0; i < 3; ++i) {
                    const double start = host::seconds_now();
                    operands.multiply(kernels);
                    fastest = std::min(fastest, host::seconds_now() - start);
                }
                operands.pack(kernels, n_rows);
                return static_cast<double>(operands.weights().size()) / fastest;
            }};
}

/// Few rows beside one: share_of_peak is the time of one row's product over that of all rows' products.
void multiply_few(benchmark::State& state, const Kernels& kernels, Type type, const Shape& shape) {
    Operands operands(type, shape);
    run_rounds(state, one_row_ceiling(kernels, operands, shape.seq_len), static_cast<double>(operands.weights().size()),
               [&] { operands.multiply(kernels); });
}

/// Bytes of rows a second, beside reading the rows.
void pack(benchmark::State& state, const Kernels& kernels, Type type, const Shape& shape) {
    Operands operands(type, shape);
    run_rounds(state, read_ceiling(kernels.isa, operands.rows(), 1), static_cast<double>(operands.rows().size()),
               [&] { operands.pack(kernels); });
}

}  // namespace

void add_matmul_suite() {
    for_each_table([](const Kernels& kernels) {
        const bool scalar = std::string_view(kernels.isa) == "scalar";
        const auto named = [&](const char* what, Type type, const Shape& shape) {
            return std::string(what) + "/" + kernels.isa + "/" + type_name(type) + "/" + std::to_string(shape.n_rows) +
                   "x" + std::to_string(shape.n_cols) + "/rows:" + std::to_string(shape.seq_len);
        };
        for (const Shape& shape : kShapes)
            for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8, Type::q8_128, Type::q4, Type::q4_k,
                                    Type::q2_k, Type::tq2_0}) {
                if (scalar && 2.0 * shape.n_rows * shape.n_cols * shape.seq_len > kMostScalarOperations) continue;
                add(named("matmul", type, shape),
                    [&kernels, type, shape](benchmark::State& state) { multiply(state, kernels, type, shape); });
            }
        for (Shape shape : kFewShapes)
            for (const std::uint32_t n : kFew)
                for (const Type type : kFewTypes) {
                    if (scalar) continue;
                    shape.seq_len = n;
                    add(named("few", type, shape), [&kernels, type, shape](benchmark::State& state) {
                        multiply_few(state, kernels, type, shape);
                    });
                }
        for (const Type type : {Type::f32, Type::q8})
            add(named("pack", type, kShapes[1]),
                [&kernels, type](benchmark::State& state) { pack(state, kernels, type, kShapes[1]); });
    });
}

}  // namespace fovea
