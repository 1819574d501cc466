// What somebody may have meant who typed a name wrongly.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// The first of `names` with the fewest letters to add, drop, change or swap with the next (Damerau 1964) before it
/// reads `typed`; "" where that takes more than a third of its letters.
[[nodiscard]] std::string nearest(std::string_view typed, const std::vector<std::string>& names);

}  // namespace fovea
