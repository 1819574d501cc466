// Matrices times rows, on one thread, every instruction set and type: many rows beside the FMA peak, one row beside the
// read bandwidth over the same weights.
#include <benchmark/benchmark.h>

#include <array>
#include <string>

#include "convert/writer.h"
#include "kernels/kernels.h"
#include "rounds.h"
#include "suites.h"

namespace fovea {
namespace {

constexpr std::size_t kStreamedBytes = std::size_t{256} << 20;  // of weights for one row: more than most caches hold
constexpr double kMostScalarOperations = 1e8;                   // its fma may be emulated: seconds, not minutes

struct Shape {
    std::uint32_t n_rows, n_cols, seq_len;
};

/// The plain square, then SmolLM2-135M's: query and output, key and value, up, down and output head.
constexpr Shape kShapes[] = {{2048, 2048, 512}, {576, 576, 512},  {192, 576, 512},  {1536, 576, 512}, {576, 1536, 512},
                             {2048, 2048, 1},   {576, 576, 1},    {192, 576, 1},    {1536, 576, 1},   {576, 1536, 1},
                             {49152, 576, 1}};

/// A matrix in panels, as often as it takes so that one row's product finds none of it in a cache, and rows for it.
class Operands {
public:
    Operands(Type type, const Shape& shape)
        : shape_(shape), type_(type), stride_(panel_stride_for(type, shape.n_cols)),
          matrix_bytes_(stride_ * n_panels()),
          n_copies_(shape.seq_len > 1 ? 1 : (kStreamedBytes + matrix_bytes_ - 1) / matrix_bytes_),
          weights_(matrix_bytes_ * n_copies_), packed_(std::size_t{shape.seq_len} * shape.n_cols),
          out_(std::size_t{shape.seq_len} * n_panels() * kLanes) {
        Numbers numbers;
        fill_elements(type, numbers, weights_);
        fill_elements(Type::f32, numbers, std::as_writable_bytes(std::span(packed_)));
    }

    [[nodiscard]] std::span<const std::byte> weights() const { return weights_; }
    [[nodiscard]] double n_operations() const { return 2.0 * shape_.n_rows * shape_.n_cols * shape_.seq_len; }

    /// The product with every copy.
    void multiply(const Kernels& kernels) {
        for (std::size_t copy = 0; copy < n_copies_; ++copy)
            kernels.matmul[static_cast<int>(type_)](Matmul{.panels = weights_.data() + copy * matrix_bytes_,
                                                           .panel_stride = static_cast<std::size_t>(stride_),
                                                           .n_rows = shape_.n_rows,
                                                           .n_cols = shape_.n_cols,
                                                           .panel_begin = 0,
                                                           .panel_end = n_panels(),
                                                           .operand = packed_.data(),
                                                           .seq_len = shape_.seq_len,
                                                           .bias = nullptr,
                                                           .out = out_.data(),
                                                           .out_stride = std::size_t{n_panels()} * kLanes,
                                                           .finish = Finish::store,
                                                           .activation = Activation::none,
                                                           .canonical = false});
    }

private:
    [[nodiscard]] std::uint32_t n_panels() const { return (shape_.n_rows + kLanes - 1) / kLanes; }

    Shape shape_;
    Type type_;
    std::uint64_t stride_;
    std::size_t matrix_bytes_, n_copies_;
    AlignedBytes weights_;
    AlignedFloats packed_, out_;
};

void multiply(benchmark::State& state, const Kernels& kernels, Type type, const Shape& shape) {
    Operands operands(type, shape);
    const bool many = shape.seq_len > 1;
    const Ceiling ceiling = many ? fma_ceiling(kernels.isa, 1) : read_ceiling(kernels.isa, operands.weights(), 1);
    const double amount = many ? operands.n_operations() : static_cast<double>(operands.weights().size());
    run_rounds(state, ceiling, amount, [&] { operands.multiply(kernels); });
}

}  // namespace

void add_matmul_suite() {
    for_each_table([](const Kernels& kernels) {
        const bool scalar = std::string_view(kernels.isa) == "scalar";
        for (const Shape& shape : kShapes)
            for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
                if (!kernels.matmul[static_cast<int>(type)]) continue;
                if (scalar && 2.0 * shape.n_rows * shape.n_cols * shape.seq_len > kMostScalarOperations) continue;
                const std::string name = std::string("matmul/") + kernels.isa + "/" + type_name(type) + "/" +
                                         std::to_string(shape.n_rows) + "x" + std::to_string(shape.n_cols) +
                                         "/rows:" + std::to_string(shape.seq_len);
                add(name, [&kernels, type, shape](benchmark::State& state) { multiply(state, kernels, type, shape); });
            }
    });
}

}  // namespace fovea
