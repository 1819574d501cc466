// A row's feed-forward part is the sum of a few experts' (Shazeer et al. 2017, eq. 1 and 2):
//
//     p = softmax(W_router · norm(x)) over all experts, or the sigmoid of each
//     C: the k experts with the largest p; of equal ones, the lower number. A learned number may be added to p for the choice
//     alone. With groups of experts (DeepSeek-AI 2024, section 2.1.2) only those of the best groups are chosen from
//     w_e = p_e, or p_e / Σ of p over C; times routed_scale
//     sum = Σ over e in C, ascending, of w_e·f_e(norm(x));  then + sigmoid(gate · norm(x))·f_shared(norm(x))
//     x = x + sum, with the norms and the scale that a block's other parts have too
//
// A row's sum has one order, whoever computes it and whatever rows are in the pass. The rows that chose an expert are its
// *batch* (section 3.1), so that each chosen expert's weights are read once and others' not at all. Batches that together
// have no more slots than the arena has rows are a *wave*. Waves are computed one after another.
#include "engine/blocks/experts.h"

#include "engine/blocks/stream.h"

namespace fovea {
namespace {

constexpr float kInfinity = __builtin_inff();
constexpr float kLeastTotal = 1e-20f;  // what a sum of sigmoids is at least divided by

/// The lowest number that is not among `chosen` [n], which ascend.
[[nodiscard]] std::uint32_t lowest_left(const std::uint32_t* chosen, std::uint32_t n) noexcept {
    std::uint32_t left = 0;
    for (std::uint32_t i = 0; i < n; ++i) left += chosen[i] == left;
    return left;
}

constexpr std::uint32_t kSumColumns = 256;  // of few rows' sums, a unit of work: a row alone still has some to share

class Mixture {
public:
    Mixture(Pass& p, const Layer& layer, const Block& block) noexcept
        : pass_(p),
          t_(p.workspace.experts()[p.tensors().first_layer + p.layer]),
          b_(block),
          norms_(part_norms(block, layer.feed_forward)),
          n_rows_(p.seq_len),
          d_model_(p.stack().d_model) {
        const WorkspaceState& w = p.workspace;
        const RouteLists at(w.map.routes, w.limits.max_batch, w.map.n_experts_used, w.map.n_experts);
        chosen_ = list(at.chosen);
        slots_ = list(at.slots);
        weights_ = w.floats(at.weights);
        rows_ = list(at.rows);
        first_ = list(at.first);
    }

    void run() noexcept {
        route();
        Wave wave;
        while (next(wave)) run_wave(wave);
        finish();
    }

private:
    /// Batches [begin, end), slots [slot_begin, slot_end): those of experts, then as many as there are rows of the shared one.
    struct Wave {
        std::uint32_t begin = 0, end = 0, slot_begin = 0, slot_end = 0;
        [[nodiscard]] std::uint32_t n_slots() const noexcept { return slot_end - slot_begin; }
    };
    /// One expert, for the rows that chose it.
    struct Batch {
        std::uint32_t slot, n_rows;
        Matrix up, down;
        std::uint32_t d_ff;
        VectorOffset up_bias = 0, down_bias = 0;
    };
    /// A batch's product, and the rows it is of.
    struct Product {
        Linear linear;
        const void* operand;
    };
    /// Of a single row: its operand for each kind of weights that a wave has. They lie in the member's scratch.
    struct RowOperands {
        const void* of_kind[kOperandKinds] = {};
        [[nodiscard]] const void*& of(Type type) noexcept { return of_kind[static_cast<int>(operand_kind(type))]; }
    };

    [[nodiscard]] std::uint32_t* list(ArenaOffset at) const noexcept {
        return reinterpret_cast<std::uint32_t*>(pass_.workspace.arena + at);
    }
    [[nodiscard]] std::uint32_t n_batches() const noexcept { return b_.n_experts + (b_.shared_d_ff ? 1 : 0); }
    [[nodiscard]] std::uint32_t n_chosen() const noexcept { return n_rows_ * b_.n_experts_used; }
    [[nodiscard]] std::uint32_t first_slot(std::uint32_t batch) const noexcept {
        return batch < b_.n_experts ? first_[batch] : n_chosen();
    }
    [[nodiscard]] std::uint32_t n_slots(std::uint32_t batch) const noexcept {
        return batch < b_.n_experts ? first_[batch + 1] - first_[batch] : n_rows_;
    }
    [[nodiscard]] std::uint32_t row_of(std::uint32_t slot) const noexcept {
        return slot < n_chosen() ? rows_[slot] : slot - n_chosen();
    }
    /// Rows [number·n_rows, (number + 1)·n_rows) of all experts' matrix.
    [[nodiscard]] static Matrix part(const Matrix& all, std::uint32_t number, std::uint32_t n_rows) noexcept {
        Matrix one = all;
        one.offset += std::uint64_t{number} * (n_rows / kLanes) * all.panel_stride;
        one.n_rows = n_rows;
        return one;
    }
    [[nodiscard]] Batch batch_of(std::uint32_t number) const noexcept {
        const std::uint32_t slot = first_slot(number), n = n_slots(number);
        if (number == b_.n_experts) return {slot, n, t_.shared_up, t_.shared_down, b_.shared_d_ff};
        const std::uint32_t up_rows = expert_up_rows(b_), down_rows = expert_down_rows(pass_.stack());
        return {slot,
                n,
                part(t_.up, number, up_rows),
                part(t_.down, number, down_rows),
                b_.d_ff,
                part(t_.up_bias, number, up_rows),
                part(t_.down_bias, number, down_rows)};
    }
    [[nodiscard]] static VectorOffset part(VectorOffset all, std::uint32_t number, std::uint32_t n_rows) noexcept {
        return all ? all + std::uint64_t{number} * n_rows * sizeof(float) : 0;
    }

    void route() noexcept;
    void choose(std::uint32_t row) noexcept;
    float score(float* p) const noexcept;
    float* compared(float* p, float total) const noexcept;
    [[nodiscard]] float group_score(const float* c) const noexcept;
    void leave_out_groups(float* c, float* scores) const noexcept;
    void sort_by_expert() noexcept;
    [[nodiscard]] bool next(Wave& wave) const noexcept;
    void run_wave(const Wave& wave) noexcept;
    template<class Pack>
    void pack(const Wave& wave, const Pack& pack_rows) noexcept;
    void pack_stream(const Wave& wave) noexcept;
    [[nodiscard]] RowOperands pack_row(const Wave& wave) noexcept;
    void pack_inner(const Wave& wave) noexcept;
    [[nodiscard]] std::byte* packed_stream(const Wave& wave, const Batch& batch) const noexcept;
    [[nodiscard]] std::byte* packed_inner(const Wave& wave, const Batch& batch) const noexcept;
    [[nodiscard]] const void* inner_operand(const Wave& wave, const Batch& batch) const noexcept;
    template<class Of>
    void multiply(const char* name, const Wave& wave, const Of& product_of) noexcept;
    void make_inner(const Wave& wave) noexcept;
    void make_outputs(const Wave& wave) noexcept;
    void add_up(const Wave& wave) noexcept;
    void sum(const Wave& wave, std::uint32_t row, std::uint32_t begin, std::uint32_t end) noexcept;
    void finish() noexcept;
    [[nodiscard]] bool is_added_by_rows() const noexcept { return has(Part::block_variants) && adds_by_rows(b_); }
    [[nodiscard]] Output stream() const noexcept { return pass_.all(pass_.hidden(), d_model_); }

    Pass& pass_;
    const ExpertTensors& t_;
    const Block& b_;
    const PartNorms norms_;
    const std::uint32_t n_rows_, d_model_;
    std::uint32_t *chosen_, *slots_, *rows_, *first_;
    float* weights_;
};

/// Logits to `inner`, the shared expert's behind them in a panel of its own; then who computes what.
void Mixture::route() noexcept {
    const Rows logits = pass_.inner();
    const Rows beside{logits.data + round_up(b_.n_experts, kLanes), logits.stride};
    const Linear linears[] = {{.matrix = t_.router, .bias = t_.router_bias, .out = logits, .n_stored = b_.n_experts},
                              {.matrix = t_.shared_gate, .out = beside, .n_stored = 1}};
    const auto multiply_by = [&](std::span<const Linear> products, const Output& output) {
        const Type type = products[0].matrix.type;
        const void* operand = pass_.operand(type, pass_.hidden(), n_rows_, d_model_, norms_.before);
        pass_.multiply("router", output, products, operand, n_rows_);
    };
    const Output output = pass_.all(logits, b_.n_experts);
    const bool one_operand = operand_kind(t_.router.type) == operand_kind(t_.shared_gate.type);
    multiply_by(std::span(linears).first(b_.shared_gate && one_operand ? 2 : 1), output);
    if (b_.shared_gate && !one_operand) multiply_by(std::span(linears).subspan(1), {});

    pass_.phase("routed", {}, in_parts(n_rows_), [&](Pass::Share mine) {
        for (std::uint32_t row = mine.begin; row < mine.end; ++row) choose(row);
        if (n_rows_ == 1 && mine.begin < mine.end) sort_by_expert();
    });
    if (n_rows_ > 1)
        pass_.phase("grouped", {}, in_parts(1), [&](Pass::Share mine) {
            if (mine.begin < mine.end) sort_by_expert();
        });
}

/// A row's logits become scores, in place: what softmax divides, or sigmoids. Returns their divisor.
float Mixture::score(float* p) const noexcept {
    const std::uint32_t n = b_.n_experts;
    const UnaryTable& unary = pass_.workspace.kernels->floats.unary;
    const bool sigmoid = b_.router_score == RouterScore::sigmoid;
    float largest = p[0], total = 0.0f;
    for (std::uint32_t i = 1; i < n; ++i) largest = p[i] > largest ? p[i] : largest;
    for (std::uint32_t i = 0; i < n; ++i) p[i] = sigmoid ? -p[i] : p[i] - largest;
    unary[static_cast<int>(Unary::exp)](p, n, p);
    if (sigmoid)
        for (std::uint32_t i = 0; i < n; ++i) p[i] = 1.0f / (1.0f + p[i]);
    for (std::uint32_t i = 0; i < n; ++i) total = total + p[i];
    return sigmoid ? 1.0f : total;
}

/// What decides a row's choice: its scores themselves or, behind them, a copy to which more is added and in which experts of
/// groups that are not used are −∞.
float* Mixture::compared(float* p, float total) const noexcept {
    const std::uint32_t n = b_.n_experts;
    if (!b_.choice_bias && !b_.n_expert_groups) return p;
    float* c = p + round_up(n, kLanes) + kLanes;
    const float* bias = pass_.workspace.vector(t_.choice_bias);
    for (std::uint32_t i = 0; i < n; ++i) c[i] = bias ? p[i] / total + bias[i] : p[i];
    if (b_.n_expert_groups) leave_out_groups(c, c + round_up(n, kLanes));
    return c;
}

/// Of a group whose experts start at c: the largest or, where there is a bias, the sum of the two largest.
float Mixture::group_score(const float* c) const noexcept {
    float first = -kInfinity, second = -kInfinity;
    for (std::uint32_t i = 0; i < b_.n_experts / b_.n_expert_groups; ++i) {
        if (c[i] > first)
            second = first, first = c[i];
        else if (c[i] > second)
            second = c[i];
    }
    return b_.choice_bias && second > -kInfinity ? first + second : first;
}

/// Those of the largest scores are used, of equal ones the lower. `scores` [n_expert_groups] is room for them.
void Mixture::leave_out_groups(float* c, float* scores) const noexcept {
    const std::uint32_t n_groups = b_.n_expert_groups, n = b_.n_experts / n_groups;  // experts of each
    for (std::uint32_t g = 0; g < n_groups; ++g) scores[g] = group_score(c + n * g);
    for (std::uint32_t g = 0; g < n_groups; ++g) {
        std::uint32_t n_before = 0;  // groups that come first
        for (std::uint32_t h = 0; h < n_groups; ++h)
            n_before += scores[h] > scores[g] || (scores[h] == scores[g] && h < g);
        if (n_before >= b_.n_groups_used)
            for (std::uint32_t i = 0; i < n; ++i) c[n * g + i] = -kInfinity;
    }
}

/// One row's experts and their weights. What is chosen becomes −∞ in what is compared; where a NaN or infinities leave nothing
/// to compare, the lowest are chosen.
void Mixture::choose(std::uint32_t row) noexcept {
    const std::uint32_t n = b_.n_experts, k = b_.n_experts_used;
    float* p = pass_.inner()[row];
    float total = score(p);
    float* c = compared(p, total);

    std::uint32_t* chosen = chosen_ + std::uint64_t{row} * k;
    float* weights = weights_ + std::uint64_t{row} * (k + 1);
    for (std::uint32_t n_chosen = 0; n_chosen < k; ++n_chosen) {
        std::uint32_t best = n;
        for (std::uint32_t i = 0; i < n; ++i)
            if (c[i] != -kInfinity && (best == n || c[i] > c[best])) best = i;
        if (best == n) best = lowest_left(chosen, n_chosen);
        std::uint32_t at = n_chosen;
        for (; at > 0 && chosen[at - 1] > best; --at) chosen[at] = chosen[at - 1], weights[at] = weights[at - 1];
        chosen[at] = best;
        weights[at] = p[best];
        c[best] = -kInfinity;
    }
    if (b_.normalize_experts) {
        total = 0.0f;
        for (std::uint32_t i = 0; i < k; ++i) total = total + weights[i];
        if (b_.router_score == RouterScore::sigmoid) total = total + kLeastTotal;
    }
    for (std::uint32_t i = 0; i < k; ++i) weights[i] = weights[i] / total;
    if (b_.routed_scale != 0.0f)
        for (std::uint32_t i = 0; i < k; ++i) weights[i] = weights[i] * b_.routed_scale;
    weights[k] = 1.0f;
    if (!b_.shared_gate) return;
    float gate = -p[round_up(n, kLanes)];
    const UnaryTable& unary = pass_.workspace.kernels->floats.unary;
    unary[static_cast<int>(Unary::exp)](&gate, 1, &gate);
    weights[k] = 1.0f / (1.0f + gate);
}

/// Slots by counting: an expert's rows ascend.
void Mixture::sort_by_expert() noexcept {
    const std::uint32_t n = b_.n_experts;
    for (std::uint32_t i = 0; i <= n; ++i) first_[i] = 0;
    for (std::uint32_t i = 0; i < n_chosen(); ++i) ++first_[chosen_[i] + 1];
    for (std::uint32_t i = 0; i < n; ++i) first_[i + 1] += first_[i];
    for (std::uint32_t i = 0; i < n_chosen(); ++i) {
        slots_[i] = first_[chosen_[i]]++;
        rows_[slots_[i]] = i / b_.n_experts_used;
    }
    for (std::uint32_t i = n; i > 0; --i) first_[i] = first_[i - 1];
    first_[0] = 0;
}

/// The batches after `wave`, as many as have room; false: there are none.
bool Mixture::next(Wave& wave) const noexcept {
    if (pass_.stopped) return false;  // what the lists hold may be of another layer
    const std::uint64_t most = pass_.workspace.map.slots(pass_.workspace.limits);
    wave = {wave.end, wave.end, wave.slot_end, wave.slot_end};
    for (; wave.end < n_batches(); ++wave.end) {
        const std::uint32_t n = n_slots(wave.end);
        if (std::uint64_t{wave.n_slots()} + n > most) break;
        wave.slot_end += n;
    }
    return wave.n_slots() != 0;
}

/// Where the operand starts that a batch's rows of the stream are packed into.
std::byte* Mixture::packed_stream(const Wave& wave, const Batch& batch) const noexcept {
    // Slots before it in the wave are experts', which are all of one type and width.
    return pass_.workspace.arena + pass_.workspace.map.operand +
           operand_bytes(t_.up.type, batch.slot - wave.slot_begin, t_.up.n_cols);
}

/// The same of what its `up` made of them.
std::byte* Mixture::packed_inner(const Wave& wave, const Batch& batch) const noexcept {
    return pass_.workspace.arena + pass_.workspace.map.operand +
           operand_bytes(t_.down.type, batch.slot - wave.slot_begin, t_.down.n_cols);
}

/// A phase: pack_rows(batch, block) for every block of every batch's rows.
template<class Pack>
void Mixture::pack(const Wave& wave, const Pack& pack_rows) noexcept {
    std::uint32_t n_blocks = 0;
    for (std::uint32_t i = wave.begin; i < wave.end; ++i) n_blocks += RowBlocks(n_slots(i)).n;
    pass_.phase("operand", {}, in_parts(n_blocks), [&](Pass::Share mine) {
        std::uint32_t first_block = 0;
        for (std::uint32_t i = wave.begin; i < wave.end && first_block < mine.end; ++i) {
            const RowBlocks blocks(n_slots(i));
            const Pass::Share its = mine.within(first_block, blocks.n);
            for (std::uint32_t block = its.begin; block < its.end; ++block) pack_rows(batch_of(i), blocks[block]);
            first_block += blocks.n;
        }
    });
}

/// Rows of the stream, normed.
void Mixture::pack_stream(const Wave& wave) noexcept {
    pack(wave, [&](const Batch& batch, RowBlocks::Block block) {
        const std::uint64_t stride = pass_.workspace.map.hidden_stride;
        for (std::uint32_t i = 0; i < block.n_rows; ++i) {
            const float* row = pass_.hidden()[row_of(batch.slot + block.first + i)];
            pass_.norm(norms_.before, row, d_model_, pass_.scratch() + i * stride);
        }
        pass_.pack({batch.up.type, batch.n_rows, d_model_}, pass_.scratch(), stride, block, packed_stream(wave, batch));
    });
}

/// Of a single row every member makes its own, see Pass::operand.
Mixture::RowOperands Mixture::pack_row(const Wave& wave) noexcept {
    RowOperands operands;
    for (std::uint32_t i = wave.begin; i < wave.end; ++i) {
        if (n_slots(i) == 0) continue;
        const Type type = batch_of(i).up.type;
        const void*& operand = operands.of(type);
        if (!operand) operand = pass_.operand(type, pass_.hidden(), 1, d_model_, norms_.before);
    }
    return operands;
}

/// What `up` made. One row of floats is its own operand, so that few rows may need no phase.
void Mixture::pack_inner(const Wave& wave) noexcept {
    bool is_needed = false;
    for (std::uint32_t i = wave.begin; i < wave.end; ++i)
        is_needed |= n_slots(i) > 1 || (n_slots(i) == 1 && is_quantized(batch_of(i).down.type));
    if (!is_needed) return;
    pack(wave, [&](const Batch& batch, RowBlocks::Block block) {
        const Rows inner = pass_.inner();
        pass_.pack({batch.down.type, batch.n_rows, batch.d_ff}, inner[batch.slot - wave.slot_begin + block.first],
                   inner.stride, block, packed_inner(wave, batch));
    });
}

const void* Mixture::inner_operand(const Wave& wave, const Batch& batch) const noexcept {
    if (batch.n_rows == 1 && !is_quantized(batch.down.type)) return pass_.inner()[batch.slot - wave.slot_begin];
    return packed_inner(wave, batch);
}

/// A phase: a product for every batch, as product_of(batch) has it with its operand; panels shared out as if they were one
/// matrix.
template<class Of>
void Mixture::multiply(const char* name, const Wave& wave, const Of& product_of) noexcept {
    std::uint32_t total = 0;
    for (std::uint32_t i = wave.begin; i < wave.end; ++i)
        if (n_slots(i)) total += n_pairs(product_of(batch_of(i)).linear.matrix);
    const auto work = [&](Pass::Share mine) {
        std::uint32_t first = 0;
        for (std::uint32_t i = wave.begin; i < wave.end && first < mine.end; ++i) {
            if (n_slots(i) == 0) continue;
            const Batch batch = batch_of(i);
            const Product product = product_of(batch);
            const std::uint32_t n = n_pairs(product.linear.matrix);
            pass_.multiply({&product.linear, 1}, product.operand, batch.n_rows, mine.within(first, n));
            first += n;
        }
    };
    pass_.phase(name, {}, pass_.pairs(total, wave.n_slots()), work);
}

void Mixture::run_wave(const Wave& wave) noexcept {
    make_inner(wave);
    make_outputs(wave);
    add_up(wave);
}

/// To `inner`, by slots.
void Mixture::make_inner(const Wave& wave) noexcept {
    RowOperands of_row;
    if (n_rows_ == 1)
        of_row = pack_row(wave);
    else
        pack_stream(wave);
    multiply("inner", wave, [&](const Batch& batch) {
        const Rows inner = pass_.inner(), out{inner[batch.slot - wave.slot_begin], inner.stride};
        const Linear up{.matrix = batch.up,
                        .bias = batch.up_bias,
                        .out = out,
                        .n_stored = batch.d_ff,
                        .epilogue = b_.gated ? Epilogue::gate : Epilogue::store,
                        .activation = b_.activation};
        return Product{up, n_rows_ == 1 ? of_row.of(batch.up.type) : packed_stream(wave, batch)};
    });
}

/// To `projected`, by slots.
void Mixture::make_outputs(const Wave& wave) noexcept {
    pack_inner(wave);
    multiply("experts", wave, [&](const Batch& batch) {
        const Rows made = pass_.projected(), out{made[batch.slot - wave.slot_begin], made.stride};
        return Product{{.matrix = batch.down, .bias = batch.down_bias, .out = out, .n_stored = d_model_},
                       inner_operand(wave, batch)};
    });
}

/// A phase: a wave's outputs to `attended`; after the last wave that to the stream, where nothing is done to it before.
void Mixture::add_up(const Wave& wave) noexcept {
    const std::uint32_t n_parts = n_rows_ <= kFewRows ? (d_model_ + kSumColumns - 1) / kSumColumns : 1;
    const bool is_last = wave.end == n_batches(), is_block = is_last && !is_added_by_rows();
    const auto add = [&](Pass::Share mine) {
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
            const std::uint32_t row = i / n_parts, begin = n_parts > 1 ? i % n_parts * kSumColumns : 0;
            const std::uint32_t end = n_parts > 1 && begin + kSumColumns < d_model_ ? begin + kSumColumns : d_model_;
            sum(wave, row, begin, end);
            float *x = pass_.hidden()[row], *y = pass_.attended()[row];
            if (is_block)
                for (std::uint32_t col = begin; col < end; ++col) x[col] = x[col] + y[col];
        }
    };
    const Output added = norms_.after.kind == Norm::none ? stream() : Output{};
    if (is_block)
        pass_.phase("block", added, in_parts(n_rows_ * n_parts), add);
    else
        pass_.phase("experts", {}, in_parts(n_rows_ * n_parts), add);
}

/// Adds the wave's outputs of one row to what `attended` has of those before: columns [begin, end).
void Mixture::sum(const Wave& wave, std::uint32_t row, std::uint32_t begin, std::uint32_t end) noexcept {
    const std::uint32_t k = b_.n_experts_used;
    float* total = pass_.attended()[row];
    const float* weights = weights_ + std::uint64_t{row} * (k + 1);
    if (wave.slot_begin == 0)
        for (std::uint32_t col = begin; col < end; ++col) total[col] = 0.0f;
    for (std::uint32_t i = 0; i <= k; ++i) {
        if (i == k && !b_.shared_d_ff) break;
        const std::uint32_t slot = i < k ? slots_[std::uint64_t{row} * k + i] : n_chosen() + row;
        if (slot < wave.slot_begin || slot >= wave.slot_end) continue;
        const float* y = pass_.projected()[slot - wave.slot_begin];
        for (std::uint32_t col = begin; col < end; ++col) total[col] = total[col] + y[col] * weights[i];
    }
}

/// What is left where the sum is normed or scaled before it is added, or the stream is normed after.
void Mixture::finish() noexcept {
    if (is_added_by_rows())
        pass_.phase("block", norms_.after.kind == Norm::none ? stream() : Output{}, in_parts(n_rows_),
                    [&](Pass::Share mine) { add_rows(pass_, b_, norms_, pass_.attended(), mine); });
    norm_rows(pass_, "block", stream(), norms_.after, pass_.hidden(), pass_.stack().d_model);
}

}  // namespace

void run_experts(Pass& pass, const Layer& layer, const Block& block) noexcept {
    if (has(Part::experts)) Mixture(pass, layer, block).run();
}

}  // namespace fovea
