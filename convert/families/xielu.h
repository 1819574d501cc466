// xIELU's numbers as its layers compute with them, of those that were learned.
#pragma once
#include <vector>

namespace fovea {

/// softplus(alpha), beta + softplus(negative), beta and epsilon (Huang and Schlag 2024).
[[nodiscard]] std::vector<float> xielu_numbers(float alpha, float negative, float beta, float epsilon);

}  // namespace fovea
