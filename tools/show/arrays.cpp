#include "tools/show/arrays.h"

#include <algorithm>
#include <cstdio>

#include "host/base/clock.h"
#include "host/base/json.h"
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
    object["seconds"] = seconds;
    object["arena_bytes"] = running.plan.arena_bytes;
    object["isa"] = running->isa();
    object["n_threads"] = running.plan.limits.n_threads;
    std::printf("%s\n", object.dump().c_str());
}

}  // namespace fovea
