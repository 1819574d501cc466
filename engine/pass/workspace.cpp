// Carves a workspace's arena; runs a pass on its team.
#include "engine/pass/workspace.h"

#include <cstring>
#include <new>

#include "engine/model/arena.h"
#include "engine/pass/pass.h"
#include "fovea/remote.h"
#include "platform/float_env.h"

namespace fovea {
namespace {

/// Below this many multiplications by weights in a pass, waking the team costs more than it saves.
constexpr std::uint64_t kSerialMacs = 2'000'000;

struct Work {
    WorkspaceState& workspace;
    const PassInput& input;
    bool serial;
};

void work(void* context, std::uint32_t member) noexcept {
    const Work& w = *static_cast<const Work*>(context);
    // Not limits.n_threads: another thread than the workspace's maker may have fewer.
    Pass pass(w.input, w.workspace, member, !has(Part::teams) || w.serial ? 1 : team_size(*w.workspace.team));
    run_pass(pass);
}

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

std::uint32_t default_threads() noexcept {
    const std::uint32_t n = has_threads() ? fast_cores() : 1;
    return n < 1 ? 1 : n > kMaxThreads ? kMaxThreads : n;
}

Status run(WorkspaceState& workspace, const PassInput& input, std::uint64_t macs) noexcept {
    workspace.cancelled[0] = workspace.cancelled[1] = false;
    Work w{workspace, input, !has(Part::teams) || workspace.limits.n_threads == 1 || macs < kSerialMacs};
    if (has(Part::teams) && workspace.remote) workspace.remote->settle(workspace.remote->context);
    if (!has(Part::teams) || w.serial)
        work(&w, 0);
    else
        run_team(*workspace.team, work, &w);
    return workspace.cancelled[0] || workspace.cancelled[1] ? Status{Code::cancelled, "", 0, 0} : Status{};
}

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

StackIndex weights_stack(const WorkspaceState& w) noexcept {
    const Config& config = w.model.config();
    const bool both = config.encoder.n_layers && config.decoder.n_layers;
    return both && w.attention_capture.in_encoder ? StackIndex::encoder : last_stack(config);
}

Status capture_attention(Workspace& workspace, const AttentionWeights& weights) noexcept {
    if (!workspace.valid()) return {Code::bad_argument, "workspace: not made", 0, 0};
    if (!has(Part::attention_weights)) return {Code::unsupported, "attention weights: left out of this build", 0, 0};
    WorkspaceState& w = *WorkspaceAccess::state(workspace);
    const AttentionWeights before = w.attention_capture;
    w.attention_capture = weights;
    if (weights.out.empty()) return {};
    const Stack& stack = stack_of(w.model.config(), weights_stack(w));
    const bool has_layer = weights.layer < stack.n_layers;
    const Block& b = stack.block(has_layer ? weights.layer : 0);
    if (has_layer && b.n_heads && (!weights.cross || b.cross_attention)) return {};
    w.attention_capture = before;
    if (has_layer) return {Code::bad_argument, "layer: expected one that has this attention", 0, 0};
    return {Code::bad_argument, "layer at most", stack.n_layers - 1, weights.layer};
}

Status check_weights(const WorkspaceState& w, std::uint64_t n_sequences, std::uint64_t n_queries,
                     std::uint64_t n_keys) noexcept {
    const AttentionWeights& capture = w.attention_capture;
    if (!has(Part::attention_weights) || capture.out.empty()) return {};
    if (capture.n_queries < n_queries) return {Code::bad_shape, "queries in the weights", n_queries, capture.n_queries};
    if (capture.n_keys < n_keys) return {Code::bad_shape, "keys in the weights", n_keys, capture.n_keys};
    const std::uint64_t n_heads = stack_of(w.model.config(), weights_stack(w)).block(capture.layer).n_heads;
    const std::uint64_t n_matrices = n_sequences * (capture.per_head ? n_heads : 1);
    const std::uint64_t size = std::uint64_t{capture.n_queries} * capture.n_keys;  // below 2^64, as both are below 2^32
    if (size > capture.out.size() / n_matrices)
        return {Code::bad_shape, "weights", n_matrices * size, capture.out.size()};
    return {};
}

void set_trace(Workspace& workspace, const Trace& trace) noexcept {
    if (workspace.valid()) WorkspaceAccess::state(workspace)->trace = trace;
}

void set_cancel(Workspace& workspace, const std::atomic<bool>* flag) noexcept {
    if (workspace.valid()) WorkspaceAccess::state(workspace)->cancel = flag;
}

}  // namespace fovea
