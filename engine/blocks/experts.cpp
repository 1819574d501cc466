// A row's feed-forward part is the sum of a few experts' (Shazeer et al. 2017, eq. 1 and 2):
//
//     p = softmax(W_router · norm(x)) over all experts, or the sigmoid of each
//     C: the k experts with the largest p; of equal ones, the lower number. A learned number may be added to p for the choice
//     alone. With groups of experts (DeepSeek-AI 2024, section 2.1.2) only those of the best groups are chosen from
//     w_e = p_e, or p_e / Σ of p over C; times routed_scale. Or (Liu et al. 2023) C is chosen one by one, and w_e is e's share of e^p
//     among what is left then and close to it
//     sum = Σ over e in C, ascending, of w_e·f_e(norm(x)), or of f_e(w_e·norm(x));  then + sigmoid(gate · norm(x))·f_shared(norm(x))
//     x = x + sum, with the norms and the scale that a block's other parts have too
//
// With norms of their own the router, the experts and the shared one read router_norm(x), expert_norm(x) and norm(x); w_e is multiplied
// by a learned number; and sum = post_norm(the chosen ones' sum) + shared_post_norm(f_shared).
//
// A row's sum has one order, whoever computes it and whatever rows are in the pass. The rows that chose an expert are its
// *batch* (section 3.1), so that each chosen expert's weights are read once and others' not at all. Batches that together
// have no more slots than the arena has rows are a *wave*. Waves are computed one after another.
#include "engine/blocks/experts.h"

#include "engine/blocks/routes.h"
#include "engine/stream/stream.h"

namespace fovea {
namespace {

constexpr std::uint32_t kSumColumns = 256;  // of few rows' sums, a unit of work: a row alone still has some to share

/// Where a row's sum lies in `attended`.
[[nodiscard]] std::uint64_t experts_sum_at(const Block& b) noexcept {
    const std::uint64_t merged = std::uint64_t{b.attention.n_heads} * b.attention.value_head_dim;
    return has(Part::block_variants) && b.feed.parallel ? round_up(merged, kLanes) : 0;
}

class Mixture {
public:
    Mixture(Pass& p, const Layer& layer, const Block& block) noexcept
        : pass_(p),
          t_(p.of_layer(p.workspace.experts())),
          b_(block),
          norms_(norms_of(layer, block)),
          n_rows_(p.seq_len),
          d_model_(p.stack().d_model),
          routes_(p, t_, block.experts, has_own_norms() ? own_norm(t_.router_norm) : norms_.before) {}

    void compute() noexcept {
        routes_.choose();
        Wave wave;
        while (next(wave)) run_wave(wave);
    }
    void finish() noexcept;

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
    /// The operands of a single row, one for each kind of weights that a wave has. They lie in the member's scratch.
    struct RowOperands {
        const void* of_kind[kOperandKinds] = {};
        [[nodiscard]] const void*& of(Type type) noexcept { return of_kind[static_cast<int>(operand_kind(type))]; }
    };

    /// Rows [number·n_rows, (number + 1)·n_rows) of all experts' matrix.
    [[nodiscard]] static Matrix part(const Matrix& all, std::uint32_t number, std::uint32_t n_rows) noexcept {
        Matrix one = all;
        one.offset += std::uint64_t{number} * (n_rows / kLanes) * all.panel_stride;
        one.n_rows = n_rows;
        return one;
    }
    [[nodiscard]] Batch batch_of(std::uint32_t number) const noexcept {
        const std::uint32_t slot = routes_.first_slot(number), n = routes_.n_slots(number);
        if (number == b_.experts.n) return {slot, n, t_.shared_up, t_.shared_down, b_.experts.shared_d_ff};
        const std::uint32_t up_rows = expert_up_rows(b_), down_rows = expert_down_rows(pass_.stack());
        return {slot,
                n,
                part(t_.up, number, up_rows),
                part(t_.down, number, down_rows),
                b_.feed.d_ff,
                part(t_.up_bias, number, up_rows),
                part(t_.down_bias, number, down_rows)};
    }
    [[nodiscard]] static VectorOffset part(VectorOffset all, std::uint32_t number, std::uint32_t n_rows) noexcept {
        return all ? all + std::uint64_t{number} * n_rows * sizeof(float) : 0;
    }

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
    void gather_outputs(const Wave& wave) noexcept;
    void add_up(const Wave& wave) noexcept;
    /// Whether a wave's batch is computed here: by all, or by the rank whose experts have it among them.
    [[nodiscard]] bool is_here(std::uint32_t batch) const noexcept {
        if (!pass_.by_ranks()) return true;
        const UnitShare own = pass_.rank().of(routes_.n_batches());
        return batch >= own.begin && batch < own.end;
    }
    void sum(const Wave& wave, std::uint32_t row, std::uint32_t begin, std::uint32_t end) noexcept;
    [[nodiscard]] static PartNorms norms_of(const Layer& layer, const Block& b) noexcept {
        return has(Part::block_variants) && b.feed.shared_norm ? part_norms(b, layer.self)
                                                               : part_norms(b, layer.feed_forward);
    }
    [[nodiscard]] bool is_added_by_rows() const noexcept {
        return has(Part::block_variants) && (b_.feed.parallel || adds_by_rows(b_));
    }
    /// The sums of rows: behind attention's heads, which are still to come, where both are parallel.
    [[nodiscard]] Rows sums() const noexcept {
        const Rows rows = pass_.attended();
        return {rows.data + experts_sum_at(b_), rows.stride};
    }
    /// Whether experts read rows as they are, so that a single row is one operand for all.
    [[nodiscard]] bool shares_operand() const noexcept {
        return n_rows_ == 1 && !(has(Part::states) && b_.experts.weigh_inputs) && !has_own_norms();
    }
    [[nodiscard]] bool has_own_norms() const noexcept { return has(Part::states) && b_.experts.own_norms; }
    [[nodiscard]] NormWeights own_norm(VectorOffset weight) const noexcept {
        return {b_.norm, weight, 0, b_.norm_epsilon};
    }
    [[nodiscard]] Output stream() const noexcept { return pass_.all(pass_.hidden(), d_model_); }

    Pass& pass_;
    const ExpertTensors& t_;
    const Block& b_;
    const PartNorms norms_;
    const std::uint32_t n_rows_, d_model_;
    Routes routes_;
};

/// The batches after `wave`, as many as have room; false: there are none.
bool Mixture::next(Wave& wave) const noexcept {
    if (pass_.stopped) return false;  // what the lists hold may be of another layer
    const std::uint64_t most = pass_.workspace.map.slots(pass_.workspace.limits);
    wave = {wave.end, wave.end, wave.slot_end, wave.slot_end};
    for (; wave.end < routes_.n_batches(); ++wave.end) {
        const std::uint32_t n = routes_.n_slots(wave.end);
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
    for (std::uint32_t i = wave.begin; i < wave.end; ++i)
        if (is_here(i)) n_blocks += RowBlocks(routes_.n_slots(i)).n;
    pass_.phase("operand", {}, in_parts(n_blocks), [&](Pass::Share mine) {
        std::uint32_t first_block = 0;
        for (std::uint32_t i = wave.begin; i < wave.end && first_block < mine.end; ++i) {
            if (!is_here(i)) continue;
            const RowBlocks blocks(routes_.n_slots(i));
            const Pass::Share its = mine.within(first_block, blocks.n);
            for (std::uint32_t block = its.begin; block < its.end; ++block) pack_rows(batch_of(i), blocks[block]);
            first_block += blocks.n;
        }
    });
}

/// Rows of the stream, normed. Slots of the shared expert are the last.
void Mixture::pack_stream(const Wave& wave) noexcept {
    pack(wave, [&](const Batch& batch, RowBlocks::Block block) {
        const std::uint64_t stride = pass_.workspace.map.hidden_stride;
        const bool is_own = has_own_norms() && batch.slot < routes_.first_slot(b_.experts.n);
        const NormWeights norm = is_own ? own_norm(t_.norm) : norms_.before;
        for (std::uint32_t i = 0; i < block.n_rows; ++i) {
            const float* row = pass_.hidden()[routes_.row_of(batch.slot + block.first + i)];
            pass_.norm(norm, row, d_model_, pass_.scratch() + i * stride);
            if (!has(Part::states) || !b_.experts.weigh_inputs) continue;
            const float weight = routes_.weight_of(batch.slot + block.first + i);
            for (std::uint32_t col = 0; col < d_model_; ++col)
                pass_.scratch()[i * stride + col] = pass_.scratch()[i * stride + col] * weight;
        }
        pass_.pack({batch.up.type, batch.n_rows, d_model_}, pass_.scratch(), stride, block, packed_stream(wave, batch));
    });
}

/// Every member makes its own operand of a single row, see Pass::operand.
Mixture::RowOperands Mixture::pack_row(const Wave& wave) noexcept {
    RowOperands operands;
    for (std::uint32_t i = wave.begin; i < wave.end; ++i) {
        if (routes_.n_slots(i) == 0) continue;
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
        is_needed |= routes_.n_slots(i) > 1 || (routes_.n_slots(i) == 1 && is_quantized(batch_of(i).down.type));
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
        if (routes_.n_slots(i) && is_here(i)) total += n_pairs(product_of(batch_of(i)).linear.matrix);
    const auto work = [&](Pass::Share mine) {
        std::uint32_t first = 0;
        for (std::uint32_t i = wave.begin; i < wave.end && first < mine.end; ++i) {
            if (routes_.n_slots(i) == 0 || !is_here(i)) continue;
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
    if (pass_.by_ranks()) gather_outputs(wave);
    add_up(wave);
}

/// To `inner`, by slots.
void Mixture::make_inner(const Wave& wave) noexcept {
    RowOperands of_row;
    if (shares_operand())
        of_row = pack_row(wave);
    else
        pack_stream(wave);
    multiply("inner", wave, [&](const Batch& batch) {
        const Rows inner = pass_.inner(), out{inner[batch.slot - wave.slot_begin], inner.stride};
        const Linear up{.matrix = batch.up,
                        .bias = batch.up_bias,
                        .out = out,
                        .n_stored = batch.d_ff,
                        .epilogue = b_.feed.gated ? Epilogue::gate : Epilogue::store,
                        .activation = b_.feed.activation};
        return Product{up, shares_operand() ? of_row.of(batch.up.type) : packed_stream(wave, batch)};
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

/// Slots are ordered by expert, so that a rank's are successive rows.
void Mixture::gather_outputs(const Wave& wave) noexcept {
    Pass::RankEnds ends;
    for (std::uint32_t r = 0; r < pass_.rank().n; ++r) {
        const UnitShare its = pass_.rank().other(r).of(routes_.n_batches());
        const std::uint32_t end = its.end < wave.begin ? wave.begin : its.end < wave.end ? its.end : wave.end;
        ends[r] = (end == wave.end ? wave.slot_end : routes_.first_slot(end)) - wave.slot_begin;
    }
    pass_.gather_rows(pass_.projected(), ends);
}

/// A phase: a wave's outputs to `attended`; after the last wave that to the stream, where nothing is done to it before.
void Mixture::add_up(const Wave& wave) noexcept {
    const std::uint32_t n_parts =
        n_rows_ <= kFewRows && !has_own_norms() ? (d_model_ + kSumColumns - 1) / kSumColumns : 1;
    const bool is_last = wave.end == routes_.n_batches(), is_block = is_last && !is_added_by_rows();
    const auto add = [&](Pass::Share mine) {
        for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
            const std::uint32_t row = i / n_parts, begin = n_parts > 1 ? i % n_parts * kSumColumns : 0;
            const std::uint32_t end = n_parts > 1 && begin + kSumColumns < d_model_ ? begin + kSumColumns : d_model_;
            sum(wave, row, begin, end);
            float *x = pass_.hidden()[row], *y = sums()[row];
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
    const std::uint32_t k = b_.experts.n_used;
    float* total = sums()[row];
    const float* weights = routes_.weights(row);
    if (wave.slot_begin == 0)
        for (std::uint32_t col = begin; col < end; ++col) total[col] = 0.0f;
    for (std::uint32_t i = 0; i <= k; ++i) {
        if (i == k && !b_.experts.shared_d_ff) break;
        const std::uint32_t slot = routes_.slot(row, i);
        if (slot < wave.slot_begin || slot >= wave.slot_end) continue;
        float* y = pass_.projected()[slot - wave.slot_begin];
        if (i == k && has_own_norms()) {  // what all others give is there
            pass_.norm(own_norm(t_.post_norm), total, d_model_, total);
            pass_.norm(own_norm(t_.shared_post_norm), y, d_model_, y);
        }
        const float weight = has(Part::states) && b_.experts.weigh_inputs ? 1.0f : weights[i];
        for (std::uint32_t col = begin; col < end; ++col) total[col] = total[col] + y[col] * weight;
    }
}

/// What is left where the sum is normed or scaled before it is added, or the stream is normed after.
void Mixture::finish() noexcept {
    if (is_added_by_rows())
        pass_.phase("block", norms_.after.kind == Norm::none ? stream() : Output{}, in_parts(n_rows_),
                    [&](Pass::Share mine) { add_rows(pass_, b_, norms_, sums(), mine); });
    norm_rows(pass_, "block", stream(), norms_.after, pass_.hidden(), pass_.stack().d_model);
}

}  // namespace

void Experts::compute(Pass& pass, const Layer& layer, const Block& block) noexcept {
    if (has(Part::experts)) Mixture(pass, layer, block).compute();
}

void Experts::add(Pass& pass, const Layer& layer, const Block& block) noexcept {
    if (has(Part::experts)) Mixture(pass, layer, block).finish();
}

/// A row's logits, and that of the shared one's gate; what experts make of a row, and its sum.
void ExpertTensors::plan(const Planning& p) noexcept {
    for (const Block& b : p.stack.used_blocks()) {
        const ExpertShape& e = b.experts;
        if (!e.n) continue;
        const bool copied = e.choice_bias || e.n_groups;  // scores that are compared beside those that weigh
        grow_to(p.map.inner_stride, pad(e.n) + kLanes + (copied ? pad(e.n) + pad(e.n_groups) : 0), pad(e.shared_d_ff));
        grow_to(p.map.projected_stride, pad(p.stack.d_model));
        grow_to(p.map.attended_stride, experts_sum_at(b) + pad(p.stack.d_model));
        grow_to(p.widest.operand, e.shared_d_ff);
        grow_to(p.map.n_experts, e.n);
        grow_to(p.map.n_experts_used, e.n_used);
        grow_to(p.map.n_row_batches, e.n_used + (e.shared_d_ff ? 1 : 0));
    }
}

}  // namespace fovea
