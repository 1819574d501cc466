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

/// The tensors before the encoder's layers, where it hears, of the decoder's attention to a memory, and of the last stack's head.
void find_ends(WorkspaceState& w) noexcept {
    const Config& config = w.model.config();
    if (config.encoder.sound.is_speech())
        w.stacks[0].macs_per_row += find_to(w.sound(), {w.model, StackIndex::encoder}).macs();
    if (reads_memory(config)) w.stacks[1].macs_per_row += find_cross(w.model, w.cross());
    const StackIndex last = last_stack(config);
    for (std::uint32_t i = 0; i < stack_of(config, last).n_head_maps(); ++i) find_to(w.head() + i, {w.model, last, i});
}

/// Whether the plan is of the rank that computes.
[[nodiscard]] Status check_ranks(const Limits& limits, const Ranks* ranks) noexcept {
    const std::uint32_t planned = limits.n_ranks > 1 ? limits.n_ranks : 1, given = ranks ? ranks->n_ranks : 1;
    if (planned != given) return {Code::bad_argument, "ranks of the limits", given, planned};
    if (planned == 1) return {};
    if (ranks->rank != limits.rank) return {Code::bad_argument, "rank of the limits", ranks->rank, limits.rank};
    return {};
}

}  // namespace

Status start_workspace(WorkspaceState* state, const Model& model, const Limits& limits, const ArenaMap& map,
                       std::byte* arena, const SessionOptions& options) noexcept {
    if (kRanks)
        if (Status status = check_ranks(limits, options.ranks); !status.ok()) return status;
    const Kernels* kernels = find_kernels(options.isa, gains_by_tiles(model, limits));
    if (!kernels) return {Code::isa_unavailable, "instruction set of that name", 1, 0};
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
    if (kRanks && limits.n_ranks > 1) state->ranks = options.ranks;
    state->fetches_to_second_level = has(Part::teams) && detect_features().fetches_to_second_level;
    const std::uint32_t n_encoder = kept.config().encoder.n_layers;
    state->stacks[0] = find_stack(kept, StackIndex::encoder, state->layers());
    state->stacks[1] = find_stack(kept, StackIndex::decoder, state->layers() + n_encoder);
    if (has(Part::vectors)) find_ends(*state);
#define FOVEA_LAYER_PART(there, field, name, Tensors)                                         \
    if (there && n_layers_with<Tensors>(kept.config())) {                                     \
        find_layers(kept, StackIndex::encoder, state->field(), state->stacks[0]);             \
        find_layers(kept, StackIndex::decoder, state->field() + n_encoder, state->stacks[1]); \
    }
#include "engine/pass/parts.inc"
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
