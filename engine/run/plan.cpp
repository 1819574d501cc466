// Model config + limits -> offsets in the arena. Pure, and the same on every machine: nothing here depends on the
// instruction set, on pointer sizes or on the number of cores.
#include "plan.h"

#include "session.h"

namespace fovea {
namespace {

[[nodiscard]] std::uint64_t at_least(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a : b; }
/// x becomes the largest of itself and the others.
void raise(std::uint64_t& x, auto... others) noexcept { ((x = at_least(x, others)), ...); }
// 2^22 rows of every kind: no size overflows, and a sequence's positions fit where the kernels count them.
constexpr std::uint32_t kMaxRows = 1u << 22;

[[nodiscard]] std::uint64_t pad(std::uint64_t n) noexcept { return round_up(n, kLanes); }

[[nodiscard]] Status refuse(const char* what) noexcept { return {Code::unsupported, what, 0, 0}; }

/// What a valid configuration may ask for and this version does not compute.
[[nodiscard]] Status check_block(const Stack& s, const Block& b, Kind kind) noexcept {
    if (b.position == Position::relative) return refuse("relative positions");
    if (b.norm_place == NormPlace::both) return refuse("norms before and after");
    if (b.window && !b.causal) return refuse("a window without a causal mask");
    if (kind == Kind::attend) return {};
    if (b.bare) return refuse("attention without projections in a stack");
    if (b.bias_kv || b.zero_attn) return refuse("appended keys and values in a stack");
    if (b.n_heads && !b.has_output_map) return refuse("attention without an output map in a stack");
    const std::uint32_t widths[] = {b.query_width, b.key_width, b.value_width, b.output_width};
    for (const std::uint32_t width : widths)
        if (b.n_heads && width && width != s.d_model) return refuse("projection widths other than d_model in a stack");
    if (kind == Kind::decode && b.n_heads && !b.causal) return refuse("logits without a causal mask");
    if (kind == Kind::decode && b.cross_attention) return refuse("logits with attention to a memory");
    return {};
}

[[nodiscard]] Status check_stack(const Stack& s, Kind kind, bool is_last) noexcept {
    if (s.position == Position::sinusoidal) return refuse("sinusoidal positions");
    if (s.logit_scale != 1.0f) return refuse("a logit scale other than 1");
    if (kind != Kind::decode && s.has_output_head) return refuse("an output head of an encoder or with a memory");
    if ((kind == Kind::decode || !is_last) && s.pooling != Pooling::none)
        return refuse("pooling before the last stack");
    for (std::uint32_t i = 0; i < s.n_blocks; ++i)
        if (Status status = check_block(s, s.blocks[i], kind); !status.ok()) return status;
    return {};
}

[[nodiscard]] Status check_supported(const Config& config) noexcept {
    const Kind kind = kind_of(config);
    if (config.encoder.n_layers)
        if (Status status = check_stack(config.encoder, kind, !config.decoder.n_layers); !status.ok()) return status;
    if (config.encoder.n_layers && config.decoder.n_layers && config.encoder.d_model != config.decoder.d_model)
        return refuse("an encoder and a decoder of different widths");
    return config.decoder.n_layers ? check_stack(config.decoder, kind, true) : Status{};
}

[[nodiscard]] Status complete(const Config& config, Limits& limits) noexcept {
    const auto bad = [](const char* what, std::uint64_t wanted, std::uint64_t had) {
        return Status{Code::bad_limits, what, wanted, had};
    };
    if (kind_of(config) == Kind::decode) {
        const std::uint32_t most = config.decoder.max_positions;
        for (const std::uint32_t n : {limits.max_sequences, limits.max_memory})
            if (n) return bad("sequences and memory for logits", 0, n);
        if (limits.max_kv_len == 0) limits.max_kv_len = most;
        if (limits.max_kv_len > most) return bad("positions at most", most, limits.max_kv_len);
        if (limits.max_batch == 0) limits.max_batch = limits.max_kv_len < 192 ? limits.max_kv_len : 192;
        if (limits.max_batch > limits.max_kv_len)
            return bad("tokens together at most", limits.max_kv_len, limits.max_batch);
    } else {
        if (limits.max_kv_len) return bad("as max_kv_len without logits", 0, limits.max_kv_len);
        if (limits.max_batch == 0) limits.max_batch = or_else(stack_of(config, last_stack(config)).max_positions, 512);
        if (limits.max_sequences == 0) limits.max_sequences = 1;
        if (limits.max_memory == 0) limits.max_memory = limits.max_batch;
        for (const std::uint32_t n : {limits.max_batch, limits.max_sequences, limits.max_memory})
            if (n > kMaxRows) return bad("rows and sequences at most", kMaxRows, n);
    }
    if (limits.n_threads < 1) return bad("threads at least", 1, 0);
    if (limits.n_threads > kMaxThreads) return bad("threads at most", kMaxThreads, limits.n_threads);
    if (limits.kv_type != Type::f32 && limits.kv_type != Type::f16 && limits.kv_type != Type::q8)
        return bad("or 1 or 3 as the cache's type", 0, static_cast<std::uint64_t>(limits.kv_type));
    return {};
}

/// Raises `map` to what a stack's rows need, and returns its widest attention.
struct Widest {
    std::uint64_t operand = 0, n_heads = 0, head_dim = 0, value_stride = 0;
    bool rotated = false;
};
void widen(const Stack& s, ArenaMap& map, Widest& widest) noexcept {
    raise(map.hidden_stride, pad(s.d_model));
    raise(widest.operand, s.d_model);
    for (std::uint32_t i = 0; i < s.n_blocks; ++i) {
        const Block& b = s.blocks[i];
        const std::uint64_t queries = pad(std::uint64_t{b.n_heads} * b.head_dim);
        const std::uint64_t key_values =
            pad(std::uint64_t{b.n_kv_heads} * b.head_dim) + pad(std::uint64_t{b.n_kv_heads} * b.value_head_dim);
        const std::uint64_t merged = std::uint64_t{b.n_heads} * b.value_head_dim;
        if (!b.bare) {
            raise(map.projected_stride, queries + key_values);
            raise(map.attended_stride, pad(merged));
        }
        raise(map.inner_stride, pad(b.d_ff));
        raise(widest.operand, merged, b.d_ff, b.query_width, b.key_width, b.value_width);
        if (b.position == Position::rope) raise(map.rotation_stride, pad(b.rotary_dim));
        widest.rotated |= b.position == Position::rope;
        raise(widest.n_heads, b.n_heads);
        raise(widest.head_dim, b.head_dim);
        raise(widest.value_stride, pad(b.value_head_dim));
    }
}

}  // namespace

std::uint64_t key_cache_bytes(const Block& b, const ArenaMap& map, Type type) noexcept {
    return round_up(b.n_kv_heads * map.capacity / kLanes * panel_bytes(type, b.head_dim), 64);
}

std::uint64_t value_cache_bytes(const Block& b, const ArenaMap& map, Type type) noexcept {
    return round_up(b.n_kv_heads * map.capacity / kLanes * value_panel_bytes(type, b.value_head_dim), 64);
}

Kind kind_of(const Config& config) noexcept {
    const Stack& last = stack_of(config, last_stack(config));
    const Block& b = last.blocks[0];
    const bool one_stack = !config.encoder.n_layers || !config.decoder.n_layers;
    if (one_stack && last.n_layers == 1 && !b.d_ff && b.norm == Norm::none && !b.cross_attention && !last.vocab_size &&
        last.position == Position::none && last.embedding_norm == Norm::none && last.final_norm == Norm::none &&
        last.pooling == Pooling::none && b.position == Position::none)
        return Kind::attend;
    return one_stack && config.decoder.n_layers && last.vocab_size && last.has_output_head ? Kind::decode
                                                                                           : Kind::encode;
}

Status lay_out(const Config& config, const Limits& asked, ArenaMap& map, Plan& plan) noexcept {
    Limits limits = asked;
    if (Status status = check(config); !status.ok()) return status;
    if (Status status = check_supported(config); !status.ok()) return status;
    if (Status status = complete(config, limits); !status.ok()) return status;
    const Kind kind = kind_of(config);
    const Stack* const stacks[] = {&config.encoder, &config.decoder};
    const std::uint64_t batch = limits.max_batch;

    map = {};
    map.capacity = round_up(limits.max_kv_len, kLanes);
    map.max_rows = at_least(batch, limits.max_memory);
    // Every sequence starts at a whole panel, and a lone attention may append keys to each.
    const Block& only = stack_of(config, last_stack(config)).blocks[0];
    const std::uint64_t n_appended = kind == Kind::attend ? only.bias_kv + only.zero_attn : 0;
    if (kind != Kind::decode)
        map.capacity = (map.max_rows + limits.max_sequences * (kLanes - 1 + n_appended)) / kLanes * kLanes;
    map.n_chunks = static_cast<std::uint32_t>((map.capacity + kChunk - 1) / kChunk);
    Widest widest;
    std::uint64_t keys = 0, values = 0, n_layers = 0, n_blocks = 0;
    for (const Stack* s : stacks) {
        if (!s->n_layers) continue;
        widen(*s, map, widest);
        n_layers += s->n_layers;
        raise(n_blocks, s->n_blocks);
        for (std::uint32_t layer = 0; layer < s->n_layers; ++layer) {
            const std::uint64_t k = key_cache_bytes(s->block(layer), map, limits.kv_type);
            const std::uint64_t v = value_cache_bytes(s->block(layer), map, limits.kv_type);
            keys = kind == Kind::decode ? keys + k : at_least(keys, k);
            values = kind == Kind::decode ? values + v : at_least(values, v);
        }
    }
    constexpr std::uint64_t kMostTasks = 0xffffffffu;  // a pass counts them in 32 bits
    if (const std::uint64_t n = at_least(map.capacity, map.max_rows) * widest.n_heads; n > kMostTasks)
        return {Code::bad_limits, "positions times heads at most", kMostTasks, n};
    map.partial_stride = widest.value_stride + kLanes;  // o, then m and l
    const std::uint64_t quant_row_bytes = operand_bytes(Type::q8, 1, widest.operand);
    map.operand_row_bytes = at_least(operand_bytes(Type::f32, 1, widest.operand), quant_row_bytes);
    // A member's own rows: kRowBlock of d_model on their way into an operand, or one and its operand, or one attention
    // task's query and states.
    const std::uint64_t norm_rows =
        at_least(kRowBlock * map.hidden_stride, map.hidden_stride + pad(quant_row_bytes / 4));
    const std::uint64_t attention_rows =
        query_floats(widest.head_dim) + 2 * kRowBlock * widest.value_stride + 4 * kLanes;
    map.scratch_stride = at_least(norm_rows, attention_rows);

    plan = {.limits = limits};
    const auto take = [&](const char* name, Stretch& offset, std::uint64_t bytes) {
        offset = plan.arena_bytes;
        if (bytes) plan.parts[plan.n_parts++] = {name, offset, bytes};
        plan.arena_bytes += round_up(bytes, kArenaAlignment);
    };
    const bool rows = kind != Kind::attend;
    take("session", map.state, kSessionStateBytes);
    take("team", map.team, kTeamBytes);
    take("layers", map.layers, n_layers * sizeof(Layer));
    take("sequences", map.sequences, 2 * limits.max_sequences * sizeof(Sequence));
    const bool has_memory = config.encoder.n_layers && config.decoder.n_layers;
    take("memory", map.memory, has_memory ? batch * map.hidden_stride * 4 : 0);
    take("hidden", map.hidden, rows ? batch * map.hidden_stride * 4 : 0);
    take("projected", map.projected, map.max_rows * map.projected_stride * 4);
    take("attended", map.attended, batch * map.attended_stride * 4);
    take("inner", map.inner, batch * map.inner_stride * 4);
    take("operand", map.operand, map.projected_stride || rows ? map.max_rows * map.operand_row_bytes : 0);
    take("rotations", map.rotations, widest.rotated ? n_blocks * batch * 2 * map.rotation_stride * 4 : 0);
    take("partials", map.partials, map.n_chunks > 1 ? widest.n_heads * map.n_chunks * map.partial_stride * 4 : 0);
    take("scratch", map.scratch, limits.n_threads * map.scratch_stride * 4);
    take("keys", map.keys, keys);
    take("values", map.values, values);
    return {};
}

Status make_plan(const Config& config, const Limits& limits, Plan& plan) noexcept {
    ArenaMap map;
    return lay_out(config, limits, map, plan);
}

}  // namespace fovea
