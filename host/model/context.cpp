#include "host/model/context.h"

#include <algorithm>

#include "host/base/error.h"

namespace fovea {

std::uint32_t checked_context(const std::string& name, const Model& model, std::uint32_t asked,
                              std::uint32_t most_unasked) {
    const std::uint32_t most = model.config().decoder.max_positions;
    if (asked > most)
        throw host::Error("--context: expected at most " + name + "'s " + std::to_string(most) + " positions, got " +
                          std::to_string(asked));
    return asked ? asked : std::min(most, most_unasked);
}

}  // namespace fovea
