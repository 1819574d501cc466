// A preset's shape with random weights, in a file that is mapped as any model's is.
#pragma once
#include <string>

#include "fovea/mapping.h"
#include "fovea/model.h"

namespace fovea {

/// The mapped model; the file has no name once it is mapped.
class PresetModel {
public:
    PresetModel(const std::string& preset, Type type);

    [[nodiscard]] const Model& model() const noexcept { return model_; }

    /// SmolLM2-135M's shape in `type`. The one of another type is forgotten: memory holds one at a time.
    static const Model& of(Type type);

private:
    Mapping mapping_;
    Model model_;
};

}  // namespace fovea
