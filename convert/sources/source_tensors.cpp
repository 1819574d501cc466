#include "convert/sources/source_tensors.h"

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

void SourceTensors::assemble(ModelSource& source) {
    const auto add_all = [&](const Stack& stack, StackIndex index) {
        for_each_tensor(stack, index, [&](const TensorSpec& spec) { add(stack, spec); });
    };
    add_all(source.config.encoder, StackIndex::encoder);
    add_all(source.config.decoder, StackIndex::decoder);
    for (const auto& [name, tensor] : files_.tensors)
        if (!used_.count(name) && !is_left_out(name, tensor))
            throw host::Error(place_of(files_, name) + ": expected only tensors that the configuration calls for");
    source.type = widest_.value_or(Type::f32);
    weights_.keep(std::move(files_.mappings));
    set_readers(std::move(weights_), source, each_type_);
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

void SourceTensors::refuse(const Safetensors& from, const std::string& name, const std::string& wanted,
                           const std::string& got) {
    throw host::Error(place_of(from, name) + ": expected " + wanted + ", got " + got);
}

}  // namespace fovea
