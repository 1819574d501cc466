#include <algorithm>
#include <string>
#include <utility>

#include "convert/packed/packed.h"
#include "host/base/error.h"

namespace fovea {
namespace {

/// Refuses weights of which none is packed.
Quantization checked(Quantization quantization, const std::string& place) {
    quantization.unpack = [unpack = std::move(quantization.unpack), place](Safetensors& weights) {
        unpack(weights);
        if (std::none_of(weights.tensors.begin(), weights.tensors.end(),
                         [](const auto& entry) { return entry.second.packed != nullptr; }))
            throw host::Error(weights.files.front().string() + ": expected tensors packed as " + place +
                              " says, got none");
    };
    return quantization;
}

/// A method that nothing here reads. Its settings may be left over from a model whose weights are floats again, or still.
Quantization left_over(const Fields& fields, const std::string& known) {
    const auto check = [fields, known](const Safetensors& weights) {
        for (const auto& [name, tensor] : weights.tensors)
            if (tensor.dtype != "F32" && tensor.dtype != "F16" && tensor.dtype != "BF16" &&
                !is_saved_buffer(name, tensor))
                fields.refuse("quant_method", "one of " + known);
    };
    return {
        .name = {}, .unpack = check, .note = fields.place() + ": nothing of it is used, for the weights are floats"};
}

}  // namespace

Quantization read_quantization(const Fields& fields) {
    static constexpr struct {
        const char* name;
        Quantization (*read)(const Fields&);
    } kMethods[] = {{"gptq", read_gptq},
                    {"awq", read_awq},
                    {"auto-round", read_auto_round},
                    {"compressed-tensors", read_compressed_tensors},
                    {"fp8", read_float8},
                    {"fbgemm_fp8", read_float8},
                    {"bitnet", read_bitnet}};
    const std::string method = fields.text("quant_method");
    std::string known;
    for (const auto& [name, read] : kMethods) {
        if (method == name) return checked(read(fields), fields.place());
        known += (known.empty() ? "" : ", ") + std::string(name);
    }
    return left_over(fields, known);
}

}  // namespace fovea
