// The C interface's workspaces, pools, caches and steps.
#include <new>

#include "engine/c/handles.h"
#include "engine/format/format.h"
#include "engine/pass/workspace.h"

namespace fovea {
namespace {

constexpr std::uint64_t kCacheBytes = 16;  // of a Cache, whatever a pointer's size
static_assert(sizeof(Cache) <= kCacheBytes);
constexpr std::uint64_t kWorkspaceBytes = 64;
static_assert(sizeof(fovea_workspace) <= kWorkspaceBytes);

[[nodiscard]] Status check_null(const fovea_workspace* workspace) noexcept {
    return workspace ? Status{} : is_null("workspace: NULL");
}

/// A workspace's plan: its state, memories, then the engine's own.
struct PreparedWorkspace {
    RequestedLimits requested;
    Plan plan;
    std::uint32_t n_steps;  // 0: the model gives no logits
    std::uint64_t of_memories, arena_bytes;

    [[nodiscard]] Status read(const fovea_model* model, const fovea_limits* given) noexcept {
        if (!model) return is_null("model: NULL");
        if (Status s = requested.read(given); !s.ok()) return s;
        if (Status s = make_workspace_plan(model->model->config(), requested.limits, plan); !s.ok()) return s;
        n_steps = plan.limits.max_kv_len ? max_steps(plan.limits) : 0;
        of_memories = memories_bytes(n_steps);
        arena_bytes = kWorkspaceBytes + of_memories + plan.arena_bytes;
        return {};
    }
};

/// The pool is a handle at the start of its arena, too.
[[nodiscard]] Status read_limits(const fovea_pool_limits* given, PoolLimits& out) noexcept {
    fovea_pool_limits known;
    if (Status s = read_struct(given, known); !s.ok()) return s;
    out = {.max_kv_len = known.max_positions,
           .max_sequences = known.max_sequences ? known.max_sequences : 1,
           .page_len = known.page_len ? known.page_len : PoolLimits{}.page_len,
           .n_pages = known.n_pages,
           .kv_type = static_cast<Type>(known.kv_type < kTypeCount ? known.kv_type : kTypeCount),
           .memory = known.memory != 0,
           .max_marks = known.max_marks,
           .n_states = known.n_states};
    return {};
}

[[nodiscard]] Status plan_pool(const fovea_model* model, const fovea_pool_limits* limits, PoolPlan& plan) noexcept {
    if (!model) return is_null("model: NULL");
    PoolLimits requested;
    if (Status s = read_limits(limits, requested); !s.ok()) return s;
    return make_pool_plan(model->model->config(), requested, plan);
}

static_assert(sizeof(fovea_span) == sizeof(RowSpan));
[[nodiscard]] Step read_step(const void* given) noexcept {
    fovea_step step;
    (void)read_struct(given, &step, sizeof step);  // which was seen to go
    return {from_c(&step.cache),
            {step.tokens, step.n_tokens},
            {step.logits, step.n_logits},
            from_c(&step.memory),
            {step.rows, step.n_row_elements},
            {step.positions, step.n_positions},
            {reinterpret_cast<const RowSpan*>(step.spans), step.n_spans},
            {step.vectors, step.n_vectors}};
}

}  // namespace

std::uint64_t memories_bytes(std::uint32_t n_steps) noexcept {
    return round_up(n_steps * kCacheBytes, kArenaAlignment);
}

void start_workspace(fovea_workspace& place, const Workspace& made, const RequestedLimits& requested,
                     std::uint32_t n_steps, std::byte* memories) noexcept {
    place.workspace = made;
    place.memories = reinterpret_cast<Cache*>(memories);
    place.max_steps = n_steps;
    place.cancellable = requested.c.cancellable != 0;
    place.cancelled = false;
    if (place.cancellable) set_cancel(place.workspace, &place.cancelled);
}

}  // namespace fovea

using namespace fovea;

struct fovea_pool {
    CachePool pool;
};

namespace {
constexpr std::uint64_t kPoolBytes = 64;
static_assert(sizeof(fovea_pool) <= kPoolBytes);
}  // namespace

// ---- workspaces ----------------------------------------------------------------------------------------------------

fovea_status fovea_plan_workspace(const fovea_model* model, const fovea_limits* limits, fovea_plan* plan) {
    PreparedWorkspace p;
    if (Status s = p.read(model, limits); !s.ok()) return to_c(s);
    return to_c(write_plan(*model, p.requested, p.plan, p.arena_bytes, plan));
}

fovea_status fovea_make_workspace(const fovea_model* model, const fovea_limits* limits, void* arena, size_t arena_bytes,
                                  fovea_workspace** workspace) {
    PreparedWorkspace p;
    if (Status s = p.read(model, limits); !s.ok()) return to_c(s);
    if (!arena) arena_bytes = 0;
    if (arena_bytes < p.arena_bytes)
        return to_c({Code::arena_too_small, "arena bytes at least", p.arena_bytes, arena_bytes});
    const std::span<std::byte> bytes{static_cast<std::byte*>(arena), arena_bytes};
    const std::size_t engine_at = static_cast<std::size_t>(kWorkspaceBytes + p.of_memories);
    Workspace made;
    if (Status s = make_workspace(*model->model, p.plan.limits, bytes.subspan(engine_at), made, p.requested.options());
        !s.ok())
        return to_c(s);
    auto* out = new (arena) fovea_workspace;
    start_workspace(*out, made, p.requested, p.n_steps, bytes.data() + kWorkspaceBytes);
    *workspace = out;
    return success();
}

fovea_status fovea_cancel(fovea_workspace* workspace, int cancelled) {
    if (Status s = check_null(workspace); !s.ok()) return to_c(s);
    if (!workspace->cancellable) return to_c({Code::bad_argument, "limits.cancellable", 1, 0});
    workspace->cancelled.store(cancelled != 0, std::memory_order_relaxed);
    return success();
}

const char* fovea_isa(const fovea_workspace* workspace) {
    return workspace ? WorkspaceAccess::state(workspace->workspace)->kernels->isa : "";
}

const char* fovea_isa_name(size_t i) { return i < isa_names().size() ? isa_names()[i] : nullptr; }

uint32_t fovea_default_threads() { return default_threads(); }

void fovea_end_threads() { end_threads(); }

fovea_status fovea_forward_steps(fovea_workspace* workspace, const fovea_step* steps, size_t n_steps) {
    if (Status s = check_null(workspace); !s.ok()) return to_c(s);
    std::uint32_t step_size = 0;  // of the caller's elements
    for (std::size_t i = 0; i < n_steps; ++i) {
        const auto* at = reinterpret_cast<const std::byte*>(steps) + i * step_size;
        fovea_step step;
        if (Status s = read_struct(at, &step, sizeof step); !s.ok()) return to_c(s);
        if (i && step.struct_size != step_size)
            return to_c({Code::bad_argument, "struct_size of every step", step_size, step.struct_size});
        step_size = step.struct_size;
    }
    return to_c(run_steps(*WorkspaceAccess::state(workspace->workspace), {steps, n_steps, step_size, read_step}));
}

fovea_status fovea_row_keys(const fovea_step* step, uint32_t* keys, size_t n_keys) {
    if (!has(Part::rows)) return to_c(Status{Code::unsupported, "rows: left out of this build", 0, 0});
    fovea_step known;
    if (Status s = read_struct(step, known); !s.ok()) return to_c(s);
    row_keys(read_step(&known), {keys, n_keys});
    return success();
}

// ---- pools and caches ----------------------------------------------------------------------------------------------

fovea_status fovea_plan_pool(const fovea_model* model, const fovea_pool_limits* limits, fovea_pool_plan* plan) {
    if (Status s = check_struct(plan); !s.ok()) return to_c(s);
    PoolPlan own;
    if (Status s = plan_pool(model, limits, own); !s.ok()) return to_c(s);
    const fovea_pool_plan made{.struct_size = sizeof made,
                               .max_positions = own.limits.max_kv_len,
                               .max_sequences = own.limits.max_sequences,
                               .page_len = own.limits.page_len,
                               .n_pages = own.limits.n_pages,
                               .n_states = own.limits.n_states,
                               .arena_bytes = kPoolBytes + own.arena_bytes,
                               .max_marks = own.limits.max_marks,
                               .reserved = 0};
    write_struct(&made, sizeof made, plan);
    return success();
}

fovea_status fovea_make_pool(const fovea_model* model, const fovea_pool_limits* limits, void* arena, size_t arena_bytes,
                             fovea_pool** pool) {
    PoolPlan plan;
    if (Status s = plan_pool(model, limits, plan); !s.ok()) return to_c(s);
    const std::uint64_t wanted = kPoolBytes + plan.arena_bytes;
    if (!arena) arena_bytes = 0;
    if (arena_bytes < wanted) return to_c({Code::arena_too_small, "arena bytes at least", wanted, arena_bytes});
    const std::span<std::byte> bytes{static_cast<std::byte*>(arena), arena_bytes};
    CachePool made;
    if (Status s = make_pool(*model->model, plan.limits, bytes.subspan(kPoolBytes), made); !s.ok()) return to_c(s);
    *pool = new (arena) fovea_pool{made};
    return success();
}

uint32_t fovea_free_pages(const fovea_pool* pool) { return pool ? pool->pool.n_free_pages() : 0; }

uint32_t fovea_free_states(const fovea_pool* pool) { return pool ? pool->pool.n_free_states() : 0; }

uint32_t fovea_free_sequences(const fovea_pool* pool) { return pool ? pool->pool.n_free_sequences() : 0; }

fovea_status fovea_make_cache(fovea_pool* pool, fovea_cache* cache) {
    if (!pool) return refuse_null("pool: NULL");
    Cache made;
    if (Status s = make_cache(pool->pool, made); !s.ok()) return to_c(s);
    *cache = to_c(made);
    return success();
}

fovea_status fovea_fork_cache(const fovea_cache* from, fovea_cache* to) {
    Cache made;
    if (Status s = fork_cache(from_c(from), made); !s.ok()) return to_c(s);
    *to = to_c(made);
    return success();
}

fovea_status fovea_end_cache(const fovea_cache* cache) {
    Cache own = from_c(cache);
    return to_c(end_cache(own));
}

fovea_status fovea_rewind_cache(const fovea_cache* cache, uint32_t kv_len, uint32_t* reached) {
    Cache own = from_c(cache);
    return to_c(rewind(own, kv_len, reached));
}

fovea_status fovea_mark_cache(const fovea_cache* cache) {
    Cache own = from_c(cache);
    return to_c(mark(own));
}

fovea_status fovea_unmark_cache(const fovea_cache* cache, uint32_t kv_len) {
    Cache own = from_c(cache);
    return to_c(unmark(own, kv_len));
}

uint32_t fovea_cache_reach(const fovea_cache* cache, uint32_t kv_len) { return from_c(cache).reach(kv_len); }

uint32_t fovea_cache_kv_len(const fovea_cache* cache) { return from_c(cache).kv_len(); }

uint32_t fovea_cache_max_kv_len(const fovea_cache* cache) { return from_c(cache).max_kv_len(); }

uint32_t fovea_cache_pages(const fovea_cache* cache) { return from_c(cache).n_pages(); }

uint64_t fovea_cache_bytes(const fovea_cache* cache) { return cache_bytes(from_c(cache)); }

fovea_status fovea_save_cache(const fovea_cache* cache, void* out, size_t capacity, size_t* written) {
    return to_c(save_cache(from_c(cache), {static_cast<std::byte*>(out), capacity}, *written));
}

fovea_status fovea_restore_cache(const fovea_cache* cache, const void* saved, size_t saved_bytes) {
    Cache own = from_c(cache);
    return to_c(restore_cache(own, {static_cast<const std::byte*>(saved), saved_bytes}));
}

fovea_status fovea_copy_cache(const fovea_cache* from, const fovea_cache* to) {
    Cache own = from_c(to);
    return to_c(copy_cache(from_c(from), own));
}
