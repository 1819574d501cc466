// BitNet's folders (Wang et al. 2023; Ma et al. 2024) as transformers writes them: −1, 0 and 1, four rows in a byte, with one
// scale.
#include <string>

#include "convert/packed/module.h"

namespace fovea {
namespace {

constexpr std::uint64_t kInByte = 4;  // rows, a quarter of the matrix apart

void unpack(PackedModule& module, bool divides) {
    const SourceTensor& weight = module.find("weight", {"U8"}, 2);
    const std::uint64_t quarter = weight.shape[0], n_cols = weight.shape[1];
    const float scale = module.find_factors("weight_scale", {{1}, {1, 1}, {}}).at(0, 0);
    PackedMatrix matrix;
    matrix.dequantize = [data = weight.data, quarter, n_cols, scale, divides](std::uint64_t row, float* out) {
        const std::byte* bytes = data + row % quarter * n_cols;
        for (std::uint64_t col = 0; col < n_cols; ++col) {
            const int quant = (std::to_integer<int>(bytes[col]) >> 2 * (row / quarter) & 3) - 1;
            out[col] = divides ? static_cast<float>(quant) / scale : static_cast<float>(quant) * scale;
        }
    };
    matrix.type = Type::tq2_0;
    module.replace(kInByte * quarter, n_cols, std::move(matrix));
}

}  // namespace

Quantization read_bitnet(const Fields& fields) {
    const std::string linear = fields.text_or("linear_class", "bitlinear");
    if (linear != "bitlinear" && linear != "autobitlinear") fields.refuse("linear_class", "bitlinear or autobitlinear");
    if (fields.text_or("quantization_mode", "offline") != "offline") fields.refuse("quantization_mode", "offline");
    if (fields.flag_or("use_rms_norm", false)) fields.refuse("use_rms_norm", "false");
    const bool divides = linear == "bitlinear";  // a layer's outputs by the scale there, else they are multiplied
    return {"bitnet, ternary", [divides](Safetensors& weights) {
                for_each_packed(weights, "weight", "U8", [&](PackedModule& module) { unpack(module, divides); });
            }};
}

}  // namespace fovea
