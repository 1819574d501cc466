#include "host/translate/source_memory.h"

#include <algorithm>

#include "host/base/error.h"

namespace fovea {

bool writes_target(const Config& config) noexcept {
    const Stack &encoder = config.encoder, &decoder = config.decoder;
    bool reads = false;
    for (std::uint32_t i = 0; i < decoder.n_blocks; ++i) reads |= decoder.blocks[i].cross_attention;
    return encoder.n_layers && encoder.vocab_size && decoder.n_layers && decoder.vocab_size &&
           decoder.has_output_head && reads;
}

SourceMemory::SourceMemory(const Model& model, const std::string& name, const TargetLimits& limits,
                           std::uint32_t n_rows, std::uint32_t n_steps)
    : name_(name) {
    const Config& config = model.config();
    if (!writes_target(config))
        throw host::Error(name + ": model: expected an encoder with a decoder of texts, got another");
    max_source_ = limits.max_source ? limits.max_source : config.encoder.max_positions;
    max_positions_ = limits.max_target ? limits.max_target : config.decoder.max_positions;
    Plan plan;
    require(make_workspace_plan(config,
                                {.max_kv_len = max_positions_,
                                 .max_batch = std::max(max_source_, n_rows),
                                 .n_threads = limits.n_threads,
                                 .kv_type = limits.kv_type,
                                 .max_sequences = n_steps,
                                 .max_key_rows = max_source_},
                                plan),
            name);
    PoolPlan memory;
    require(make_pool_plan(config, {.max_kv_len = max_source_, .kv_type = limits.kv_type, .memory = true}, memory),
            name);
    workspace_arena_ = Arena(plan.arena_bytes), memory_arena_ = Arena(memory.arena_bytes);
    n_bytes_ = plan.arena_bytes + memory.arena_bytes;
    require(make_workspace(model, plan.limits, workspace_arena_, workspace_, limits.isa), name);
    if (limits.cancel) set_cancel(workspace_, limits.cancel);
    require(make_pool(model, memory.limits, memory_arena_, pool_), name);
    require(make_cache(pool_, memory_), name);
}

void SourceMemory::read(std::span<const Token> source) {
    if (source.empty()) throw host::ArgumentError("prompt: expected 1 token or more, got none");
    if (source.size() > max_source_)
        throw host::Error("prompt: expected at most " + std::to_string(max_source_) +
                          " tokens, as many as the model reads at once, got " + std::to_string(source.size()));
    require(rewind(memory_, 0), name_);
    const auto n_rows = static_cast<std::uint32_t>(source.size());
    require(cache_memory(workspace_, {.source = {.ids = source, .lengths = {&n_rows, 1}}}, {&memory_, 1}), name_);
}

}  // namespace fovea
