// Attention: project, position, score, mask, softmax, weigh, merge. Scores never leave the kernel: a task goes over the
// keys in chunks of 512 positions with a running maximum and sum (Milakov and Gimelshein 2018), and chunks are merged
// from left to right, whether one member computed them or several (Dao et al. 2022; Dao et al. 2023 for the split).
#include <cmath>

#include "pass.h"

namespace fovea {
namespace {

/// Where one layer's heads are: in a row of `projected` and in the caches.
struct Heads {
    const Block& block;
    std::uint64_t key_at, value_at;  // elements from the start of a projected row; queries start at 0
    std::uint64_t key_panel_bytes, value_row_bytes;
    std::uint32_t value_stride;
    std::byte* keys;
    std::byte* values;
    std::uint64_t key_head_bytes, value_head_bytes;

    Heads(const Pass& pass, const Layer& layer, const Block& b) noexcept : block(b) {
        const SessionState& s = pass.session;
        const std::uint64_t element = cache_element_bytes(s.limits.kv_type);
        key_at = round_up(std::uint64_t{b.n_heads} * b.head_dim, kLanes);
        value_at = key_at + round_up(std::uint64_t{b.n_kv_heads} * b.head_dim, kLanes);
        value_stride = static_cast<std::uint32_t>(round_up(b.value_head_dim, kLanes));
        key_panel_bytes = b.head_dim * kLanes * element;
        value_row_bytes = value_stride * element;
        keys = s.arena + layer.keys;
        values = s.arena + layer.values;
        key_head_bytes = s.map.capacity / kLanes * key_panel_bytes;
        value_head_bytes = s.map.capacity * value_row_bytes;
    }
};

/// Whether `b` lies right behind `a` in the file, as more rows of one matrix.
[[nodiscard]] bool continues(const Matrix& a, const Matrix& b) noexcept {
    return a.n_rows % kLanes == 0 && b.offset == a.offset + a.n_panels() * a.panel_stride &&
           b.panel_stride == a.panel_stride && b.n_cols == a.n_cols && b.type == a.type;
}

/// Queries, keys and values of every row, side by side in `projected`. Without biases between them their maps are side by
/// side in the file too: one product then, with longer streams and no short ends.
void project(const Pass& pass, const Layer& layer, const Heads& heads) noexcept {
    const Block& b = heads.block;
    const NormWeights norm{b.norm, layer.attention_norm, layer.attention_norm_bias, b.norm_epsilon};
    const Rows out = pass.projected();
    const auto part = [&](const Matrix& matrix, VectorOffset bias, std::uint64_t at) {
        return Product{.matrix = matrix, .bias = bias, .out = {out.data + at, out.stride}, .n_stored = matrix.n_rows};
    };
    const void* operand =
        pass.operand(layer.query.type, pass.hidden(), pass.seq_len, pass.stack().d_model, norm);
    if (continues(layer.query, layer.key) && continues(layer.key, layer.value) && !layer.query_bias &&
        !layer.key_bias && !layer.value_bias) {
        Matrix all = layer.query;
        all.n_rows += layer.key.n_rows + layer.value.n_rows;
        const Product product = part(all, 0, 0);
        return pass.multiply({&product, 1}, operand, pass.seq_len);
    }
    const Product products[] = {part(layer.query, layer.query_bias, 0), part(layer.key, layer.key_bias, heads.key_at),
                                part(layer.value, layer.value_bias, heads.value_at)};
    pass.multiply(products, operand, pass.seq_len);
}

/// A query or key head's norm and rotation, in place.
void position_head(const Pass& pass, const Layer& layer, const Block& b, bool is_key, std::uint32_t row,
                   float* head) noexcept {
    const SessionState& s = pass.session;
    const Kernels& k = *s.kernels;
    const float* weight = s.vector(is_key ? layer.key_norm : layer.query_norm);
    const float* bias = s.vector(is_key ? layer.key_norm_bias : layer.query_norm_bias);
    if (b.query_key_norm == Norm::rms) k.rms_norm(head, b.head_dim, weight, b.norm_epsilon, head);
    if (b.query_key_norm == Norm::layer) k.layer_norm(head, b.head_dim, weight, bias, b.norm_epsilon, head);
    if (b.position == Position::rope) {
        const float* cosines = pass.rotation(layer.block, row);
        k.rotate(head, cosines, cosines + s.map.rotation_stride, b.rotary_dim);
    }
}

/// Norms and rotates queries and keys and writes keys and values to the caches. A piece of work is one key-value head
/// and the positions of one key panel, because a panel's first position clears the others.
void position(const Pass& pass, const Layer& layer, const Heads& heads) noexcept {
    const Block& b = heads.block;
    const Kernels& k = *pass.session.kernels;
    const auto type = static_cast<int>(pass.session.limits.kv_type);
    const std::uint32_t group = b.n_heads / b.n_kv_heads;
    const std::uint32_t first_panel = pass.pos / kLanes;
    const std::uint32_t n_panels = (pass.pos + pass.seq_len - 1) / kLanes - first_panel + 1;
    const Pass::Share mine = pass.share(n_panels * b.n_kv_heads);
    for (std::uint32_t piece = mine.begin; piece < mine.end; ++piece) {
        const std::uint32_t panel = first_panel + piece / b.n_kv_heads, kv_head = piece % b.n_kv_heads;
        const std::uint32_t from = panel * kLanes > pass.pos ? panel * kLanes : pass.pos;
        const std::uint32_t end = pass.pos + pass.seq_len;
        const std::uint32_t to = (panel + 1) * kLanes < end ? (panel + 1) * kLanes : end;
        std::byte* key_panel = heads.keys + kv_head * heads.key_head_bytes + panel * heads.key_panel_bytes;
        std::byte* value_rows = heads.values + kv_head * heads.value_head_bytes;
        for (std::uint32_t pos = from; pos < to; ++pos) {
            const std::uint32_t row = pos - pass.pos;
            float* projected = pass.projected()[row];
            for (std::uint32_t i = 0; i < group; ++i)
                position_head(pass, layer, b, false, row, projected + std::uint64_t{kv_head * group + i} * b.head_dim);
            float* key = projected + heads.key_at + std::uint64_t{kv_head} * b.head_dim;
            position_head(pass, layer, b, true, row, key);
            k.write_key[type](key, b.head_dim, pos % kLanes, key_panel);
            k.write_value[type](projected + heads.value_at + std::uint64_t{kv_head} * b.value_head_dim,
                                b.value_head_dim, heads.value_stride, value_rows + pos * heads.value_row_bytes);
        }
    }
}

/// Attention's running state for up to kRowBlock rows, and where it is kept.
struct State {
    float* o;
    float* m;
    float* l;
    State(float* place, std::uint32_t n_rows, std::uint32_t value_stride) noexcept
        : o(place), m(place + std::uint64_t{n_rows} * value_stride), l(m + n_rows) {}
};

/// Up to kRowBlock query rows that share a key-value head: successive positions of one head, or, for a single token,
/// the heads of one group, so that they go through the cache together.
struct Task {
    std::uint32_t head, row, n_rows;  // first head, first row of the pass
    std::uint32_t first[kRowBlock], last[kRowBlock];
    std::uint32_t chunk_begin, chunk_end;

    Task(const Pass& pass, const Block& b, std::uint32_t head_, std::uint32_t row_, std::uint32_t n) noexcept
        : head(head_), row(row_), n_rows(n) {
        const bool one_token = pass.seq_len == 1;
        for (std::uint32_t i = 0; i < n; ++i) {
            const std::uint32_t pos = pass.pos + row + (one_token ? 0 : i);
            last[i] = pos + 1;
            first[i] = b.window && b.window < last[i] ? last[i] - b.window : 0;
        }
        chunk_begin = first[0] / kChunk;
        chunk_end = (last[n - 1] + kChunk - 1) / kChunk;
    }
};

/// One chunk of a task into `state`. `query` is the task's packed rows.
void attend_chunk(const Pass& pass, const Heads& heads, const Task& task, const float* query, std::uint32_t chunk,
                  const State& state) noexcept {
    const Block& b = heads.block;
    const std::uint32_t kv_head = task.head / (b.n_heads / b.n_kv_heads);
    pass.session.kernels->attend[static_cast<int>(pass.session.limits.kv_type)](Attend{
        .query = query,
        .n_rows = task.n_rows,
        .head_dim = b.head_dim,
        .value_head_dim = b.value_head_dim,
        .keys = heads.keys + kv_head * heads.key_head_bytes,
        .values = heads.values + kv_head * heads.value_head_bytes,
        .value_stride = heads.value_stride,
        .first = task.first,
        .last = task.last,
        .scale = b.softmax_scale != 0.0f ? b.softmax_scale : 1.0f / std::sqrt(static_cast<float>(b.head_dim)),
        .softcap = b.score_softcap,
        .chunk = chunk,
        .m = state.m,
        .l = state.l,
        .o = state.o,
    });
}

void pack_query(const Pass& pass, const Block& b, const Task& task, float* query) noexcept {
    const float* rows = pass.projected()[task.row] + std::uint64_t{task.head} * b.head_dim;
    const std::uint64_t stride = pass.seq_len == 1 ? b.head_dim : pass.projected().stride;
    pass.session.kernels->pack(rows, stride, task.n_rows, b.head_dim, query);
}

void merge(const Pass& pass, const Heads& heads, const Task& task, const State& into, const State& chunk) noexcept {
    pass.session.kernels->attend_merge(
        {task.n_rows, heads.value_stride, into.m, into.l, into.o, chunk.m, chunk.l, chunk.o});
}

void finish(const Pass& pass, const Heads& heads, const Task& task, const State& state) noexcept {
    const Block& b = heads.block;
    float* out = pass.attended()[task.row] + std::uint64_t{task.head} * b.value_head_dim;
    const std::uint64_t stride = pass.seq_len == 1 ? b.value_head_dim : pass.attended().stride;
    pass.session.kernels->attend_finish(state.l, state.o, task.n_rows, b.value_head_dim, heads.value_stride, out,
                                        stride);
}

/// A whole task by one member.
void attend_task(const Pass& pass, const Heads& heads, const Task& task) noexcept {
    float* query = pass.scratch();
    float* states = query + kRowBlock * round_up(heads.block.head_dim, kLanes);
    const std::uint64_t state_floats = kRowBlock * std::uint64_t{heads.value_stride} + 2 * kLanes;
    const State state(states, task.n_rows, heads.value_stride);
    const State next(states + state_floats, task.n_rows, heads.value_stride);
    pack_query(pass, heads.block, task, query);
    attend_chunk(pass, heads, task, query, task.chunk_begin, state);
    for (std::uint32_t chunk = task.chunk_begin + 1; chunk < task.chunk_end; ++chunk) {
        attend_chunk(pass, heads, task, query, chunk, next);
        merge(pass, heads, task, state, next);
    }
    finish(pass, heads, task, state);
}

/// Several tokens: tasks are heads × blocks of rows. Later rows see more keys, so rows are dealt out in turn.
void attend_rows(const Pass& pass, const Heads& heads) noexcept {
    const std::uint32_t n_blocks = (pass.seq_len + kRowBlock - 1) / kRowBlock;
    for (std::uint32_t head = 0; head < heads.block.n_heads; ++head)
        for (std::uint32_t i = (pass.member + head) % pass.n_members; i < n_blocks; i += pass.n_members) {
            const std::uint32_t row = i * kRowBlock;
            const std::uint32_t n = pass.seq_len - row < kRowBlock ? pass.seq_len - row : kRowBlock;
            attend_task(pass, heads, Task(pass, heads.block, head, row, n));
        }
}

/// One token: tasks are groups of heads, and where the cache is longer than a chunk, each chunk on its own: its state
/// goes to `partials`, to be merged in order once all are there.
void attend_token(const Pass& pass, const Heads& heads) noexcept {
    const Block& b = heads.block;
    const std::uint32_t group = b.n_heads / b.n_kv_heads;
    const std::uint32_t per_group = (group + kRowBlock - 1) / kRowBlock;
    const std::uint32_t n_tasks = b.n_kv_heads * per_group;
    const auto task_of = [&](std::uint32_t i) {
        const std::uint32_t in_group = i % per_group * kRowBlock;
        const std::uint32_t n = group - in_group < kRowBlock ? group - in_group : kRowBlock;
        return Task(pass, b, i / per_group * group + in_group, 0, n);
    };
    const Task any = task_of(0);
    const std::uint32_t n_chunks = any.chunk_end - any.chunk_begin;
    if (n_chunks == 1 || pass.n_members == 1) {
        const Pass::Share mine = pass.share(n_tasks);
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) attend_task(pass, heads, task_of(i));
        return;
    }
    const auto partial = [&](const Task& task, std::uint32_t chunk) {
        const ArenaMap& map = pass.session.map;
        const std::uint64_t at = std::uint64_t{task.head} * map.n_chunks + std::uint64_t{chunk} * task.n_rows;
        return State(pass.session.floats(map.partials) + at * map.partial_stride, task.n_rows, heads.value_stride);
    };
    const Pass::Share pieces = pass.share(n_tasks * n_chunks);
    for (std::uint32_t i = pieces.begin; i < pieces.end; ++i) {
        const Task task = task_of(i / n_chunks);
        pack_query(pass, b, task, pass.scratch());
        const std::uint32_t chunk = task.chunk_begin + i % n_chunks;
        attend_chunk(pass, heads, task, pass.scratch(), chunk, partial(task, chunk));
    }
    pass.sync();
    const Pass::Share mine = pass.share(n_tasks);
    for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
        const Task task = task_of(i);
        const State state = partial(task, task.chunk_begin);
        for (std::uint32_t chunk = task.chunk_begin + 1; chunk < task.chunk_end; ++chunk)
            merge(pass, heads, task, state, partial(task, chunk));
        finish(pass, heads, task, state);
    }
}

}  // namespace

void attention(const Pass& pass, const Layer& layer, const Block& block) noexcept {
    const Heads heads(pass, layer, block);
    const std::uint32_t n = pass.seq_len, merged = block.n_heads * block.value_head_dim;
    project(pass, layer, heads);
    pass.sync();
    position(pass, layer, heads);
    pass.sync();
    pass.trace("projected", pass.projected(), n,
               static_cast<std::uint32_t>(heads.value_at) + block.n_kv_heads * block.value_head_dim, pass.pos);
    pass.seq_len == 1 ? attend_token(pass, heads) : attend_rows(pass, heads);
    pass.sync();
    pass.trace("attended", pass.attended(), n, merged, pass.pos);
    const Product output{.matrix = layer.output,
                         .bias = layer.output_bias,
                         .out = pass.hidden(),
                         .n_stored = pass.stack().d_model,
                         .finish = Finish::add};
    pass.multiply({&output, 1}, pass.operand(layer.output.type, pass.attended(), n, merged), n);
    pass.sync();
    pass.trace("attention", pass.hidden(), n, pass.stack().d_model, pass.pos);
}

}  // namespace fovea
