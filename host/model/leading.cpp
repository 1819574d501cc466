#include "host/model/leading.h"

#include <cstring>
#include <new>

#include "host/base/error.h"

namespace fovea::host {
namespace {

/// What the first rank says: this, then n_bytes.
struct Message {
    enum class Kind : std::uint64_t {
        end,
        encode,    ///< an EncodeHead and what it counts
        memories,  ///< write_call's bytes of memories, which the next call reads or fills
        fill,      ///< as encode, of what fills them
        call,      ///< write_call's bytes; one of a step without tokens says alone what its cache holds
        save,      ///< the cache of the first step of the last call
        restore,   ///< the same, from these bytes
    };
    Kind kind = Kind::end;
    std::uint64_t n_bytes = 0;
};

/// What an encode begins with. Then: its ids, types, lengths and rows that pooling leaves out, each of 4 bytes, and its mask.
struct EncodeHead {
    std::uint64_t n_out = 0, n_ids = 0, n_types = 0, n_sequences = 0, n_unpooled = 0;
    std::uint64_t mask_bytes = 0, mask_stride = 0, mask_keys = 0;
    std::uint8_t pooling = 0;
    bool has_pooling = false, before_head = false, causal = false;

    EncodeHead() = default;
    EncodeHead(const EncodeInput& input, std::size_t n)
        : n_out(n),
          n_ids(input.source.ids.size()),
          n_types(input.source.types.size()),
          n_sequences(input.source.lengths.size()),
          n_unpooled(input.n_unpooled.size()),
          has_pooling(input.pooling != nullptr),
          before_head(input.before_head),
          causal(input.source.masks.causal) {
        const Mask& mask = input.source.masks.padding;
        if (mask.hidden) mask_bytes = (n_sequences - 1) * mask.sequence_stride + mask.n_keys;
        mask_stride = mask.sequence_stride, mask_keys = mask.n_keys;
        if (has_pooling) pooling = static_cast<std::uint8_t>(*input.pooling);
    }
    [[nodiscard]] std::uint64_t bytes() const {
        return sizeof *this + (n_ids + n_types + n_sequences + n_unpooled) * 4 + mask_bytes;
    }
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

/// Says a message of n bytes, which `write` writes to `bytes`.
[[nodiscard]] bool say(const Ranks& ranks, std::vector<std::byte>& bytes, Message::Kind kind, std::uint64_t n,
                       const auto& write) noexcept {
    try {
        bytes.resize(static_cast<std::size_t>(n));
    } catch (const std::bad_alloc&) {
        return false;
    }
    write();
    Message message{kind, n};
    return broadcast(ranks, message) && broadcast(ranks, bytes.data(), n);
}

[[nodiscard]] bool say_encode(const Ranks& ranks, std::vector<std::byte>& bytes, Message::Kind kind,
                              const EncodeInput& input, std::size_t n_out) noexcept {
    const EncodeHead head(input, n_out);
    return say(ranks, bytes, kind, head.bytes(), [&] {
        std::byte* at = bytes.data();
        const auto write = [&](const void* from, std::size_t n) {
            if (n) std::memcpy(at, from, n);
            at += n;
        };
        write(&head, sizeof head);
        const Sequences& s = input.source;
        for (const std::span<const std::uint32_t> words : {s.ids, s.types, s.lengths, input.n_unpooled})
            write(words.data(), words.size_bytes());
        write(s.masks.padding.hidden, static_cast<std::size_t>(head.mask_bytes));
    });
}

[[nodiscard]] Status lost(const Ranks& ranks) noexcept { return {Code::io_error, "ranks", ranks.n_ranks, 0}; }

/// A rank that follows.
class Follower {
public:
    Follower(const Ranks& through, Workspace workspace, CachePool pool, CachePool memories)
        : through_(through), workspace_(workspace), pool_(pool), memory_pool_(memories) {}

    void run() {
        for (Message message; hear(message), message.kind != Message::Kind::end;) {
            bytes_.resize(static_cast<std::size_t>(message.n_bytes));
            if (!broadcast(through_, bytes_.data(), message.n_bytes)) fail();
            // What is refused here is refused by the first rank as well, which says it or goes on without.
            std::size_t written = 0;
            if (message.kind == Message::Kind::call) make_call();
            if (message.kind == Message::Kind::memories) read_memories();
            if (message.kind == Message::Kind::encode || message.kind == Message::Kind::fill)
                make_encode(message.kind == Message::Kind::fill);
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
        for (std::size_t i = 0; i < memories_.size() && i < steps_.size(); ++i) steps_[i].memory = memories_[i];
        memories_.clear();
        check(forward(workspace_, steps_));
    }
    void read_memories() {
        CallSize size;
        require(call_size(bytes_, size), "ranks");
        steps_.resize(size.n_steps);
        require(read_call(bytes_, memory_pool_, {}, steps_), "ranks: memories of the first");
        memories_.clear();
        for (const Step& step : steps_) memories_.push_back(step.cache);
    }
    void make_encode(bool fills) {
        EncodeHead head;
        if (bytes_.size() >= sizeof head) std::memcpy(&head, bytes_.data(), sizeof head);
        if (bytes_.size() != head.bytes()) throw Error("ranks: expected an encode of the first, got other bytes");
        const std::byte* at = bytes_.data() + sizeof head;
        const auto take = [&](std::uint64_t n) {
            const std::span<const std::uint32_t> words{reinterpret_cast<const std::uint32_t*>(at),
                                                       static_cast<std::size_t>(n)};
            at += words.size_bytes();
            return words;
        };
        EncodeInput input{.before_head = head.before_head};
        input.source.ids = take(head.n_ids);
        input.source.types = take(head.n_types);
        input.source.lengths = take(head.n_sequences);
        input.n_unpooled = take(head.n_unpooled);
        input.source.masks.causal = head.causal;
        if (head.mask_bytes)
            input.source.masks.padding = {.hidden = reinterpret_cast<const std::uint8_t*>(at),
                                          .sequence_stride = head.mask_stride,
                                          .n_keys = static_cast<std::uint32_t>(head.mask_keys)};
        const auto pooling = static_cast<Pooling>(head.pooling);
        if (head.has_pooling) input.pooling = &pooling;
        if (fills) {
            check(cache_memory(workspace_, input, memories_));
            return memories_.clear();
        }
        logits_.resize(static_cast<std::size_t>(head.n_out));
        check(encode(workspace_, input, logits_));
    }
    /// What the first rank says or goes on without is its own.
    static void check(const Status& status) {
        if (status.code == Code::io_error || status.code == Code::session_mismatch) require(status, "ranks");
    }

    const Ranks& through_;
    Workspace workspace_;
    CachePool pool_, memory_pool_;
    Cache cache_;
    std::vector<Cache> memories_;  // of the next call
    std::vector<std::byte> bytes_;
    std::vector<float> logits_;  // or vectors
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
    ranks_.lead_encode = [](void* self, const EncodeInput& input, std::size_t n_out) {
        return static_cast<Leading*>(self)->hand_over(input, n_out);
    };
    ranks_.lead_memory = [](void* self, const EncodeInput& input, std::span<const Cache> memories) {
        return static_cast<Leading*>(self)->hand_over(input, memories);
    };
    current = this;
}

Leading::~Leading() {
    current = nullptr;
    Message end;
    (void)broadcast(through_, end);  // where they are lost, they have ended
}

bool Leading::hand_over_memories(std::size_t n, const auto& memory_of) noexcept {
    try {
        memories_.clear();
        for (std::size_t i = 0; i < n; ++i) memories_.push_back({memory_of(i), {}, {}});
    } catch (const std::bad_alloc&) {
        return false;
    }
    return say(through_, call_, Message::Kind::memories, call_bytes(memories_), [&] { write_call(memories_, call_); });
}

bool Leading::hand_over(std::span<const Step> steps) noexcept {
    if (steps[0].memory.valid() && !hand_over_memories(steps.size(), [&](std::size_t i) { return steps[i].memory; }))
        return false;
    return say(through_, call_, Message::Kind::call, call_bytes(steps), [&] { write_call(steps, call_); });
}

bool Leading::hand_over(const EncodeInput& input, std::size_t n_out) noexcept {
    return say_encode(through_, call_, Message::Kind::encode, input, n_out);
}

bool Leading::hand_over(const EncodeInput& input, std::span<const Cache> memories) noexcept {
    return hand_over_memories(memories.size(), [&](std::size_t i) { return memories[i]; }) &&
           say_encode(through_, call_, Message::Kind::fill, input, 0);
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

void follow(const Ranks& through, Workspace workspace, CachePool pool, CachePool memories) {
    Follower(through, workspace, pool, memories).run();
}

}  // namespace fovea::host
