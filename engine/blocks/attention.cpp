// Attention's second half: score, mask, softmax, weigh, merge. Scores never leave the kernel: a task goes over the keys
// in chunks of 512 positions with a running maximum and sum (Milakov and Gimelshein 2018), and chunks are merged from
// left to right, whether one member computed them or several (Dao et al. 2022; Dao et al. 2023 for the split).
#include "engine/blocks/attention.h"

#include <cmath>

#include "engine/blocks/attention_task.h"
#include "engine/blocks/distances.h"
#include "engine/blocks/latent.h"
#include "engine/blocks/output_gate.h"
#include "engine/stream/stream.h"

namespace fovea {
namespace {

/// Attention's running state for up to kRowBlock rows, and where it is kept.
struct State {
    float* o;
    float* m;
    float* l;
    State(float* place, std::uint32_t n_rows, std::uint32_t value_stride) noexcept
        : o(place), m(place + std::uint64_t{n_rows} * value_stride), l(m + n_rows) {}
};

/// A call of the kernel for one chunk: the tiles that the task sees, wherever their pages are.
[[nodiscard]] Attend kernel_call(const Attention& a, const Task& task, const float* query, std::uint32_t chunk,
                                 const State& state) noexcept {
    const AttentionShape& b = a.shape();
    const std::uint32_t kv_head = task.head_of(0) / (b.n_heads / b.n_kv_heads);
    Attend call{.query = query,
                .n_rows = task.n_rows,
                .head_dim = b.head_dim,
                .value_head_dim = b.value_head_dim,
                .keys = {},
                .values = {},
                .value_stride = a.value_stride,
                .first = task.first,
                .last = task.last,
                .masks = task.masked ? task.masks[0] : nullptr,
                .slopes = has(Part::block_variants) && a.slopes ? task.slopes : nullptr,
                .positions = task.positions,
                .scale = b.softmax_scale != 0.0f ? b.softmax_scale : 1.0f / std::sqrt(static_cast<float>(b.head_dim)),
                .softcap = b.score_softcap,
                .chunk = chunk,
                .second_level = has(Part::teams) && a.pass.workspace.fetches_to_second_level,
                .m = state.m,
                .l = state.l,
                .o = state.o};
    const KvPages& pages = a.pages(task.sequence);
    const HeadPanels keys = pages.keys(a.block, a.pass.layer, kv_head),
                     values = pages.values(a.block, a.pass.layer, kv_head);
    const std::uint32_t chunk_start = chunk * kChunk, chunk_end = chunk_start + kChunk;
    const std::uint32_t begin = task.begin > chunk_start ? task.begin / kTile * kTile : chunk_start;
    const std::uint32_t end = task.end < chunk_end ? task.end : chunk_end;
    for (std::uint32_t pos = begin; pos < end; pos += kTile) {
        call.keys[pos / kTile % kChunkTiles] = pages.panel(keys, task.sequence.cache_start + pos);
        call.values[pos / kTile % kChunkTiles] = pages.panel(values, task.sequence.cache_start + pos);
    }
    return call;
}

/// One chunk of a task into `state`. `query` is the task's packed rows.
void attend_chunk(const Attention& a, const Task& task, const float* query, std::uint32_t chunk,
                  const State& state) noexcept {
    a.pass.workspace.kernels->of(a.pages(task.sequence).type).attend(kernel_call(a, task, query, chunk, state));
}

void pack_query(const Attention& a, const Task& task, float* query) noexcept {
    const Type type = a.pages(task.sequence).type;
    const std::uint32_t head_dim = a.shape().head_dim;
    const auto row = [&](std::uint32_t i) {
        return a.query.at(a.number(task.sequence), task.sequence.row, task.row_of(i), task.head_of(i));
    };
    const std::uint32_t in_run = task.run(0);
    const std::uint64_t stride = task.is_grouped() ? a.query.head_stride : a.query.row_stride;
    const Packing packing{type, task.n_rows, head_dim};
    if (in_run == task.n_rows) return a.pass.pack(packing, row(0), stride, {0, task.n_rows}, query);
    // Several rows' heads lie at no one stride: they are brought together first, behind the packed ones.
    float* together = query + query_floats(head_dim);
    for (std::uint32_t i = 0; i < task.n_rows; ++i)
        for (std::uint32_t j = 0; j < head_dim; ++j) together[i * std::uint64_t{head_dim} + j] = row(i)[j];
    a.pass.pack(packing, together, head_dim, {0, task.n_rows}, query);
}

void merge(const Attention& a, const Task& task, const State& into, const State& chunk) noexcept {
    a.pass.workspace.kernels->floats.attend_merge(
        {task.n_rows, a.value_stride, into.m, into.l, into.o, chunk.m, chunk.l, chunk.o});
}

/// Writes or, for a mean, adds the weights of a task whose state is complete. The last head of a mean divides.
void write_weights(const Attention& a, const Task& task, const float* query, const State& state) noexcept {
    const AttentionWeights& w = *a.weights;
    const std::uint32_t n_heads = a.shape().n_heads, end = a.n_cached(task.sequence);
    const TypeKernels& kernels = a.pass.workspace.kernels->of(a.pages(task.sequence).type);
    alignas(64) float tile[kRowBlock * kTile];
    for (std::uint64_t at = 0; at < w.n_keys; at += kTile) {
        const auto begin = static_cast<std::uint32_t>(at);
        if (begin < end)
            kernels.attend_weights(kernel_call(a, task, query, begin / kChunk, state), begin / kTile, tile);
        const std::uint32_t n = w.n_keys - begin < kTile ? w.n_keys - begin : kTile;
        const std::uint32_t seen = end < begin ? 0 : end - begin, n_seen = seen < n ? seen : n;
        for (std::uint32_t i = 0; i < task.n_rows; ++i) {
            const std::uint32_t of = task.head_of(i);
            const std::uint64_t matrix = a.number(task.sequence) * (w.per_head ? n_heads : 1) + (w.per_head ? of : 0);
            const std::uint32_t first = a.pass.positions_go_on ? a.pass.self[a.number(task.sequence)].pos : 0;
            const std::uint64_t row = std::uint64_t{first} + task.row_of(i);
            float* out = w.out.data() + (matrix * w.n_queries + row) * w.n_keys + begin;
            const float* weights = tile + i * kTile;
            if (!w.per_head && of > 0)
                for (std::uint32_t j = 0; j < n_seen; ++j) out[j] += weights[j];
            else
                for (std::uint32_t j = 0; j < n_seen; ++j) out[j] = weights[j];
            for (std::uint32_t j = n_seen; j < n; ++j) out[j] = 0.0f;
            if (!w.per_head && of + 1 == n_heads)
                for (std::uint32_t j = 0; j < n_seen; ++j) out[j] /= static_cast<float>(n_heads);
        }
    }
}

/// The learned score of a key whose value is zero (gpt-oss; Xiao et al. 2024): one more chunk to merge. Its state has room
/// behind a task's query and first state.
void merge_sinks(const Attention& a, const Task& task, const State& state) noexcept {
    const float* scores = a.pass.workspace.vector(a.tensors.sinks);
    const State sink(a.pass.scratch() + query_floats(a.shape().head_dim) + state_floats(a.value_stride), task.n_rows,
                     a.value_stride);
    for (std::uint32_t i = 0; i < task.n_rows; ++i) {
        sink.m[i] = scores[task.head_of(i)];
        sink.l[i] = 1.0f;
        for (std::uint32_t j = 0; j < a.value_stride; ++j) sink.o[std::uint64_t{i} * a.value_stride + j] = 0.0f;
    }
    merge(a, task, state, sink);
}

void finish(const Attention& a, const Task& task, const float* query, const State& state) noexcept {
    if (has(Part::block_variants) && a.tensors.sinks) merge_sinks(a, task, state);
    const auto stride = static_cast<std::size_t>(task.is_grouped() ? a.out.head_stride : a.out.row_stride);
    for (std::uint32_t i = 0, n; i < task.n_rows; i += n) {
        n = task.run(i);
        a.pass.workspace.kernels->floats.attend_finish(
            state.l + i, state.o + std::uint64_t{i} * a.value_stride, n, a.shape().value_head_dim, a.value_stride,
            a.out.at(a.number(task.sequence), task.sequence.row, task.row_of(i), task.head_of(i)), stride);
    }
    if (has(Part::attention_weights) && a.weights) write_weights(a, task, query, state);
}

/// A whole task by one member.
void attend_task(const Attention& a, const Task& task) noexcept {
    float* query = a.pass.scratch();
    float* states = query + query_floats(a.shape().head_dim);
    const State state(states, task.n_rows, a.value_stride);
    const State next(states + state_floats(a.value_stride), task.n_rows, a.value_stride);
    if (has(Part::vectors) && task.disentangled) Distances::score(a, task);
    pack_query(a, task, query);
    attend_chunk(a, task, query, task.chunk_begin(), state);
    for (std::uint32_t chunk = task.chunk_begin() + 1; chunk < task.chunk_end(); ++chunk) {
        attend_chunk(a, task, query, chunk, next);
        merge(a, task, state, next);
    }
    finish(a, task, query, state);
}

/// A way through the tasks of all sequences, in order.
class TaskWalk {
public:
    explicit TaskWalk(const Attention& a) noexcept : a_(a), sequence_(a.sequences.data()), tasks_(a, *sequence_) {}

    /// Pieces of work there are.
    [[nodiscard]] std::uint32_t n_pieces() const noexcept {
        std::uint32_t n = 0;
        for (const Sequence& s : a_.sequences) n += Tasks(a_, s).n_pieces();
        return n;
    }
    /// Goes on to piece `number`, not below where it is.
    void go_to(std::uint32_t number) noexcept {
        for (; number >= first_ + tasks_.n_pieces(); tasks_ = Tasks(a_, *++sequence_)) first_ += tasks_.n_pieces();
        piece_ = number - first_;
    }
    [[nodiscard]] std::uint32_t together() const noexcept { return tasks_.together(); }
    [[nodiscard]] Task task(std::uint32_t of_together = 0) const noexcept {
        return tasks_.task(a_, *sequence_, piece_, of_together);
    }

private:
    const Attention& a_;
    const Sequence* sequence_;
    Tasks tasks_;
    std::uint32_t first_ = 0, piece_ = 0;  // the sequence's first piece; the one there, counted from it
};

/// Each task by one member. A mean of weights is summed in the order of the heads: then a block's heads stay with one.
void attend_whole(const Attention& a, const char* name, const Output& output) noexcept {
    TaskWalk walk(a);
    const std::uint32_t n = walk.n_pieces();
    a.pass.phase(name, output, as_they_come(n, n), [&](Pass::Share mine) {
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
            walk.go_to(i);
            for (std::uint32_t j = 0; j < walk.together(); ++j) attend_task(a, walk.task(j));
        }
    });
}

/// A way through the chunks of all tasks, in order: the task it is at, and what lies before it.
struct ChunkWalk {
    TaskWalk tasks;
    std::uint32_t n_tasks = 0, n_chunks = 0;  // before the task
    std::uint64_t n_rows = 0;                 // of partial states before it

    explicit ChunkWalk(const Attention& a) noexcept : tasks(a) {}

    void next(const Task& task, std::uint32_t n_all) noexcept {
        n_chunks += task.n_chunks();
        n_rows += std::uint64_t{task.n_rows} * task.n_chunks();
        if (++n_tasks < n_all) tasks.go_to(n_tasks);
    }
    /// Goes on to the task that has chunk `number`; whether that is another one.
    bool go_to_chunk(std::uint32_t number, std::uint32_t n_all) noexcept {
        for (bool moved = false;; moved = true) {
            const Task task = tasks.task();
            if (number < n_chunks + task.n_chunks()) return moved;
            next(task, n_all);
        }
    }
    /// A chunk's state in `partials`: [task][chunk][row].
    [[nodiscard]] State state(const Attention& a, const Task& task, std::uint32_t chunk) const noexcept {
        const WorkspaceState& w = a.pass.workspace;
        const std::uint64_t at = n_rows + std::uint64_t{chunk - task.chunk_begin()} * task.n_rows;
        return State(w.floats(w.map.partials) + at * w.map.partial_stride, task.n_rows, a.value_stride);
    }
};

/// Whether every chunk is to be a piece of work of its own: where there are several members and a long cache, and the
/// partial states of all have room.
[[nodiscard]] bool splits(const Attention& a) noexcept {
    const std::uint64_t room = a.pass.workspace.map.n_partials;
    if (a.pass.alone() || !room || (a.weights && !a.weights->per_head)) return false;
    if (a.disentangled()) return false;  // a task's scores by distance are made once, for all its chunks
    std::uint64_t n_partials = 0;
    bool is_long = false;
    for (const Sequence& s : a.sequences) {
        const std::uint64_t n_chunks = (std::uint64_t{a.n_cached(s)} + kChunk - 1) / kChunk;
        n_partials += n_chunks * s.n_rows * a.shape().n_heads;
        is_long |= n_chunks > 1;
        if (n_partials > room) return false;
    }
    return is_long;
}

/// A task's chunks become one, from left to right.
void merge_chunks(const Attention& a, const Task& task, const ChunkWalk& walk) noexcept {
    const State state = walk.state(a, task, task.chunk_begin());
    for (std::uint32_t chunk = task.chunk_begin() + 1; chunk < task.chunk_end(); ++chunk)
        merge(a, task, state, walk.state(a, task, chunk));
    if (a.weights) pack_query(a, task, a.pass.scratch());
    finish(a, task, a.pass.scratch(), state);
}

/// Chunks as pieces of work, whose states go to `partials`, to be merged in order once all are there.
void attend_chunks(const Attention& a, const char* name, const Output& output) noexcept {
    Pass& pass = a.pass;
    ChunkWalk all(a), walk(a), merged(a);
    const std::uint32_t n = all.tasks.n_pieces();
    while (all.n_tasks < n) all.next(all.tasks.task(), n);
    bool packed = false;  // the query of the task that `walk` is at
    pass.phase("chunks", {}, as_they_come(all.n_chunks, all.n_chunks), [&](Pass::Share mine) {
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
            if (walk.go_to_chunk(i, n)) packed = false;
            const Task task = walk.tasks.task();
            if (!packed) pack_query(a, task, pass.scratch());
            packed = true;
            const std::uint32_t chunk = task.chunk_begin() + i - walk.n_chunks;
            attend_chunk(a, task, pass.scratch(), chunk, walk.state(a, task, chunk));
        }
    });
    pass.phase(name, output, in_parts(n), [&](Pass::Share mine) {
        for (std::uint32_t i = 0; i < mine.end; ++i) {
            const Task task = merged.tasks.task();
            if (i >= mine.begin) merge_chunks(a, task, merged);
            merged.next(task, n);
        }
    });
}

[[nodiscard]] Input memory_of(const Pass& pass) noexcept {
    return {pass.memory, pass.n_memory, pass.stack().d_model, {}};
}

}  // namespace

Attention::Attention(Pass& p, const Layer& l, const Block& b, Reads r) noexcept
    : pass(p),
      layer(l),
      tensors(is_memory(r) ? p.workspace.cross()[p.layer] : l.self),
      block(b),
      reads(r),
      rank_heads(b.attention, p.rank()) {
    const AttentionShape& heads = b.attention;
    const bool memory = is_memory(reads);
    sequences = memory ? pass.cross : pass.self;
    masks = memory ? pass.cross_masks : pass.self_masks;
    causal = (heads.causal && !memory) || (masks && masks->causal);
    n_appended = has(Part::vectors) ? heads.bias_kv + heads.zero_attn : 0;
    const WorkspaceState& w = pass.workspace;
    if (has(Part::block_variants) && !memory && heads.position == Position::alibi)
        slopes = w.vector(pass.tensors().alibi_slopes[layer.block]);
    const AttentionWeights& capture = w.attention_capture;
    if (has(Part::attention_weights) && !capture.out.empty() && capture.layer == pass.layer &&
        capture.cross == memory && weights_stack(w) == pass.index)
        weights = &capture;
    key_at = round_up(std::uint64_t{heads.n_heads} * heads.head_dim, kLanes);
    value_at = key_at + round_up(std::uint64_t{heads.n_kv_heads} * heads.head_dim, kLanes);
    value_stride = static_cast<std::uint32_t>(round_up(heads.value_head_dim, kLanes));
    if (has(Part::vectors) && heads.no_projections) {
        const auto given = [](const Heads& of) -> HeadRows<const float> {
            return {of.data.data(), of.strides.row, of.strides.head, true, of.strides.sequence};
        };
        const AttendInput& in = *pass.heads;
        query = given(in.query), key = given(in.key), value = given(in.value);
        past_key = given(in.past_key), past_value = given(in.past_value);
        out = {pass.out.data, in.out_strides.row, in.out_strides.head, true, in.out_strides.sequence};
    } else {
        const Rows rows = pass.projected(), merged = heads.has_output_map ? pass.attended() : pass.out;
        query = {rows.data, rows.stride, heads.head_dim};
        key = {rows.data + key_at, rows.stride, heads.head_dim};
        value = {rows.data + value_at, rows.stride, heads.value_head_dim};
        if (is_latent()) value = {rows.data + key_at + heads.rotary_dim, rows.stride, 0};
        out = {merged.data, merged.stride, heads.value_head_dim};
    }
}

void attend_sequences(const Attention& a) noexcept {
    const char* name = is_memory(a.reads) ? "attended memory" : "attended";
    const Pass& pass = a.pass;
    const std::uint32_t width = a.shape().value_head_dim;
    const Output output = pass.heads ? Output{} : pass.all(pass.attended(), a.shape().n_heads * width);
    if (!pass.by_ranks()) {
        has(Part::teams) && splits(a) ? attend_chunks(a, name, output) : attend_whole(a, name, output);
        return;
    }
    splits(a) ? attend_chunks(a, name, {}) : attend_whole(a, name, {});
    // Each rank maps its own heads' latent values, which are gathered then.
    if (!a.is_latent()) a.pass.gather_heads(name, output, pass.attended(), a.shape(), width);
}

void compute_attention(Pass& pass, const Layer& layer, const Block& b, Reads reads) noexcept {
    const Attention a(pass, layer, b, reads);
    const bool memory = is_memory(reads);
    const bool joined = has(Part::layer_inputs) && b.inputs.joins_embedding;
    const Input rows{joined ? pass.inner() : pass.hidden(), pass.seq_len, attention_cols(pass.stack(), b),
                     part_norms(b, a.tensors).before};
    if (memory && a.keeps_memory()) {
        project(a, {rows, {}, {}});
    } else {
        const Input source = memory ? memory_of(pass) : a.makes_keys() ? rows : Input{};
        project(a, {rows, source, source});
        rotate_and_cache(a);
    }
    if (has(Part::states) && !memory && b.recurrent && !joined) add_recurrent(pass, b);
    attend_sequences(a);
    // Latent values have their heads' maps before them.
    if (has(Part::states) && !memory && !a.is_latent() && b.attention.output_gate != OutputGate::none)
        gate_output(pass, layer, b, pass.attended());
}

void cache_memory(Pass& pass, const Layer& layer, const Block& b) noexcept {
    const Attention a(pass, layer, b, Reads::memory);
    const Input memory = memory_of(pass);
    project(a, {{}, memory, memory});
    rotate_and_cache(a);
}

void add_attention(Pass& pass, const Layer& layer, const Block& b, Reads reads) noexcept {
    const bool memory = is_memory(reads);
    const AttentionTensors& t = memory ? pass.workspace.cross()[pass.layer] : layer.self;
    const Linear output{.matrix = t.output,
                        .bias = t.output_bias,
                        .out = pass.hidden(),
                        .n_stored = t.output.n_rows,
                        .epilogue = Epilogue::add,
                        .adapted = memory ? Adapted::none : Adapted::attention_output};
    const bool latent = has(Part::latent) && !memory && b.latent.query_dim;
    const std::uint32_t merged = b.attention.n_heads * merged_head_dim(b);
    const Rows made = latent ? Latent::map_values(pass, b) : pass.attended();
    if (has(Part::states) && latent && b.attention.output_gate != OutputGate::none) gate_output(pass, layer, b, made);
    const VectorOffset columns = pass.columns(memory ? &ColumnTensors::cross_output : &ColumnTensors::attention_output);
    const PartNorms norms = part_norms(b, t);
    if (has(Part::block_variants)) norm_rows(pass, "attended norm", pass.all(made, merged), norms.within, made, merged);
    const void* attended =
        pass.operand(output.matrix.type, made, pass.seq_len, merged, NormWeights{}.with(columns, output.matrix));
    add_to_stream(pass, memory ? "attention to memory" : "attention", output, attended, b, norms);
}

}  // namespace fovea
