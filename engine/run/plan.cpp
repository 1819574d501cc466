// Model config + limits -> offsets in the arena. Pure, and the same on every machine: nothing here depends on the
// instruction set, on pointer sizes or on the number of cores.
#include "engine/run/plan.h"

#include "engine/blocks/layer_inputs.h"
#include "engine/blocks/routes.h"
#include "engine/format/parts.h"
#include "engine/model/kind.h"
#include "engine/model/layers.h"
#include "engine/model/states.h"
#include "engine/pass/pass.h"
#include "engine/run/session.h"
#include "engine/stream/adapters.h"
#include "engine/stream/stream.h"

namespace fovea {
namespace {

// 2^22 rows of every kind: no size overflows, and a sequence's positions fit where the kernels count them.
constexpr std::uint32_t kMaxRows = 1u << 22;

[[nodiscard]] Status refuse(const char* what) noexcept { return {Code::unsupported, what, 0, 0}; }

/// kind_of, where a build without vectors knows what it is: check_supported refuses the others.
[[nodiscard]] Kind planned_kind(const Config& config) noexcept {
    return has(Part::vectors) ? kind_of(config) : Kind::decode;
}

/// What a valid configuration may ask for and this version does not compute.
[[nodiscard]] Status check_block(const Stack& s, const Block& b, Kind kind) noexcept {
    if (b.attention.position == Position::relative && !has(Part::vectors)) return refuse("relative positions");
    if (has(Part::states) && kind != Kind::decode && b.recurrent)
        return refuse("recurrent blocks of what gives no logits");
    if (has(Part::states) && kind == Kind::attend && b.attention.output_gate != OutputGate::none)
        return refuse("an output gate without a stack");
    if (has(Part::states) && kind == Kind::attend && b.attention.query_growth != 0.0f)
        return refuse("queries that grow without a stack");
    if (kind == Kind::attend && (b.latent.query_rank || b.latent.query_dim))
        return refuse("latent attention without a stack");
    if (kind == Kind::attend) return b.residual_scale != 0.0f ? refuse("a residual scale without a stack") : Status{};
    if (b.attention.no_projections) return refuse("attention without projections in a stack");
    if (b.attention.bias_kv || b.attention.zero_attn) return refuse("appended keys and values in a stack");
    if (b.attention.n_heads && !b.attention.has_output_map) return refuse("attention without an output map in a stack");
    const std::uint32_t read = attention_cols(s, b), output_width = b.attention.output_width;
    for (const std::uint32_t width : {b.attention.query_width, b.attention.key_width, b.attention.value_width})
        if (b.attention.n_heads && or_else(width, s.d_model) != read)
            return refuse("projection widths other than d_model in a stack");
    if (b.attention.n_heads && or_else(output_width, s.d_model) != s.d_model)
        return refuse("projection widths other than d_model in a stack");
    if (kind == Kind::decode && b.attention.n_heads && !b.attention.causal)
        return refuse("logits without a causal mask");
    if (has(Part::layer_inputs) && kind != Kind::decode &&
        (b.attention.shared_keys || b.inputs.width || b.inputs.joins_embedding))
        return refuse("shared keys or layer inputs of what gives no logits");
    return {};
}

[[nodiscard]] Status check_stack(const Stack& s, Kind kind, bool is_last) noexcept {
    if (s.position == Position::sinusoidal) return refuse("sinusoidal positions");
    if (!is_last && (s.has_output_head || s.n_head_maps())) return refuse("a head before the last stack");
    if (kind != Kind::decode && !s.has_output_head && (s.logit_softcap != 0.0f || s.logit_scale != 1.0f))
        return refuse("scaled or capped logits without an output head");
    if ((kind == Kind::decode || !is_last) && s.pooling != Pooling::none)
        return refuse("pooling before the last stack");
    for (const Block& b : s.used_blocks())
        if (Status status = check_block(s, b, kind); !status.ok()) return status;
    return {};
}

[[nodiscard]] Status check_supported(const Config& config) noexcept {
    const Kind kind = kind_of(config);
    if (!has(Part::vectors) && kind != Kind::decode) return refuse("vectors: left out of this build");
    if (has(Part::adapters) && (config.encoder.adapter_rank || config.decoder.adapter_rank))
        return refuse("an adapter by itself, without the model it is for");
    if (config.encoder.n_layers)
        if (Status status = check_stack(config.encoder, kind, !config.decoder.n_layers); !status.ok()) return status;
    if (config.encoder.n_layers && config.decoder.n_layers && config.encoder.d_model != config.decoder.d_model)
        return refuse("an encoder and a decoder of different widths");
    return config.decoder.n_layers ? check_stack(config.decoder, kind, true) : Status{};
}

[[nodiscard]] Status bad_limit(const char* what, std::uint64_t wanted, std::uint64_t had) noexcept {
    return {Code::bad_limits, what, wanted, had};
}

[[nodiscard]] Status check_kv_type(Type type) noexcept {
    if (type == Type::f32 || type == Type::f16 || type == Type::q8 || (kQ4Caches && type == Type::q4)) return {};
    constexpr const char* kExpected =
        kQ4Caches ? "kv_type: expected f32, f16, q8 or q4" : "kv_type: expected f32, f16 or q8";
    return {Code::bad_limits, kExpected, 0, 0};
}

/// Marks of a session or of a cache, whose states take state_bytes each.
template<class Count>
[[nodiscard]] Count marks(std::uint64_t state_bytes, Count asked) noexcept {
    constexpr Count kDefault = 2;
    return !state_bytes ? Count{0} : asked ? asked : kDefault;
}

[[nodiscard]] Status resolve_decode_defaults(Planned what, const Config& config, Limits& limits) noexcept {
    const std::uint32_t most = config.decoder.max_positions;
    if (limits.max_key_rows) return bad_limit("sequences and memory for logits", 0, limits.max_key_rows);
    if (what == Planned::session && limits.max_sequences)
        return bad_limit("sequences and memory for logits", 0, limits.max_sequences);
    if (limits.max_kv_len == 0) limits.max_kv_len = most;
    if (limits.max_kv_len > most) return bad_limit("positions at most", most, limits.max_kv_len);
    const std::uint32_t together = what == Planned::session ? limits.max_kv_len : kMaxRows;
    if (limits.max_batch == 0)
        limits.max_batch = what == Planned::session && limits.max_kv_len < 192 ? limits.max_kv_len : 192;
    if (limits.max_batch > together) return bad_limit("tokens together at most", together, limits.max_batch);
    if (has(Part::states)) limits.max_marks = marks(state_bytes(config.decoder), limits.max_marks);
    if (what == Planned::session) return {};
    if (limits.max_sequences == 0) limits.max_sequences = limits.max_batch;
    if (limits.max_sequences > limits.max_batch)
        return bad_limit("sequences at most", limits.max_batch, limits.max_sequences);
    return {};
}

[[nodiscard]] Status check_adapters(const Config& config, const Limits& limits) noexcept {
    const bool any = limits.max_adapters != 0;
    if (limits.max_adapters > kMostAdapters) return bad_limit("adapters at most", kMostAdapters, limits.max_adapters);
    if (limits.max_adapter_rank > (any ? kMaxAdapterRank : 0))
        return bad_limit("rank of adapters at most", any ? kMaxAdapterRank : 0, limits.max_adapter_rank);
    if (any && !limits.max_adapter_rank) return bad_limit("rank of adapters at least", 1, 0);
    if (any && planned_kind(config) == Kind::attend) return bad_limit("adapters of attention alone", 0, 1);
    return {};
}

/// Which rank it is, and whether ranks compute such a model.
[[nodiscard]] Status check_ranks(const Config& config, const auto& limits) noexcept {
    const std::uint32_t n_stages = limits.split ? limits.split->n_stages : 1, n_ranks = or_else(limits.n_ranks, 1);
    if (!n_stages || n_ranks % n_stages) return bad_limit("ranks as a multiple of the stages", n_stages, n_ranks);
    if (limits.n_ranks < 2 && limits.rank == 0) return {};
    if (limits.n_ranks > kMaxRanks) return bad_limit("ranks at most", kMaxRanks, limits.n_ranks);
    if (limits.rank >= limits.n_ranks) return bad_limit("rank below", limits.n_ranks, limits.rank);
    for (std::uint32_t r = 0; limits.split && limits.split->shares && r < limits.n_ranks; ++r)
        if (!limits.split->shares[r]) return bad_limit("share of each rank at least", 1, 0);
    if (limits.n_ranks > 1 && planned_kind(config) == Kind::attend) return refuse("several ranks for attention alone");
    auto other = limits;
    for (other.rank = 0; has(Part::layer_inputs) && other.rank < other.n_ranks; ++other.rank) {
        const UnitShare own = layers_of(other, config.decoder.n_layers);
        for (std::uint32_t layer = own.begin; layer < own.end; ++layer)
            if (key_layer(config.decoder, layer) < own.begin)
                return refuse("stages where a layer reads the keys of an earlier one in another stage");
    }
    return {};
}

[[nodiscard]] Status resolve_defaults(Planned what, const Config& config, Limits& limits) noexcept {
    if (planned_kind(config) == Kind::decode) {
        if (Status status = resolve_decode_defaults(what, config, limits); !status.ok()) return status;
    } else {
        const std::uint32_t most = what == Planned::workspace && steps_with_memory(config)
                                       ? or_else(config.decoder.max_positions, kMaxRows)
                                       : 0;
        if (limits.max_kv_len > most) return bad_limit("max_kv_len at most", most, limits.max_kv_len);
        if (limits.max_batch == 0) {
            limits.max_batch = or_else(stack_of(config, last_stack(config)).max_positions, 512);
            // Frames come in stretches of one length, which the encoder takes whole.
            const std::uint32_t stretch = config.encoder.sound.is_speech() ? config.encoder.max_positions : 0;
            if (limits.max_batch < stretch) limits.max_batch = stretch;
        }
        if (limits.max_sequences == 0) limits.max_sequences = 1;
        if (limits.max_key_rows == 0) limits.max_key_rows = limits.max_batch;
        for (const std::uint32_t n : {limits.max_batch, limits.max_sequences, limits.max_key_rows})
            if (n > kMaxRows) return bad_limit("rows and sequences at most", kMaxRows, n);
    }
    if (has(Part::adapters))
        if (Status status = check_adapters(config, limits); !status.ok()) return status;
    if constexpr (kRanks)
        if (Status status = check_ranks(config, limits); !status.ok()) return status;
    if (limits.n_threads < 1) return bad_limit("threads at least", 1, 0);
    constexpr std::uint32_t kMost = has(Part::teams) ? kMaxThreads : 1;
    if (limits.n_threads > kMost) return bad_limit("threads at most", kMost, limits.n_threads);
    return check_kv_type(limits.kv_type);
}

/// Rows of queries, or of keys where those are more.
[[nodiscard]] std::uint64_t most_rows(const Limits& limits) noexcept {
    return at_least(limits.max_batch, limits.max_key_rows);
}

/// What T asks for, where it asks for anything.
template<class T>
void widen_for([[maybe_unused]] const Planning& planning) noexcept {
    if constexpr (requires { T::plan(planning); }) T::plan(planning);
}

}  // namespace

PoolLimits session_pool(const Limits& limits, const ArenaMap& map) noexcept {
    PoolLimits pool{.max_kv_len = limits.max_kv_len,
                    .max_sequences = 1,
                    .page_len = static_cast<std::uint32_t>(map.capacity),
                    .n_pages = 1,
                    .kv_type = limits.kv_type};
    if (kRanks) pool.rank = limits.rank, pool.n_ranks = limits.n_ranks, pool.split = limits.split;
    if (has(Part::states)) pool.max_marks = limits.max_marks, pool.n_states = 2u + limits.max_marks;
    return pool;
}

namespace {

/// Strides, and how many rows and positions there are.
void measure(const Config& config, const Limits& limits, ArenaMap& map, Widest& widest) noexcept {
    const Kind kind = planned_kind(config);
    map.capacity = round_up(limits.max_kv_len, kLanes);
    // Every sequence starts at a whole panel, and a lone attention may append keys to each.
    const Block& only = stack_of(config, last_stack(config)).blocks[0];
    const std::uint64_t n_appended = kind == Kind::attend ? only.attention.bias_kv + only.attention.zero_attn : 0;
    if (kind != Kind::decode)
        map.capacity = (most_rows(limits) + limits.max_sequences * (kLanes - 1 + n_appended)) / kLanes * kLanes;
    if (has(Part::vectors)) {
        map.distance_reach = limits.max_batch;
        if (has_relative_positions(config.decoder) && map.distance_reach < limits.max_kv_len)
            map.distance_reach = limits.max_kv_len;
    }
    for (const Stack* s : {&config.encoder, &config.decoder})
        if (s->n_layers) {
            const Planning planning{*s, limits, kind, map, widest};
#define FOVEA_TENSOR_PART(there, field, name, Tensors, n) \
    if (there) widen_for<Tensors>(planning);
#include "engine/pass/parts.inc"
        }
    const std::uint64_t n_chunks = (at_least(map.capacity, limits.max_kv_len) + kChunk - 1) / kChunk;
    if (n_chunks > 1) grow_to(map.n_partials, widest.n_heads * n_chunks);  // fits, or lay_out's check of tasks fails
    grow_to(map.partial_stride, widest.value_stride + kLanes);             // o, then m and l
    const std::uint64_t quant_row_bytes = operand_bytes(Type::q8, 1, widest.operand);
    grow_to(widest.operand_row_bytes, operand_bytes(Type::f32, 1, widest.operand), quant_row_bytes);
    // A member's scratch holds one of three at a time: kRowBlock rows on their way into an operand, which are more than any
    // OwnRow of as many columns; the widest OwnRow; one attention task's query and states.
    const std::uint64_t norm_rows =
        at_least(kRowBlock * map.hidden_stride, OwnRow(map.hidden_stride, widest.operand).end);
    const std::uint64_t attention_rows = query_floats(widest.head_dim) + 2 * state_floats(widest.value_stride);
    grow_to(map.scratch_stride, norm_rows, attention_rows);
}

/// Keys and values: a session's page; one layer's, the widest, for encode and attend; none of a workspace whose caches
/// come with each step.
[[nodiscard]] PageBytes own_page(Planned what, const Config& config, const Limits& limits,
                                 const ArenaMap& map) noexcept {
    PageBytes bytes;
    if (planned_kind(config) == Kind::decode)
        return what == Planned::session ? lay_out_page(config.decoder, session_pool(limits, map), nullptr) : bytes;
    for (const Stack* s : {&config.encoder, &config.decoder})
        for (std::uint32_t layer = 0; layer < s->n_layers; ++layer) {
            const Block& b = s->block(layer);
            grow_to(bytes.keys, key_cache_bytes(b, session_pool(limits, map)));
            grow_to(bytes.values, value_cache_bytes(b, session_pool(limits, map)));
        }
    return bytes;
}

#define FOVEA_PART(...) +1
static_assert(1
#include "engine/pass/parts.inc"
              <= std::tuple_size_v<decltype(Plan::parts)>);

/// The arena's parts, in their order.
void place_parts(Planned what, const Config& config, const Widest& widest, ArenaMap& map, Plan& plan) noexcept {
    const Limits& limits = plan.limits;
    const std::uint64_t batch = limits.max_batch, max_rows = most_rows(limits);
    const auto take = [&](const char* name, ArenaOffset& offset, std::uint64_t bytes) {
        offset = plan.arena_bytes;
        if (bytes) plan.parts[plan.n_parts++] = {name, offset, bytes};
        plan.arena_bytes += round_up(bytes, kArenaAlignment);
    };
    const Kind kind = planned_kind(config);
    const bool rows = kind != Kind::attend, decodes = kind == Kind::decode;
    const bool has_memory = config.encoder.n_layers && config.decoder.n_layers;
    const std::uint64_t n_layers = n_layers_of(config);
    const std::uint64_t n_blocks = at_least(config.encoder.n_blocks, config.decoder.n_blocks);
    const bool has_pool = decodes && what == Planned::session;
    const Stack& last = stack_of(config, last_stack(config));
    const std::uint64_t n_slots = map.slots(limits);  // of max_batch rows, but where experts need more
    const std::uint64_t n_operand_rows = map.projected_stride || rows ? at_least(max_rows, n_slots) : 0;
    const std::uint64_t of_state = state_bytes(config.decoder);
    const PageBytes page = own_page(what, config, limits, map);
    ArenaOffset start = 0;
    take("session", start, what == Planned::session ? kSessionStateBytes : kWorkspaceStateBytes);
#define FOVEA_PART(there, field, name, bytes) \
    if (there) take(name, map.field, bytes);
#include "engine/pass/parts.inc"
    if (ArenaOffset at = 0; has(Part::states))  // the last part: make_session finds it without a field of the map
        take("states", at, has_pool ? session_pool(limits, map).n_states * of_state : 0);
}

}  // namespace

Status lay_out(Planned what, const Config& config, const Limits& asked, ArenaMap& map, Plan& plan) noexcept {
    Limits limits = asked;
    if (Status status = check(config); !status.ok()) return status;
    if (Status status = check_supported(config); !status.ok()) return status;
    if (Status status = resolve_defaults(what, config, limits); !status.ok()) return status;
    map = {};
    Widest widest;
    measure(config, limits, map, widest);
    constexpr std::uint64_t kMostTasks = 0xffffffffu;  // a pass counts them in 32 bits
    if (const std::uint64_t n = at_least(map.capacity, most_rows(limits)) * widest.n_heads; n > kMostTasks)
        return bad_limit("positions times heads at most", kMostTasks, n);
    if (const std::uint64_t n = std::uint64_t{limits.max_batch} * config.decoder.n_layers;
        has(Part::layer_inputs) && input_stride(config.decoder) && n > kMostTasks)
        return bad_limit("rows times layers at most", kMostTasks, n);
    plan = {.limits = limits};
    place_parts(what, config, widest, map, plan);
    return {};
}

Status make_plan(const Config& config, const Limits& limits, Plan& plan) noexcept {
    ArenaMap map{};
    return lay_out(Planned::session, config, limits, map, plan);
}

Status make_workspace_plan(const Config& config, const Limits& limits, Plan& plan) noexcept {
    ArenaMap map{};
    return lay_out(Planned::workspace, config, limits, map, plan);
}

Status make_pool_plan(const Config& config, const PoolLimits& limits, PoolPlan& plan) noexcept {
    if (!has(Part::states)) return plan_pool(config, limits, 0, plan);
    if (Status status = check(config); !status.ok()) return status;
    return plan_pool(config, limits, limits.memory ? 0 : state_bytes(config.decoder), plan);
}

Status plan_pool(const Config& config, const PoolLimits& asked, std::uint64_t state_bytes, PoolPlan& plan) noexcept {
    // Positions of all pages, and states: with the widest cache of all layers, 2^37 bytes each, no size overflows.
    constexpr std::uint64_t kMostPositions = 1u << 26;
    PoolLimits limits = asked;
    if (Status status = check(config); !status.ok()) return status;
    if (Status status = check_supported(config); !status.ok()) return status;
    const bool steps = steps_with_memory(config);
    if (planned_kind(config) != Kind::decode && !steps) return refuse("a pool of caches for a model without logits");
    if (limits.memory && !steps) return refuse("a pool of memories for a model that reads none");
    const bool memory = has(Part::vectors) && limits.memory;
    const std::uint32_t made_for = (memory ? config.encoder : config.decoder).max_positions;
    const std::uint32_t most = has(Part::vectors) && (memory || !made_for) ? kMaxRows : made_for;
    if (limits.max_kv_len == 0) limits.max_kv_len = has(Part::vectors) ? or_else(made_for, 512) : made_for;
    if (limits.max_kv_len > most) return bad_limit("positions at most", most, limits.max_kv_len);
    if (limits.max_sequences < 1) return bad_limit("sequences at least", 1, 0);
    if (limits.max_sequences > kMaxRows) return bad_limit("sequences at most", kMaxRows, limits.max_sequences);
    if (limits.page_len % kTile || !limits.page_len || limits.page_len > kMaxRows)
        return bad_limit("positions of a page as a multiple of", kTile, limits.page_len);
    if (Status status = check_kv_type(limits.kv_type); !status.ok()) return status;
    if (kRanks)
        if (Status status = check_ranks(config, limits); !status.ok()) return status;
    const std::uint64_t wanted = std::uint64_t{limits.max_sequences} * ((limits.max_kv_len - 1) / limits.page_len + 1);
    const std::uint64_t n_pages = limits.n_pages ? limits.n_pages : wanted;
    if (n_pages * limits.page_len > kMostPositions)
        return bad_limit("positions of all pages at most", kMostPositions, n_pages * limits.page_len);
    limits.n_pages = static_cast<std::uint32_t>(n_pages);
    if (has(Part::states)) {
        limits.max_marks = marks(state_bytes, limits.max_marks);
        const std::uint64_t each = std::uint64_t{2} + limits.max_marks, all = limits.max_sequences * each;
        const std::uint64_t n_states = !state_bytes ? 0 : limits.n_states ? limits.n_states : all;
        if (n_states && n_states < 2) return bad_limit("states at least", 2, n_states);
        if (at_least(n_states, limits.max_sequences * std::uint64_t{limits.max_marks}) > kMostPositions)
            return bad_limit("states, and marks of all sequences, at most", kMostPositions, n_states);
        limits.n_states = static_cast<std::uint32_t>(n_states);
    }

    const PoolMap map = lay_out_pool(config, limits, state_bytes);
    plan = {.limits = limits};
    const auto take = [&](const char* name, std::uint64_t bytes) {
        plan.parts[plan.n_parts++] = {name, plan.arena_bytes, bytes};
        plan.arena_bytes += round_up(bytes, kArenaAlignment);
    };
    take("tables", map.bytes);
    take("model", kModelBytes);
    take("pages", n_pages * map.page_bytes);
    if (has(Part::states) && limits.n_states) take("states", limits.n_states * state_bytes);
    return {};
}

}  // namespace fovea
