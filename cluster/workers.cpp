#include "cluster/workers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "cluster/wire.h"

namespace fovea::cluster {
namespace {

[[nodiscard]] double now() noexcept {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<double>(std::chrono::nanoseconds(time).count());
}
[[nodiscard]] Deadline in_seconds(int n) noexcept { return std::chrono::steady_clock::now() + std::chrono::seconds(n); }

constexpr int kGreeting = 10, kAnswer = 30;  // seconds
constexpr std::size_t kMostWorkers = 64;

[[nodiscard]] double work_of(const RemoteJob& job, std::uint32_t n_units) noexcept {
    return static_cast<double>(n_units) * static_cast<double>(job.unit_bytes) * job.n_rows;
}
/// Largest result of one job. A unit is two panels of 16 outputs.
[[nodiscard]] std::uint64_t result_bytes(const RemoteJob& job) noexcept {
    return std::uint64_t{job.n_rows} * job.n_units * 32 * sizeof(float);
}

}  // namespace

Workers::Workers(const std::vector<std::string>& addresses, const Model& model, std::uint32_t n_threads, Note note)
    : note_(std::move(note)) {
    if (addresses.size() > kMostWorkers)
        throw Error("workers: expected at most " + std::to_string(kMostWorkers) + ", got " +
                    std::to_string(addresses.size()));
    std::vector<std::uint32_t> all_threads{n_threads};
    double away = 0;
    for (const std::string& address : addresses) {
        Worker worker(address, Link::connect(address));
        const Hello hello{.identity = identity_of(model)};
        Welcome welcome;
        const Deadline deadline = in_seconds(kGreeting);
        if (!worker.link.send_one(hello, deadline) || !worker.link.receive_one(welcome, deadline) ||
            welcome.magic != kHelloMagic)
            throw Error("worker " + address + ": expected the greeting of a worker that is free, got " +
                        worker.link.why());
        if (welcome.identity.numerics != hello.identity.numerics)
            throw Error("worker " + address + ": expected a build with the same numerics, got another");
        if (welcome.identity != hello.identity)
            throw Error("worker " + address + ": expected the same model file, got another");
        away = std::max(away, nanoseconds_away(worker));
        all_threads.push_back(std::clamp(welcome.n_threads, 1u, kMaxThreads));
        all_.push_back(std::move(worker));
    }
    shares_ = std::make_unique<Shares>(all_threads, away);
    remote_.context = this;
    remote_.settle = [](void* self) { static_cast<Workers*>(self)->shares_->settle(); };
    remote_.n_here = [](const void* self, const RemoteJob& job) {
        return static_cast<const Workers*>(self)->n_here(job);
    };
    remote_.begin = [](void* self, const RemoteJob& job) { static_cast<Workers*>(self)->begin(job); };
    remote_.finish = [](void* self, const RemoteJob& job) { static_cast<Workers*>(self)->finish(job); };
}

std::uint32_t Workers::n_there() const noexcept {
    return static_cast<std::uint32_t>(
        std::count_if(all_.begin(), all_.end(), [](const Worker& worker) { return worker.there; }));
}

/// The shortest of some round trips.
double Workers::nanoseconds_away(Worker& worker) const {
    constexpr int kTimes = 8;
    double best = 1e9;
    for (int i = 0; i < kTimes; ++i) {
        const double start = now();
        const Deadline deadline = in_seconds(kGreeting);
        Reply reply;
        if (!worker.link.send_one(Request{}, deadline) || !worker.link.receive_one(reply, deadline) ||
            reply.magic != kReplyMagic || reply.code != 0)
            throw Error("worker " + worker.address + ": expected an answer, got " + worker.link.why());
        best = std::min(best, now() - start);
    }
    return best;
}

void Workers::divide(const RemoteJob& job, std::span<std::uint32_t> units) const noexcept {
    shares_->divide(kind_of(job.n_rows), work_of(job, job.n_units), job.n_units, units);
}

std::uint32_t Workers::n_here(const RemoteJob& job) const noexcept {
    if (std::max<std::uint64_t>(job.operand.size(), result_bytes(job)) > kMostBytes) return job.n_units;
    std::array<std::uint32_t, kMostWorkers + 1> units;
    divide(job, std::span(units).first(all_.size() + 1));
    return units[0];
}

void Workers::begin(const RemoteJob& job) noexcept {
    started_ = now();
    deadline_ = in_seconds(kAnswer);
    std::array<std::uint32_t, kMostWorkers + 1> units;
    divide(job, std::span(units).first(all_.size() + 1));
    std::uint32_t first = n_mine_ = units[0];
    for (std::size_t i = 0; i < all_.size(); ++i) {
        Worker& worker = all_[i];
        worker.begin = first;
        worker.end = first += units[i + 1];
        const bool wanted = worker.there && worker.begin < worker.end;
        worker.asked = wanted && ask(worker, job);
        if (wanted && !worker.asked) lose(worker);
    }
    begun_ = now();
}

bool Workers::ask(Worker& worker, const RemoteJob& job) noexcept try {
    std::array<MatrixPart, kMostParts> parts;
    const std::size_t n = cut(job, worker.begin, worker.end, parts);
    Request request{
        .n_rows = job.n_rows, .n_parts = static_cast<std::uint32_t>(n), .operand_bytes = job.operand.size()};
    for (std::size_t i = 0; i < n; ++i) {
        request.n_results += n_results(parts[i], job.n_rows);
        if (parts[i].epilogue == kAdds) request.n_addends += n_results(parts[i], job.n_rows);
    }
    if (worker.results.size() < request.n_results) worker.results.resize(request.n_results);
    if (worker.addends.size() < request.n_addends) worker.addends.resize(request.n_addends);
    give_addends(job, worker.begin, worker.end, worker.addends.data());
    std::array<std::byte, sizeof request + sizeof parts> head;
    std::memcpy(head.data(), &request, sizeof request);
    std::memcpy(head.data() + sizeof request, parts.data(), n * sizeof parts[0]);
    const auto addends = std::as_bytes(std::span(worker.addends).first(request.n_addends));
    return worker.link.send(std::span(head).first(sizeof request + n * sizeof parts[0]), deadline_) &&
           worker.link.send(job.operand, deadline_) && worker.link.send(addends, deadline_);
} catch (const std::bad_alloc&) {
    return false;
}

/// Takes a worker's results, and returns the nanoseconds that it computed; below 0: they did not come.
double Workers::take(Worker& worker, const RemoteJob& job) noexcept {
    std::array<MatrixPart, kMostParts> parts;
    const std::size_t n = cut(job, worker.begin, worker.end, parts);
    std::uint64_t n_all = 0;
    for (std::size_t i = 0; i < n; ++i) n_all += n_results(parts[i], job.n_rows);
    Reply reply;
    if (!worker.link.receive_one(reply, deadline_)) return -1;
    if (reply.magic != kReplyMagic || reply.code != 0 || reply.n_results != n_all) return -1;
    if (!worker.link.receive(std::as_writable_bytes(std::span(worker.results).first(n_all)), deadline_)) return -1;
    take_results(job, worker.begin, worker.end, worker.results.data());
    return std::min(static_cast<double>(reply.nanoseconds), now() - started_);
}

void Workers::finish(const RemoteJob& job) noexcept {
    const Kind kind = kind_of(job.n_rows);
    const double here = now() - begun_;
    if (n_mine_) shares_->add(0, kind, work_of(job, n_mine_), here);
    deadline_ = std::max(deadline_, in_seconds(kAnswer));  // the program's own part may have taken long
    bool all_came = true;
    double slowest = here;
    for (std::size_t i = 0; i < all_.size(); ++i) {
        Worker& worker = all_[i];
        if (worker.begin == worker.end) continue;
        const double took = worker.asked ? take(worker, job) : -1;
        if (took >= 0) {
            shares_->add(i + 1, kind, work_of(job, worker.end - worker.begin), took);
            slowest = std::max(slowest, took);
            continue;
        }
        if (worker.asked) lose(worker);
        multiply_here(job, worker.begin, worker.end);
        all_came = false;
    }
    if (all_came) shares_->add_overhead(kind, now() - started_ - slowest);
}

void Workers::lose(Worker& worker) noexcept try {
    const std::string why = worker.link.why();
    worker.link.close();
    worker.there = false;
    worker.addends = {}, worker.results = {};
    shares_->lose(static_cast<std::size_t>(&worker - all_.data()) + 1);
    note_("worker " + worker.address + " is gone (" + why + "); going on without it");
} catch (const std::exception&) {  // no one is told
}

}  // namespace fovea::cluster
