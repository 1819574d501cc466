#include "convert/weights/relative_bias.h"

#include <algorithm>

#include "host/base/exact_math.h"

namespace fovea {

std::vector<float> relative_bias_rows(const TensorView& buckets, std::uint32_t n_buckets, bool causal,
                                      std::uint32_t max_distance, std::uint32_t n_heads) {
    const std::uint32_t half = causal ? n_buckets : n_buckets / 2;  // of each side
    const std::uint32_t exact = half / 2, n_rows = 2 * max_distance + 1;
    const auto scale = static_cast<float>(exact_log(static_cast<double>(max_distance) / exact));
    std::vector<float> rows(std::size_t{n_rows} * n_heads);
    for (std::uint32_t i = 0; i < n_rows; ++i) {
        const bool is_after = i > max_distance;
        if (is_after && causal) continue;  // unseen
        const std::uint32_t far = is_after ? i - max_distance : max_distance - i;
        std::uint32_t bucket = far;
        if (far >= exact) {
            const float log = static_cast<float>(exact_log(static_cast<float>(far) / static_cast<float>(exact)));
            const float step = log / scale * static_cast<float>(half - exact);
            bucket = std::min(half - 1, exact + static_cast<std::uint32_t>(step));
        }
        TensorView of_bucket = buckets;
        of_bucket.data +=
            (bucket + (is_after ? half : 0)) * std::uint64_t{n_heads} * (buckets.type == Type::f32 ? 4 : 2);
        of_bucket.row_stride = 1;
        read_vector(of_bucket, n_heads, rows.data() + std::size_t{i} * n_heads);
    }
    return rows;
}

}  // namespace fovea
