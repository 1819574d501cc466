#include "fovea/config.h"

#include <type_traits>

#include "format.h"

namespace fovea {
namespace {

/// Keeps the first thing that is wrong; `wanted` names the bound that was crossed.
struct Checks {
    Status status;

    void expect(bool holds, const char* what, std::uint64_t wanted = 0, std::uint64_t had = 0) {
        if (status.ok() && !holds) status = {Code::config_invalid, what, wanted, had};
    }
    template<class T>
    void operator()(const char* name, T value, std::type_identity_t<T> least, std::type_identity_t<T> most) {
        const bool holds = value >= least && value <= most;  // so that NaN fails
        if constexpr (std::is_floating_point_v<T>)
            expect(holds, name);
        else
            expect(holds, name, static_cast<std::uint64_t>(value < least ? least : most),
                   static_cast<std::uint64_t>(value));
    }
    void flags(const auto&...) {}
    void skip(std::size_t) {}
    /// A flag that asks for something its block or stack must have.
    void needs(const char* what, bool flag, bool has) { expect(!flag || has, what, 0, 1); }
};

void check_positions(const Block& b, Checks& check) {
    switch (b.position) {
        case Position::none: return;
        case Position::rope:
            check.expect(b.head_dim % 2 == 0, "head_dim, even for rotary positions", b.head_dim + 1, b.head_dim);
            check.expect(b.rotary_dim % 2 == 0, "rotary_dim, even", b.rotary_dim + 1, b.rotary_dim);
            return check("rotary_dim", b.rotary_dim, 2, b.head_dim);
        case Position::relative:
            check("relative_buckets", b.relative_buckets, 2, kMaxBuckets);
            return check("relative_max_distance", b.relative_max_distance, 1, kMaxPositions);
        default:  // learned and sinusoidal positions are the stack's
            return check("block position", b.position, Position::rope, Position::rope);
    }
}

/// Attention inside a stack reads and adds to the stack's vectors; a lone attention may have widths of its own.
void check_widths(const Stack& s, const Block& b, Checks& check) {
    if (s.n_layers == 1 && b.d_ff == 0) return;
    const std::uint32_t d = s.d_model;
    const std::uint64_t merged = std::uint64_t{b.n_heads} * b.value_head_dim;
    check.expect(or_else(b.query_width, d) == d, "query_width", d, b.query_width);
    check.expect(or_else(b.key_width, d) == d, "key_width", d, b.key_width);
    check.expect(or_else(b.value_width, d) == d, "value_width", d, b.value_width);
    check.expect(or_else(b.output_width, d) == d, "output_width", d, b.output_width);
    check.expect(b.has_output_map || merged == d, "n_heads times value_head_dim", d, merged);
}

void check_block(const Stack& s, const Block& b, Checks& check) {
    for_each_block_field(b, check);
    check.needs("norm_bias", b.norm_bias, b.norm == Norm::layer || b.query_key_norm == Norm::layer);
    check.needs("norm_bias of an RMS norm", b.norm_bias, b.norm != Norm::rms && b.query_key_norm != Norm::rms);
    check.needs("gate_bias", b.gate_bias, b.gated);
    check.needs("output_bias", b.output_bias, b.has_output_map);
    check.needs("cross_attention", b.cross_attention, b.n_heads != 0);
    if (b.n_heads == 0) {
        check.expect(b.d_ff != 0, "n_heads or d_ff", 1, 0);
        // Their products have no bound without heads, and a plan adds them up.
        check("n_kv_heads", b.n_kv_heads, 0, 0);
        check("head_dim", b.head_dim, 0, 0);
        check("value_head_dim", b.value_head_dim, 0, 0);
        return check.expect(b.position == Position::none, "n_heads", 1, 0);
    }
    check("n_kv_heads", b.n_kv_heads, 1, b.n_heads);
    check("head_dim", b.head_dim, 1, kMaxWidth);
    check("value_head_dim", b.value_head_dim, 1, kMaxWidth);
    check("n_heads times head_dim", std::uint64_t{b.n_heads} * b.head_dim, 1, kMaxMerged);
    check("n_heads times value_head_dim", std::uint64_t{b.n_heads} * b.value_head_dim, 1, kMaxMerged);
    check_positions(b, check);
    check_widths(s, b, check);
    const bool divides = b.n_kv_heads != 0 && b.n_heads % b.n_kv_heads == 0;
    check.expect(divides, "n_kv_heads that divides n_heads", b.n_heads, b.n_kv_heads);
}

void check_stack(const Stack& s, Checks& check) {
    for_each_stack_field(s, check);
    check.needs("embedding_norm_bias", s.embedding_norm_bias, s.embedding_norm == Norm::layer);
    check.needs("final_norm_bias", s.final_norm_bias, s.final_norm == Norm::layer);
    check.needs("has_output_head", s.has_output_head, s.vocab_size != 0);
    check.needs("tied_output", s.tied_output, s.has_output_head);
    check.needs("output_bias of the head", s.output_bias, s.has_output_head);
    check.needs("normalize_pooled", s.normalize_pooled, s.pooling != Pooling::none);
    check.expect(s.n_blocks <= s.n_layers, "n_blocks", s.n_layers, s.n_blocks);
    // Ids and positions from a table need positions that end; vectors without positions do not.
    const bool ends = s.vocab_size || s.position != Position::none;
    check.expect(s.max_positions || !ends, "max_positions", 1, 0);
    const std::size_t n_listed = s.layer_blocks.size();
    check.expect(n_listed == 0 || n_listed == s.n_layers, "layer_blocks", s.n_layers, n_listed);
    if (!check.status.ok()) return;
    for (const std::uint8_t block : s.layer_blocks)
        check.expect(block < s.n_blocks, "a layer's block", s.n_blocks - 1, block);
    for (std::uint32_t i = 0; i < s.n_blocks; ++i) check_block(s, s.blocks[i], check);
}

/// A stack that is not there has nothing else either: many look at one field alone.
struct Absent {
    Checks& check;

    template<class T>
    void operator()(const char*, T value, auto...) {
        if constexpr (!std::is_floating_point_v<T>) check.expect(value == T{}, "n_layers", 1, 0);
    }
    void flags(auto... flag) { check.expect(!(flag || ...), "n_layers", 1, 0); }
    void skip(std::size_t) {}
};

}  // namespace

Status check(const Config& config) noexcept {
    Checks check;
    const auto& [encoder, decoder] = config;
    check.expect(encoder.n_layers || decoder.n_layers, "n_layers", 1, 0);
    Absent absent{check};
    for (const Stack* s : {&encoder, &decoder})
        if (!s->n_layers) for_each_stack_field(*s, absent);
    if (encoder.n_layers) check_stack(encoder, check);
    for (std::uint32_t i = 0; check.status.ok() && encoder.n_layers && i < encoder.n_blocks; ++i)
        check.expect(!encoder.blocks[i].cross_attention, "cross_attention in the encoder", 0, 1);
    if (decoder.n_layers) check_stack(decoder, check);
    return check.status;
}

}  // namespace fovea
