// How many positions a text is given by `run`, `chat` and `serve`.
#pragma once
#include <cstdint>
#include <string>

#include "fovea/model.h"

namespace fovea {

/// Positions of a conversation or of a request without --context, at most.
inline constexpr std::uint32_t kDefaultContext = 4096;

/// --context, or where that is 0 the model's positions, `most_unasked` at most. host::Error, by the model's name, where it has fewer.
[[nodiscard]] std::uint32_t checked_context(const std::string& name, const Model& model, std::uint32_t asked,
                                            std::uint32_t most_unasked);

}  // namespace fovea
