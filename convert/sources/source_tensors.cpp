#include "convert/sources/source_tensors.h"

#include <algorithm>

#include "convert/formats/mxfp4.h"
#include "convert/formats/text_file.h"
#include "convert/sources/tied_output.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

std::string place_of(const Safetensors& from, const std::string& name) {
    const auto found = from.tensors.find(name);
    const std::size_t file = found == from.tensors.end() ? 0 : found->second.file;
    return from.files[file].string() + ": tensor " + name;
}

}  // namespace

std::string note_of_unused(const std::string& file, const std::vector<std::string>& names) {
    return file + ": left out, as this model has no use for them: " + few_of(names);
}

void SourceTensors::assemble(ModelSource& source) {
    const auto add_all = [&](const Stack& stack, StackIndex index) {
        for_each_tensor(stack, index, [&](const TensorSpec& spec) { add(stack, spec); });
    };
    add_all(source.config.encoder, StackIndex::encoder);
    add_all(source.config.decoder, StackIndex::decoder);
    check_unviewed(source.notes);
    source.type = widest_.value_or(Type::f32);
    keep(files_);
    set_readers(std::move(weights_), source, each_type_);
}

void SourceTensors::check_unviewed(std::vector<std::string>& notes) const {
    std::vector<std::string> unused;
    for (const auto& [name, tensor] : files_.tensors) {
        if (used_.count(name)) continue;
        const Unviewed fate = without_view(name, tensor);
        if (fate == Unviewed::refused)
            throw host::Error(place_of(files_, name) + ": expected only tensors that the configuration calls for");
        const auto is_same = [&, &of = tensor](const std::string& used) {
            const auto found = files_.tensors.find(used);
            return found != files_.tensors.end() && are_equal(found->second, of);
        };
        if (fate == Unviewed::noted && std::none_of(used_.begin(), used_.end(), is_same)) unused.push_back(name);
    }
    if (!unused.empty()) notes.push_back(note_of_unused(files_.files.front().string(), unused));
}

const SourceTensor& SourceTensors::shaped(const Safetensors& from, const std::string& name,
                                          const std::vector<std::uint64_t>& wanted, std::string_view dtype) {
    const auto found = from.tensors.find(name);
    if (found == from.tensors.end()) refuse(from, name, shape_words(wanted), "none");
    const SourceTensor& tensor = found->second;
    if (tensor.shape != wanted) refuse(from, name, "shape " + shape_words(wanted), shape_words(tensor.shape));
    if (!dtype.empty() && tensor.dtype != dtype) refuse(from, name, std::string(dtype), tensor.dtype);
    used_.insert(name);
    return tensor;
}

TensorView SourceTensors::floats(const Safetensors& from, const std::string& name,
                                 const std::vector<std::uint64_t>& wanted, bool is_matrix) {
    const SourceTensor& tensor = shaped(from, name, wanted);
    TensorView view;
    if (tensor.packed) return view;
    view.data = tensor.data;
    view.type = float_type(tensor, place_of(from, name));
    view.row_stride = is_matrix ? wanted.back() : 1;
    if (is_matrix) widest_ = widest_ && *widest_ != view.type ? Type::f32 : view.type;
    return view;
}

std::function<TensorView(std::uint32_t i, bool up)> SourceTensors::experts(const Block& block, const TensorSpec& spec,
                                                                           const std::string& name,
                                                                           std::uint32_t n_rows, bool gated,
                                                                           Within within, const std::string& gate) {
    if (gated && !gate.empty())
        return [up = experts(block, spec, name, n_rows, false, within),
                of_gate = experts(block, spec, gate, n_rows, false, within)](std::uint32_t i, bool is_up) {
            return (is_up ? up : of_gate)(i, false);
        };
    const bool vector = spec.layout == Layout::vector;
    const std::uint32_t n_parts = gated ? 2 : 1, step = within == Within::packed ? n_parts : 1;
    const std::uint64_t n_all = std::uint64_t{n_rows} * n_parts, n_cols = vector ? 1 : spec.n_cols;
    if (within == Within::packed && !vector && !files_.tensors.count(name) && files_.tensors.count(name + "_blocks"))
        return mxfp4_experts(block, name, n_all, spec.n_cols, step);
    std::vector<std::uint64_t> wanted = {block.experts.n, n_cols, n_all};
    const std::vector<std::uint64_t> rows_first = {block.experts.n, n_all, n_cols};
    const auto found = files_.tensors.find(name);
    const bool fused =
        within == Within::fused || (within == Within::below && spec.role == Role::expert_up) ||
        (within == Within::fused_either && found != files_.tensors.end() && found->second.shape == rows_first);
    if (within == Within::fused_either && wanted == rows_first)
        throw host::Error(files_.files.front().string() + ": tensor " + name +
                          ": expected a shape that tells rows from columns, got a square one");
    if (fused) wanted = rows_first;
    if (within == Within::below) wanted = {wanted[0] * wanted[1], wanted[2]};
    if (vector) wanted = {block.experts.n, n_all};
    TensorView all = floats(files_, name, wanted, !vector);
    if (!found->second.added.empty())
        throw host::Error(found->second.added.front().name + ": expected a matrix, got " + name +
                          ", which holds those of all experts");
    all.row_stride = fused ? n_cols : step;
    all.col_stride = fused ? 1 : n_all;
    const std::uint64_t element = all.type == Type::f32 ? 4 : 2;
    const std::uint64_t up_begin = step == 2 ? 1 : n_rows * all.row_stride;
    return [=](std::uint64_t i, bool is_up) {
        TensorView one = all;
        one.data += (i * n_cols * n_all + (is_up ? up_begin : 0)) * element;
        return one;
    };
}

std::function<TensorView(std::uint32_t i, bool up)> SourceTensors::mxfp4_experts(
    const Block& block, const std::string& name, std::uint64_t n_rows, std::uint32_t n_cols, std::uint32_t step) {
    const std::string blocks_name = name + "_blocks", scales_name = name + "_scales";
    if (n_cols % kGroup) refuse(files_, blocks_name, "a multiple of 32 columns", std::to_string(n_cols));
    const std::uint64_t n_groups = n_cols / kGroup;
    const SourceTensor& blocks = shaped(files_, blocks_name, {block.experts.n, n_rows, n_groups, kGroup / 2}, "U8");
    const SourceTensor& scales = shaped(files_, scales_name, {block.experts.n, n_rows, n_groups}, "U8");
    each_type_ = true;
    return [=, quants = blocks.data, factors = scales.data](std::uint64_t i, bool is_up) {
        const std::uint64_t first_group = (i * n_rows + (is_up ? 1 : 0)) * n_groups;
        return mxfp4_view(quants + first_group * kGroup / 2, factors + first_group, n_cols, step);
    };
}

void SourceTensors::refuse(const Safetensors& from, const std::string& name, const std::string& wanted,
                           const std::string& got) {
    throw host::Error(place_of(from, name) + ": expected " + wanted + ", got " + got);
}

}  // namespace fovea
