#include "cluster/workers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "cluster/identity.h"
#include "cluster/wire.h"

namespace fovea::cluster {
namespace {

[[nodiscard]] double now() noexcept {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<double>(std::chrono::nanoseconds(time).count());
}

// What a thread is taken to compute before anything is measured: bytes of weights times rows in a nanosecond. Most threads compute less.
// With a speed that is too high a program shares too little at first, which costs less than sharing too much.
constexpr double kFirstSpeed[] = {16, 40, 60};
// A kind of product that passes had, and that was not worth sharing, is tried again after so many of them: the network may be free
// by then.
constexpr std::uint32_t kPassesUntilTried = 64;
constexpr std::chrono::seconds kGreeting{10}, kAnswer{60};
constexpr std::uint32_t kManyRows = 24;  // above which products compute more than they read

/// Of a job's results, at most: a unit is two panels of 16 outputs.
[[nodiscard]] std::uint64_t result_bytes(const RemoteJob& job) noexcept {
    return std::uint64_t{job.n_rows} * job.n_units * 32 * sizeof(float);
}

}  // namespace

Workers::Kind Workers::kind_of(std::uint32_t n_rows) noexcept {
    return n_rows == 1 ? one_row : n_rows <= kManyRows ? few_rows : many_rows;
}

double Workers::work_of(const RemoteJob& job, std::uint32_t n_units) noexcept {
    return static_cast<double>(n_units) * static_cast<double>(job.unit_bytes) * job.n_rows;
}

Workers::Workers(const std::vector<std::string>& addresses, const Model& model, std::uint32_t n_threads, Note note)
    : note_(std::move(note)) {
    for (int kind = 0; kind < kKinds; ++kind) speed_[kind] = kFirstSpeed[kind] * n_threads;
    for (const std::string& address : addresses) {
        Worker worker(address, Link::connect(address));
        const Hello hello{.identity = identity_of(model)};
        Welcome welcome;
        if (!worker.link.send_one(hello, kGreeting) || !worker.link.receive_one(welcome, kGreeting) ||
            welcome.magic != kHelloMagic)
            throw Error("worker " + address + ": expected the greeting of a worker that is free, got " +
                        worker.link.why());
        if (welcome.identity.numerics != hello.identity.numerics)
            throw Error("worker " + address + ": expected a build with the same numerics, got another");
        if (welcome.identity != hello.identity)
            throw Error("worker " + address + ": expected the same model file, got another");
        for (int kind = 0; kind < kKinds; ++kind)
            worker.speed[kind] = kFirstSpeed[kind] * std::max(1u, welcome.n_threads);
        overhead_.fill(std::max(overhead_[0], nanoseconds_away(worker)));
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
double Workers::nanoseconds_away(Worker& worker) const {
    constexpr int kTimes = 8;
    double best = 1e9;
    for (int i = 0; i < kTimes; ++i) {
        const double start = now();
        Reply reply;
        if (!worker.link.send_one(Request{}, kGreeting) || !worker.link.receive_one(reply, kGreeting) ||
            reply.magic != kReplyMagic || reply.code != 0)
            throw Error("worker " + worker.address + ": expected an answer, got " + worker.link.why());
        best = std::min(best, now() - start);
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
        if (measured_overhead_[kind].nanoseconds > 0) n_idle_[kind] = 0;
        n_idle_[kind] += kept_[kind].exchange(false, std::memory_order_relaxed);
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
    const auto n_counted =
        static_cast<std::uint32_t>(std::count_if(all_.begin(), all_.end(), [](const Worker& w) { return w.counts; }));
    const std::uint64_t most = std::max(job.operand.size(), result_bytes(job));
    const bool gains = work / all + overhead_[kind] < work / speed_[kind];
    if (!n_counted || n_counted >= job.n_units || most > kMostBytes || !gains) {
        if (n_counted && !gains) kept_[kind].store(true, std::memory_order_relaxed);
        return job.n_units;
    }
    // Everyone has a unit at least, or would never be measured again.
    const auto n = static_cast<std::uint32_t>(std::lround(job.n_units * speed_[kind] / all));
    return std::clamp(n, 1u, job.n_units - n_counted);
}

void Workers::begin(const RemoteJob& job) noexcept {
    started_ = now();
    slowest_ = 0;
    const Kind kind = kind_of(job.n_rows);
    const std::uint32_t n_mine = n_here(job), n_theirs = job.n_units - n_mine;
    const double all = speed_of_all(kind) - speed_[kind];
    double so_far = 0;
    std::uint32_t first = n_mine;
    auto n_left = static_cast<std::uint32_t>(
        std::count_if(all_.begin(), all_.end(), [](const Worker& worker) { return worker.counts; }));
    for (Worker& worker : all_) {
        worker.begin = worker.end = first;
        if (!worker.counts) continue;
        so_far += worker.speed[kind];
        const auto end = n_mine + static_cast<std::uint32_t>(std::lround(n_theirs * std::min(so_far / all, 1.0)));
        --n_left;
        worker.end = n_left ? std::clamp(end, first + 1, job.n_units - n_left) : job.n_units;
        first = worker.end;
    }
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
    std::array<std::byte, sizeof request + sizeof parts> head;
    std::memcpy(head.data(), &request, sizeof request);
    std::memcpy(head.data() + sizeof request, parts.data(), n * sizeof parts[0]);
    const auto addends = std::as_bytes(std::span(worker.addends).first(request.n_addends));
    Link& link = worker.link;
    return link.send(std::span(head).first(sizeof request + n * sizeof parts[0]), kAnswer) &&
           link.send(job.operand, kAnswer) && link.send(addends, kAnswer);
} catch (const std::bad_alloc&) {
    return false;
}

bool Workers::take(Worker& worker, const RemoteJob& job) noexcept {
    std::array<MatrixPart, kMostParts> parts;
    const std::size_t n = cut(job, worker.begin, worker.end, parts);
    std::uint64_t n_all = 0;
    for (std::size_t i = 0; i < n; ++i) n_all += n_results(parts[i], job.n_rows);
    Reply reply;
    if (!worker.link.receive_one(reply, kAnswer)) return false;
    if (reply.magic != kReplyMagic || reply.code != 0 || reply.n_results != n_all) return false;
    if (!worker.link.receive(std::as_writable_bytes(std::span(worker.results).first(n_all)), kAnswer)) return false;
    take_results(job, worker.begin, worker.end, worker.results.data());
    const double took = std::min(static_cast<double>(reply.nanoseconds), now() - started_);
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
