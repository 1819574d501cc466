#include "convert/sources/source_rows.h"

#include "convert/packed/module.h"
#include "convert/sources/lora.h"
#include "convert/sources/recurrent_rows.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {

SourceRows rows_of(const HfConfig& config, const TensorSpec& spec, Within within) {
    const Stack& stack =
        spec.stack == StackIndex::encoder ? config.source.config.encoder : config.source.config.decoder;
    const Block& block = stack.block(spec.role < Role::attention_norm ? 0 : spec.layer);
    if (within == Within::joined) return recurrent_part(stack.recurrent, config.recurrent_rows, spec.role);
    if (within == Within::gate_beside) return beside_gate(block.attention, spec.role);
    if (within != Within::alone) return projection_part(block, spec.role, within);
    SourceRows rows{.n_all = spec.layout == Layout::vector ? spec.n_cols : spec.n_rows};
    if (spec.role == Role::token_embedding) rows.n_all += config.family->n_further_tokens;
    if (spec.role == Role::position_embedding) {
        rows.begin = config.n_skipped_positions;
        rows.n_all += rows.begin;
    }
    return rows;
}

SourceRows projection_part(const Block& b, Role role, Within within) {
    const std::uint32_t in_group = b.attention.n_heads / b.attention.n_kv_heads;
    const bool quartered = within == Within::quartered;
    const std::uint32_t n_groups = quartered                   ? 4
                                   : within == Within::grouped ? b.attention.n_kv_heads
                                                               : 1,
                        of_each = b.attention.n_kv_heads / n_groups;
    const std::uint32_t query = of_each * in_group * b.attention.head_dim, key = of_each * b.attention.head_dim;
    const std::uint32_t value = of_each * b.attention.value_head_dim, all = query + key + value;
    SourceRows part{.n_all = std::uint64_t{all} * n_groups, .stride = n_groups > 1 ? all : 0};
    const auto take = [&](std::uint32_t begin, std::uint32_t run) {
        part.begin = begin;
        part.run = n_groups > 1 ? run : 0;
    };
    switch (role) {
        case Role::key:
        case Role::key_bias: take(quartered ? query + value : query, key); break;
        case Role::value:
        case Role::value_bias: take(quartered ? query : query + key, value); break;
        default: take(0, query);
    }
    return part;
}

void add_low_ranks(const std::vector<LowRank>& all, const std::string& file, const SourceRows& part,
                   std::uint64_t n_cols, bool vector, TensorView& view) {
    for (const LowRank& added : all)
        if (vector || added.n_rows != part.n_all || added.n_cols != n_cols)
            throw host::Error(added.name + ": expected factors of " +
                              (vector ? "a matrix" : shape_words({part.n_all, n_cols})) + ", got " +
                              shape_words({added.n_rows, added.n_cols}) + "; the model's tensor is in " + file);
    if (!view.dequantize) view.group_type = view.type;
    view.dequantize = [plain = view, added = all, first = part.begin, n_cols](std::uint64_t row, float* out) {
        if (plain.dequantize)
            plain.dequantize(row, out);
        else
            read_strided_row(plain, row, static_cast<std::uint32_t>(n_cols), out);
        for (const LowRank& low : added) add_low_rank(low, first + row, out);
    };
    view.groups = {};
    view.col_stride = 1;  // rows come whole now
}

void scale_rows(const std::map<Role, float>& factors, const TensorSpec& spec, TensorView& view) {
    const auto found = factors.find(spec.role);
    if (found == factors.end() || found->second == 1.0f) return;
    if (!view.dequantize) view.group_type = view.type;
    view.dequantize = [plain = view, factor = found->second, n = spec.n_cols](std::uint64_t row, float* out) {
        read_row(plain, row, n, out);
        for (std::uint32_t i = 0; i < n; ++i) out[i] *= factor;
    };
    view.groups = {};
    view.col_stride = 1;  // rows come whole now
}

void read_packed(const SourceTensor& tensor, std::uint64_t first, TensorView& view) {
    const auto packed = tensor.packed;
    view.group_type = packed->type;
    view.dequantize = [packed, first](std::uint64_t row, float* out) { packed->dequantize(first + row, out); };
    if (packed->groups)
        view.groups = [packed, first](std::uint64_t row, QuantizedGroup* out) { packed->groups(first + row, out); };
}

}  // namespace fovea
