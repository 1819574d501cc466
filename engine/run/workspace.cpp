// Carves a workspace's arena.
#include <cstring>
#include <new>

#include "engine/model/arena.h"
#include "engine/run/plan.h"
#include "engine/run/session.h"
#include "platform/features.h"
#include "platform/team.h"

namespace fovea {
namespace {

/// Whether products of so many rows as a pass may have gain by tiles: those with q2_k take longer.
bool gains_by_tiles(const Model& model, const Limits& limits) noexcept {
    if (!kMayHaveTiles || limits.max_batch <= kFewRows) return false;
    bool gains = false;
    for (const TensorRecord& t : ModelAccess::tensors(model)) {
        const Type type = static_cast<Type>(t.type);
        if (type == Type::q2_k) return false;
        gains = gains || is_quantized(type);
    }
    return gains;
}

}  // namespace

Status start_workspace(WorkspaceState* state, const Model& model, const Limits& limits, const ArenaMap& map,
                       std::byte* arena, const SessionOptions& options) noexcept {
    const Remote* remote = has(Part::teams) ? options.remote : nullptr;
    const Kernels* kernels = find_kernels(options.isa, gains_by_tiles(model, limits) && !remote);
    if (!kernels) return {Code::isa_unavailable, "instruction set of that name", 1, 0};
    if (kMayHaveTiles && kernels->tiles && remote)  // rows are packed for them in another way
        return {Code::unsupported, "remote: instruction sets with tiles", 0, 0};
    // Before the arena is touched: a session that is there already stays whole where this fails.
    if (!options.executor.run && !make_threads(limits.n_threads))
        return {Code::threads_unavailable, "threads", limits.n_threads, 1};
    const Model kept = model;  // which may lie in the arena, as that session's does

    // Padding of rows and caches is zero from here on: kernels write only what is real.
    std::memset(arena, 0, static_cast<std::size_t>(map.keys));
    new (state) WorkspaceState;
    state->model = kept;
    state->limits = limits;
    state->map = map;
    state->arena = arena;
    state->kernels = kernels;
    state->remote = remote;
    state->fetches_to_second_level = has(Part::teams) && detect_features().fetches_to_second_level;
    const std::uint32_t n_encoder = kept.config().encoder.n_layers;
    const auto cross = reads_memory(kept.config()) ? reinterpret_cast<AttentionTensors*>(arena + map.cross) : nullptr;
    state->stacks[0] = find_tensors(kept, StackIndex::encoder, state->layers(), nullptr);
    state->stacks[1] = find_tensors(kept, StackIndex::decoder, state->layers() + n_encoder, cross);
    state->stacks[1].first_layer = n_encoder;
    if (has(Part::experts) && map.n_experts) {
        find_experts(kept, StackIndex::encoder, state->experts(), state->stacks[0]);
        find_experts(kept, StackIndex::decoder, state->experts() + n_encoder, state->stacks[1]);
    }
    if (is_latent(kept.config())) {
        find_latent(kept, StackIndex::encoder, state->latent(), state->stacks[0]);
        find_latent(kept, StackIndex::decoder, state->latent() + n_encoder, state->stacks[1]);
    }
    if (has_columns(kept.config())) {
        find_columns(kept, StackIndex::encoder, state->columns());
        find_columns(kept, StackIndex::decoder, state->columns() + n_encoder);
    }
    if (has_layer_inputs(kept.config())) {
        find_inputs(kept, StackIndex::encoder, state->inputs(), state->stacks[0]);
        find_inputs(kept, StackIndex::decoder, state->inputs() + n_encoder, state->stacks[1]);
    }
    if (has(Part::vectors) && kept.config().encoder.sound.is_speech())
        find_sound(kept, state->sound(), state->stacks[0]);
    if (has_distances(kept.config())) find_distances(kept, state->distances(), state->stacks[0]);
    if (has(Part::vectors))
        find_head(kept, last_stack(kept.config()), reinterpret_cast<HeadTensors*>(arena + map.head));
    state->team = start_team(arena + map.team, limits.n_threads, options.executor.run, options.executor.context);
    return {};
}

Status make_workspace(const Model& model, const Limits& limits, std::span<std::byte> arena, Workspace& workspace,
                      const SessionOptions& options) noexcept {
    ArenaMap map{};
    Plan plan;
    if (Status status = lay_out(Planned::workspace, model.config(), limits, map, plan); !status.ok()) return status;
    if (Status status = check_arena(arena, plan.arena_bytes); !status.ok()) return status;
    auto* state = reinterpret_cast<WorkspaceState*>(arena.data());
    if (Status status = start_workspace(state, model, plan.limits, map, arena.data(), options); !status.ok())
        return status;
    WorkspaceAccess::set(workspace, state);
    return {};
}

}  // namespace fovea
