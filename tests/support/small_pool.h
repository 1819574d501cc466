// A workspace and a pool of caches, each in exactly the memory that its plan says: one byte less is refused.
#pragma once
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fovea/cache.h"
#include "fovea/plan.h"
#include "fovea/workspace.h"
#include "host/base/aligned_bytes.h"

namespace fovea::testing {

inline void require_code(const Status& status, Code wanted = Code::ok) {
    if (status.code != wanted) throw std::runtime_error(std::string("small pool: ") + StatusLine(status).c_str());
}

/// Bytes of a plan's part of that name; 0 if there is none.
inline std::uint64_t part_bytes(const auto& plan, std::string_view name) {
    for (std::uint32_t i = 0; i < plan.n_parts; ++i)
        if (plan.parts[i].name == name) return plan.parts[i].bytes;
    return 0;
}

struct SmallWorkspace {
    AlignedBytes arena;
    Workspace workspace;

    SmallWorkspace(const Model& model, const Limits& limits, const char* isa = nullptr) {
        Plan plan;
        require_code(make_workspace_plan(model.config(), limits, plan));
        arena.resize(plan.arena_bytes, std::byte{0xff});  // NaN
        const std::span<std::byte> all(arena);
        require_code(make_workspace(model, limits, all.first(all.size() - 1), workspace, isa), Code::arena_too_small);
        require_code(make_workspace(model, limits, all, workspace, isa));
    }
};

struct SmallPool {
    AlignedBytes arena;
    PoolPlan plan;
    CachePool pool;

    SmallPool(const Model& model, const PoolLimits& limits) {
        require_code(make_pool_plan(model.config(), limits, plan));
        arena.resize(plan.arena_bytes, std::byte{0xff});
        const std::span<std::byte> all(arena);
        require_code(make_pool(model, limits, all.first(all.size() - 1), pool), Code::arena_too_small);
        require_code(make_pool(model, limits, all, pool));
    }
    Cache make() {
        Cache cache;
        require_code(make_cache(pool, cache));
        return cache;
    }
};

/// Both.
struct SmallSteps : SmallWorkspace, SmallPool {
    SmallSteps(const Model& model, const Limits& limits, const PoolLimits& caches, const char* isa = nullptr)
        : SmallWorkspace(model, limits, isa), SmallPool(model, caches) {}
};

}  // namespace fovea::testing
