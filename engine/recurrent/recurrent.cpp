// A recurrent part (see RecurrentShape and Recurrence), row by row in a sequence's order:
//
//     [q, k, v] = SiLU(convolution of W·norm(x) over time);  z = SiLU(W_z · norm(x))
//     d = softplus(W_d · norm(x) + bias);  b = sigmoid(W_b · norm(x));  g = e^(A·d)
//     o = what the head's state gives for q, once k and v have changed it     (kernels.h: UpdateState)
//     x = x + W_o · norm'(o)·z, or W_o · norm'(o·z)
//
// or, where it has no states, q · convolution(k · v) in place of o and z. A selective part has q, k and d of maps of v, and a d and an A
// for each value; a delta rule by dim may have d and z of maps of narrower rows, has a d for each dim of a key, and maybe a bound of its
// decays. z may be a sigmoid. One row after another is the definition: it does not depend on how a prompt is split. Channels, heads and columns of
// states are shared out among members.
#include "engine/recurrent/recurrent.h"

#include <cmath>
#include <cstring>

#include "engine/model/states.h"

namespace fovea {
namespace {

/// Where the parts of a row lie: what maps make, in `projected`; what the convolution leaves, in `attended`, and what selects behind it.
/// Where a decay follows from the step, selective parts have the step's first map; parts by dim have that and the gate's behind it.
struct RowParts {
    std::uint64_t query, key, value, gate, rate, decay, narrow, end;

    explicit constexpr RowParts(const RecurrentShape& r, bool selects) noexcept
        : query(selects ? pad(r.value_width()) : 0),
          key(query + r.query_width()),
          value(selects ? 0 : key + r.query_width()),
          gate(pad(selects ? key + r.query_width() : value + r.value_width())),
          rate(gate + (r.has_states() ? pad(r.value_width()) : 0)),
          decay(rate + (r.has_states() ? pad(selects ? r.value_width() : r.n_heads) : 0)),
          narrow(decay + (r.has_states() && !selects ? pad(r.n_steps()) : 0)),
          end(narrow + (r.kind == Recurrence::delta_by_dim ? 2 : 1) * pad(r.step_rank)) {}
    explicit constexpr RowParts(const RecurrentShape& r) noexcept : RowParts(r, r.kind == Recurrence::selective) {}
};

[[nodiscard]] Linear part(const Matrix& matrix, VectorOffset bias, const Rows& rows, std::uint64_t at,
                          Activation activation = Activation::none) noexcept {
    return {.matrix = matrix,
            .bias = bias,
            .out = {rows.data + at, rows.stride},
            .n_stored = matrix.n_rows,
            .activation = activation};
}

[[nodiscard]] constexpr bool bounds_decays(const RecurrentShape& r) noexcept {
    return r.kind == Recurrence::delta_by_dim && r.step_most != 0.0f;
}

/// e^(A·d) of each head or of its dims, beside the rate, in a row of what maps make. Where d is the rate itself, it is kept within its
/// bounds.
void make_decays(const Pass& pass, const RecurrentShape& r, VectorOffset weight, float* row) noexcept {
    const FloatKernels& k = pass.workspace.kernels->floats;
    const RowParts at(r);
    float *rate = row + at.rate, *decay = row + at.decay;
    const float* a = pass.workspace.vector(weight);
    const std::uint32_t n_steps = r.n_steps(), n_each = n_steps / r.n_heads;
    const bool bounded = bounds_decays(r);
    for (std::uint32_t head = 0; head < r.n_heads; ++head) {
        if (r.kind == Recurrence::state_space) {
            float d = rate[head];
            if (r.step_most != 0.0f) d = d < r.step_least ? r.step_least : d > r.step_most ? r.step_most : d;
            rate[head] = decay[head] = d;
        }
        if (r.double_rate) rate[head] = 2.0f * rate[head];
        const float factor = bounded ? -a[head] : a[head];
        for (std::uint32_t i = head * n_each; i < (head + 1) * n_each; ++i) decay[i] = factor * decay[i];
    }
    if (bounded) {
        k.unary[static_cast<int>(unary_of(Activation::sigmoid))](decay, n_steps, decay);
        for (std::uint32_t i = 0; i < n_steps; ++i) decay[i] = -r.step_most * decay[i];
    }
    k.unary[static_cast<int>(Unary::exp)](decay, n_steps, decay);
}

class RecurrentPart {
public:
    RecurrentPart(Pass& p, const Block& b) noexcept
        : pass_(p),
          block_(b),
          r_(p.stack().recurrent),
          t_(p.of_layer(p.workspace.recurrent())),
          at_(r_),
          state_offset_(state_bytes(p.stack(), p.layer)) {}

    void run(const NormWeights& norm) noexcept {
        project(norm);
        convolve();
        if (!r_.has_states()) return;
        if (selects()) select();
        update_states();
        gate_and_norm();
    }

private:
    /// A sequence's state of this layer.
    struct LayerState {
        const float* from;  // null: zeros
        float* to;
    };
    [[nodiscard]] LayerState state_of(const Sequence& s) const noexcept {
        const auto [step, first] = pass_.step_of(s);
        const StateStep state = CacheAccess::pool(step.cache)->states->step(CacheAccess::slot(step.cache), first == 0);
        const auto at = [&](auto* bytes) { return bytes ? bytes + state_offset_ : nullptr; };
        return {reinterpret_cast<const float*>(at(state.from)), reinterpret_cast<float*>(at(state.to))};
    }

    [[nodiscard]] bool selects() const noexcept { return r_.kind == Recurrence::selective; }

    void project(const NormWeights& norm) noexcept {
        const Rows out = pass_.projected();
        const bool by_delta = r_.is_delta(), narrow = r_.kind == Recurrence::delta_by_dim && r_.step_rank;
        const std::uint64_t of_step = at_.narrow, of_gate = of_step + pad(r_.step_rank);
        const Linear step = part(t_.step, t_.step_bias, out, by_delta ? at_.decay : at_.rate,
                                 bounds_decays(r_) ? Activation::none : Activation::softplus);
        const Linear gate =
            part(t_.gate, t_.gate_bias, out, at_.gate, r_.sigmoid_gate ? Activation::sigmoid : Activation::silu);
        const Linear parts[] = {part(t_.query, t_.query_bias, out, 0),
                                part(t_.key, t_.key_bias, out, at_.key),
                                part(t_.value, t_.value_bias, out, at_.value),
                                narrow ? part(t_.gate_down, 0, out, of_gate) : gate,
                                narrow ? part(t_.step_down, 0, out, of_step) : step,
                                part(t_.rate, 0, out, at_.rate, Activation::sigmoid)};
        const std::size_t first = selects() ? 2 : 0, end = selects() ? 4 : !r_.has_states() ? 3 : by_delta ? 6 : 5;
        const bool led = has(Part::layer_inputs) && block_.inputs.joins_embedding;  // see LayerInputs::lead
        multiply(std::span(parts).subspan(first, end - first), led ? pass_.attended() : pass_.hidden(),
                 pass_.stack().d_model, norm);
        if (!narrow) return;
        multiply({&step, 1}, {out.data + of_step, out.stride}, r_.step_rank);
        multiply({&gate, 1}, {out.data + of_gate, out.stride}, r_.step_rank);
    }
    /// Products of weights whose operands have one kind go together.
    void multiply(std::span<const Linear> parts, const ConstRows& rows, std::uint32_t width,
                  const NormWeights& norm = {}) noexcept {
        for (std::size_t first = 0, end; first < parts.size(); first = end) {
            const Type type = parts[first].matrix.type;
            for (end = first + 1; end < parts.size() && operand_kind(parts[end].matrix.type) == operand_kind(type);)
                ++end;
            const void* operand = pass_.operand(type, rows, pass_.seq_len, width, norm);
            pass_.multiply("recurrent projections", {}, parts.subspan(first, end - first), operand, pass_.seq_len);
        }
    }

    /// Queries, keys and steps from what the convolution leaves.
    void select() noexcept {
        const Rows values = pass_.attended(), out = pass_.projected(), narrow = {out.data + at_.narrow, out.stride};
        const Linear first[] = {part(t_.query, 0, values, at_.query), part(t_.key, 0, values, at_.key),
                                part(t_.step_down, 0, narrow, 0)};
        multiply(first, values, r_.value_width());
        if (r_.inner_norm_epsilon != 0.0f)
            pass_.phase("recurrent norm", {}, in_parts(pass_.seq_len), [&](Pass::Share mine) {
                for (std::uint32_t row = mine.begin; row < mine.end; ++row) {
                    norm_part(t_.query_norm, r_.key_dim, values[row] + at_.query);
                    norm_part(t_.key_norm, r_.key_dim, values[row] + at_.key);
                    norm_part(t_.step_norm, r_.step_rank, narrow[row]);
                }
            });
        const Linear step = part(t_.step, t_.step_bias, out, at_.rate, Activation::softplus);
        multiply({&step, 1}, narrow, r_.step_rank);
    }
    void norm_part(VectorOffset weight, std::uint32_t n, float* x) const noexcept {
        pass_.norm({Norm::rms, weight, 0, r_.inner_norm_epsilon}, x, n, x);
    }

    /// Units: of each sequence its heads of queries, keys and values, or its panels of channels; then rows, whose rates and decays
    /// follow from the step.
    void convolve() noexcept {
        const std::uint32_t n_queries = r_.n_key_heads, n_of_channels = 2 * n_queries + r_.n_heads;
        const std::uint32_t n_each = r_.convolves_keys() ? n_of_channels : static_cast<std::uint32_t>(n_panels());
        const auto n_sequences = static_cast<std::uint32_t>(pass_.self.size());
        const std::uint32_t n_convolved = n_each * n_sequences, n_rows = r_.convolves_keys() ? pass_.seq_len : 0;
        fill_norms();
        pass_.phase("recurrent convolution", pass_.all(pass_.attended(), r_.n_channels()),
                    in_parts(n_convolved + n_rows), [&](Pass::Share mine) {
                        for (std::uint32_t i = mine.begin; i < mine.end; ++i)
                            i < n_convolved ? convolve(pass_.self[i / n_each], i % n_each)
                                            : make_decays(pass_, r_, t_.decay, pass_.projected()[i - n_convolved]);
                    });
    }
    [[nodiscard]] std::uint64_t n_panels() const noexcept { return (r_.n_channels() + kLanes - 1) / kLanes; }

    /// Channels [first, first + n) of one head, or of one panel.
    void convolve(const Sequence& s, std::uint32_t unit) noexcept {
        const std::uint32_t n_queries = r_.n_key_heads;
        std::uint32_t first = unit * kLanes, n = r_.n_channels() - first < kLanes ? r_.n_channels() - first : kLanes;
        if (r_.convolves_keys()) {
            const bool is_value = unit >= 2 * n_queries;
            first = is_value ? 2 * r_.query_width() + (unit - 2 * n_queries) * r_.value_dim : unit * r_.key_dim;
            n = is_value ? r_.value_dim : r_.key_dim;
        }
        const Rows projected = pass_.projected(), out = pass_.attended();
        const float* row = projected[s.row];
        const LayerState state = state_of(s);
        const auto of_channels = [&](const float* all) { return all ? all + first : nullptr; };
        const bool gated = !r_.has_states();
        pass_.workspace.kernels->floats.convolve({.x = row + (gated ? at_.value : 0) + first,
                                                  .factor = gated ? row + at_.key + first : nullptr,
                                                  .output_factor = gated ? row + first : nullptr,
                                                  .x_stride = static_cast<std::size_t>(projected.stride),
                                                  .n_rows = s.n_rows,
                                                  .n_channels = n,
                                                  .n_taps = r_.n_taps,
                                                  .kernel = pass_.workspace.vector(t_.kernel) + first,
                                                  .kernel_stride = r_.n_channels(),
                                                  .bias = of_channels(pass_.workspace.vector(t_.kernel_bias)),
                                                  .past = of_channels(state.from),
                                                  .kept = state.to + first,
                                                  .out = out[s.row] + first,
                                                  .out_stride = static_cast<std::size_t>(out.stride)});
        if (unit == 0) clear_padding(state);
        if (r_.is_delta() && unit < 2 * n_queries)
            for (std::uint32_t i = 0; i < s.n_rows; ++i) norm_head(out[s.row + i] + first, unit < n_queries);
    }
    /// Behind what the convolution remembers.
    void clear_padding(const LayerState& state) const noexcept {
        const std::uint64_t used = std::uint64_t{r_.n_taps - 1u} * r_.n_channels();
        std::memset(state.to + used, 0, static_cast<std::size_t>(kept_inputs(r_) - used) * sizeof(float));
    }

    /// Length 1 is an RMS norm with a weight of 1/√key_dim. Each member has the weights of keys, then those of queries, in its scratch.
    void fill_norms() noexcept {
        if (!r_.is_delta()) return;
        const float of_key = 1.0f / std::sqrt(static_cast<float>(r_.key_dim)), of_query = of_key * of_key;
        for (std::uint32_t i = 0; i < r_.key_dim; ++i) {
            pass_.scratch()[i] = of_key;
            pass_.scratch()[pad(r_.key_dim) + i] = of_query;
        }
    }
    void norm_head(float* head, bool is_query) const noexcept {
        constexpr float kEpsilon = 1e-6f;  // added to a squared length
        const float* weight = pass_.scratch() + (is_query ? pad(r_.key_dim) : 0);
        pass_.workspace.kernels->floats.rms_norm(head, r_.key_dim, weight, kEpsilon / static_cast<float>(r_.key_dim),
                                                 head);
    }

    /// Units: the panels of each head's state, of one sequence after another. What they give goes where the values were.
    void update_states() noexcept {
        const std::uint32_t n_panels = state_panels(r_), n_each = r_.n_heads * n_panels;
        const auto n_sequences = static_cast<std::uint32_t>(pass_.self.size());
        const Output output = pass_.all({pass_.projected().data, pass_.projected().stride}, r_.value_width());
        pass_.phase("states", output, in_parts(n_each * n_sequences), [&](Pass::Share mine) {
            for (std::uint32_t i = mine.begin; i < mine.end; ++i)
                update(pass_.self[i / n_each], i % n_each / n_panels, i % n_panels);
        });
    }
    void update(const Sequence& s, std::uint32_t head, std::uint32_t panel) noexcept {
        const std::uint32_t key_head = r_.keys_in_turn ? head % r_.n_key_heads : head / (r_.n_heads / r_.n_key_heads);
        const std::uint32_t column = panel * kLanes, left = r_.value_dim - column;
        const Rows projected = pass_.projected(), convolved = pass_.attended();
        const float* row = convolved[s.row];
        const LayerState state = state_of(s);
        const std::uint64_t at =
            kept_inputs(r_) + (std::uint64_t{head} * state_panels(r_) + panel) * r_.key_dim * kLanes;
        const std::uint64_t of_value = std::uint64_t{head} * r_.value_dim + column;
        const float* skip = pass_.workspace.vector(t_.skip);
        const float* exponent = selects() ? pass_.workspace.vector(t_.decay) + of_value : nullptr;
        const std::uint64_t own = selects() ? of_value : head;  // rates and skips
        pass_.workspace.kernels->floats.update_state(
            {.query = row + at_.query + std::uint64_t{key_head} * r_.key_dim,
             .key = row + at_.key + std::uint64_t{key_head} * r_.key_dim,
             .value = row + at_.value + of_value,
             .stride = static_cast<std::size_t>(convolved.stride),
             .decay = projected[s.row] + at_.decay + std::uint64_t{head} * (r_.n_steps() / r_.n_heads),
             .rate = projected[s.row] + at_.rate + own,
             .scalar_stride = static_cast<std::size_t>(projected.stride),
             .skip = skip ? skip + own : nullptr,
             .exponent = exponent,
             .exponent_stride = r_.value_width(),
             .decays_dims = r_.kind == Recurrence::delta_by_dim,
             .from = state.from ? state.from + at : nullptr,
             .state = state.to + at,
             .out = projected[s.row] + of_value,
             .out_stride = static_cast<std::size_t>(projected.stride),
             .n_rows = s.n_rows,
             .key_dim = r_.key_dim,
             .n_values = left < kLanes ? left : kLanes});
    }

    void gate_and_norm() noexcept {
        const Output output = pass_.all(pass_.attended(), r_.value_width());
        pass_.phase("recurrent norm", output, in_parts(pass_.seq_len), [&](Pass::Share mine) {
            for (std::uint32_t row = mine.begin; row < mine.end; ++row)
                gate_and_norm(pass_.projected()[row], pass_.attended()[row]);
        });
    }
    void gate_and_norm(const float* from, float* to) const noexcept {
        const std::uint32_t width = r_.value_width(), n_groups = r_.n_norm_groups;
        const float* gate = from + at_.gate;
        if (r_.gate_first || !n_groups)
            for (std::uint32_t i = 0; i < width; ++i) to[i] = from[i] * gate[i];
        for (std::uint32_t group = 0; group < n_groups; ++group) {
            const std::uint32_t n = width / n_groups, first = group * n, of_weight = r_.shared_norm ? 0 : first;
            const float epsilon = r_.inner_norm_epsilon != 0.0f ? r_.inner_norm_epsilon : block_.norm_epsilon;
            const NormWeights norm{Norm::rms, t_.state_norm + of_weight * sizeof(float), 0, epsilon};
            pass_.norm(norm, (r_.gate_first ? to : from) + first, n, to + first);
        }
        if (n_groups && !r_.gate_first)
            for (std::uint32_t i = 0; i < width; ++i) to[i] = to[i] * gate[i];
    }

    Pass& pass_;
    const Block& block_;
    const RecurrentShape& r_;
    const RecurrentTensors& t_;
    RowParts at_;
    std::uint64_t state_offset_;
};

}  // namespace

void RecurrentTensors::plan(const Planning& p) noexcept {
    bool any = false;
    for (const Block& b : p.stack.used_blocks()) any |= has(Part::states) && b.recurrent;
    if (!any) return;
    const RecurrentShape& r = p.stack.recurrent;
    const RowParts at(r);
    grow_to(p.map.projected_stride, at.end);
    grow_to(p.map.attended_stride, r.kind == Recurrence::selective ? at.gate : pad(r.n_channels()));
    grow_to(p.map.scratch_stride, 2 * pad(r.key_dim));
    grow_to(p.widest.operand, r.value_width(), r.step_rank);
}

void Recurrent::mix(Pass& pass, const Block& block, const NormWeights& norm) noexcept {
    if (has(Part::states)) RecurrentPart(pass, block).run(norm);
}

}  // namespace fovea
