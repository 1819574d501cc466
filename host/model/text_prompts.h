// What the folder of an encoder said of its texts, kept in the model's info: prompts before them, and their longest.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/model.h"
#include "host/model/text_pairs.h"

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

/// Whether the tokens of a prompt count where a text's vectors are pooled.
[[nodiscard]] bool pools_prompts(const Model& model);

/// The most tokens that a text may have: what its sentence-transformers folder says, else the encoder's positions.
[[nodiscard]] std::uint32_t most_tokens(const Model& model);
/// Where its tokenizer cuts longer ones.
[[nodiscard]] CutAt cut_at(const Model& model);
/// Drops the tokens behind the one that the model makes a vector or classes of: the last that pads nothing. They change no
/// other row. One stays.
void drop_pads(const Model& model, std::vector<Token>& ids);

}  // namespace fovea
