// What lies at the start of a workspace's arena.
#pragma once
#include "engine/format/format.h"
#include "engine/kernels/kernels.h"
#include "engine/model/kind.h"
#include "engine/model/layers.h"
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

inline constexpr std::uint64_t kWorkspaceStateBytes = 3840;

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
    const Remote* remote = nullptr;             // what shares products with others; null: nothing
    std::uint32_t n_adapters = 0;               // in use, see AdapterUse
    bool fetches_to_second_level = false;       // this CPU, see CpuFeatures
    bool cancelled[2] = {};                     // what member 0 saw of it at two phases' ends, see Pass::meet
    StackTensors stacks[2];                     // by StackIndex

    [[nodiscard]] Layer* layers() const noexcept { return reinterpret_cast<Layer*>(arena + map.layers); }
    /// One layer's attention to the memory. Only where the decoder has some.
    [[nodiscard]] const AttentionTensors& cross(std::uint32_t layer) const noexcept {
        return reinterpret_cast<const AttentionTensors*>(arena + map.cross)[layer];
    }
    /// The maps of the last stack's head.
    [[nodiscard]] const HeadTensors* head_maps() const noexcept {
        return reinterpret_cast<const HeadTensors*>(arena + map.head);
    }
    /// Of each layer, the encoder's first; where any has experts.
    [[nodiscard]] ExpertTensors* experts() const noexcept {
        return reinterpret_cast<ExpertTensors*>(arena + map.experts);
    }
    /// The same behind the layers, where any has latent attention, or queries by way of a narrower row.
    [[nodiscard]] LatentTensors* latent() const noexcept {
        return reinterpret_cast<LatentTensors*>(layers() + model.config().encoder.n_layers +
                                                model.config().decoder.n_layers);
    }
    /// The same behind those, where any has column scales.
    [[nodiscard]] ColumnTensors* columns() const noexcept {
        const Config& config = model.config();
        const std::uint32_t n_layers = config.encoder.n_layers + config.decoder.n_layers;
        return reinterpret_cast<ColumnTensors*>(latent() + (is_latent(config) ? n_layers : 0));
    }
    /// The same behind those, where any has something of Part::layer_inputs.
    [[nodiscard]] InputTensors* inputs() const noexcept {
        const Config& config = model.config();
        const std::uint32_t n_layers = config.encoder.n_layers + config.decoder.n_layers;
        return reinterpret_cast<InputTensors*>(columns() + (has_columns(config) ? n_layers : 0));
    }
    /// Of the encoder behind those, where it hears.
    [[nodiscard]] SoundTensors* sound() const noexcept {
        const Config& config = model.config();
        const std::uint32_t n_layers = config.encoder.n_layers + config.decoder.n_layers;
        return reinterpret_cast<SoundTensors*>(inputs() + (has_layer_inputs(config) ? n_layers : 0));
    }
    /// Of each of the encoder's layers behind that, where any has disentangled positions.
    [[nodiscard]] DistanceTensors* distances() const noexcept {
        return reinterpret_cast<DistanceTensors*>(sound() + model.config().encoder.sound.is_speech());
    }
    /// Of adapter i in use, every layer's, the encoder's first.
    [[nodiscard]] AdapterTensors* adapter_layers(std::uint32_t i) const noexcept {
        const std::uint64_t n_layers = std::uint64_t{model.config().encoder.n_layers} + model.config().decoder.n_layers;
        return reinterpret_cast<AdapterTensors*>(arena + map.adapters + limits.max_adapters * kAdapterUseBytes) +
               i * n_layers;
    }
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
/// Whether the weights asked for have room for a call. Overflows nowhere: sizes are of rows that there are.
[[nodiscard]] Status check_weights(const WorkspaceState& w, std::uint64_t n_sequences, std::uint64_t n_queries,
                                   std::uint64_t n_keys) noexcept;

/// Whether it is a cache of the workspace's model, of a pool for memories or one for texts.
/// Errors: bad_argument, session_mismatch.
[[nodiscard]] Status check_cache(const WorkspaceState& w, const Cache& cache, bool memory) noexcept;

/// forward for steps whose number is known to fit; see fovea/workspace.h.
[[nodiscard]] Status run_steps(WorkspaceState& w, std::span<const Step> steps) noexcept;

struct WorkspaceAccess {
    [[nodiscard]] static WorkspaceState* state(const Workspace& workspace) noexcept { return workspace.state_; }
    static void set(Workspace& workspace, WorkspaceState* state) noexcept { workspace.state_ = state; }
};

}  // namespace fovea
