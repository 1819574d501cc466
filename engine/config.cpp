#include "fovea/config.h"

#include <cmath>

#include "format.h"

namespace fovea {
namespace {

// With these, a matrix has at most 2^42 elements, a model 2^58, and the largest cache (2^12 layers of 2^22 positions,
// keys and values of 2^22 floats each) 2^59 bytes.
constexpr std::uint32_t kMaxWidth = 1u << 20;   // d_model, a head, d_ff
constexpr std::uint32_t kMaxMerged = 1u << 22;  // all heads of a layer side by side
constexpr std::uint32_t kMaxHeads = 1u << 16;
constexpr std::uint32_t kMaxLayers = 1u << 12;
constexpr std::uint32_t kMaxPositions = 1u << 22;  // as far as sine and cosine go (kernels/constants.h)
constexpr std::uint32_t kMaxVocab = 1u << 24;
constexpr std::uint32_t kMaxTokenTypes = 1u << 16;
constexpr std::uint32_t kMaxBuckets = 1u << 16;

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

template<class Owner, class Value>
struct Field {
    const char* name;
    Value Owner::*member;
    std::uint64_t least, most;
};

/// The first of `fields` that is out of its range; enumerations and counts alike.
template<class Owner, class Value, std::size_t n>
Status check_ranges(const Owner& owner, const Field<Owner, Value> (&fields)[n]) {
    for (const auto& field : fields) {
        const Status s = in_range(field.name, static_cast<std::uint64_t>(owner.*field.member), field.least, field.most);
        if (!s.ok()) return s;
    }
    return kOk;
}

template<class Enum>
Status check_enum(const char* what, Enum value, Enum last) {
    return in_range(what, static_cast<std::uint8_t>(value), 0, static_cast<std::uint8_t>(last));
}

Status first_error(std::span<const Status> checks) {
    for (const Status& s : checks)
        if (!s.ok()) return s;
    return kOk;
}

Status check_finite(const char* what, float value, bool may_be_negative) {
    return std::isfinite(value) && (may_be_negative || value >= 0.0f) ? kOk : invalid(what);
}

/// A flag that asks for something its block or stack does not have.
Status check_needs(const char* what, bool flag, bool has) { return flag && !has ? invalid(what, 0, 1) : kOk; }

Status check_block_fields(const Block& b) {
    static constexpr Field<Block, std::uint32_t> kCounts[] = {
        {"n_heads", &Block::n_heads, 0, kMaxHeads},
        {"n_kv_heads", &Block::n_kv_heads, 0, kMaxHeads},
        {"head_dim", &Block::head_dim, 0, kMaxWidth},
        {"value_head_dim", &Block::value_head_dim, 0, kMaxWidth},
        {"query_width", &Block::query_width, 0, kMaxWidth},
        {"key_width", &Block::key_width, 0, kMaxWidth},
        {"value_width", &Block::value_width, 0, kMaxWidth},
        {"output_width", &Block::output_width, 0, kMaxWidth},
        {"d_ff", &Block::d_ff, 0, kMaxWidth},
        {"window", &Block::window, 0, kMaxPositions},
        {"rotary_dim", &Block::rotary_dim, 0, kMaxWidth},
        {"relative_buckets", &Block::relative_buckets, 0, kMaxBuckets},
        {"relative_max_distance", &Block::relative_max_distance, 0, kMaxPositions},
    };
    const Status checks[] = {
        check_ranges(b, kCounts),
        check_enum("norm", b.norm, Norm::rms),
        check_enum("norm_place", b.norm_place, NormPlace::both),
        check_enum("query_key_norm", b.query_key_norm, Norm::rms),
        check_enum("block position", b.position, Position::relative),
        check_enum("activation", b.activation, Activation::silu),
        check_finite("norm_epsilon", b.norm_epsilon, false),
        check_finite("softmax_scale", b.softmax_scale, true),
        check_finite("score_softcap", b.score_softcap, false),
        check_finite("rope_scale", b.rope_scale, true),
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
    static constexpr Field<Stack, std::uint32_t> kCounts[] = {
        {"n_layers", &Stack::n_layers, 1, kMaxLayers},
        {"d_model", &Stack::d_model, 1, kMaxWidth},
        {"vocab_size", &Stack::vocab_size, 0, kMaxVocab},
        {"max_positions", &Stack::max_positions, 0, kMaxPositions},
        {"n_token_types", &Stack::n_token_types, 0, kMaxTokenTypes},
        {"n_blocks", &Stack::n_blocks, 1, kMaxBlocks},
    };
    const Status checks[] = {
        check_ranges(s, kCounts),
        check_enum("position", s.position, Position::sinusoidal),
        check_enum("embedding_norm", s.embedding_norm, Norm::rms),
        check_enum("final_norm", s.final_norm, Norm::rms),
        check_enum("pooling", s.pooling, Pooling::last),
        check_finite("embedding_scale", s.embedding_scale, true),
        check_finite("final_norm_epsilon", s.final_norm_epsilon, false),
        check_finite("logit_softcap", s.logit_softcap, false),
        check_finite("logit_scale", s.logit_scale, true),
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

/// One tensor's place in the count. Padding is not a parameter, nor are the frequencies of rotary positions.
void count_tensor(const Stack& s, const TensorSpec& t, ParameterCount& count) {
    const Block& b = s.block(t.layer);
    const std::uint64_t size = std::uint64_t{t.n_rows} * t.n_cols;
    switch (t.role) {
        case Role::rope_frequencies: return;
        case Role::token_embedding:
        case Role::position_embedding:
        case Role::type_embedding: count.embedding += size; return;
        case Role::output: count.output += size; return;
        case Role::up: count.feed_forward += std::uint64_t{b.d_ff} * s.d_model * (b.gated ? 2 : 1); return;
        case Role::down: count.feed_forward += size; return;
        case Role::up_bias: count.biases_and_norms += std::uint64_t{b.d_ff} * (b.up_bias + b.gate_bias); return;
        default: (t.layout == Layout::panels ? count.attention : count.biases_and_norms) += size;
    }
}

ParameterCount count_stack(const Stack& s, StackIndex index) {
    ParameterCount count;
    for_each_tensor(s, index, [&](const TensorSpec& t) { count_tensor(s, t, count); });
    return count;
}

void count_first_layer(const Stack& s, ParameterCount& count) {
    const Block& b = s.block(0);
    count.unfactored_value = std::uint64_t{s.d_model} * s.d_model;
    ParameterCount layer;
    for_each_layer_tensor(s, StackIndex::decoder, 0, [&](const TensorSpec& t) { count_tensor(s, t, layer); });
    count.layer_attention = layer.attention;
    count.layer_feed_forward = layer.feed_forward;
    if (b.n_heads == 0) return;
    count.query_head = std::uint64_t{b.head_dim} * or_else(b.query_width, s.d_model);
    count.key_head = std::uint64_t{b.head_dim} * or_else(b.key_width, s.d_model);
    count.value_head = std::uint64_t{b.value_head_dim} * or_else(b.value_width, s.d_model);
    if (b.has_output_map) count.output_head = std::uint64_t{b.value_head_dim} * or_else(b.output_width, s.d_model);
    count.head = count.query_head + count.key_head + count.value_head + count.output_head;
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

ParameterCount count_parameters(const Config& config) noexcept {
    ParameterCount encoder, count;
    if (config.encoder.n_layers) encoder = count_stack(config.encoder, StackIndex::encoder);
    if (config.decoder.n_layers) count = count_stack(config.decoder, StackIndex::decoder);
    count_first_layer(config.decoder.n_layers ? config.decoder : config.encoder, count);
    count.attention += encoder.attention;
    count.feed_forward += encoder.feed_forward;
    count.embedding += encoder.embedding;
    count.output += encoder.output;
    count.biases_and_norms += encoder.biases_and_norms;
    count.total = count.attention + count.feed_forward + count.embedding + count.output + count.biases_and_norms;
    return count;
}

}  // namespace fovea
