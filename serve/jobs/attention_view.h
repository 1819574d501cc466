// What a page asks for to show attention: a text that is there, and one layer of what it looks at.
#pragma once
#include <cstdint>

namespace fovea::serve {

struct AttentionView {
    std::uint32_t layer = 0;
    std::int32_t head = -1;  ///< -1: the mean of all
};

}  // namespace fovea::serve
