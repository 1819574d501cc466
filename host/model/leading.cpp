#include "host/model/leading.h"

#include <new>

#include "host/base/error.h"

namespace fovea::host {
namespace {

/// The first rank's bytes, on all. False: they cannot be reached.
[[nodiscard]] bool broadcast(const Ranks& ranks, std::byte* data, std::uint64_t n) noexcept {
    std::uint64_t ends[kMaxRanks];
    for (std::uint32_t r = 0; r < ranks.n_ranks; ++r) ends[r] = n;
    return ranks.gather(ranks.context, data, {ends, ranks.n_ranks});
}

[[nodiscard]] bool broadcast_size(const Ranks& ranks, std::uint64_t& n) noexcept {
    return broadcast(ranks, reinterpret_cast<std::byte*>(&n), sizeof n);
}

/// One call of the first rank's.
void make_call(Workspace& workspace, CachePool& pool, std::span<const std::byte> call, std::vector<float>& logits,
               std::vector<Step>& steps) {
    CallSize size;
    require(call_size(call, size), "ranks");
    logits.resize(static_cast<std::size_t>(size.n_logits));
    steps.resize(size.n_steps);
    require(read_call(call, pool, logits, steps), "ranks: a call of the first");
    const Status status = forward(workspace, steps);
    // Another refusal is the first rank's as well, which says it or goes on without that call.
    if (status.code == Code::io_error || status.code == Code::session_mismatch) require(status, "ranks");
}

}  // namespace

Leading::Leading(const Ranks& through) : through_(through), ranks_(through) {
    ranks_.context = this;
    ranks_.gather = [](void* self, std::byte* data, std::span<const std::uint64_t> ends) {
        const Ranks& ranks = static_cast<Leading*>(self)->through_;
        return ranks.gather(ranks.context, data, ends);
    };
    ranks_.lead = [](void* self, std::span<const Step> steps) { return static_cast<Leading*>(self)->hand_over(steps); };
}

Leading::~Leading() {
    std::uint64_t end = 0;
    (void)broadcast_size(through_, end);  // where they are lost, they have ended
}

bool Leading::hand_over(std::span<const Step> steps) noexcept {
    std::uint64_t n = call_bytes(steps);
    try {
        call_.resize(static_cast<std::size_t>(n));
    } catch (const std::bad_alloc&) {
        return false;
    }
    write_call(steps, call_);
    return broadcast_size(through_, n) && broadcast(through_, call_.data(), n);
}

void follow(const Ranks& through, Workspace workspace, CachePool pool) {
    std::vector<std::byte> call;
    std::vector<float> logits;
    std::vector<Step> steps;
    for (std::uint64_t n = 0;;) {
        if (!broadcast_size(through, n)) throw Error("ranks: the first cannot be reached");
        if (!n) return;
        call.resize(static_cast<std::size_t>(n));
        if (!broadcast(through, call.data(), n)) throw Error("ranks: the first cannot be reached");
        make_call(workspace, pool, call, logits, steps);
    }
}

}  // namespace fovea::host
