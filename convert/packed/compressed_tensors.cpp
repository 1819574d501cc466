// Folders of compressed-tensors: integers packed in words or in bytes of their own, or float8, row after row.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "convert/packed/float8.h"
#include "convert/packed/integers.h"
#include "host/base/words.h"

namespace fovea {
namespace {

/// The schemes of the groups of modules. A module's tensors tell its group.
struct Schemes {
    std::vector<std::uint32_t> bits;  // of integers
    BlockSize block;                  // of float8
};

/// Drops the scales of quantized activations: activations are not quantized here.
void drop_activations(PackedModule& module) {
    for (const char* part : {"input_scale", "input_zero_point", "output_scale", "output_zero_point"}) module.drop(part);
}

void read_scheme(const Fields& group, Schemes& schemes) {
    if (!group.has("weights")) return;
    const Fields weights = group.object("weights");
    const std::uint32_t bits = weights.count("num_bits", 1, 32);
    const std::string type = weights.text_or("type", "int");
    if (type != "int" && type != "float") weights.refuse("type", "int or float");
    if (type == "float" && bits != 8) weights.refuse("num_bits", "8");
    if (type == "int" && bits != 2 && bits != 4 && bits != 8) weights.refuse("num_bits", "2, 4 or 8");
    if (type == "int") schemes.bits.push_back(bits);
    const std::string strategy = weights.text_or("strategy", "tensor");
    const bool blocks = strategy == "block" && type == "float";
    if (!blocks && strategy != "tensor" && strategy != "channel" && strategy != "group")
        weights.refuse("strategy", type == "float" ? "tensor, channel or block" : "tensor, channel or group");
    if (type == "float" && strategy == "group") weights.refuse("strategy", "tensor, channel or block");
    if (blocks) schemes.block = read_block_size(weights, "block_structure");
}

/// A scale for each row and group, for each row, or one for all. How many groups there are follows.
void read_scales(PackedModule& module, IntegerMatrix& m) {
    const SourceTensor* found = module.peek("weight_scale");
    if (found && found->shape.size() == 2) m.n_groups = found->shape[1];
    if (m.n_groups == 0 || m.n_cols % m.n_groups)
        module.refuse("weight_scale", "expected as many groups as a row's " + std::to_string(m.n_cols) +
                                          " columns make equal ones, got " + std::to_string(m.n_groups));
    m.scales = module.find_factors("weight_scale", {{m.n_rows, m.n_groups}, {m.n_rows}, {1, 1}, {1}, {}});
}

/// Symmetric schemes may have no zeros.
void read_zeros(PackedModule& module, IntegerMatrix& m) {
    const SourceTensor* found = module.peek("weight_zero_point");
    if (!found) return;
    m.has_zeros = true;
    if (found->dtype == "I32") {  // packed as the weights are, along the rows
        const SourceTensor& zeros = module.find("weight_zero_point", {"I32"}, 2);
        module.need_shape("weight_zero_point", zeros, {div_up(m.n_rows * m.quants.bits, 32), m.n_groups});
        m.zeros = {
            .data = zeros.data, .bits = m.quants.bits, .other_bytes = 4, .step = 4 * m.n_groups, .along_rows = true};
        return;
    }
    const SourceTensor& zeros = module.find("weight_zero_point", {"I8"}, found->shape.size());
    const bool one = zeros.bytes == 1;
    if (!one) module.need_shape("weight_zero_point", zeros, {m.n_rows, m.n_groups});
    if (one && m.n_groups > 1)
        module.refuse("weight_zero_point", "expected " + std::to_string(m.n_groups) + " for each row, got one");
    m.zeros = {.data = zeros.data, .row_bytes = one ? 0 : m.n_groups, .is_signed = true};
}

void unpack_integers(PackedModule& module, IntegerMatrix m) {
    read_scales(module, m);
    read_zeros(module, m);
    const SourceTensor* order = module.peek("weight_g_idx");
    const auto is_unset = [](std::byte byte) { return byte == std::byte{0xff}; };  // -1 in every place is no order
    if (order && !std::all_of(order->data, order->data + order->bytes, is_unset)) {
        m.group_of = read_group_of(module, "weight_g_idx", m.n_cols, m.n_groups);
    } else {
        m.group_of = groups_in_order(m.n_cols, m.n_cols / m.n_groups);
        module.drop("weight_g_idx");
    }
    drop_activations(module);
    const std::uint64_t n_rows = m.n_rows, n_cols = m.n_cols;
    module.replace(n_rows, n_cols, integer_matrix(std::move(m)));
}

/// The shape of a matrix before it was packed.
std::vector<std::uint64_t> read_shape(PackedModule& module) {
    const SourceTensor& tensor = module.find("weight_shape", {"I64", "I32"}, 1);
    module.need_shape("weight_shape", tensor, {2});
    std::int64_t sizes[2] = {};
    if (tensor.dtype == "I64") {
        std::memcpy(sizes, tensor.data, sizeof sizes);
    } else {
        std::int32_t narrow[2];
        std::memcpy(narrow, tensor.data, sizeof narrow);
        std::copy(narrow, narrow + 2, sizes);
    }
    for (const std::int64_t size : sizes)
        if (size < 1 || size > std::int64_t{1} << 31)
            module.refuse("weight_shape", "expected sizes from 1 to 2147483648, got " + std::to_string(size));
    return {static_cast<std::uint64_t>(sizes[0]), static_cast<std::uint64_t>(sizes[1])};
}

void unpack_words(PackedModule& module, const Schemes& schemes) {
    const SourceTensor& words = module.find("weight_packed", {"I32"}, 2);
    const std::vector<std::uint64_t> shape = read_shape(module);
    IntegerMatrix m;
    m.n_rows = shape[0];
    m.n_cols = shape[1];
    const auto fits = [&](std::uint32_t bits) {
        return words.shape == std::vector<std::uint64_t>{m.n_rows, div_up(m.n_cols * bits, 32)};
    };
    const auto bits = std::find_if(schemes.bits.begin(), schemes.bits.end(), fits);
    if (bits == schemes.bits.end())
        module.refuse("weight_packed", "expected rows of as many words as config.json's num_bits make for " +
                                           shape_words(shape) + ", got shape " + shape_words(words.shape));
    m.quants = {.data = words.data, .bits = *bits, .row_bytes = 4 * words.shape[1]};
    unpack_integers(module, std::move(m));
}

void unpack_bytes(PackedModule& module) {
    const SourceTensor& quants = module.find("weight", {"I8"}, 2);
    IntegerMatrix m;
    m.n_rows = quants.shape[0];
    m.n_cols = quants.shape[1];
    m.quants = {.data = quants.data, .bits = 8, .row_bytes = m.n_cols, .is_signed = true};
    unpack_integers(module, std::move(m));
}

/// Settings that change the tensors read here, or more than weights.
void refuse_others(const Fields& fields) {
    const std::string format = fields.text("format");
    for (const char* known :
         {"pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "mixed-precision"})
        if (format == known) return;
    fields.refuse("format", "pack-quantized, int-quantized, float-quantized, naive-quantized or mixed-precision");
}

}  // namespace

Quantization read_compressed_tensors(const Fields& fields) {
    refuse_others(fields);
    for (const char* name : {"kv_cache_scheme", "transform_config", "moe_sparsity_config"})
        if (fields.has(name) && !fields.json()[name].empty()) fields.refuse(name, "none");
    if (fields.text_or("quantization_status", "compressed") != "compressed")
        fields.refuse("quantization_status", "compressed");
    if (fields.has("sparsity_config") && !fields.json()["sparsity_config"].empty()) {
        const Fields sparsity = fields.object("sparsity_config");
        if (sparsity.text_or("format", "dense") != "dense") sparsity.refuse("format", "dense");
    }
    Schemes schemes;
    const Fields groups = fields.object("config_groups");
    for (const auto& [name, group] : groups.json().items()) read_scheme(groups.object(name.c_str()), schemes);
    return {"compressed-tensors, " + fields.text("format"), [schemes](Safetensors& weights) {
                for_each_packed(weights, "weight_packed", "I32",
                                [&](PackedModule& module) { unpack_words(module, schemes); });
                for_each_packed(weights, "weight", "I8", unpack_bytes);
                for_each_packed(weights, "weight", "F8_E4M3", [&](PackedModule& module) {
                    drop_activations(module);
                    unpack_float8(module, "weight_scale", schemes.block);
                });
            }};
}

}  // namespace fovea
