#include "host/model/leading.h"

#include <new>

#include "host/base/error.h"

namespace fovea::host {
namespace {

/// What the first rank says: this, then n_bytes.
struct Message {
    enum class Kind : std::uint64_t {
        end,
        call,     ///< write_call's bytes; one of a step without tokens says alone what its cache holds
        save,     ///< the cache of the first step of the last call
        restore,  ///< the same, from these bytes
    };
    Kind kind = Kind::end;
    std::uint64_t n_bytes = 0;
};

Leading* current = nullptr;

/// The first rank's bytes, on all. False: they cannot be reached.
[[nodiscard]] bool broadcast(const Ranks& ranks, std::byte* data, std::uint64_t n) noexcept {
    std::uint64_t ends[kMaxRanks];
    for (std::uint32_t r = 0; r < ranks.n_ranks; ++r) ends[r] = n;
    return ranks.gather(ranks.context, {}, data, {ends, ranks.n_ranks});
}

[[nodiscard]] bool broadcast(const Ranks& ranks, Message& message) noexcept {
    return broadcast(ranks, reinterpret_cast<std::byte*>(&message), sizeof message);
}

[[nodiscard]] Status lost(const Ranks& ranks) noexcept { return {Code::io_error, "ranks", ranks.n_ranks, 0}; }

/// A rank that follows.
class Follower {
public:
    Follower(const Ranks& through, Workspace workspace, CachePool pool)
        : through_(through), workspace_(workspace), pool_(pool) {}

    void run() {
        for (Message message; hear(message), message.kind != Message::Kind::end;) {
            bytes_.resize(static_cast<std::size_t>(message.n_bytes));
            if (!broadcast(through_, bytes_.data(), message.n_bytes)) fail();
            // What is refused here is refused by the first rank as well, which says it or goes on without.
            std::size_t written = 0;
            if (message.kind == Message::Kind::call) make_call();
            if (message.kind == Message::Kind::restore) (void)restore_cache(cache_, bytes_);
            if (message.kind != Message::Kind::save) continue;
            bytes_.resize(static_cast<std::size_t>(cache_bytes(cache_)));
            require(save_cache(through_, cache_, bytes_, written), "ranks");
        }
    }

private:
    [[noreturn]] static void fail() { throw Error("ranks: the first cannot be reached"); }
    void hear(Message& message) {
        if (!broadcast(through_, message)) fail();
    }
    void make_call() {
        CallSize size;
        require(call_size(bytes_, size), "ranks");
        logits_.resize(static_cast<std::size_t>(size.n_logits));
        steps_.resize(size.n_steps);
        require(read_call(bytes_, pool_, logits_, steps_), "ranks: a call of the first");
        cache_ = steps_[0].cache;
        if (steps_[0].tokens.empty()) return;
        const Status status = forward(workspace_, steps_);
        if (status.code == Code::io_error || status.code == Code::session_mismatch) require(status, "ranks");
    }

    const Ranks& through_;
    Workspace workspace_;
    CachePool pool_;
    Cache cache_;
    std::vector<std::byte> bytes_;
    std::vector<float> logits_;
    std::vector<Step> steps_;
};

}  // namespace

Leading::Leading(const Ranks& through) : through_(through), ranks_(through) {
    ranks_.context = this;
    ranks_.gather = [](void* self, RankGroup among, std::byte* data, std::span<const std::uint64_t> ends) {
        const Ranks& ranks = static_cast<Leading*>(self)->through_;
        return ranks.gather(ranks.context, among, data, ends);
    };
    ranks_.lead = [](void* self, std::span<const Step> steps) { return static_cast<Leading*>(self)->hand_over(steps); };
    current = this;
}

Leading::~Leading() {
    current = nullptr;
    Message end;
    (void)broadcast(through_, end);  // where they are lost, they have ended
}

bool Leading::hand_over(std::span<const Step> steps) noexcept {
    Message message{Message::Kind::call, call_bytes(steps)};
    try {
        call_.resize(static_cast<std::size_t>(message.n_bytes));
    } catch (const std::bad_alloc&) {
        return false;
    }
    write_call(steps, call_);
    return broadcast(through_, message) && broadcast(through_, call_.data(), message.n_bytes);
}

Status Leading::save(const Cache& cache, std::span<std::byte> out, std::size_t& written) noexcept {
    if (const std::uint64_t bytes = cache_bytes(cache); out.size() < bytes)
        return {Code::buffer_too_small, "bytes of a saved session", bytes, out.size()};
    const Step present{cache, {}, {}};
    Message message{Message::Kind::save};
    if (!hand_over({&present, 1}) || !broadcast(through_, message)) return lost(through_);
    return save_cache(through_, cache, out, written);
}

Status Leading::restore(Cache& cache, std::span<const std::byte> saved) noexcept {
    const Step present{cache, {}, {}};
    Message message{Message::Kind::restore, saved.size()};
    if (!hand_over({&present, 1}) || !broadcast(through_, message)) return lost(through_);
    // The first rank's bytes are sent, and none received.
    if (!broadcast(through_, const_cast<std::byte*>(saved.data()), saved.size())) return lost(through_);
    return restore_cache(cache, saved);
}

Status save(const Session& session, std::span<std::byte> out, std::size_t& written) noexcept {
    return current ? current->save(session.cache(), out, written) : save_session(session, out, written);
}

Status restore(Session& session, std::span<const std::byte> saved) noexcept {
    if (!current) return restore_session(session, saved);
    Cache cache = session.cache();
    return current->restore(cache, saved);
}

void follow(const Ranks& through, Workspace workspace, CachePool pool) { Follower(through, workspace, pool).run(); }

}  // namespace fovea::host
