// What /metrics shows: counters that threads raise, and gauges that the engine sets after each pass.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace fovea::serve {

using Counter = std::atomic<std::uint64_t>;

/// A distribution of seconds over fixed bounds, as Prometheus has them.
class Histogram {
public:
    static constexpr double kBounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
    static constexpr int kBoundCount = 13;

    void observe(double seconds);
    [[nodiscard]] double mean() const;  ///< 0 where nothing was observed
    void write(std::string& out, const std::string& name, const std::string& labels) const;

private:
    Counter counts_[kBoundCount + 1] = {}, microseconds_ = 0;
};

/// Counters and gauges of one model.
struct ModelMetrics {
    Counter n_prompt_tokens = 0, n_shared_tokens = 0, n_new_tokens = 0;
    Counter n_passes = 0, n_rows = 0, n_rests = 0, n_pauses = 0;
    Counter n_proposed = 0, n_accepted = 0;                   // tokens of a draft
    Counter n_waiting = 0, n_running = 0;                     // gauges
    Counter n_pages = 0, n_free_pages = 0, n_kept_pages = 0;  // gauges; kept: prefixes that nobody uses now
    Histogram first_token, request;                           ///< seconds from a request's arrival
};

struct Metrics {
    std::map<std::string, ModelMetrics> models;                       ///< made before the first thread starts
    Counter n_connections = 0, n_body_bytes = 0, n_upload_bytes = 0;  // gauges
    Counter n_cancelled = 0;

    /// A request was answered with this status.
    void count_answer(int status);
    /// The text that Prometheus reads (exposition format 0.0.4).
    [[nodiscard]] std::string text() const;

private:
    static constexpr int kStatuses = 600;
    Counter answers_[kStatuses] = {};
};

}  // namespace fovea::serve
