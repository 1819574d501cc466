// The workers of a program: machines that compute a part of every product.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/link.h"
#include "cluster/shares.h"
#include "fovea/remote.h"

namespace fovea::cluster {

/// Told of a worker that is gone, in one line.
using Note = std::function<void(const std::string&)>;

/// Parts change no bit, and neither does a worker that is gone: its part is computed here. Made before the session or workspace, and
/// outlives it; used by one of them at a time.
class Workers {
public:
    /// Connects to each HOST:PORT. Throws Error: none listens, it serves another program, it has another file.
    Workers(const std::vector<std::string>& addresses, const Model& model, std::uint32_t n_threads, Note note);
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// For SessionOptions; null without workers.
    [[nodiscard]] const Remote* remote() const noexcept { return all_.empty() ? nullptr : &remote_; }
    /// The workers that are still connected.
    [[nodiscard]] std::uint32_t n_there() const noexcept;

private:
    struct Worker {
        std::string address;
        Link link;
        bool there = true;
        std::uint32_t begin = 0, end = 0;  // units of the job that it was given
        bool asked = false;
        std::vector<float> addends, results;

        Worker(std::string at, Link to) : address(std::move(at)), link(std::move(to)) {}
    };
    [[nodiscard]] double nanoseconds_away(Worker& worker) const;
    [[nodiscard]] std::uint32_t n_here(const RemoteJob& job) const noexcept;
    void divide(const RemoteJob& job, std::span<std::uint32_t> units) const noexcept;
    void begin(const RemoteJob& job) noexcept;
    void finish(const RemoteJob& job) noexcept;
    [[nodiscard]] bool ask(Worker& worker, const RemoteJob& job) noexcept;
    [[nodiscard]] double take(Worker& worker, const RemoteJob& job) noexcept;
    void lose(Worker& worker) noexcept;

    std::vector<Worker> all_;
    Note note_;
    Remote remote_;
    std::unique_ptr<Shares> shares_;  // machine 0 is the program, worker i machine i + 1
    std::uint32_t n_mine_ = 0;        // of the job
    Deadline deadline_{};
    double started_ = 0, begun_ = 0;  // nanoseconds
};

}  // namespace fovea::cluster
