#include "convert/sources/source_names.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "host/base/error.h"

namespace fovea {
namespace {

/// Modules that hold one other, which they change nothing of.
constexpr std::string_view kWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.",
                                          "_forward_module."};
/// What a model is kept as in a larger object.
constexpr std::string_view kOuter[] = {"module.", "state_dict.", "model_state_dict."};

std::string without_wrappers(std::string name) {
    for (const std::string_view wrapper : kWrappers)
        for (std::size_t at = name.find(wrapper); at != name.npos; at = name.find(wrapper, at)) {
            if (at == 0 || name[at - 1] == '.')
                name.erase(at, wrapper.size());
            else
                ++at;
        }
    return name;
}

}  // namespace

void use_plain_names(Safetensors& weights) {
    const auto any_wrapped = [&] {
        return std::any_of(weights.tensors.begin(), weights.tensors.end(),
                           [](const auto& entry) { return without_wrappers(entry.first) != entry.first; });
    };
    if (any_wrapped()) rename_tensors(weights, without_wrappers);
    const auto outer_of_all = [&] {
        return std::find_if(std::begin(kOuter), std::end(kOuter), [&](std::string_view outer) {
            return !weights.tensors.empty() &&
                   std::all_of(weights.tensors.begin(), weights.tensors.end(),
                               [&](const auto& entry) { return entry.first.starts_with(outer); });
        });
    };
    for (auto outer = outer_of_all(); outer != std::end(kOuter); outer = outer_of_all())
        rename_tensors(weights, [&](const std::string& name) { return name.substr(outer->size()); });
}

void rename_tensors(Safetensors& weights, const std::function<std::string(std::string name)>& plain) {
    decltype(weights.tensors) renamed;
    for (auto& [name, tensor] : weights.tensors)
        if (std::string own = plain(name); !renamed.emplace(own, std::move(tensor)).second)
            throw host::Error(weights.files.front().string() + ": tensor " + name + ": expected one of the name " +
                              own + ", got two");
    weights.tensors = std::move(renamed);
}

}  // namespace fovea
