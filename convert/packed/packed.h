// Matrices of quantized Hugging Face folders: the reading of each kind, chosen by config.json's quantization_config.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "convert/formats/safetensors.h"
#include "convert/quantize/quantize.h"
#include "host/base/source_file.h"

namespace fovea {

[[nodiscard]] constexpr std::uint64_t div_up(std::uint64_t a, std::uint64_t b) noexcept { return a / b + (a % b != 0); }

/// A matrix that a folder holds otherwise than as floats. Its outputs are rows, however they lie there.
struct PackedMatrix {
    /// Writes a row's weights, in float32.
    std::function<void(std::uint64_t row, float* out)> dequantize;
    /// If a quantized type holds the weights without a change: writes the groups of a row. They are zero before.
    std::function<void(std::uint64_t row, QuantizedGroup* out)> groups = {};
    Type type = Type::q8;  ///< that type; without groups, what the matrix becomes if no --type is given
};

struct Quantization {
    std::string name;  ///< for a file's source_type: "gptq, 4 bits"; empty: nothing is quantized
    /// Puts a matrix NAME.weight in the place of each module's tensors. Throws host::Error for what is not as the configuration
    /// says.
    std::function<void(Safetensors& weights)> unpack;
    std::string note = {};  ///< for the user
};

/// Reads a quantization_config. Throws host::Error for settings that no reader here knows, as `unpack` does for methods, unless all
/// weights are floats: then the configuration is left over.
[[nodiscard]] Quantization read_quantization(const Fields& fields);

/// By method: AutoGPTQ's and GPTQModel's, AutoAWQ's, AutoRound's own, vLLM's compressed-tensors, float8 with a scale for each block, row or
/// matrix (DeepSeek's, FBGEMM's), and BitNet's ternary weights.
[[nodiscard]] Quantization read_gptq(const Fields& fields);
[[nodiscard]] Quantization read_awq(const Fields& fields);
[[nodiscard]] Quantization read_auto_round(const Fields& fields);
[[nodiscard]] Quantization read_compressed_tensors(const Fields& fields);
[[nodiscard]] Quantization read_float8(const Fields& fields);
[[nodiscard]] Quantization read_bitnet(const Fields& fields);

/// Whether nothing but zero bytes is in it.
[[nodiscard]] bool is_zero(const SourceTensor& tensor) noexcept;

}  // namespace fovea
