// The workers of a program: machines that compute a part of every product, and how large a part.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "cluster/link.h"
#include "fovea/remote.h"

namespace fovea::cluster {

/// Told of a worker that is gone, in one line.
using Note = std::function<void(const std::string&)>;

/// Shares follow from what was measured in the passes before. They change no bit, and neither does a worker that is gone: its
/// part is computed here. Made before the session or workspace, and outlives it; used by one of them at a time.
class Workers {
public:
    /// Connects to each HOST:PORT. Throws Error: none listens, it serves another program, it has another file.
    Workers(const std::vector<std::string>& addresses, const Model& model, std::uint32_t n_threads, Note note);
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// For SessionOptions; null without workers.
    [[nodiscard]] const Remote* remote() const noexcept { return all_.empty() ? nullptr : &remote_; }
    /// Those that are still there.
    [[nodiscard]] std::uint32_t n_there() const noexcept;

private:
    /// Products by their number of rows, which says what sets their speed: one row reads weights, many compute.
    enum Kind { one_row, few_rows, many_rows, kKinds };
    /// Work is bytes of weights times rows; speed is that per nanosecond.
    struct Measured {
        double work = 0, nanoseconds = 0;
        void add(double more, double time) { work += more, nanoseconds += time; }
        /// Moves `average` towards what was measured, if anything was, and begins anew.
        void settle(double& average);
    };
    struct Worker {
        Worker(std::string at, Link to) : address(std::move(at)), link(std::move(to)) {}
        std::string address;
        Link link;
        bool there = true;   // its connection is
        bool counts = true;  // it has a share in this pass
        std::array<double, kKinds> speed{};
        std::array<Measured, kKinds> measured{};
        std::uint32_t begin = 0, end = 0;  // units of the job that it was given
        bool asked = false;
        std::vector<float> addends, results;
    };
    [[nodiscard]] static Kind kind_of(std::uint32_t n_rows) noexcept;
    [[nodiscard]] static double work_of(const RemoteJob& job, std::uint32_t n_units) noexcept;
    [[nodiscard]] double speed_of_all(Kind kind) const noexcept;
    [[nodiscard]] double nanoseconds_away(Worker& worker) const;
    void settle() noexcept;
    [[nodiscard]] std::uint32_t n_here(const RemoteJob& job) const noexcept;
    void begin(const RemoteJob& job) noexcept;
    void finish(const RemoteJob& job) noexcept;
    [[nodiscard]] bool ask(Worker& worker, const RemoteJob& job) noexcept;
    [[nodiscard]] bool take(Worker& worker, const RemoteJob& job) noexcept;
    void lose(Worker& worker) noexcept;

    std::vector<Worker> all_;
    Note note_;
    Remote remote_;
    // Read by all members during a pass; changed between passes.
    std::array<double, kKinds> speed_{};                    // of the program's own team
    std::array<double, kKinds> overhead_{};                 // nanoseconds that sharing adds to the slowest part
    std::array<std::uint32_t, kKinds> n_idle_{};            // passes that kept a kind here, since it was shared
    mutable std::array<std::atomic<bool>, kKinds> kept_{};  // by any member, in this pass
    // Written by one member during a pass.
    std::array<Measured, kKinds> measured_{};
    std::array<Measured, kKinds> measured_overhead_{};  // "work" is nanoseconds, for jobs in place of time
    double started_ = 0, begun_ = 0, slowest_ = 0;
};

}  // namespace fovea::cluster
