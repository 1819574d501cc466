#include "convert/sources/hf_names.h"

namespace fovea {

// Checkpoints of the bare model, without its head's class around it, lack the first part of every name, or its parts.
HfNames::HfNames(const HfConfig& config, const Safetensors& files)
    : config_(config), files_(files), family_(*config.family) {
    const std::string first = place_of(family_.names, Role::token_embedding).name;
    std::string_view left = family_.outer;
    const auto begins_so = [&] { return files.tensors.count(older(std::string(left) + first)) != 0; };
    while (!left.empty() && !begins_so()) left.remove_prefix(left.find('.') + 1);
    prefix_ = begins_so() ? left : family_.outer;
}

TensorPlace HfNames::place(const TensorSpec& spec) const {
    const bool of_main = is_main(spec.stack);
    TensorPlace place = place_of(of_main ? family_.names : family_.encoder_names, spec.role);
    const auto own = config_.names.find({spec.role, spec.layer});
    if (own != config_.names.end() && of_main) place.name = own->second;
    return place;
}

std::string HfNames::full_in(std::string_view name, std::uint32_t layer, std::string_view layers) const {
    if (name.starts_with('/')) return std::string(name.substr(1));
    if (!name.starts_with('#')) return prefix_ + std::string(name);
    const std::string own = config_.layer_prefixes.empty() ? "" : config_.layer_prefixes.at(layer);
    return prefix_ + (own.empty() ? std::string(layers) + std::to_string(layer) + "." : own) +
           std::string(name.substr(1));
}

std::string HfNames::older(std::string name) const {
    if (files_.tensors.count(name)) return name;
    for (const auto& [now, then] : family_.older)
        if (name.ends_with(now))
            if (std::string older = name.substr(0, name.size() - now.size()) + std::string(then);
                files_.tensors.count(older))
                return older;
    return name;
}

bool HfNames::is_unused(std::string_view name) const {
    if (family_.ignores && family_.ignores(name)) return true;
    const std::uint32_t n = config_.stack().n_layers;
    for (std::uint32_t i = n; i < n + config_.n_skipped_layers; ++i)
        if (name.starts_with(full("#", i))) return true;
    return false;
}

bool HfNames::has(const char* name) const {
    for (std::uint32_t layer = 0; layer < config_.stack().n_layers; ++layer)
        if (files_.tensors.count(full(name, layer)) != 0) return true;
    return false;
}

}  // namespace fovea
