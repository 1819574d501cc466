// BitNet's folders (Wang et al. 2023; Ma et al. 2024) as transformers writes them: −1, 0 and 1, four rows in a byte, with one
// scale; or the floats that training left, which become such numbers when they are read.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

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

/// The floats over their mean size, rounded to −1, 0 or 1 (Ma et al. 2024, equation 1).
void round(PackedModule& module) {
    const std::uint64_t n_rows = module.peek("weight")->shape[0], n_cols = module.peek("weight")->shape[1];
    const Factors weight = module.find_factors("weight", {{n_rows, n_cols}});
    double sum = 0;
    for (std::uint64_t row = 0; row < n_rows; ++row)
        for (std::uint64_t col = 0; col < n_cols; ++col) sum += std::fabs(weight.at(row, col));
    constexpr float kLeast = 1e-5f;
    const double n = static_cast<double>(n_rows) * static_cast<double>(n_cols);
    const float scale = 1.0f / std::max(static_cast<float>(sum / n), kLeast);
    PackedMatrix matrix;
    matrix.dequantize = [weight, n_cols, scale](std::uint64_t row, float* out) {
        for (std::uint64_t col = 0; col < n_cols; ++col)
            out[col] = std::clamp(std::nearbyint(weight.at(row, col) * scale), -1.0f, 1.0f) / scale;
    };
    matrix.type = Type::tq2_0;
    module.replace(n_rows, n_cols, std::move(matrix));
}

/// Every linear map but the output head; tables of embeddings are none.
void round_all(Safetensors& weights, const std::vector<std::string>& left) {
    for (const char* dtype : {"F32", "F16", "BF16"})
        for_each_packed(weights, "weight", dtype, [&](PackedModule& module) {
            const auto is_in_name = [&](const std::string& part) {
                return module.name().find(part) != std::string::npos;
            };
            const std::vector<std::uint64_t>& shape = module.peek("weight")->shape;
            const bool is_matrix = shape.size() == 2 && shape[0] && shape[1];
            if (is_matrix && std::none_of(left.begin(), left.end(), is_in_name)) round(module);
        });
}

}  // namespace

Quantization read_bitnet(const Fields& fields) {
    const std::string linear = fields.text_or("linear_class", "bitlinear");
    if (linear != "bitlinear" && linear != "autobitlinear") fields.refuse("linear_class", "bitlinear or autobitlinear");
    const std::string mode = fields.text_or("quantization_mode", "offline");
    if (mode != "offline" && mode != "online") fields.refuse("quantization_mode", "offline or online");
    if (fields.flag_or("use_rms_norm", false)) fields.refuse("use_rms_norm", "false");
    if (mode == "online" && linear == "autobitlinear") {
        std::vector<std::string> left = {"embed", "lm_head"};
        if (fields.has("modules_to_not_convert"))
            for (const std::string& name : fields.texts("modules_to_not_convert")) left.push_back(name);
        return {"bitnet, ternary", [left](Safetensors& weights) { round_all(weights, left); }};
    }
    const bool divides = linear == "bitlinear";  // a layer's outputs by the scale there, else they are multiplied
    return {"bitnet, ternary", [divides](Safetensors& weights) {
                for_each_packed(weights, "weight", "U8", [&](PackedModule& module) { unpack(module, divides); });
            }};
}

}  // namespace fovea
