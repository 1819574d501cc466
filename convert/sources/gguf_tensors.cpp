#include "convert/sources/gguf_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "convert/sources/source_rows.h"
#include "host/base/elements.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

/// Without columns that of a vector.
std::vector<std::uint64_t> wanted_shape(std::uint64_t n_all, std::uint64_t n_cols, std::uint64_t in_rows,
                                        std::uint64_t n_experts) {
    std::vector<std::uint64_t> wanted = {n_all};
    if (in_rows) wanted = {n_all / in_rows, in_rows};
    if (n_experts) wanted = {n_experts, n_all / n_experts};
    if (n_cols) wanted.push_back(n_cols);
    return wanted;
}

/// What all elements of a tensor of `n_elements` are multiplied with.
float tensor_scale(const GgufTensor& tensor, std::uint64_t n_elements) {
    float scale = 1.0f;
    const GgufBlocks& blocks = *tensor.blocks;
    if (blocks.n_scale_bytes)
        std::memcpy(&scale, tensor.data + n_elements / blocks.n_elements * blocks.n_bytes, sizeof scale);
    return scale;
}

/// The groups of a tensor that has one scale, where float16 holds it.
void set_scaled_groups(const GgufBlocks& blocks, const std::byte* data, std::uint64_t row_bytes, float scale,
                       TensorView& view) {
    const std::uint16_t half = to_f16(scale);
    if (from_f16(half) != scale) return;
    view.groups = [&blocks, data, row_bytes, half](std::uint64_t row, QuantizedGroup* out) {
        std::vector<float> quants(blocks.n_elements);
        const std::byte* block = data + row * row_bytes;
        for (const std::byte* end = block + row_bytes; block != end; block += blocks.n_bytes) {
            blocks.dequantize(block, quants.data());
            for (std::uint32_t i = 0; i < blocks.n_elements; i += kGroup, ++out) {
                out->scale = half;
                out->scales = {1, 1};
                for (std::uint32_t k = 0; k < kGroup; ++k) out->quants[k] = static_cast<std::int8_t>(quants[i + k]);
            }
        }
    };
}

/// The ways to read rows of `row_bytes` bytes from `data` on.
void set_quantized(const GgufBlocks& blocks, const std::byte* data, std::uint64_t row_bytes, float scale,
                   const std::string& place, TensorView& view) {
    view.dequantize = [&blocks, data, row_bytes, scale](std::uint64_t row, float* out) {
        const std::byte* block = data + row * row_bytes;
        for (const std::byte* end = block + row_bytes; block != end; block += blocks.n_bytes) {
            blocks.dequantize(block, out);
            for (std::uint32_t i = 0; blocks.n_scale_bytes && i < blocks.n_elements; ++i) out[i] *= scale;
            out += blocks.n_elements;
        }
    };
    view.group_type = blocks.group_type;
    if (blocks.n_scale_bytes) set_scaled_groups(blocks, data, row_bytes, scale, view);
    if (blocks.take_apart == nullptr) return;
    view.groups = [&blocks, data, row_bytes, place](std::uint64_t row, QuantizedGroup* out) {
        const std::byte* block = data + row * row_bytes;
        for (const std::byte* end = block + row_bytes; block != end; block += blocks.n_bytes) {
            blocks.take_apart(block, out);
            const std::uint32_t n_groups = blocks.n_elements / kGroup;
            if (n_groups == 1 && std::count(out->quants.begin(), out->quants.end(), std::int8_t{-128}) != 0)
                throw host::Error(place + ": expected quants from -127 to 127, got -128; --type f32 takes it");
            out += n_groups;
        }
    };
}

}  // namespace

void GgufTensors::refuse(const std::string& name, const std::string& why) const {
    throw host::Error(file_.path().string() + ": tensor " + name + ": " + why);
}

void GgufTensors::add_products(const std::map<std::string, LowRank>& products, float scale) {
    for (const auto& [name, low] : products) {
        if (!has(name)) throw host::Error(low.name + ": expected a tensor that the model's file has, got " + name);
        added_[name].push_back(low);
        added_[name].back().scale *= scale;
    }
}

TensorView GgufTensors::view(const std::string& name, bool vector, std::uint64_t n_cols, std::uint64_t row_begin,
                             std::uint64_t n_all, std::uint64_t in_rows, std::uint64_t n_experts) {
    if (products_) return products_->view(name, {.n_all = n_all, .begin = row_begin});
    std::vector<std::uint64_t> wanted = wanted_shape(n_all, vector ? 0 : n_cols, in_rows, n_experts);
    const auto found = file_.tensors().find(name);
    if (found == file_.tensors().end()) refuse(name, "expected " + shape_words(wanted) + ", got none");
    const GgufTensor& tensor = found->second;
    wanted = without_outer_ones(std::move(wanted));
    if (tensor.shape != wanted)
        refuse(name, "expected shape " + shape_words(wanted) + ", got " + shape_words(tensor.shape));
    used_.insert(name);
    const GgufBlocks& blocks = *tensor.blocks;
    if (vector && blocks.dequantize) refuse(name, std::string("expected F32, F16 or BF16, got ") + blocks.name);
    const std::uint64_t row_bytes = (vector ? 1 : n_cols / blocks.n_elements) * blocks.n_bytes;
    TensorView result;
    result.data = tensor.data + row_begin * row_bytes;
    result.type = blocks.plain;
    result.row_stride = vector ? 1 : n_cols;
    if (blocks.dequantize) {
        const float scale = tensor_scale(tensor, n_all * n_cols);
        if (!std::isfinite(scale)) refuse(name, "expected a finite scale, got " + std::to_string(scale));
        set_quantized(blocks, result.data, row_bytes, scale, file_.path().string() + ": tensor " + name, result);
    }
    if (const auto added = added_.find(name); added != added_.end())
        add_low_ranks(added->second, file_.path().string(), {.n_all = n_all, .begin = row_begin}, n_cols,
                      vector || n_experts, result);
    return result;
}

std::vector<float> GgufTensors::divisors(const std::string& name, std::uint32_t n) {
    const TensorView found = view(name, true, n, 0, n);
    if (found.type != Type::f32) refuse(name, "expected F32, got another type");
    std::vector<float> numbers(n);
    read_vector(found, n, numbers.data());
    for (const float number : numbers)
        if (!(number > 0) || !std::isfinite(number))
            refuse(name, "expected positive numbers, got " + std::to_string(number));
    return numbers;
}

}  // namespace fovea
