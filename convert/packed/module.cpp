#include "convert/packed/module.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "host/base/elements.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {

float Factors::at(std::uint64_t row, std::uint64_t group) const noexcept {
    return load_element(data, type, row * row_stride + group * group_stride);
}

const SourceTensor* PackedModule::peek(const std::string& part) const {
    const auto found = weights_.tensors.find(name_ + "." + part);
    return found == weights_.tensors.end() ? nullptr : &found->second;
}

void PackedModule::refuse(const std::string& part, const std::string& words) const {
    const SourceTensor* tensor = peek(part);
    const std::size_t file = tensor ? tensor->file : weights_.tensors.at(taken_.front()).file;
    throw host::Error(weights_.files[file].string() + ": tensor " + name_ + "." + part + ": " + words);
}

const SourceTensor& PackedModule::find(const std::string& part, std::initializer_list<const char*> dtypes,
                                       std::size_t rank) {
    const SourceTensor* found = peek(part);
    if (!found) refuse(part, "expected it beside the module's others, got none");
    const SourceTensor& tensor = *found;
    std::string wanted;
    for (const char* dtype : dtypes) wanted += (wanted.empty() ? "" : " or ") + std::string(dtype);
    if (std::none_of(dtypes.begin(), dtypes.end(), [&](const char* dtype) { return tensor.dtype == dtype; }))
        refuse(part, "expected " + wanted + ", got " + tensor.dtype);
    if (tensor.shape.size() != rank || std::count(tensor.shape.begin(), tensor.shape.end(), std::uint64_t{0}))
        refuse(part,
               "expected a shape of " + std::to_string(rank) + " sizes above 0, got " + shape_words(tensor.shape));
    taken_.push_back(name_ + "." + part);
    return tensor;
}

Factors PackedModule::find_factors(const std::string& part, const std::vector<std::vector<std::uint64_t>>& shapes,
                                   bool turned) {
    const SourceTensor* found = peek(part);
    const std::size_t rank = found ? found->shape.size() : 2;
    const SourceTensor& tensor = find(part, {"F32", "F16", "BF16"}, rank);
    std::string wanted;
    for (const auto& shape : shapes) wanted += (wanted.empty() ? "" : " or ") + shape_words(shape);
    if (std::find(shapes.begin(), shapes.end(), tensor.shape) == shapes.end())
        refuse(part, "expected shape " + wanted + ", got " + shape_words(tensor.shape));
    Factors factors{tensor.data, tensor.dtype == "F16" ? Type::f16 : tensor.dtype == "BF16" ? Type::bf16 : Type::f32};
    const std::uint64_t first = rank > 0 ? tensor.shape[0] : 1, second = rank > 1 ? tensor.shape[1] : 1;
    factors.row_stride = first > 1 ? second : 0;
    factors.group_stride = second > 1 ? 1 : 0;
    if (turned) std::swap(factors.row_stride, factors.group_stride);
    return factors;
}

void PackedModule::need_shape(const std::string& part, const SourceTensor& tensor,
                              const std::vector<std::uint64_t>& shape) const {
    if (tensor.shape != shape)
        refuse(part, "expected shape " + shape_words(shape) + ", got " + shape_words(tensor.shape));
}

void PackedModule::replace(std::uint64_t n_rows, std::uint64_t n_cols, PackedMatrix matrix) {
    // The engine's types have groups of 32 columns.
    if (n_cols % kGroup) {
        matrix.groups = {};
        matrix.type = is_quantized(matrix.type) ? Type::f32 : matrix.type;
    }
    SourceTensor tensor{.dtype = "F32", .shape = {n_rows, n_cols}};
    tensor.file = weights_.tensors.at(taken_.front()).file;
    tensor.packed = std::make_shared<const PackedMatrix>(std::move(matrix));
    for (const std::string& name : taken_) weights_.tensors.erase(name);
    if (!weights_.tensors.emplace(name_ + ".weight", std::move(tensor)).second)
        refuse("weight", "expected a matrix as floats or packed, got both");
}

void for_each_packed(Safetensors& weights, const std::string& part, const char* dtype,
                     const std::function<void(PackedModule&)>& unpack) {
    std::vector<std::string> modules;
    for (const auto& [name, tensor] : weights.tensors)
        if (!tensor.packed && tensor.dtype == dtype && name.size() > part.size() && name.ends_with("." + part))
            modules.push_back(name.substr(0, name.size() - part.size() - 1));
    for (const std::string& name : modules) {
        PackedModule module(weights, name);
        unpack(module);
    }
}

bool is_zero(const SourceTensor& tensor) noexcept {
    return std::all_of(tensor.data, tensor.data + tensor.bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace fovea
