// Shared by readers of families whose layers are recurrent or attend.
#pragma once
#include <string>
#include <vector>

#include "convert/families/reading.h"

namespace fovea {

/// Which layers are recurrent: those that layer_types calls `recurrent`, the others being of full_attention.
[[nodiscard]] std::vector<bool> read_recurrent_layers(const Fields& fields, const std::string& recurrent,
                                                      std::uint32_t n_layers);

/// The same block with the stack's recurrent part in place of attention.
[[nodiscard]] Block recurrent_block(Block block);

}  // namespace fovea
