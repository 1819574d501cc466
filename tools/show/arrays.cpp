#include "tools/show/arrays.h"

#include <algorithm>

#include "host/base/clock.h"
#include "tools/terminal/print.h"
#include "tools/terminal/usage_error.h"

namespace fovea {

double timed(std::uint32_t repeat, const std::function<void()>& compute) {
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < repeat; ++i) {
        const double start = host::seconds_now();
        compute();
        seconds.push_back(host::seconds_now() - start);
    }
    std::nth_element(seconds.begin(), seconds.begin() + repeat / 2, seconds.end());
    return seconds[repeat / 2];
}

void settle_rows(FloatArray& array, std::uint32_t width, bool seq_first) {
    const std::size_t n_dims = array.shape.size();
    if ((n_dims != 2 && n_dims != 3) || array.shape.back() != width)
        throw host::Error(array.path + ": shape: expected [batch, seq, " + std::to_string(width) + "] or [seq, " +
                          std::to_string(width) + "], got " + in_words(array.shape));
    if (seq_first && n_dims == 3) array = swap_first_two(array);
}

std::uint32_t fitting_limit(std::uint64_t n) {
    constexpr std::uint64_t kMost = (1u << 22) + 1;
    return static_cast<std::uint32_t>(std::min(n, kMost));
}

void check_output(const std::string& output, bool json) {
    if (json && output == "-") throw UsageError("--json: expected -o FILE with it, got standard output for both");
}

namespace {

/// Numbers in arrays of arrays, as the shape has them.
Json nested(std::span<const std::uint64_t> shape, std::span<const float> data) {
    Json list = Json::array();
    if (shape.empty() || shape[0] == 0) return list;
    if (shape.size() == 1) return std::vector<float>(data.begin(), data.end());
    const std::size_t part = data.size() / static_cast<std::size_t>(shape[0]);
    for (std::size_t at = 0; at < data.size(); at += part)
        list.push_back(nested(shape.subspan(1), data.subspan(at, part)));
    return list;
}

}  // namespace

void finish_arrays(const std::string& output, FloatArray result, bool seq_first, bool json,
                   std::span<const std::uint64_t> weights_shape, const host::Runtime<Session>& running,
                   double seconds) {
    if (seq_first) result = swap_first_two(result);
    if (!output.empty()) write_npy(output, result.shape, result.data);
    if (!json) return;
    Json object{{"shape", result.shape}};
    if (!weights_shape.empty()) object["weights_shape"] = weights_shape;
    if (output.empty() && weights_shape.empty())
        object[result.shape.size() == 1 ? "vector" : "vectors"] = nested(result.shape, result.data);
    object.update(Json{{"seconds", seconds},
                       {"arena_bytes", running.plan.arena_bytes},
                       {"isa", running->isa()},
                       {"n_threads", running.plan.limits.n_threads}});
    print_line(object);
}

}  // namespace fovea
