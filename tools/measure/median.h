// What repeated measurements come to.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace fovea {

/// The value in the middle of those in order.
[[nodiscard]] inline double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

}  // namespace fovea
