// What a workspace is asked beside a pass, and a pass on its team.
#include "engine/pass/workspace.h"

#include "engine/pass/pass.h"
#include "engine/pass/ranks.h"

namespace fovea {
namespace {

/// Below this many multiplications by weights in a pass, waking the team costs more than it saves.
constexpr std::uint64_t kSerialMacs = 2'000'000;

struct TeamWork {
    WorkspaceState& workspace;
    const PassInput& input;
    bool serial;
};

void work(void* context, std::uint32_t member) noexcept {
    const TeamWork& w = *static_cast<const TeamWork*>(context);
    // Not limits.n_threads: another thread than the workspace's maker may have fewer.
    Pass pass(w.input, w.workspace, member, !has(Part::teams) || w.serial ? 1 : team_size(*w.workspace.team));
    run_pass(pass);
}

}  // namespace

std::uint32_t default_threads() noexcept {
    const std::uint32_t n = has_threads() ? fast_cores() : 1;
    return n < 1 ? 1 : n > kMaxThreads ? kMaxThreads : n;
}

void end_threads() noexcept { drop_threads(); }

Status run(WorkspaceState& workspace, const PassInput& input, std::uint64_t macs) noexcept {
    workspace.cancelled[0] = workspace.cancelled[1] = false;
    if (workspace.by_ranks())
        if (Status status = start_ranks(workspace, input); !status.ok()) return status;
    TeamWork w{workspace, input, !has(Part::teams) || workspace.limits.n_threads == 1 || macs < kSerialMacs};
    if (!has(Part::teams) || w.serial)
        work(&w, 0);
    else
        run_team(*workspace.team, work, &w);
    if (workspace.by_ranks() && workspace.ranks_end != RanksEnd::none) return end_of_ranks(workspace);
    return workspace.cancelled[0] || workspace.cancelled[1] ? Status{Code::cancelled, "", 0, 0} : Status{};
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
    if (w.by_ranks() && !weights.out.empty())
        return {Code::unsupported, "attention weights of several ranks", 1, w.limits.n_ranks};
    const AttentionWeights before = w.attention_capture;
    w.attention_capture = weights;
    if (weights.out.empty()) return {};
    const Stack& stack = stack_of(w.model.config(), weights_stack(w));
    const bool has_layer = weights.layer < stack.n_layers;
    const Block& b = stack.block(has_layer ? weights.layer : 0);
    if (has_layer && b.attention.n_heads && (!weights.cross || b.attention.cross_attention)) return {};
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
    const std::uint64_t n_heads = stack_of(w.model.config(), weights_stack(w)).block(capture.layer).attention.n_heads;
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
