#include "convert/packed/float8.h"

#include <limits>
#include <string>
#include <vector>

namespace fovea {
PackedMatrix float8_matrix(const Float8Matrix& matrix) {
    const auto dequantize = [matrix](std::uint64_t row, float* out) {
        const std::byte* numbers = matrix.data + row * matrix.n_cols;
        for (std::uint64_t col = 0; col < matrix.n_cols; ++col)
            out[col] = from_e4m3(std::to_integer<std::uint8_t>(numbers[col])) *
                       matrix.scales.at(row / matrix.block_rows, col / matrix.block_cols);
    };
    return {.dequantize = dequantize, .groups = {}, .type = Type::bf16};
}

BlockSize read_block_size(const Fields& fields, const char* name) {
    if (!fields.has(name)) fields.refuse(name, "two whole numbers above 0");
    const SortedJson& sizes = fields.json()[name];
    const auto fits = [](const SortedJson& size) {
        return size.is_number_unsigned() && size.get<std::uint64_t>() > 0 && size.get<std::uint64_t>() <= 1u << 30;
    };
    if (!sizes.is_array() || sizes.size() != 2 || !fits(sizes[0]) || !fits(sizes[1]))
        fields.refuse(name, "two whole numbers above 0");
    return {sizes[0].get<std::uint64_t>(), sizes[1].get<std::uint64_t>()};
}

void unpack_float8(PackedModule& module, const char* part, BlockSize block) {
    const SourceTensor& weight = module.find("weight", {"F8_E4M3"}, 2);
    const std::uint64_t n_rows = weight.shape[0], n_cols = weight.shape[1];
    Float8Matrix matrix{.data = weight.data, .n_cols = n_cols, .scales = {}};
    if (block.rows) {
        matrix.block_rows = block.rows;
        matrix.block_cols = block.cols;
        matrix.scales = module.find_factors(part, {{div_up(n_rows, block.rows), div_up(n_cols, block.cols)}});
    } else {
        matrix.block_cols = n_cols;
        matrix.scales = module.find_factors(part, {{n_rows, 1}, {n_rows}, {1, 1}, {1}, {}});
    }
    for (const char* activations : {"input_scale", "input_scale_ub", "activation_scale"}) module.drop(activations);
    module.replace(n_rows, n_cols, float8_matrix(matrix));
}

Quantization read_float8(const Fields& fields) {
    if (fields.text_or("fmt", "e4m3") != "e4m3") fields.refuse("fmt", "e4m3");
    if (fields.text_or("expert_dtype", "fp8") != "fp8") fields.refuse("expert_dtype", "fp8");
    BlockSize block;
    if (fields.has("weight_block_size")) block = read_block_size(fields, "weight_block_size");
    return {"fp8", [block](Safetensors& weights) {
                for_each_packed(weights, "weight", "F8_E4M3", [&](PackedModule& module) {
                    unpack_float8(module, module.peek("weight_scale_inv") ? "weight_scale_inv" : "weight_scale", block);
                });
            }};
}

}  // namespace fovea
