// Attention: project, position, score, mask, softmax, weigh, merge. Scores never leave the kernel: a task goes over the
// keys in chunks of 512 positions with a running maximum and sum (Milakov and Gimelshein 2018), and chunks are merged
// from left to right, whether one member computed them or several (Dao et al. 2022; Dao et al. 2023 for the split).
#include <cmath>
#include <cstring>

#include "pass.h"

namespace fovea {
namespace {

/// Rows of heads: those of the pass's own rows, or the caller's. Only rows of the pass are ever written through `data`.
struct HeadRows {
    float* data = nullptr;
    Strides strides;  // sequence 0: sequences lie where their first row says

    /// `first` is the sequence's first row among the pass's.
    [[nodiscard]] float* at(std::size_t sequence, std::uint32_t first, std::uint32_t row,
                            std::uint32_t head) const noexcept {
        const std::uint64_t start = strides.sequence ? sequence * strides.sequence : first * strides.row;
        return data + start + row * strides.row + head * strides.head;
    }
};

/// One attention of the pass: its operands and where they are.
struct Attention {
    const Pass& pass;
    const Layer& layer;
    const AttentionTensors& tensors;
    const Block& block;
    std::span<const Sequence> sequences;
    const Masks* masks;               // null: none
    const AttentionWeights* weights;  // null: not asked for
    bool is_self, causal;
    std::uint32_t n_appended;
    std::uint64_t key_at, value_at;  // elements from the start of a projected row; queries start at 0
    HeadRows query, key, value, past_key, past_value, out;
    Type kv_type;
    std::uint64_t key_bytes, value_bytes;  // of a panel of 16 positions
    std::uint64_t n_panels;                // of a head
    std::uint32_t value_stride;
    std::byte *keys, *values;

    Attention(const Pass& p, const Layer& l, const Block& b, bool cross) noexcept
        : pass(p), layer(l), tensors(cross ? l.cross : l.self), block(b), is_self(!cross) {
        const SessionState& s = pass.session;
        sequences = cross ? pass.cross : pass.self;
        masks = cross ? pass.cross_masks : pass.self_masks;
        causal = (b.causal && !cross) || (masks && masks->causal);
        n_appended = b.bias_kv + b.zero_attn;
        const AttentionWeights& w = s.asked;
        const bool asked =
            !w.out.empty() && w.layer == pass.layer && w.cross == cross && weights_stack(s) == pass.index;
        weights = asked ? &w : nullptr;

        key_at = round_up(std::uint64_t{b.n_heads} * b.head_dim, kLanes);
        value_at = key_at + round_up(std::uint64_t{b.n_kv_heads} * b.head_dim, kLanes);
        if (b.bare) {
            const auto given = [](const Heads& heads) -> HeadRows {
                return {const_cast<float*>(heads.data.data()), heads.strides};
            };
            const AttendInput& in = *pass.heads;
            query = given(in.query), key = given(in.key), value = given(in.value);
            past_key = given(in.past_key), past_value = given(in.past_value);
            out = {pass.out.data, in.out_strides};
        } else {
            const Rows rows = pass.projected(), merged = b.has_output_map ? pass.attended() : pass.out;
            query = {rows.data, {0, rows.stride, b.head_dim}};
            key = {rows.data + key_at, {0, rows.stride, b.head_dim}};
            value = {rows.data + value_at, {0, rows.stride, b.value_head_dim}};
            out = {merged.data, {0, merged.stride, b.value_head_dim}};
        }
        value_stride = static_cast<std::uint32_t>(round_up(b.value_head_dim, kLanes));
        kv_type = s.limits.kv_type;
        key_bytes = panel_bytes(kv_type, b.head_dim);
        value_bytes = value_panel_bytes(kv_type, b.value_head_dim);
        n_panels = s.map.capacity / kLanes;
        keys = s.arena + layer.keys;
        values = s.arena + layer.values;
    }

    [[nodiscard]] std::size_t number(const Sequence& s) const noexcept {
        return static_cast<std::size_t>(&s - sequences.data());
    }
    /// Positions of a sequence's cache, appended ones too.
    [[nodiscard]] static std::uint32_t given(const Sequence& s) noexcept { return s.pos + s.n_source; }
    [[nodiscard]] std::byte* head_keys(const Sequence& s, std::uint32_t kv_head) const noexcept {
        return keys + (kv_head * n_panels + s.at / kLanes) * key_bytes;
    }
    [[nodiscard]] std::byte* head_values(const Sequence& s, std::uint32_t kv_head) const noexcept {
        return values + (kv_head * n_panels + s.at / kLanes) * value_bytes;
    }
};

// ---- projections and the cache -------------------------------------------------------------------------------------

/// Whether `b` lies right behind `a` in the file, as more rows of one matrix.
[[nodiscard]] bool continues(const Matrix& a, const Matrix& b) noexcept {
    return a.n_rows % kLanes == 0 && b.offset == a.offset + a.n_panels() * a.panel_stride &&
           b.panel_stride == a.panel_stride && b.n_cols == a.n_cols && b.type == a.type;
}

/// What a projection reads.
struct Input {
    Rows rows;
    std::uint32_t n_rows, width;
    NormWeights norm;
};

/// Queries, keys and values of every row, side by side in `projected`, from one input or several. Without biases
/// between them their maps are side by side in the file too: one product then, with longer streams and no short ends.
void project(const Attention& a, const Input (&inputs)[3]) noexcept {
    const Pass& pass = a.pass;
    const AttentionTensors& t = a.tensors;
    const Rows out = pass.projected();
    const auto part = [&](const Matrix& matrix, VectorOffset bias, std::uint64_t at) {
        return Product{.matrix = matrix, .bias = bias, .out = {out.data + at, out.stride}, .n_stored = matrix.n_rows};
    };
    const Product products[] = {part(t.query, t.query_bias, 0), part(t.key, t.key_bias, a.key_at),
                                part(t.value, t.value_bias, a.value_at)};
    for (std::size_t first = 0, end = 1; first < 3; first = end++) {
        const Input& in = inputs[first];
        const Type type = products[first].matrix.type;
        while (end < 3 && inputs[end].rows.data == in.rows.data && inputs[end].n_rows == in.n_rows &&
               inputs[end].width == in.width && is_quantized(products[end].matrix.type) == is_quantized(type))
            ++end;
        if (first) pass.sync();  // the last operand's place is used again
        const void* operand = pass.operand(type, in.rows, in.n_rows, in.width, in.norm);
        if (first == 0 && end == 3 && continues(t.query, t.key) && continues(t.key, t.value) && !t.query_bias &&
            !t.key_bias && !t.value_bias) {
            Matrix all = t.query;
            all.n_rows += t.key.n_rows + t.value.n_rows;
            const Product product = part(all, 0, 0);
            pass.multiply({&product, 1}, operand, in.n_rows);
        } else {
            pass.multiply(std::span(products).subspan(first, end - first), operand, in.n_rows);
        }
    }
}

/// A query or key head's norm and rotation, in place.
void position_head(const Attention& a, bool is_key, std::uint32_t row, float* head) noexcept {
    const Block& b = a.block;
    const AttentionTensors& t = a.tensors;
    const NormWeights norm{b.query_key_norm, is_key ? t.key_norm : t.query_norm,
                           is_key ? t.key_norm_bias : t.query_norm_bias, b.norm_epsilon};
    a.pass.norm(norm, head, b.head_dim, head);
    if (b.position != Position::rope) return;
    const SessionState& s = a.pass.session;
    const float* cosines = a.pass.rotation(a.layer.block, row);
    s.kernels->floats.rotate(head, cosines, cosines + s.map.rotation_stride, b.rotary_dim);
}

/// The key or value of one position of a sequence and head; `zeros` where it is the appended zero.
[[nodiscard]] const float* source(const Attention& a, const Sequence& s, bool is_key, std::uint32_t pos,
                                  std::uint32_t kv_head, const float* zeros) noexcept {
    const std::size_t number = a.number(s);
    if (pos < s.pos) return (is_key ? a.past_key : a.past_value).at(number, 0, pos, kv_head);
    if (pos < Attention::given(s)) return (is_key ? a.key : a.value).at(number, s.source, pos - s.pos, kv_head);
    if (!a.block.bias_kv || pos > Attention::given(s)) return zeros;
    const float* vector = a.pass.session.vector(is_key ? a.tensors.appended_key : a.tensors.appended_value);
    return vector + std::uint64_t{kv_head} * (is_key ? a.block.head_dim : a.block.value_head_dim);
}

/// Norms and rotates keys and writes keys and values to the caches. A piece of work is one key-value head and the
/// positions of one key panel, because a panel's first position clears the others.
void write_caches(const Attention& a, const Sequence& s, bool positions) noexcept {
    const Block& b = a.block;
    const Pass& pass = a.pass;
    const FloatKernels& k = pass.session.kernels->floats;
    const auto type = static_cast<int>(a.kv_type);
    const std::uint32_t begin = a.past_key.data ? 0 : s.pos, end = Attention::given(s) + a.n_appended;
    if (begin == end) return;
    float* zeros = pass.scratch();
    if (b.zero_attn) std::memset(zeros, 0, (b.head_dim > b.value_head_dim ? b.head_dim : b.value_head_dim) * 4u);
    const std::uint32_t first_panel = begin / kLanes, n_panels = (end - 1) / kLanes - first_panel + 1;
    const Pass::Share mine = pass.share(n_panels * b.n_kv_heads);
    for (std::uint32_t piece = mine.begin; piece < mine.end; ++piece) {
        const std::uint32_t panel = first_panel + piece / b.n_kv_heads, kv_head = piece % b.n_kv_heads;
        const std::uint32_t from = panel * kLanes > begin ? panel * kLanes : begin;
        const std::uint32_t to = (panel + 1) * kLanes < end ? (panel + 1) * kLanes : end;
        for (std::uint32_t pos = from; pos < to; ++pos) {
            if (positions) {
                const std::uint32_t row = s.source + pos - s.pos;
                position_head(a, true, row, a.key.at(0, row, 0, kv_head));
            }
            const std::uint32_t lane = pos % kLanes;
            k.write_key[type](source(a, s, true, pos, kv_head, zeros), b.head_dim, lane,
                              a.head_keys(s, kv_head) + panel * a.key_bytes);
            k.write_value[type](source(a, s, false, pos, kv_head, zeros), b.value_head_dim, lane,
                                a.head_values(s, kv_head) + panel * a.value_bytes);
        }
    }
}

void position(const Attention& a) noexcept {
    const Block& b = a.block;
    const bool positions = a.is_self && (b.query_key_norm != Norm::none || b.position == Position::rope);
    for (const Sequence& s : a.sequences) write_caches(a, s, positions);
    if (!positions) return;
    const Pass::Share mine = a.pass.share(a.pass.seq_len * b.n_heads);
    for (std::uint32_t piece = mine.begin; piece < mine.end; ++piece)
        position_head(a, false, piece / b.n_heads, a.query.at(0, piece / b.n_heads, 0, piece % b.n_heads));
}

// ---- tasks ---------------------------------------------------------------------------------------------------------

/// Attention's running state for up to kRowBlock rows, and where it is kept.
struct State {
    float* o;
    float* m;
    float* l;
    State(float* place, std::uint32_t n_rows, std::uint32_t value_stride) noexcept
        : o(place), m(place + std::uint64_t{n_rows} * value_stride), l(m + n_rows) {}
};

/// Up to kRowBlock query rows that share a key-value head: successive rows of one head or, `grouped`, one row of the
/// heads of one group, so that they go through the cache together.
struct Task {
    const Sequence& sequence;
    std::uint32_t head, row, n_rows;  // first head, first row of the sequence
    bool grouped;
    std::uint32_t first[kRowBlock], last[kRowBlock];
    bool masked;
    MaskRow masks[kRowBlock][kMasks];
    std::uint32_t chunk_begin, chunk_end;

    Task(const Attention& a, const Sequence& s, std::uint32_t head_, std::uint32_t row_, std::uint32_t n,
         bool grouped_) noexcept
        : sequence(s), head(head_), row(row_), n_rows(n), grouped(grouped_) {
        const std::uint32_t window = a.is_self ? a.block.window : 0;
        const auto is_set = [](const Mask& m) { return m.hidden || m.added; };
        const bool either = a.masks && (is_set(a.masks->attention) || is_set(a.masks->padding));
        // Appended keys are seen by all: where others are not, they no longer end a row's window.
        masked = either || (a.n_appended && (a.causal || s.n_keys < Attention::given(s)));
        std::uint32_t begin = ~0u, end = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
            const std::int64_t seen = a.causal ? std::int64_t{s.diagonal} + row_of(i) + 1 : s.n_keys;  // maybe more
            const std::int64_t from = window && seen > window ? seen - window : 0;
            const bool any = from < s.n_keys && from < seen;
            first[i] = any ? static_cast<std::uint32_t>(from) : 0;
            last[i] = any ? static_cast<std::uint32_t>(seen < s.n_keys ? seen : s.n_keys) : 0;
            if (masked) mask_row(a, i);
            if (a.n_appended) last[i] = Attention::given(s) + a.n_appended;
            begin = first[i] < begin ? first[i] : begin;
            end = last[i] > end ? last[i] : end;
        }
        chunk_begin = begin / kChunk;
        chunk_end = end > begin ? (end + kChunk - 1) / kChunk : chunk_begin + 1;
    }

    [[nodiscard]] std::uint32_t row_of(std::uint32_t i) const noexcept { return grouped ? row : row + i; }
    [[nodiscard]] std::uint32_t head_of(std::uint32_t i) const noexcept { return grouped ? head + i : head; }

    void mask_row(const Attention& a, std::uint32_t i) noexcept {
        const std::uint32_t end = Attention::given(sequence);
        const auto resolve = [&](const Mask& mask) -> MaskRow {
            if (!mask.hidden && !mask.added) return {nullptr, nullptr, end, end};
            const std::uint64_t at = a.number(sequence) * mask.sequence_stride + head_of(i) * mask.head_stride +
                                     row_of(i) * mask.query_stride;
            return {mask.hidden ? mask.hidden + at : nullptr, mask.added ? mask.added + at : nullptr, mask.n_keys, end};
        };
        masks[i][0] = resolve(a.masks ? a.masks->attention : Mask{});
        masks[i][1] = resolve(a.masks ? a.masks->padding : Mask{});
        masks[i][2] = {nullptr, nullptr, last[i], end};
    }
};

[[nodiscard]] Attend kernel_call(const Attention& a, const Task& task, const float* query, std::uint32_t chunk,
                                 const State& state) noexcept {
    const Block& b = a.block;
    const std::uint32_t kv_head = task.head / (b.n_heads / b.n_kv_heads);
    return {.query = query,
            .n_rows = task.n_rows,
            .head_dim = b.head_dim,
            .value_head_dim = b.value_head_dim,
            .keys = a.head_keys(task.sequence, kv_head),
            .values = a.head_values(task.sequence, kv_head),
            .value_stride = a.value_stride,
            .first = task.first,
            .last = task.last,
            .masks = task.masked ? task.masks[0] : nullptr,
            .scale = b.softmax_scale != 0.0f ? b.softmax_scale : 1.0f / std::sqrt(static_cast<float>(b.head_dim)),
            .softcap = b.score_softcap,
            .chunk = chunk,
            .m = state.m,
            .l = state.l,
            .o = state.o};
}

/// One chunk of a task into `state`. `query` is the task's packed rows.
void attend_chunk(const Attention& a, const Task& task, const float* query, std::uint32_t chunk,
                  const State& state) noexcept {
    a.pass.session.kernels->of(a.kv_type).attend(kernel_call(a, task, query, chunk, state));
}

void pack_query(const Attention& a, const Task& task, float* query) noexcept {
    const Sequence& s = task.sequence;
    const auto stride = static_cast<std::size_t>(task.grouped ? a.query.strides.head : a.query.strides.row);
    const float* rows = a.query.at(a.number(s), s.row, task.row, task.head);
    a.pass.pack(a.kv_type, rows, stride, task.n_rows, a.block.head_dim, query);
}

void merge(const Attention& a, const Task& task, const State& into, const State& chunk) noexcept {
    a.pass.session.kernels->floats.attend_merge(
        {task.n_rows, a.value_stride, into.m, into.l, into.o, chunk.m, chunk.l, chunk.o});
}

/// Writes or, for a mean, adds the weights of a task whose state is complete. Of a mean's heads the last one divides.
void write_weights(const Attention& a, const Task& task, const float* query, const State& state) noexcept {
    const AttentionWeights& w = *a.weights;
    const std::uint32_t n_heads = a.block.n_heads, end = Attention::given(task.sequence) + a.n_appended;
    const Attend call = kernel_call(a, task, query, 0, state);
    alignas(64) float tile[kRowBlock * kTile];
    for (std::uint64_t at = 0; at < w.n_keys; at += kTile) {
        const auto begin = static_cast<std::uint32_t>(at);
        if (begin < end) a.pass.session.kernels->of(a.kv_type).attend_weights(call, begin / kTile, tile);
        const std::uint32_t n = w.n_keys - begin < kTile ? w.n_keys - begin : kTile;
        const std::uint32_t seen = end < begin ? 0 : end - begin, n_seen = seen < n ? seen : n;
        for (std::uint32_t i = 0; i < task.n_rows; ++i) {
            const std::uint64_t head =
                a.number(task.sequence) * (w.per_head ? n_heads : 1) + (w.per_head ? task.head_of(i) : 0);
            // While decoding rows are positions; else every call starts anew.
            const std::uint64_t row = (a.pass.out.data ? 0 : task.sequence.pos) + task.row_of(i);
            float* out = w.out.data() + (head * w.n_queries + row) * w.n_keys + begin;
            const float* weights = tile + i * kTile;
            if (!w.per_head && task.head > 0)
                for (std::uint32_t j = 0; j < n_seen; ++j) out[j] += weights[j];
            else
                for (std::uint32_t j = 0; j < n_seen; ++j) out[j] = weights[j];
            for (std::uint32_t j = n_seen; j < n; ++j) out[j] = 0.0f;
            if (!w.per_head && task.head + 1 == n_heads)
                for (std::uint32_t j = 0; j < n_seen; ++j) out[j] /= static_cast<float>(n_heads);
        }
    }
}

void finish(const Attention& a, const Task& task, const float* query, const State& state) noexcept {
    const auto stride = static_cast<std::size_t>(task.grouped ? a.out.strides.head : a.out.strides.row);
    a.pass.session.kernels->floats.attend_finish(
        state.l, state.o, task.n_rows, a.block.value_head_dim, a.value_stride,
        a.out.at(a.number(task.sequence), task.sequence.row, task.row, task.head), stride);
    if (a.weights) write_weights(a, task, query, state);
}

/// A whole task by one member.
void attend_task(const Attention& a, const Task& task) noexcept {
    float* query = a.pass.scratch();
    float* states = query + query_floats(a.block.head_dim);
    const std::uint64_t state_floats = kRowBlock * std::uint64_t{a.value_stride} + 2 * kLanes;
    const State state(states, task.n_rows, a.value_stride);
    const State next(states + state_floats, task.n_rows, a.value_stride);
    pack_query(a, task, query);
    attend_chunk(a, task, query, task.chunk_begin, state);
    for (std::uint32_t chunk = task.chunk_begin + 1; chunk < task.chunk_end; ++chunk) {
        attend_chunk(a, task, query, chunk, next);
        merge(a, task, state, next);
    }
    finish(a, task, query, state);
}

/// Tasks are heads × blocks of a sequence's rows, taken as members come. A mean of weights is summed in the order of the
/// heads: then a block's heads stay with one member.
void attend_rows(const Attention& a) noexcept {
    const std::uint32_t n_heads = a.block.n_heads, together = a.weights && !a.weights->per_head ? n_heads : 1;
    std::uint32_t first = 0, piece = a.pass.take(0);
    for (const Sequence& s : a.sequences) {
        const std::uint32_t n_blocks = (s.n_rows + kRowBlock - 1) / kRowBlock, n = n_blocks * (n_heads / together);
        for (; piece < first + n; piece = a.pass.take(piece + 1)) {
            const std::uint32_t row = (piece - first) % n_blocks * kRowBlock, head = (piece - first) / n_blocks;
            const std::uint32_t n_rows = s.n_rows - row < kRowBlock ? s.n_rows - row : kRowBlock;
            for (std::uint32_t i = 0; i < together; ++i) attend_task(a, Task(a, s, head + i, row, n_rows, false));
        }
        first += n;
    }
}

/// One row in all: tasks are groups of heads, and where the cache is longer than a chunk, each chunk on its own: its
/// state goes to `partials`, to be merged in order once all are there.
void attend_row(const Attention& a, const Sequence& s) noexcept {
    const Pass& pass = a.pass;
    const std::uint32_t group = a.block.n_heads / a.block.n_kv_heads;
    const std::uint32_t per_group = (group + kRowBlock - 1) / kRowBlock;
    const std::uint32_t n_tasks = a.block.n_kv_heads * per_group;
    const auto task_of = [&](std::uint32_t i) {
        const std::uint32_t in_group = i % per_group * kRowBlock;
        const std::uint32_t n = group - in_group < kRowBlock ? group - in_group : kRowBlock;
        return Task(a, s, i / per_group * group + in_group, 0, n, true);
    };
    const Task any = task_of(0);
    const std::uint32_t n_chunks = any.chunk_end - any.chunk_begin;
    if (n_chunks == 1 || pass.n_members == 1) {
        const Pass::Share mine = pass.share(n_tasks);
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) attend_task(a, task_of(i));
        return;
    }
    const auto partial = [&](const Task& task, std::uint32_t chunk) {
        const ArenaMap& map = pass.session.map;
        const std::uint64_t at = std::uint64_t{task.head} * map.n_chunks + std::uint64_t{chunk} * task.n_rows;
        return State(pass.session.floats(map.partials) + at * map.partial_stride, task.n_rows, a.value_stride);
    };
    const Pass::Share pieces = pass.share(n_tasks * n_chunks);
    for (std::uint32_t i = pieces.begin; i < pieces.end; ++i) {
        const Task task = task_of(i / n_chunks);
        pack_query(a, task, pass.scratch());
        const std::uint32_t chunk = task.chunk_begin + i % n_chunks;
        attend_chunk(a, task, pass.scratch(), chunk, partial(task, chunk));
    }
    pass.sync();
    const Pass::Share mine = pass.share(n_tasks);
    for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
        const Task task = task_of(i);
        const State state = partial(task, task.chunk_begin);
        for (std::uint32_t chunk = task.chunk_begin + 1; chunk < task.chunk_end; ++chunk)
            merge(a, task, state, partial(task, chunk));
        if (a.weights) pack_query(a, task, pass.scratch());
        finish(a, task, pass.scratch(), state);
    }
}

/// From inputs to merged heads in `out`.
void attend_inputs(const Attention& a, const Input (&inputs)[3]) noexcept {
    const Pass& pass = a.pass;
    if (!a.block.bare) {
        project(a, inputs);
        pass.sync();
    }
    position(a);
    pass.sync();
    if (!a.block.bare && a.is_self && pass.self.size() == 1)
        pass.trace("projected", pass.projected(), pass.seq_len,
                   static_cast<std::uint32_t>(a.value_at) + a.block.n_kv_heads * a.block.value_head_dim, pass.pos);
    if (pass.seq_len == 1 && !(a.weights && !a.weights->per_head))
        attend_row(a, a.sequences[0]);
    else
        attend_rows(a);
    pass.sync();
}

}  // namespace

void attention(const Pass& pass, const Layer& layer, const Block& b, bool cross) noexcept {
    const Attention a(pass, layer, b, cross);
    const std::uint32_t n = pass.seq_len, d_model = pass.stack().d_model, merged = b.n_heads * b.value_head_dim;
    const NormWeights norm{b.norm, a.tensors.norm, a.tensors.norm_bias, b.norm_epsilon};
    const bool pre = b.norm_place == NormPlace::pre;
    const AttendInput* const alone = pass.heads;
    if (alone) {
        const auto input = [&](const Heads& heads, std::uint32_t n_rows, std::uint32_t width) {
            width = or_else(width, d_model);
            return Input{{const_cast<float*>(heads.data.data()), width}, n_rows, width, {}};
        };
        const std::uint32_t n_keys = alone->n_sequences * alone->n_keys;
        attend_inputs(a, {input(alone->query, n, b.query_width), input(alone->key, n_keys, b.key_width),
                          input(alone->value, n_keys, b.value_width)});
        if (b.bare || !b.has_output_map) return;
    } else {
        const Input rows{pass.hidden(), n, d_model, pre ? norm : NormWeights{}};
        const Input memory{pass.memory, pass.n_memory, d_model, {}};
        attend_inputs(a, {rows, cross ? memory : rows, cross ? memory : rows});
        pass.trace(cross ? "attended memory" : "attended", pass.attended(), n, merged, pass.pos);
    }
    const Rows out = alone ? pass.out : pass.hidden();
    const Product output{.matrix = a.tensors.output,
                         .bias = a.tensors.output_bias,
                         .out = out,
                         .n_stored = a.tensors.output.n_rows,
                         .finish = alone ? Finish::store : Finish::add,
                         .canonical = alone != nullptr};
    pass.multiply({&output, 1}, pass.operand(output.matrix.type, pass.attended(), n, merged), n);
    if (alone) return;
    pass.sync();
    if (!pre) pass.norm_rows(norm, pass.hidden());
    pass.trace(cross ? "attention to memory" : "attention", pass.hidden(), n, d_model, pass.pos);
}

}  // namespace fovea
