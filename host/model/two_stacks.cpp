#include "host/model/two_stacks.h"

#include <algorithm>

#include "host/base/error.h"

namespace fovea {

TwoStackPlan plan_two_stacks(const host::Opened& opened, const TwoStackLimits& limits) {
    const Config& config = opened.config();
    const std::string& name = opened.name;
    TwoStackPlan plan;
    require(make_pool_plan(config,
                           {.max_kv_len = limits.max_source ? limits.max_source : config.encoder.max_positions,
                            .max_sequences = limits.n_sources,
                            .kv_type = limits.kv_type,
                            .memory = true},
                           plan.memories),
            name);
    require(make_pool_plan(
                config, {.max_kv_len = limits.max_target, .max_sequences = limits.n_texts, .kv_type = limits.kv_type},
                plan.texts),
            name);
    const std::uint32_t max_source = plan.memories.limits.max_kv_len;
    Limits passes{.max_kv_len = plan.texts.limits.max_kv_len,
                  .max_batch = std::max(max_source, limits.n_rows),
                  .n_threads = limits.n_threads,
                  .kv_type = limits.kv_type,
                  .max_sequences = std::max(limits.n_sources, limits.n_texts),
                  .max_key_rows = max_source};
    opened.plan_adapters(passes);
    require(make_workspace_plan(config, passes, plan.workspace), name);
    return plan;
}

TwoStacks::TwoStacks(const host::Opened& opened, const TwoStackPlan& plan, const char* isa,
                     const std::atomic<bool>* cancel)
    : opened_(opened),
      workspace_(start_workspace(opened, plan.workspace.limits, {.isa = isa})),
      memories_(start_pool(opened, plan.memories.limits)),
      texts_(start_pool(opened, plan.texts.limits)) {
    if (cancel) set_cancel(*workspace_, cancel);
}

}  // namespace fovea
