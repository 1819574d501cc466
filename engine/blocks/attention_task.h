// How an attention is cut into pieces of work: what a task is, and which tasks a sequence has.
#pragma once
#include "engine/blocks/attention.h"
#include "engine/blocks/block.h"

namespace fovea {

/// What else is in a member's scratch while it attends by disentangled positions, in floats behind the query and both states: the
/// buckets of a task's distances, its queries' products with all buckets, some keys' with those of some, what is packed for
/// either, and what each row's scores get.
struct DistanceRows {
    std::uint64_t n_buckets, n_keys;  // of a row, in whole panels
    std::uint64_t buckets, by_query, by_key, operand, scores, end;

    constexpr DistanceRows(const Block& b, std::uint64_t max_keys) noexcept
        : n_buckets(bucket_rows(b)), n_keys(round_up(max_keys, kLanes)) {
        buckets = query_floats(b.attention.head_dim) + 2 * state_floats(round_up(b.attention.value_head_dim, kLanes));
        by_query = buckets + n_keys + kLanes;
        by_key = by_query + kRowBlock * n_buckets;
        operand = by_key + kRowBlock * n_buckets;
        scores = operand + query_floats(b.attention.head_dim);
        end = scores + kRowBlock * n_keys;
    }
};

/// Which query rows a task has.
struct TaskRows {
    std::uint32_t head;            // of the first row; grouped: the group's first
    std::uint32_t row = 0;         // of the sequence, the first; grouped: unused
    std::uint32_t n_rows = 0;      // 1 to kRowBlock
    std::uint32_t group = 0;       // grouped: heads of the group
    std::uint32_t first_pair = 0;  // grouped: pairs before this task's
};

/// Up to kRowBlock query rows that share a key-value head: successive rows of one head or, grouped, successive pairs of
/// (row, head of the group), heads fastest, so that the heads of a group go through the cache together.
struct Task : TaskRows {
    const Sequence& sequence;
    std::uint32_t first[kRowBlock], last[kRowBlock];
    bool masked, relative, disentangled;
    MaskRow masks[kRowBlock][kMasks];
    float slopes[kRowBlock], positions[kRowBlock];  // where the attention has slopes
    std::uint32_t begin = ~0u, end = 0;             // positions that any row sees

    Task(const Attention& a, const Sequence& s, const TaskRows& rows) noexcept : TaskRows(rows), sequence(s) {
        const std::uint32_t window = a.reads == Reads::self ? a.shape().window : 0;
        relative = has(Part::vectors) && a.reads == Reads::self && a.shape().position == Position::relative;
        disentangled = a.disentangled();
        const auto is_set = [](const Mask& m) { return m.hidden || m.added; };
        const bool either = a.masks && (is_set(a.masks->attention) || is_set(a.masks->padding));
        // Appended keys are seen by all: where others are not, they no longer end a row's window.
        masked = has(Part::vectors) && (either || relative || disentangled ||
                                        (a.n_appended && (a.causal || window || s.n_keys < s.n_given())));
        const StepRows of = a.reads == Reads::self ? a.pass.step_of(s) : StepRows{};
        for (std::uint32_t i = 0; i < n_rows; ++i) {
            const std::int64_t pos =
                std::int64_t{s.causal_offset} + row_of(i);  // the query's own; maybe beyond the keys
            std::int64_t seen = a.causal ? pos + 1 : window ? pos + window : s.n_keys;
            const std::int64_t of_chunk =
                has(Part::states) && a.shape().chunked ? pos - pos % window : pos + 1 - window;
            const std::int64_t from = window && of_chunk > 0 ? of_chunk : 0;
            if (has(Part::rows)) seen = end_of_span(of, pos, seen);
            const bool any = from < s.n_keys && from < seen;
            first[i] = any ? static_cast<std::uint32_t>(from) : 0;
            last[i] = any ? static_cast<std::uint32_t>(seen < s.n_keys ? seen : s.n_keys) : 0;
            if (has(Part::vectors) && masked) mask_row(a, i);
            if (has(Part::block_variants) && a.slopes) {
                slopes[i] = a.slopes[head_of(i)];
                positions[i] = static_cast<float>(s.causal_offset + static_cast<std::int32_t>(row_of(i)));
            }
            if (has(Part::vectors) && a.n_appended) last[i] = a.n_cached(s);
            begin = first[i] < begin ? first[i] : begin;
            end = last[i] > end ? last[i] : end;
        }
    }

    [[nodiscard]] bool is_grouped() const noexcept { return group != 0; }
    [[nodiscard]] std::uint32_t row_of(std::uint32_t i) const noexcept {
        return group ? (first_pair + i) / group : row + i;
    }
    [[nodiscard]] std::uint32_t head_of(std::uint32_t i) const noexcept {
        return group ? head + (first_pair + i) % group : head;
    }
    /// Rows from number i on that lie at one stride: of one head, or of one row's heads.
    [[nodiscard]] std::uint32_t run(std::uint32_t i) const noexcept {
        const std::uint32_t left = n_rows - i;
        if (!group) return left;
        const std::uint32_t heads = group - (first_pair + i) % group;
        return heads < left ? heads : left;
    }
    [[nodiscard]] std::uint32_t chunk_begin() const noexcept { return end > begin ? begin / kChunk : 0; }
    [[nodiscard]] std::uint32_t chunk_end() const noexcept { return end > begin ? (end + kChunk - 1) / kChunk : 1; }
    [[nodiscard]] std::uint32_t n_chunks() const noexcept { return chunk_end() - chunk_begin(); }

private:
    /// Where what a position sees ends: behind its span of the step, which is in this pass, if there is one; else at `seen`.
    [[nodiscard]] std::int64_t end_of_span(const StepRows& of, std::int64_t pos, std::int64_t seen) const noexcept {
        const std::int64_t start = std::int64_t{sequence.pos} - static_cast<std::int64_t>(of.first);  // of the step
        for (const RowSpan& span : of.step.spans)
            if (pos >= start + span.first && pos < start + span.end) return start + span.end;
        return seen;
    }
    void mask_row(const Attention& a, std::uint32_t i) noexcept {
        const std::uint32_t n_given = sequence.n_given();
        const auto resolve = [&](const Mask& mask) -> MaskRow {
            if (!mask.hidden && !mask.added) return {nullptr, nullptr, n_given, n_given};
            const std::uint64_t at = a.number(sequence) * mask.sequence_stride + head_of(i) * mask.head_stride +
                                     row_of(i) * mask.query_stride;
            return {mask.hidden ? mask.hidden + at : nullptr, mask.added ? mask.added + at : nullptr, mask.n_keys,
                    n_given};
        };
        masks[i][0] = resolve(a.masks ? a.masks->attention : Mask{});
        masks[i][1] = resolve(a.masks ? a.masks->padding : Mask{});
        // The last mask is a module's, which may append keys, or a stack's, which may have relative positions.
        masks[i][2] = {nullptr, nullptr, last[i], n_given};
        if (has(Part::vectors) && relative)
            masks[i][2] = {nullptr, relative_scores(a.pass, a.layer.block, head_of(i), sequence.pos + row_of(i)),
                           n_given, n_given};
        if (has(Part::vectors) && disentangled) {
            const DistanceRows at(a.block, a.pass.workspace.limits.max_batch);
            masks[i][2] = {nullptr, a.pass.scratch() + at.scores + i * at.n_keys, n_given, n_given};
        }
    }
};

/// The tasks of one sequence. Few rows are grouped: pairs of rows and heads. More are blocks of rows, head by head.
class Tasks {
public:
    Tasks(const Attention& a, const Sequence& s) noexcept
        : n_rows_(s.n_rows), n_heads_(a.n_heads()), group_(a.group()) {
        const ArenaMap& map = a.pass.workspace.map;
        const std::uint64_t pairs_floats =
            query_floats(a.shape().head_dim) + kRowBlock * std::uint64_t{a.shape().head_dim};
        grouped_ = n_rows_ < kRowBlock && (n_rows_ == 1 || pairs_floats <= map.scratch_stride);
        if (a.weights && !a.weights->per_head) {  // a mean's heads are summed in order, by one member
            grouped_ = false;
            together_ = n_heads_;
        }
        const std::uint32_t n = grouped_ ? n_rows_ * group_ : n_rows_;
        n_blocks_ = (n + kRowBlock - 1) / kRowBlock;
    }

    /// Pieces of work, each of `together` tasks.
    [[nodiscard]] std::uint32_t n_pieces() const noexcept {
        if (kRanks && n_heads_ == 0) return 0;
        return n_blocks_ * (grouped_ ? n_heads_ / group_ : n_heads_ / together_);
    }
    [[nodiscard]] std::uint32_t together() const noexcept { return together_; }
    [[nodiscard]] Task task(const Attention& a, const Sequence& s, std::uint32_t piece,
                            std::uint32_t of_together) const noexcept {
        const std::uint32_t from = piece % n_blocks_ * kRowBlock, head = piece / n_blocks_, first = a.first_head();
        const std::uint32_t left = (grouped_ ? n_rows_ * group_ : n_rows_) - from;
        const std::uint32_t n = left < kRowBlock ? left : kRowBlock;
        if (grouped_) return {a, s, {.head = first + head * group_, .n_rows = n, .group = group_, .first_pair = from}};
        return {a, s, {.head = first + head + of_together, .row = from, .n_rows = n}};
    }

private:
    std::uint32_t n_rows_, n_heads_, group_, n_blocks_, together_ = 1;
    bool grouped_;
};

}  // namespace fovea
