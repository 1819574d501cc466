// What a Hugging Face checkpoint calls the tensors of a configuration.
#pragma once
#include <string>
#include <string_view>

#include "convert/families/family.h"

namespace fovea {

/// Names by a configuration and its family. Both arguments must outlive it.
class HfNames final : public Lookup {
public:
    HfNames(const HfConfig& config, const Safetensors& files);

    /// By the configuration's own names, else by the family's list.
    [[nodiscard]] TensorPlace place(const TensorSpec& spec) const;
    /// The same of a tensor that no layer has, in the one stack there is or, of two, the decoder.
    [[nodiscard]] TensorPlace place(Role role) const {
        return place({role, config_.stack_index(), 0, Layout::panels, 0, 0});
    }
    /// A name of such a list as the checkpoint has it.
    [[nodiscard]] std::string full(std::string_view name, std::uint32_t layer = 0) const {
        return full_in(name, layer, family_.layers);
    }
    [[nodiscard]] std::string full(std::string_view name, const TensorSpec& spec) const {
        return full_in(name, spec.layer, is_main(spec.stack) ? family_.layers : family_.encoder_layers);
    }
    /// The older name that the checkpoint has in place of that one, if it has.
    [[nodiscard]] std::string older(std::string name) const;

    [[nodiscard]] bool is_at(Role role, const std::string& name) const {
        const std::string own = place(role).name;
        return !own.empty() && name == full(own);
    }
    [[nodiscard]] bool is_of_layers(std::string_view name) const {
        return name.starts_with(prefix_ + std::string(family_.layers));
    }
    /// Whether the family ignores it, or it is of layers behind the stack's, see HfConfig::n_skipped_layers.
    [[nodiscard]] bool is_unused(std::string_view name) const;

    [[nodiscard]] bool has(const char* name) const override;
    [[nodiscard]] std::string full_name(const char* name) const override { return full(name); }
    [[nodiscard]] std::string file() const override { return files_.files.front().string(); }

private:
    [[nodiscard]] bool is_main(StackIndex stack) const { return stack == config_.stack_index(); }
    [[nodiscard]] std::string full_in(std::string_view name, std::uint32_t layer, std::string_view layers) const;

    const HfConfig& config_;
    const Safetensors& files_;
    const Family& family_;
    std::string prefix_;
};

}  // namespace fovea
