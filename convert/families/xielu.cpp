#include "convert/families/xielu.h"

#include "host/base/exact_math.h"

namespace fovea {
namespace {

double softplus(double x) {
    constexpr double kLinear = 40.0;  // beyond it log(1 + e^x) is x in every bit
    if (x < -kLinear) return 0.0;
    return x <= kLinear ? exact_log(1.0 + exact_exp(x)) : x;  // of a NaN itself
}

}  // namespace

std::vector<float> xielu_numbers(float alpha, float negative, float beta, float epsilon) {
    return {static_cast<float>(softplus(alpha)), static_cast<float>(beta + softplus(negative)), beta, epsilon};
}

}  // namespace fovea
