// What follows the layers: logits, or an encoder's vectors with what its stack's head makes of them.
//
//     rows -> final norm -> pooled, or chosen, or all -> map 0 -> map 1 ... -> output head -> length 1
//
// Maps read and write two places in turn, both of which the layers no longer need: `inner` and `hidden`. The last one
// writes to the caller.
#include "engine/blocks/block.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "engine/stream/stream.h"

namespace fovea {
namespace {

[[nodiscard]] NormWeights final_norm(const Pass& pass) noexcept {
    const Stack& stack = pass.stack();
    return {stack.final_norm, pass.tensors().final_norm, pass.tensors().final_norm_bias, stack.final_norm_epsilon};
}

/// From row `first` of the sequence on.
void set_mean(Pooling pooling, std::uint32_t d_model, const Rows& rows, const Sequence& s, std::uint32_t first,
              float* out) noexcept {
    const bool weighted = pooling == Pooling::weighted_mean;
    float total = 0.0f;  // of the weights
    for (std::uint32_t j = first; j < s.n_rows; ++j) {
        const float* x = rows[s.row + j];
        const auto weight = static_cast<float>(j + 1);
        for (std::uint32_t i = 0; i < d_model; ++i) {
            const float term = weighted ? x[i] * weight : x[i];
            out[i] = j > first ? out[i] + term : term;
        }
        total += weighted ? weight : 1.0f;
    }
    const float divisor = pooling == Pooling::mean_sqrt_len ? std::sqrt(total) : total;
    for (std::uint32_t i = 0; i < d_model; ++i) out[i] = out[i] / divisor;
}

/// One vector for a sequence's rows, as the pass pools. Sums run over the rows in order, element by element.
void pool(const Pass& pass, std::uint32_t sequence, float* out) noexcept {
    const std::uint32_t d_model = pass.stack().d_model;
    const Rows rows = pass.hidden();
    const Sequence& s = pass.self[sequence];
    const std::span<const std::uint32_t> n_unpooled = pass.n_unpooled;
    const std::uint32_t first = sequence < n_unpooled.size() ? n_unpooled[sequence] : 0;
    switch (pass.pooling) {
        case Pooling::mean:
        case Pooling::weighted_mean:
        case Pooling::mean_sqrt_len: return set_mean(pass.pooling, d_model, rows, s, first, out);
        case Pooling::last: std::memcpy(out, rows[s.row + s.n_rows - 1], d_model * sizeof(float)); return;
        case Pooling::max:
            std::memcpy(out, rows[s.row + first], d_model * sizeof(float));
            for (std::uint32_t row = s.row + first + 1; row < s.row + s.n_rows; ++row)
                for (std::uint32_t i = 0; i < d_model; ++i) out[i] = out[i] > rows[row][i] ? out[i] : rows[row][i];
            return;
        default: std::memcpy(out, rows[s.row + first], d_model * sizeof(float));
    }
}

void normalize(float* x, std::uint32_t n) noexcept {
    float squares = 0.0f;
    for (std::uint32_t i = 0; i < n; ++i) squares = squares + x[i] * x[i];
    const float length = std::sqrt(squares);
    if (length > 0.0f)
        for (std::uint32_t i = 0; i < n; ++i) x[i] = x[i] / length;
}

void make_canonical(float* x, std::uint32_t n) noexcept {
    for (std::uint32_t i = 0; i < n; ++i) x[i] = x[i] == x[i] ? x[i] : std::bit_cast<float>(0x7fc00000u);
}

/// Result i before the head: a sequence's vector, or a row.
void take_result(const Pass& pass, std::uint32_t i, float* out) noexcept {
    if (pass.pooling != Pooling::none) return pool(pass, i, out);
    const std::uint32_t row = pass.chosen.empty() ? i : pass.chosen[i];
    std::memcpy(out, pass.hidden()[row], pass.stack().d_model * sizeof(float));
}

/// What is left to do to a result that lies in pass.out.
void finish_results(Pass& pass, std::uint32_t n, bool taken) noexcept {
    const Stack& stack = pass.stack();
    const bool normalizes = stack.normalize_pooled && pass.pooling != Pooling::none;
    if (taken && !normalizes) return;
    const std::uint32_t width = pass.before_head ? stack.d_model : stack.result_width();
    pass.phase(
        "vectors", {}, in_parts(n),
        [&](Pass::Share mine) {
            for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
                float* out = pass.out[i];
                if (!taken) take_result(pass, i, out);
                if (normalizes) normalize(out, width);
                make_canonical(out, width);
            }
        },
        Then::go_on);
}

/// One product of the head, n rows of `from`, which may be normed before, and the norm that may follow.
void map_rows(Pass& pass, const Linear& linear, const ConstRows& from, std::uint32_t n, const NormWeights& before,
              const NormWeights& norm) noexcept {
    const Output output{linear.out, n, linear.n_stored};
    const bool normed = norm.kind != Norm::none;
    const void* operand = pass.operand(linear.matrix.type, from, n, linear.matrix.n_cols, before);
    pass.multiply("head", normed ? Output{} : output, {&linear, 1}, operand, n);
    if (!normed) return;
    pass.phase("head", output, in_parts(n), [&](Pass::Share mine) {
        for (std::uint32_t i = mine.begin; i < mine.end; ++i)
            pass.norm(norm, linear.out[i], linear.n_stored, linear.out[i]);
    });
}

/// logits = softcap((W_out · norm(x) + bias)·scale) of rows x.
void write_logits(Pass& pass, const ConstRows& from, const NormWeights& norm, const Output& logits,
                  Then then) noexcept {
    const Stack& stack = pass.stack();
    const bool softcap = has(Part::block_variants) && stack.logit_softcap != 0.0f;
    const bool scaled = has(Part::block_variants) && stack.logit_scale != 1.0f, changed = softcap || scaled;
    const Matrix& matrix = pass.tensors().output;
    Linear linear{matrix, pass.tensors().output_bias, logits.rows, stack.vocab_size};
    linear.canonical = true;
    const void* operand = pass.operand(matrix.type, from, logits.n_rows, matrix.n_cols,
                                       norm.with(pass.columns(&ColumnTensors::output), matrix));
    pass.multiply("logits", changed ? Output{} : logits, {&linear, 1}, operand, logits.n_rows,
                  changed ? Then::meet : then);
    if (!changed) return;
    const auto scale_and_cap = [&](Pass::Share rows) {
        for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
            float* x = logits.rows[row];
            if (scaled) {
                for (std::uint32_t i = 0; i < stack.vocab_size; ++i) x[i] = x[i] * stack.logit_scale;
                make_canonical(x, stack.vocab_size);
            }
            if (softcap) pass.workspace.kernels->floats.softcap(x, stack.vocab_size, stack.logit_softcap);
        }
    };
    pass.phase("logits", logits, in_parts(logits.n_rows), scale_and_cap, then);
}

/// All maps: of n rows `from` to `to` and `next` in turn, the last without an output head to the caller. Returns the last one's.
ConstRows map_all(Pass& pass, ConstRows from, Rows to, Rows next, std::uint32_t n, NormWeights before) noexcept {
    const Stack& stack = pass.stack();
    const std::uint32_t n_maps = stack.n_head_maps();
    const HeadTensors* maps = pass.workspace.head();
    for (std::uint32_t i = 0; i < n_maps; ++i) {
        const HeadMap& map = stack.head[i];
        const bool is_last = i + 1 == n_maps && !stack.has_output_head;
        const Linear linear{.matrix = maps[i].map,
                            .bias = maps[i].bias,
                            .out = is_last ? pass.out : to,
                            .n_stored = map.width,
                            .activation = map.activation,
                            .canonical = is_last};
        map_rows(pass, linear, from, n, before, {map.norm, maps[i].norm, maps[i].norm_bias, map.norm_epsilon});
        before = {};
        from = to;
        const Rows read = next;
        next = to, to = read;
    }
    return from;
}

void run_head(Pass& pass, std::uint32_t n) noexcept {
    const Stack& stack = pass.stack();
    Rows from = pass.hidden(), to = pass.inner();
    if (pass.pooling != Pooling::none || !pass.chosen.empty()) {
        pass.phase("pooled", {to, n, stack.d_model}, in_parts(n), [&](Pass::Share mine) {
            for (std::uint32_t i = mine.begin; i < mine.end; ++i) take_result(pass, i, to[i]);
        });
        from = pass.inner(), to = pass.hidden();
    }
    const ConstRows made = map_all(pass, from, to, from, n, {});
    if (stack.has_output_head) write_logits(pass, made, {}, {pass.out, n, stack.vocab_size}, Then::meet);
}

}  // namespace

/// Maps read and write `inner` and `hidden` in turn; what the last one makes goes to the caller.
void HeadTensors::plan(const Planning& p) noexcept {
    const Stack& s = p.stack;
    const std::uint32_t n_maps = s.n_head_maps();
    if (n_maps || (s.has_output_head && p.kind != Kind::decode)) grow_to(p.map.inner_stride, pad(s.d_model));
    for (std::uint32_t i = 0; i < n_maps; ++i) {
        if (i + 1 == n_maps && !s.has_output_head) break;
        grow_to(p.map.inner_stride, pad(s.head[i].width));
        grow_to(p.map.hidden_stride, pad(s.head[i].width));
        grow_to(p.widest.operand, s.head[i].width);
    }
}

namespace {

/// Step::vectors of the pass's rows.
void keep_vectors(Pass& pass) noexcept {
    const Stack& stack = pass.stack();
    const auto keep = [&](Pass::Share mine) {
        for (const Sequence& s : pass.self) {
            const StepRows its = pass.step_of(s);
            const std::size_t first = n_rows(stack, its.step) - its.step.vectors.size() / stack.d_model;
            for (auto [row, end] = mine.within(s.row, s.n_rows); row < end; ++row) {
                if (its.first + row < first) continue;
                float* out = &its.step.vectors[(its.first + row - first) * stack.d_model];
                pass.norm(final_norm(pass), pass.hidden()[s.row + row], stack.d_model, out);
                make_canonical(out, stack.d_model);
            }
        }
    };
    if (PassSteps(pass.steps).list) pass.phase("vectors", {}, in_parts(pass.seq_len), keep, Then::go_on);
}

}  // namespace

void StackHead::logits(Pass& pass) noexcept {
    if (has(Part::rows)) keep_vectors(pass);
    const std::uint32_t n_rows = pass.n_logits, first = pass.seq_len - n_rows;
    if (n_rows == 0) return;
    ConstRows rows = pass.logit_rows.each ? pass.logit_rows : ConstRows(pass.hidden()[first], pass.hidden().stride);
    NormWeights norm = final_norm(pass);
    if (has(Part::vectors) && pass.stack().n_head_maps()) {
        rows = map_all(pass, rows, pass.inner(), pass.hidden(), n_rows, norm);
        norm = {};
    }
    write_logits(pass, rows, norm, {pass.logits, n_rows, pass.stack().vocab_size, pass.pos + first}, Then::go_on);
}

void StackHead::vectors(Pass& pass) noexcept {
    const Stack& stack = pass.stack();
    norm_rows(pass, "vectors", {}, final_norm(pass), pass.hidden(), pass.stack().d_model);
    const std::size_t n_chosen = pass.chosen.empty() ? pass.seq_len : pass.chosen.size();
    const auto n = static_cast<std::uint32_t>(pass.pooling != Pooling::none ? pass.self.size() : n_chosen);
    const bool has_head = !pass.before_head && (stack.n_head_maps() || stack.has_output_head);
    if (has_head) run_head(pass, n);
    finish_results(pass, n, has_head);
}

}  // namespace fovea
