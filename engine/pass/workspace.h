// What lies at the start of a workspace's arena.
#pragma once
#include "engine/format/format.h"
#include "engine/kernels/kernels.h"
#include "engine/model/kind.h"
#include "engine/model/layers.h"
#include "engine/model/ranks.h"
#include "engine/pass/arena_map.h"
#include "fovea/workspace.h"
#include "platform/team.h"

namespace fovea {

/// One sequence as an attention sees it: where its rows are, and its keys and values.
struct Sequence {
    std::uint32_t row = 0, n_rows = 0;    // queries, among the pass's rows
    std::uint32_t kv_row = 0, n_new = 0;  // the rows that new keys and values come from
    std::uint32_t pos = 0;                // keys and values before those
    std::uint32_t n_keys = 0;             // positions that may be seen; appended ones are not counted
    std::uint32_t cache_start = 0;        // where its positions start in its page: a multiple of 16
    std::int32_t causal_offset = 0;       // with a causal mask query i sees the positions below causal_offset + i + 1

    /// Keys and values there are, without appended ones.
    [[nodiscard]] std::uint32_t n_given() const noexcept { return pos + n_new; }
};
static_assert(sizeof(Sequence) == 32);

inline constexpr std::uint64_t kWorkspaceStateBytes = round_up(kModelBytes + sizeof(ArenaMap) + 744, kArenaAlignment);

/// What else than the caller's flag ends a pass of several ranks: they were not asked for the same pass, or cannot be reached.
enum class RanksEnd : std::uint8_t { none, differ, lost };

struct WorkspaceState {
    Model model;
    Limits limits;
    ArenaMap map{};
    std::byte* arena = nullptr;
    const Kernels* kernels = nullptr;
    Team* team = nullptr;
    Trace trace;
    AttentionWeights attention_capture;         // see capture_attention
    const std::atomic<bool>* cancel = nullptr;  // the caller's flag, see set_cancel
    const Ranks* ranks = nullptr;               // where the limits have several, see by_ranks
    std::uint32_t n_adapters = 0;               // in use, see AdapterUse
    bool fetches_to_second_level = false;       // this CPU, see CpuFeatures
    bool cancelled[2] = {};                     // what member 0 saw of it at two phases' ends, see Pass::meet
    [[no_unique_address]] std::conditional_t<kRanks, RanksEnd, LeftOut<RanksEnd>> ranks_end{};
    StackTensors stacks[2];  // by StackIndex

    /// Whether other ranks compute a share of its passes, or other layers.
    [[nodiscard]] bool by_ranks() const noexcept { return kRanks && limits.n_ranks > 1; }

    // layers(), latent() and so on: the tensors of parts.inc's parts.
#define FOVEA_TENSOR_PART(there, field, name, Tensors, n) \
    [[nodiscard]] Tensors* field() const noexcept { return reinterpret_cast<Tensors*>(arena + map.field); }
#include "engine/pass/parts.inc"
    [[nodiscard]] Sequence* sequences() const noexcept { return reinterpret_cast<Sequence*>(arena + map.sequences); }
    [[nodiscard]] float* floats(ArenaOffset offset) const noexcept { return reinterpret_cast<float*>(arena + offset); }
    [[nodiscard]] const std::byte* weights(std::uint64_t offset) const noexcept {
        return model.bytes().data() + offset;
    }
    /// Null where the model has no such vector.
    [[nodiscard]] const float* vector(VectorOffset offset) const noexcept {
        return offset ? reinterpret_cast<const float*>(weights(offset)) : nullptr;
    }
};
static_assert(sizeof(WorkspaceState) <= kWorkspaceStateBytes);

/// The stack whose layers a request for weights counts.
[[nodiscard]] StackIndex weights_stack(const WorkspaceState& w) noexcept;
/// Checks that the caller's buffer holds the requested attention weights of a call. The sizes cannot overflow: they
/// count rows in memory.
[[nodiscard]] Status check_weights(const WorkspaceState& w, std::uint64_t n_sequences, std::uint64_t n_queries,
                                   std::uint64_t n_keys) noexcept;

/// Whether it is a cache of the workspace's model, of a pool for memories or one for texts.
/// Errors: bad_argument, session_mismatch.
[[nodiscard]] Status check_cache(const WorkspaceState& w, const Cache& cache, bool memory) noexcept;

/// The steps of a call where the caller has them: those of the C interface are read one by one, so that no arena has room for them.
struct StepList {
    const void* steps;
    std::size_t n, stride = sizeof(Step);
    Step (*read)(const void* step) noexcept = nullptr;  // null: they are Steps

    [[nodiscard, gnu::noinline]] Step operator[](std::size_t i) const noexcept {
        const auto* at = static_cast<const std::byte*>(steps) + i * stride;
        return read ? read(at) : *reinterpret_cast<const Step*>(at);
    }
};

/// See forward of fovea/workspace.h.
[[nodiscard]] Status run_steps(WorkspaceState& w, const StepList& steps) noexcept;

struct WorkspaceAccess {
    [[nodiscard]] static WorkspaceState* state(const Workspace& workspace) noexcept { return workspace.state_; }
    static void set(Workspace& workspace, WorkspaceState* state) noexcept { workspace.state_ = state; }
};

}  // namespace fovea
