// A call of forward as bytes, for ranks that follow the first: see fovea/ranks.h.
#include <cstring>

#include "engine/cache/kv_cache.h"
#include "fovea/ranks.h"

namespace fovea {
namespace {

/// What a call begins with. Then: its steps, their tokens, the pool's tables.
struct CallHead {
    std::uint32_t n_steps = 0, n_tokens = 0;
    std::uint64_t table_bytes = 0, n_logits = 0;
};
struct CallStep {
    std::uint32_t slot = 0, n_tokens = 0;
    std::uint64_t n_logits = 0;
};

/// Calls visit(first byte, bytes) for each table that says what a pool's caches hold.
void for_each_table(PoolState& pool, const auto& visit) noexcept {
    const auto all = [&](auto* table, std::uint64_t n) {
        visit(reinterpret_cast<std::byte*>(table), static_cast<std::size_t>(n * sizeof *table));
    };
    const PoolLimits& limits = pool.limits;
    all(&pool.n_free, 1);
    all(pool.slots, limits.max_sequences);
    all(pool.tables, std::uint64_t{limits.max_sequences} * pool.max_pages);
    all(pool.n_users, limits.n_pages);
    all(pool.free_pages, limits.n_pages);
    if (!has_states(pool)) return;
    States& states = *pool.states;
    all(&states.n_free, 1);
    all(states.caches, limits.max_sequences);
    all(states.marks, std::uint64_t{limits.max_sequences} * states.max_marks);
    all(states.n_users, limits.n_states);
    all(states.free_states, limits.n_states);
}

[[nodiscard]] std::uint64_t table_bytes(PoolState& pool) noexcept {
    std::uint64_t sum = 0;
    for_each_table(pool, [&](std::byte*, std::size_t n) { sum += n; });
    return sum;
}

[[nodiscard]] CallHead head_of(std::span<const Step> steps) noexcept {
    CallHead head{.n_steps = static_cast<std::uint32_t>(steps.size()),
                  .table_bytes = table_bytes(*CacheAccess::pool(steps[0].cache))};
    for (const Step& step : steps) {
        head.n_tokens += static_cast<std::uint32_t>(step.tokens.size());
        head.n_logits += step.logits.size();
    }
    return head;
}

[[nodiscard]] std::uint64_t bytes_of(const CallHead& head) noexcept {
    return sizeof head + head.n_steps * std::uint64_t{sizeof(CallStep)} + head.n_tokens * std::uint64_t{sizeof(Token)} +
           head.table_bytes;
}

[[nodiscard]] Status read_head(std::span<const std::byte> call, CallHead& head) noexcept {
    if (call.size() < sizeof head) return {Code::truncated, "bytes of a call at least", sizeof head, call.size()};
    std::memcpy(&head, call.data(), sizeof head);
    if (head.table_bytes > call.size() || call.size() != bytes_of(head))
        return {Code::truncated, "bytes of a call", bytes_of(head), call.size()};
    return {};
}

}  // namespace

std::uint64_t call_bytes(std::span<const Step> steps) noexcept { return bytes_of(head_of(steps)); }

void write_call(std::span<const Step> steps, std::span<std::byte> out) noexcept {
    std::byte* at = out.data();
    const auto write = [&](const void* from, std::size_t n) {
        if (n) std::memcpy(at, from, n);
        at += n;
    };
    const CallHead head = head_of(steps);
    write(&head, sizeof head);
    for (const Step& step : steps) {
        const CallStep one{CacheAccess::slot(step.cache), static_cast<std::uint32_t>(step.tokens.size()),
                           step.logits.size()};
        write(&one, sizeof one);
    }
    for (const Step& step : steps) write(step.tokens.data(), step.tokens.size_bytes());
    for_each_table(*CacheAccess::pool(steps[0].cache), write);
}

Status call_size(std::span<const std::byte> call, CallSize& size) noexcept {
    CallHead head;
    if (Status status = read_head(call, head); !status.ok()) return status;
    size = {head.n_steps, head.n_logits};
    return {};
}

CachePool pool_of(const Cache& cache) noexcept {
    CachePool pool;
    if (cache.valid()) CacheAccess::set(pool, CacheAccess::pool(cache));
    return pool;
}

Status read_call(std::span<const std::byte> call, CachePool& of, std::span<float> logits,
                 std::span<Step> steps) noexcept {
    if (!of.valid()) return {Code::bad_argument, "pool: not made", 0, 0};
    CallHead head;
    if (Status status = read_head(call, head); !status.ok()) return status;
    PoolState& pool = *CacheAccess::pool(of);
    if (const std::uint64_t own = table_bytes(pool); head.table_bytes != own)
        return {Code::session_mismatch, "bytes of a pool's tables", own, head.table_bytes};
    if (steps.size() != head.n_steps) return {Code::bad_shape, "steps of a call", head.n_steps, steps.size()};
    if (logits.size() != head.n_logits) return {Code::bad_shape, "logits of a call", head.n_logits, logits.size()};
    const auto* each = reinterpret_cast<const CallStep*>(call.data() + sizeof head);
    const auto* token = reinterpret_cast<const Token*>(each + head.n_steps);
    std::uint64_t n_tokens = 0, n_logits = 0;
    for (std::uint32_t i = 0; i < head.n_steps; ++i) {
        if (each[i].slot >= pool.limits.max_sequences)
            return {Code::bad_argument, "cache's number at most", pool.limits.max_sequences - 1, each[i].slot};
        n_tokens += each[i].n_tokens;
        n_logits += each[i].n_logits;
        if (each[i].n_logits > head.n_logits || n_logits > head.n_logits || n_tokens > head.n_tokens)
            return {Code::bad_shape, "a call's tokens and logits: sums of its steps'", head.n_tokens, n_tokens};
    }
    const std::byte* at = call.data() + call.size() - head.table_bytes;
    for_each_table(pool, [&](std::byte* table, std::size_t n) {
        std::memcpy(table, at, n);
        at += n;
    });
    for (std::uint32_t i = 0; i < head.n_steps; ++i) {
        const auto n = static_cast<std::size_t>(each[i].n_logits);
        steps[i] = {CacheAccess::make(&pool, each[i].slot), {token, each[i].n_tokens}, logits.first(n)};
        token += each[i].n_tokens;
        logits = logits.subspan(n);
    }
    return {};
}

}  // namespace fovea
