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

}  // namespace

Quantization read_quantization(const Fields& fields) {
    static constexpr struct {
        const char* name;
        Quantization (*read)(const Fields&);
    } kMethods[] = {{"gptq", read_gptq},  {"awq", read_awq},           {"compressed-tensors", read_compressed_tensors},
                    {"fp8", read_float8}, {"fbgemm_fp8", read_float8}, {"bitnet", read_bitnet}};
    const std::string method = fields.text("quant_method");
    std::string known;
    for (const auto& [name, read] : kMethods) {
        if (method == name) return checked(read(fields), fields.place());
        known += (known.empty() ? "" : ", ") + std::string(name);
    }
    fields.refuse("quant_method", "one of " + known);
}

}  // namespace fovea
