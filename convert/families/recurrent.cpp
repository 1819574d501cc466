#include "convert/families/recurrent.h"

#include <algorithm>
#include <limits>

#include "host/base/error.h"

namespace fovea {
namespace {

/// Bounds of the step, where the file has a list of two; an infinite one is written as Infinity.
void read_step_limits(const Fields& fields, RecurrentShape& r) {
    if (!fields.has("time_step_limit")) return;
    const SortedJson& list = fields.json()["time_step_limit"];
    const auto number = [&](std::size_t i) {
        if (list[i].is_number()) return list[i].get<double>();
        if (list[i] == "Infinity" || list[i].is_null()) return std::numeric_limits<double>::infinity();
        if (list[i].is_object() && list[i].contains("__float__")) return std::numeric_limits<double>::infinity();
        fields.refuse("time_step_limit", "two numbers");
    };
    if (!list.is_array() || list.size() != 2) fields.refuse("time_step_limit", "two numbers");
    const double least = number(0), most = number(1);
    if (!(least >= 0.0 && least <= most)) fields.refuse("time_step_limit", "two numbers, ascending from 0");
    if (least == 0.0 && most >= kMaxFloat) return;
    r.step_least = static_cast<float>(least);
    r.step_most = most >= kMaxFloat ? kMaxFloat : static_cast<float>(most);
}

}  // namespace

std::vector<bool> read_recurrent_layers(const Fields& fields, const std::string& recurrent, std::uint32_t n_layers,
                                        const std::string& other) {
    const char* const name = fields.has("layers_block_type") ? "layers_block_type" : "layer_types";
    const std::vector<std::string> types = fields.texts(name);
    if (types.size() != n_layers) fields.refuse(name, std::to_string(n_layers) + " of them");
    std::vector<bool> layers(n_layers);
    for (std::uint32_t i = 0; i < n_layers; ++i) {
        layers[i] = types[i] == recurrent || types[i] == "mamba";
        const bool has_older = other == "full_attention" && types[i] == "attention";
        if (!layers[i] && types[i] != other && !has_older) fields.refuse(name, other + " or " + recurrent);
    }
    return layers;
}

void read_mamba2(const Fields& fields, const MambaNames& names, HfConfig& result) {
    const std::uint32_t d_model = result.stack().d_model;
    RecurrentShape& r = result.stack().recurrent;
    r.kind = Recurrence::state_space;
    r.n_heads = fields.count(names.n_heads, 1, kMaxHeads);
    r.n_key_heads = fields.count(names.n_groups, 1, kMaxHeads);
    r.key_dim = fields.count(names.state_size, 1, kMaxWidth);
    const std::uint32_t width = fields.has(names.expand) ? fields.count(names.expand, 1, 64) * d_model : 0;
    const bool says = fields.has(names.head_dim) && !fields.json()[names.head_dim].is_string();
    r.value_dim = says ? fields.count(names.head_dim, 1, kMaxWidth) : width / r.n_heads;
    if (r.value_dim == 0 || (!says && r.value_width() != width))
        fields.refuse(names.n_heads, "a divisor of " + std::to_string(width));
    if (r.n_heads % r.n_key_heads)
        fields.refuse(names.n_groups, "a divisor of " + std::string(names.n_heads) + ", " + std::to_string(r.n_heads));
    r.n_norm_groups = r.n_key_heads;
    r.gate_first = true;
    r.n_taps = static_cast<std::uint8_t>(fields.count(names.n_taps, 1, kMaxTaps));
    r.kernel_bias = fields.flag_or(names.kernel_bias, true);
    r.input_bias = r.output_bias = fields.flag_or(names.bias, false);
    if (names.step_least) {
        r.step_least = static_cast<float>(fields.number_or(names.step_least, 0.0, 1e9, 0.001));
        r.step_most = kMaxFloat;
    } else {
        read_step_limits(fields, r);
    }
    result.recurrent_rows = {{{Role::recurrent_gate, Role::recurrent_value, Role::recurrent_key, Role::recurrent_query,
                               Role::recurrent_step}}};
}

void read_mamba(const Fields& fields, const MambaNames& names, HfConfig& result) {
    const std::uint32_t d_model = result.stack().d_model;
    RecurrentShape& r = result.stack().recurrent;
    r.kind = Recurrence::selective;
    r.n_heads = r.n_key_heads = 1;
    r.key_dim = fields.count(names.state_size, 1, kMaxWidth);
    r.value_dim = fields.count(names.expand, 1, 64) * d_model;
    const bool says = fields.has(names.step_rank) && !fields.json()[names.step_rank].is_string();
    r.step_rank = says ? fields.count(names.step_rank, 1, kMaxWidth) : (d_model + 15) / 16;
    r.n_taps = static_cast<std::uint8_t>(fields.count(names.n_taps, 1, kMaxTaps));
    r.kernel_bias = fields.flag_or(names.kernel_bias, true);
    r.input_bias = r.output_bias = fields.flag_or(names.bias, false);
    result.recurrent_rows = {{{Role::recurrent_value, Role::recurrent_gate}},
                             {{Role::recurrent_step_down, Role::recurrent_key, Role::recurrent_query}}};
}

RecurrentShape read_delta(const Fields& fields) {
    RecurrentShape r{.n_heads = fields.count("linear_num_value_heads", 1, kMaxHeads),
                     .n_key_heads = fields.count("linear_num_key_heads", 1, kMaxHeads),
                     .key_dim = fields.count("linear_key_head_dim", 1, kMaxWidth),
                     .value_dim = fields.count("linear_value_head_dim", 1, kMaxWidth),
                     .kind = Recurrence::delta,
                     .n_taps = static_cast<std::uint8_t>(fields.count("linear_conv_kernel_dim", 1, kMaxTaps)),
                     .shared_norm = true};
    if (r.n_heads % r.n_key_heads) fields.refuse("linear_num_value_heads", "a multiple of linear_num_key_heads");
    r.n_norm_groups = r.n_heads;
    return r;
}

void join_kernels(const HfConfig&, Safetensors& files) {
    constexpr std::string_view kFirst = "q_conv1d.weight";
    std::vector<std::string> modules;
    for (const auto& [name, tensor] : files.tensors)
        if (name.ends_with("." + std::string(kFirst))) modules.push_back(name.substr(0, name.size() - kFirst.size()));
    for (const std::string& module : modules) {
        SourceTensor joined;
        std::vector<std::byte> bytes;
        for (const char part : {'q', 'k', 'v'}) {
            const std::string name = module + part + std::string(kFirst.substr(1));
            const auto found = files.tensors.find(name);
            const bool first = part == 'q';
            const auto refuse = [&](const std::string& got) {
                throw host::Error(files.files.front().string() + ": tensor " + name +
                                  ": expected a kernel like that of queries, got " + got);
            };
            if (found == files.tensors.end()) refuse("none");
            const SourceTensor& tensor = found->second;
            if (!tensor.data || tensor.shape.size() < 2 || !tensor.added.empty()) refuse("another tensor");
            if (first) joined = tensor;
            if (tensor.dtype != joined.dtype ||
                !std::equal(tensor.shape.begin() + 1, tensor.shape.end(), joined.shape.begin() + 1, joined.shape.end()))
                refuse("another shape or type");
            if (!first) joined.shape[0] += tensor.shape[0];
            bytes.insert(bytes.end(), tensor.data, tensor.data + tensor.bytes);
            files.tensors.erase(found);
        }
        joined.bytes = bytes.size();
        joined.data = files.copies.emplace_back(std::move(bytes)).data();
        files.tensors.emplace(module + "conv1d.weight", std::move(joined));
    }
}

void refuse_other_activation(const Fields& fields, const char* name) {
    if (read_activation(fields, name, "silu") != Activation::silu) fields.refuse(name, "silu");
}

Block recurrent_block(Block block) {
    block.attention = {}, block.latent = {};
    block.attention.causal = true;
    block.recurrent = true;
    return block;
}

}  // namespace fovea
