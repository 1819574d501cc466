#include "cluster/workers.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cluster/identity.h"
#include "cluster/wire.h"

namespace fovea::cluster {
namespace {

[[nodiscard]] double now() noexcept {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<double>(std::chrono::nanoseconds(time).count());
}

// Before anything is measured: bytes of weights a nanosecond, times rows, that a thread computes. More than most do: a product
// that would not gain is better kept here.
constexpr double kFirstSpeed[] = {16, 40, 60};
// A kind of product that was not worth sharing is tried again after so many passes: the other machine may be free by then.
constexpr std::uint32_t kPassesUntilTried = 64;
constexpr std::uint32_t kManyRows = 24;  // above which products compute more than they read

}  // namespace

Workers::Kind Workers::kind_of(std::uint32_t n_rows) noexcept {
    return n_rows == 1 ? one_row : n_rows <= kManyRows ? few_rows : many_rows;
}

double Workers::work_of(const RemoteJob& job, std::uint32_t n_units) noexcept {
    return static_cast<double>(n_units) * static_cast<double>(job.unit_bytes) * job.n_rows;
}

Workers::Workers(const std::vector<std::string>& addresses, const Model& model, std::uint32_t n_threads, Note note)
    : note_(std::move(note)) {
    constexpr std::chrono::seconds kPatience{10};
    for (int kind = 0; kind < kKinds; ++kind) speed_[kind] = kFirstSpeed[kind] * n_threads;
    for (const std::string& address : addresses) {
        Worker worker(address, Link::connect(address));
        const Hello hello{.identity = identity_of(model)};
        Welcome welcome;
        if (!worker.link.send_one(hello)) throw Error("worker " + address + ": " + worker.link.why());
        if (!worker.link.comes_within(kPatience))
            throw Error("worker " + address +
                        ": expected an answer within 10 seconds, got none (a worker serves one program at a time)");
        if (!worker.link.receive_one(welcome) || welcome.magic != kHelloMagic)
            throw Error("worker " + address + ": expected a worker of fovea, got " + worker.link.why());
        if (welcome.identity.numerics != hello.identity.numerics)
            throw Error("worker " + address + ": expected a build with the same numerics, got another");
        if (welcome.identity != hello.identity)
            throw Error("worker " + address + ": expected the same model file, got another");
        for (int kind = 0; kind < kKinds; ++kind)
            worker.speed[kind] = kFirstSpeed[kind] * std::max(1u, welcome.n_threads);
        overhead_.fill(std::max(overhead_[0], seconds_away(worker.link) * 1e9));
        all_.push_back(std::move(worker));
    }
    remote_.context = this;
    remote_.settle = [](void* self) { static_cast<Workers*>(self)->settle(); };
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
double Workers::seconds_away(Link& link) const {
    constexpr int kTimes = 8;
    double best = 1;
    for (int i = 0; i < kTimes; ++i) {
        const double start = now();
        Reply reply;
        if (!link.send_one(Request{}) || !link.receive_one(reply)) throw Error("worker: " + link.why());
        best = std::min(best, (now() - start) / 1e9);
    }
    return best;
}

void Workers::Measured::settle(double& average) {
    constexpr double kNew = 0.25;  // of what one pass says
    if (nanoseconds > 0) average += kNew * (work / nanoseconds - average);
    *this = {};
}

double Workers::speed_of_all(Kind kind) const noexcept {
    double all = speed_[kind];
    for (const Worker& worker : all_)
        if (worker.counts) all += worker.speed[kind];
    return all;
}

void Workers::settle() noexcept {
    for (int kind = 0; kind < kKinds; ++kind) {
        n_idle_[kind] = measured_overhead_[kind].nanoseconds > 0 ? 0 : n_idle_[kind] + 1;
        measured_[kind].settle(speed_[kind]);
        measured_overhead_[kind].settle(overhead_[kind]);
        for (Worker& worker : all_) worker.measured[kind].settle(worker.speed[kind]);
        if (n_idle_[kind] == kPassesUntilTried) {
            overhead_[kind] /= 4;
            n_idle_[kind] = 0;
        }
    }
    for (Worker& worker : all_) worker.counts = worker.there;
}

std::uint32_t Workers::n_here(const RemoteJob& job) const noexcept {
    const Kind kind = kind_of(job.n_rows);
    const double all = speed_of_all(kind), work = work_of(job, job.n_units);
    if (work / all + overhead_[kind] >= work / speed_[kind]) return job.n_units;
    return static_cast<std::uint32_t>(std::lround(job.n_units * speed_[kind] / all));
}

void Workers::begin(const RemoteJob& job) noexcept {
    started_ = now();
    slowest_ = 0;
    const Kind kind = kind_of(job.n_rows);
    const std::uint32_t n_mine = n_here(job), n_theirs = job.n_units - n_mine;
    const double all = speed_of_all(kind) - speed_[kind];
    double so_far = 0;
    std::uint32_t first = n_mine;
    Worker* last = nullptr;
    for (Worker& worker : all_) {
        if (worker.counts) {
            so_far += worker.speed[kind];
            last = &worker;
        }
        worker.begin = first;
        worker.end = first = n_mine + static_cast<std::uint32_t>(std::lround(n_theirs * std::min(so_far / all, 1.0)));
    }
    last->end = job.n_units;  // whatever rounding says: somebody counts, or all were here
    for (Worker& worker : all_) {
        worker.asked = worker.there && worker.begin < worker.end && ask(worker, job);
        if (worker.there && worker.begin < worker.end && !worker.asked) lose(worker);
    }
    begun_ = now();
}

bool Workers::ask(Worker& worker, const RemoteJob& job) noexcept try {
    std::array<MatrixPart, kMostParts> parts;
    const std::size_t n = cut(job, worker.begin, worker.end, parts);
    Request request{
        .n_rows = job.n_rows, .n_parts = static_cast<std::uint32_t>(n), .operand_bytes = job.operand.size()};
    constexpr std::uint8_t kAdds = 1;
    for (std::size_t i = 0; i < n; ++i) {
        request.n_results += n_results(parts[i], job.n_rows);
        if (parts[i].epilogue == kAdds) request.n_addends += n_results(parts[i], job.n_rows);
    }
    if (worker.results.size() < request.n_results) worker.results.resize(request.n_results);
    if (worker.addends.size() < request.n_addends) worker.addends.resize(request.n_addends);
    give_addends(job, worker.begin, worker.end, worker.addends.data());
    const std::span<const std::byte> buffers[] = {std::as_bytes(std::span(&request, 1)),
                                                  std::as_bytes(std::span(parts).first(n)), job.operand,
                                                  std::as_bytes(std::span(worker.addends).first(request.n_addends))};
    return worker.link.send(buffers);
} catch (const std::bad_alloc&) {
    return false;
}

bool Workers::take(Worker& worker, const RemoteJob& job) noexcept {
    std::array<MatrixPart, kMostParts> parts;
    const std::size_t n = cut(job, worker.begin, worker.end, parts);
    std::uint64_t n_all = 0;
    for (std::size_t i = 0; i < n; ++i) n_all += n_results(parts[i], job.n_rows);
    Reply reply;
    if (!worker.link.receive_one(reply)) return false;
    if (reply.magic != kReplyMagic || reply.code != 0 || reply.n_results != n_all) return false;
    if (!worker.link.receive(std::as_writable_bytes(std::span(worker.results).first(n_all)))) return false;
    take_results(job, worker.begin, worker.end, worker.results.data());
    const auto took = static_cast<double>(reply.nanoseconds);
    worker.measured[kind_of(job.n_rows)].add(work_of(job, worker.end - worker.begin), took);
    slowest_ = std::max(slowest_, took);
    return true;
}

void Workers::finish(const RemoteJob& job) noexcept {
    const Kind kind = kind_of(job.n_rows);
    const double stopped = now();
    const std::uint32_t n = all_.front().begin;
    if (n) measured_[kind].add(work_of(job, n), stopped - begun_);
    bool all_came = true;
    for (Worker& worker : all_) {
        if (worker.begin >= worker.end) continue;
        if (worker.asked && take(worker, job)) continue;
        if (worker.asked) lose(worker);
        multiply_here(job, worker.begin, worker.end);
        all_came = false;
    }
    if (all_came) measured_overhead_[kind].add(now() - started_ - std::max(stopped - begun_, slowest_), 1);
}

void Workers::lose(Worker& worker) noexcept try {
    worker.there = false;
    note_("worker " + worker.address + " is gone (" + worker.link.why() + "); going on without it");
} catch (const std::exception&) {  // nobody hears of it
}

}  // namespace fovea::cluster
