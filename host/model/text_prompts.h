// What the folder of an encoder said of its texts, kept in the model's info: prompts before them, and their longest.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/model.h"

namespace fovea {

/// Texts to put before others, by a name for each task; and which of them unasked, "": none.
struct Prompts {
    std::vector<std::pair<std::string, std::string>> texts;
    std::string chosen;
};
/// Throws host::Error, naming the model so, where its info is nested too deep.
[[nodiscard]] Prompts prompts_of(const Model& model, const std::string& model_name);
/// What stands before a text: the prompt of that name, without a name the model's own choice. Throws host::Error for a name
/// that there is not. An empty name is none.
[[nodiscard]] std::string prompt_before(const Prompts& prompts, const std::optional<std::string>& name);

/// The most tokens that a text may have: what its sentence-transformers folder says, else the encoder's positions.
[[nodiscard]] std::uint32_t most_tokens(const Model& model);

}  // namespace fovea
