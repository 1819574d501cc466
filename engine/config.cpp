#include "fovea/config.h"

#include <type_traits>

#include "format.h"

namespace fovea {
namespace {

constexpr Status kOk{};

Status invalid(const char* what, std::uint64_t wanted = 0, std::uint64_t had = 0) {
    return {Code::config_invalid, what, wanted, had};
}

/// `wanted` names the bound that was crossed.
Status in_range(const char* what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (value < least) return invalid(what, least, value);
    if (value > most) return invalid(what, most, value);
    return kOk;
}

/// The first of a record's fields that is out of its range.
struct RangeCheck {
    Status status;

    template<class T>
    void operator()(const char* name, T value, std::type_identity_t<T> least, std::type_identity_t<T> most) {
        if (!status.ok() || (value >= least && value <= most)) return;  // so that NaN fails
        if constexpr (std::is_floating_point_v<T>)
            status = invalid(name);
        else
            status = in_range(name, static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(least),
                              static_cast<std::uint64_t>(most));
    }
    void flags(const auto&...) {}
    void skip(std::size_t) {}
};

Status first_error(std::span<const Status> checks) {
    for (const Status& s : checks)
        if (!s.ok()) return s;
    return kOk;
}

/// A flag that asks for something its block or stack does not have.
Status check_needs(const char* what, bool flag, bool has) { return flag && !has ? invalid(what, 0, 1) : kOk; }

Status check_block_fields(const Block& b) {
    RangeCheck ranges;
    for_each_block_field(b, ranges);
    const Status checks[] = {
        ranges.status,
        check_needs("norm_bias", b.norm_bias, b.norm == Norm::layer || b.query_key_norm == Norm::layer),
        check_needs("norm_bias of an RMS norm", b.norm_bias, b.norm != Norm::rms && b.query_key_norm != Norm::rms),
        check_needs("gate_bias", b.gate_bias, b.gated),
        check_needs("output_bias", b.output_bias, b.has_output_map),
        check_needs("cross_attention", b.cross_attention, b.n_heads != 0),
    };
    return first_error(checks);
}

Status check_positions(const Block& b) {
    switch (b.position) {
        case Position::none: return kOk;
        case Position::rope:
            if (b.head_dim % 2) return invalid("head_dim, even for rotary positions", b.head_dim + 1, b.head_dim);
            if (b.rotary_dim % 2) return invalid("rotary_dim, even", b.rotary_dim + 1, b.rotary_dim);
            return in_range("rotary_dim", b.rotary_dim, 2, b.head_dim);
        case Position::relative: {
            const Status s = in_range("relative_buckets", b.relative_buckets, 2, kMaxBuckets);
            return s.ok() ? in_range("relative_max_distance", b.relative_max_distance, 1, kMaxPositions) : s;
        }
        default:  // learned and sinusoidal positions are the stack's
            return invalid("block position", static_cast<std::uint8_t>(Position::rope),
                           static_cast<std::uint8_t>(b.position));
    }
}

/// Attention inside a stack reads and adds to the stack's vectors; a lone attention may have widths of its own.
Status check_widths(const Stack& s, const Block& b) {
    if (s.n_layers == 1 && b.d_ff == 0) return kOk;
    const std::uint32_t d = s.d_model;
    const std::uint64_t merged = std::uint64_t{b.n_heads} * b.value_head_dim;
    if (or_else(b.query_width, d) != d) return invalid("query_width", d, b.query_width);
    if (or_else(b.key_width, d) != d) return invalid("key_width", d, b.key_width);
    if (or_else(b.value_width, d) != d) return invalid("value_width", d, b.value_width);
    if (or_else(b.output_width, d) != d) return invalid("output_width", d, b.output_width);
    if (!b.has_output_map && merged != d) return invalid("n_heads times value_head_dim", d, merged);
    return kOk;
}

Status check_block(const Stack& s, const Block& b) {
    if (const Status status = check_block_fields(b); !status.ok()) return status;
    if (b.n_heads == 0) {
        if (b.d_ff == 0) return invalid("n_heads or d_ff", 1, 0);
        return b.position == Position::none ? kOk : invalid("n_heads", 1, 0);
    }
    const Status checks[] = {
        in_range("n_kv_heads", b.n_kv_heads, 1, b.n_heads),
        in_range("head_dim", b.head_dim, 1, kMaxWidth),
        in_range("value_head_dim", b.value_head_dim, 1, kMaxWidth),
        in_range("n_heads times head_dim", std::uint64_t{b.n_heads} * b.head_dim, 1, kMaxMerged),
        in_range("n_heads times value_head_dim", std::uint64_t{b.n_heads} * b.value_head_dim, 1, kMaxMerged),
        check_positions(b),
        check_widths(s, b),
    };
    if (const Status status = first_error(checks); !status.ok()) return status;
    if (b.n_heads % b.n_kv_heads) return invalid("n_kv_heads that divides n_heads", b.n_heads, b.n_kv_heads);
    return kOk;
}

Status check_stack_fields(const Stack& s) {
    RangeCheck ranges;
    for_each_stack_field(s, ranges);
    const Status checks[] = {
        ranges.status,
        check_needs("embedding_norm_bias", s.embedding_norm_bias, s.embedding_norm == Norm::layer),
        check_needs("final_norm_bias", s.final_norm_bias, s.final_norm == Norm::layer),
        check_needs("has_output_head", s.has_output_head, s.vocab_size != 0),
        check_needs("tied_output", s.tied_output, s.has_output_head),
        check_needs("output_bias of the head", s.output_bias, s.has_output_head),
        check_needs("normalize_pooled", s.normalize_pooled, s.pooling != Pooling::none),
    };
    return first_error(checks);
}

Status check_stack(const Stack& s) {
    if (const Status status = check_stack_fields(s); !status.ok()) return status;
    if (s.n_blocks > s.n_layers) return invalid("n_blocks", s.n_layers, s.n_blocks);
    // Ids and positions from a table need positions that end; vectors without positions do not.
    if (s.max_positions == 0 && (s.vocab_size || s.position != Position::none)) return invalid("max_positions", 1, 0);
    if (!s.layer_blocks.empty() && s.layer_blocks.size() != s.n_layers)
        return invalid("layer_blocks", s.n_layers, s.layer_blocks.size());
    for (const std::uint8_t block : s.layer_blocks)
        if (block >= s.n_blocks) return invalid("a layer's block", s.n_blocks - 1, block);
    for (std::uint32_t i = 0; i < s.n_blocks; ++i)
        if (const Status status = check_block(s, s.blocks[i]); !status.ok()) return status;
    return kOk;
}

}  // namespace

Status check(const Config& config) noexcept {
    if (config.encoder.n_layers == 0 && config.decoder.n_layers == 0) return invalid("n_layers", 1, 0);
    if (config.encoder.n_layers) {
        if (const Status status = check_stack(config.encoder); !status.ok()) return status;
        for (std::uint32_t i = 0; i < config.encoder.n_blocks; ++i)
            if (config.encoder.blocks[i].cross_attention) return invalid("cross_attention in the encoder", 0, 1);
    }
    return config.decoder.n_layers ? check_stack(config.decoder) : kOk;
}

}  // namespace fovea
