#include "engine/blocks/distances.h"

namespace fovea {
namespace {

struct Panels {
    std::uint32_t begin, end;
};

/// What one task's distances are made of. Rows of products are n_buckets wide, whichever of their panels are made.
struct TaskDistances {
    const Attention& a;
    const Task& task;
    const DistanceTensors& tensors;
    const DistanceRows at;
    std::uint32_t head, n_keys;
    float* scratch;

    TaskDistances(const Attention& attention, const Task& of) noexcept
        : a(attention),
          task(of),
          tensors(a.pass.of_layer(a.pass.workspace.distance_maps())),
          at(a.block, a.pass.workspace.limits.max_batch),
          head(task.head_of(0)),
          n_keys(task.sequence.n_given()),
          scratch(a.pass.scratch()) {}

    /// Element n_rows − 1 − i + j is for row i and key j. A file may hold any numbers: those that are no bucket become 0.
    [[nodiscard]] std::uint32_t* fill_buckets() const noexcept {
        auto* buckets = reinterpret_cast<std::uint32_t*>(scratch + at.buckets);
        const float* table = a.pass.workspace.vector(tensors.buckets);
        const std::int64_t most = a.shape().relative_max_distance;
        const std::int64_t first = -static_cast<std::int64_t>(task.row_of(0) + task.n_rows - 1);
        for (std::uint32_t i = 0; i < n_keys + task.n_rows - 1; ++i) {
            const std::int64_t d = first + i, kept = d < -most ? -most : d > most ? most : d;
            const float bucket = table[most + kept];
            const bool is_one = bucket >= 0.0f && bucket < static_cast<float>(a.shape().relative_buckets);
            buckets[i] = is_one ? static_cast<std::uint32_t>(bucket) : 0;
        }
        return buckets;
    }

    /// out [n][n_buckets]: the head's panels [begin, end) of a matrix times n rows of heads.
    void multiply(const Matrix& matrix, Panels panels, const float* rows, std::uint64_t stride, std::uint32_t n,
                  float* out) const noexcept {
        const WorkspaceState& w = a.pass.workspace;
        float* operand = scratch + at.operand;
        a.pass.pack({matrix.type, n, a.shape().head_dim}, rows, stride, {0, n}, operand);
        const auto n_stored = static_cast<std::uint32_t>(at.n_buckets);
        w.kernels->matmul(matrix.type,
                          {.panels = w.weights(matrix.offset) + head * (n_stored / kLanes) * matrix.panel_stride,
                           .panel_stride = static_cast<std::size_t>(matrix.panel_stride),
                           .n_rows = n_stored,
                           .n_cols = matrix.n_cols,
                           .panel_begin = panels.begin,
                           .panel_end = panels.end,
                           .operand = operand,
                           .seq_len = n,
                           .bias = nullptr,
                           .out = out,
                           .out_stride = n_stored,
                           .epilogue = Epilogue::store,
                           .activation = Activation::none,
                           .canonical = false});
    }
};

/// Those that hold the given buckets.
[[nodiscard]] Panels panels_of(const std::uint32_t* buckets, std::uint32_t n) noexcept {
    std::uint32_t least = buckets[0], most = buckets[0];
    for (std::uint32_t i = 1; i < n; ++i) {
        least = buckets[i] < least ? buckets[i] : least;
        most = buckets[i] > most ? buckets[i] : most;
    }
    return {least / kLanes, most / kLanes + 1};
}

}  // namespace

void DistanceTensors::plan(const Planning& p) noexcept {
    for (const Block& b : p.stack.used_blocks())
        if (b.attention.position == Position::disentangled)
            grow_to(p.map.scratch_stride, DistanceRows(b, p.limits.max_batch).end);
}

void Distances::score(const Attention& a, const Task& task) noexcept {
    const TaskDistances distances(a, task);
    const DistanceRows& at = distances.at;
    const Sequence& s = task.sequence;
    const std::uint32_t* buckets = distances.fill_buckets();
    float *by_query = distances.scratch + at.by_query, *by_key = distances.scratch + at.by_key;
    const auto n_panels = static_cast<std::uint32_t>(at.n_buckets / kLanes);
    distances.multiply(distances.tensors.keys, {0, n_panels},
                       a.query.at(a.number(s), s.row, task.row_of(0), distances.head), a.query.row_stride, task.n_rows,
                       by_query);
    for (std::uint32_t first = 0; first < distances.n_keys; first += kRowBlock) {
        const std::uint32_t left = distances.n_keys - first, n = left < kRowBlock ? left : kRowBlock;
        distances.multiply(distances.tensors.queries, panels_of(buckets + first, n + task.n_rows - 1),
                           a.key.at(a.number(s), s.kv_row, first, distances.head), a.key.row_stride, n, by_key);
        for (std::uint32_t i = 0; i < task.n_rows; ++i) {
            const std::uint32_t* of_row = buckets + task.n_rows - 1 - i + first;
            const float* query = by_query + i * at.n_buckets;
            float* scores = distances.scratch + at.scores + i * at.n_keys + first;
            for (std::uint32_t j = 0; j < n; ++j) scores[j] = query[of_row[j]] + by_key[j * at.n_buckets + of_row[j]];
        }
    }
}

}  // namespace fovea
