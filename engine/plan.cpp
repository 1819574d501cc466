// Model config + limits -> offsets in the arena. Pure, and the same on every machine: nothing here depends on the
// instruction set, on pointer sizes or on the number of cores.
#include "plan.h"

#include "session.h"

namespace fovea {
namespace {

[[nodiscard]] std::uint64_t at_least(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a : b; }
[[nodiscard]] std::uint64_t pad(std::uint64_t n) noexcept { return round_up(n, kLanes); }

/// What a valid configuration may ask for and this version does not compute.
[[nodiscard]] Status check_supported(const Config& config) noexcept {
    const auto refuse = [](const char* what) { return Status{Code::unsupported, what, 0, 0}; };
    if (config.encoder.n_layers) return refuse("a session for an encoder stack");
    const Stack& s = config.decoder;
    if (!s.n_layers) return refuse("a session for a model without a decoder stack");
    if (!s.vocab_size || !s.has_output_head) return refuse("a session for a model without vocabulary and output head");
    if (s.n_token_types) return refuse("token types in a decoder stack");
    if (s.pooling != Pooling::none) return refuse("pooling in a decoder stack");
    if (s.position != Position::none && s.position != Position::learned) return refuse("these stack-wide positions");
    if (s.logit_scale != 1.0f) return refuse("a logit scale other than 1");
    for (std::uint32_t i = 0; i < s.n_blocks; ++i) {
        const Block& b = s.blocks[i];
        if (b.cross_attention) return refuse("cross-attention");
        if (b.n_heads && !b.causal) return refuse("attention without a causal mask in a decoder stack");
        if (b.n_heads && !b.has_output_map) return refuse("attention without an output map");
        if (b.bias_kv || b.zero_attn) return refuse("appended keys and values");
        if (b.position == Position::relative) return refuse("relative positions");
        if (b.norm_place != NormPlace::pre) return refuse("norms after attention or feed-forward");
        const std::uint32_t widths[] = {b.query_width, b.key_width, b.value_width, b.output_width};
        for (const std::uint32_t width : widths)
            if (b.n_heads && width && width != s.d_model) return refuse("projection widths other than d_model");
    }
    return {};
}

[[nodiscard]] Status complete(const Stack& s, Limits& limits) noexcept {
    const auto bad = [](const char* what, std::uint64_t wanted, std::uint64_t had) {
        return Status{Code::bad_limits, what, wanted, had};
    };
    if (limits.max_kv_len == 0) limits.max_kv_len = s.max_positions;
    if (limits.max_kv_len > s.max_positions) return bad("positions at most", s.max_positions, limits.max_kv_len);
    if (limits.max_batch == 0) limits.max_batch = limits.max_kv_len < 192 ? limits.max_kv_len : 192;
    if (limits.max_batch > limits.max_kv_len)
        return bad("tokens together at most", limits.max_kv_len, limits.max_batch);
    if (limits.n_threads < 1 || limits.n_threads > kMaxThreads)
        return bad("threads at most", kMaxThreads, limits.n_threads);
    if (limits.kv_type != Type::f32 && limits.kv_type != Type::f16)
        return bad("or 1 as the cache's type", 0, static_cast<std::uint64_t>(limits.kv_type));
    return {};
}

}  // namespace

std::uint64_t key_cache_bytes(const Block& b, const ArenaMap& map, Type type) noexcept {
    return round_up(b.n_kv_heads * map.capacity * b.head_dim * cache_element_bytes(type), 64);
}

std::uint64_t value_cache_bytes(const Block& b, const ArenaMap& map, Type type) noexcept {
    return round_up(b.n_kv_heads * map.capacity * pad(b.value_head_dim) * cache_element_bytes(type), 64);
}

Status lay_out(const Config& config, Limits& limits, ArenaMap& map) noexcept {
    if (Status status = check(config); !status.ok()) return status;
    if (Status status = check_supported(config); !status.ok()) return status;
    const Stack& s = config.decoder;
    if (Status status = complete(s, limits); !status.ok()) return status;

    map = {};
    map.capacity = round_up(limits.max_kv_len, kLanes);
    map.n_chunks = static_cast<std::uint32_t>((map.capacity + kChunk - 1) / kChunk);
    map.hidden_stride = pad(s.d_model);
    std::uint64_t operand_width = s.d_model;
    std::uint64_t n_heads = 0, head_dim = 0, value_stride = 0, n_rotated = 0, keys = 0, values = 0;
    for (std::uint32_t i = 0; i < s.n_blocks; ++i) {
        const Block& b = s.blocks[i];
        const std::uint64_t queries = pad(std::uint64_t{b.n_heads} * b.head_dim);
        const std::uint64_t key_values =
            pad(std::uint64_t{b.n_kv_heads} * b.head_dim) + pad(std::uint64_t{b.n_kv_heads} * b.value_head_dim);
        const std::uint64_t merged = std::uint64_t{b.n_heads} * b.value_head_dim;
        map.projected_stride = at_least(map.projected_stride, queries + key_values);
        map.attended_stride = at_least(map.attended_stride, pad(merged));
        map.inner_stride = at_least(map.inner_stride, pad(b.d_ff));
        operand_width = at_least(operand_width, at_least(merged, b.d_ff));
        if (b.position == Position::rope) map.rotation_stride = at_least(map.rotation_stride, pad(b.rotary_dim));
        n_rotated += b.position == Position::rope;
        n_heads = at_least(n_heads, b.n_heads);
        head_dim = at_least(head_dim, b.head_dim);
        value_stride = at_least(value_stride, pad(b.value_head_dim));
    }
    for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) {
        keys += key_cache_bytes(s.block(layer), map, limits.kv_type);
        values += value_cache_bytes(s.block(layer), map, limits.kv_type);
    }
    map.partial_stride = value_stride + kLanes;  // o, then m and l
    const std::uint64_t quant_row_bytes = operand_bytes(Type::q8, 1, operand_width);
    map.operand_row_bytes = at_least(operand_bytes(Type::f32, 1, operand_width), quant_row_bytes);
    // A member's own rows: kRowBlock of d_model on their way into an operand, or one and its operand, or one attention
    // task's query and states.
    const std::uint64_t norm_rows =
        at_least(kRowBlock * map.hidden_stride, map.hidden_stride + pad(quant_row_bytes / 4));
    const std::uint64_t attention_rows = kRowBlock * (pad(head_dim) + 2 * value_stride) + 4 * kLanes;
    map.scratch_stride = at_least(norm_rows, attention_rows);

    const std::uint64_t batch = limits.max_batch;
    const auto take = [&](Stretch& stretch, std::uint64_t bytes) {
        stretch = {map.total, bytes};
        map.total += round_up(bytes, kArenaAlignment);
    };
    take(map.state, kSessionStateBytes);
    take(map.team, kTeamBytes);
    take(map.layers, s.n_layers * sizeof(Layer));
    take(map.hidden, batch * map.hidden_stride * 4);
    take(map.projected, batch * map.projected_stride * 4);
    take(map.attended, batch * map.attended_stride * 4);
    take(map.inner, batch * map.inner_stride * 4);
    take(map.operand, batch * map.operand_row_bytes);
    take(map.rotations, n_rotated ? s.n_blocks * batch * 2 * map.rotation_stride * 4 : 0);
    take(map.partials, map.n_chunks > 1 ? n_heads * map.n_chunks * map.partial_stride * 4 : 0);
    take(map.scratch, limits.n_threads * map.scratch_stride * 4);
    take(map.keys, keys);
    take(map.values, values);
    return {};
}

Status make_plan(const Config& config, const Limits& limits, Plan& plan) noexcept {
    Plan made;
    made.limits = limits;
    ArenaMap map;
    if (Status status = lay_out(config, made.limits, map); !status.ok()) return status;
    made.arena_bytes = map.total;
    const auto part = [&](const char* name, const Stretch& stretch) {
        if (stretch.bytes) made.parts[made.n_parts++] = {name, stretch.offset, stretch.bytes};
    };
    part("session", map.state);
    part("team", map.team);
    part("layers", map.layers);
    part("hidden", map.hidden);
    part("projected", map.projected);
    part("attended", map.attended);
    part("inner", map.inner);
    part("operand", map.operand);
    part("rotations", map.rotations);
    part("partials", map.partials);
    part("scratch", map.scratch);
    part("keys", map.keys);
    part("values", map.values);
    plan = made;
    return {};
}

}  // namespace fovea
