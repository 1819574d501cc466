#include "fovea/config.h"

#include <type_traits>

#include "engine/format/format.h"
#include "engine/format/parts.h"
#include "engine/format/variants.h"
#include "engine/model/layers.h"
#include "engine/model/states.h"

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
    void wide(const char* name, std::uint32_t value, std::uint32_t least, std::uint32_t most) {
        (*this)(name, value, least, most);
    }
    void flags(const auto&...) {}
    void skip(std::size_t) {}
    /// A flag that asks for something its block or stack must have.
    void needs(const char* what, bool flag, bool has) { expect(!flag || has, what, 0, 1); }
};

/// Every query's and key's head has vectors of its own, and all queries see all keys.
void check_disentangled(const Block& b, Checks& check) {
    const AttentionShape& a = b.attention;
    check("relative_max_distance", a.relative_max_distance, 1, kMaxPositions);
    check("relative_buckets", a.relative_buckets, 1, kMaxBuckets);
    check("n_heads times relative_buckets", std::uint64_t{a.n_heads} * bucket_rows(b), 1, kMaxMerged);
    check("n_kv_heads of disentangled positions", a.n_kv_heads, a.n_heads, a.n_heads);
    check.expect(!a.causal && !a.no_projections && !a.bias_kv && !a.zero_attn && !b.latent.query_dim,
                 "disentangled positions with what they cannot have", 0, 1);
}

void check_positions(const Block& b, Checks& check) {
    const AttentionShape& a = b.attention;
    switch (a.position) {
        case Position::none:
        case Position::alibi: return;
        case Position::rope:
            if (!has(Part::latent) || !b.latent.query_dim)  // a latent head's dims that turn are rotary_dim alone
                check.expect(a.head_dim % 2 == 0, "head_dim, even for rotary positions", a.head_dim + 1, a.head_dim);
            check.expect(a.rotary_dim % 2 == 0, "rotary_dim, even", a.rotary_dim + 1, a.rotary_dim);
            if (has(Part::rows)) check("rope_plane", std::uint32_t{a.rope_plane}, 0, a.rotary_dim / 4);
            return check("rotary_dim", a.rotary_dim, 2, a.head_dim);
        case Position::relative: return check("relative_max_distance", a.relative_max_distance, 1, kMaxPositions);
        case Position::disentangled:
            if (has(Part::vectors)) return check_disentangled(b, check);
            [[fallthrough]];
        default:  // learned and sinusoidal positions are the stack's
            return check("block position", a.position, Position::rope, Position::rope);
    }
}

/// One key-value head, whose values are what follows its dims that turn.
void check_latent(const Block& b, Checks& check) {
    const AttentionShape& a = b.attention;
    check.needs("query_rank", b.latent.query_rank != 0, !a.query_width && !a.query_bias);
    check.needs("latent_value_dim", b.latent.value_dim != 0, b.latent.query_dim != 0);
    if (!b.latent.query_dim) return;
    check("latent_value_dim", b.latent.value_dim, 1, kMaxWidth);
    check("n_heads times latent_query_dim", std::uint64_t{a.n_heads} * query_head_dim(b), 1, kMaxMerged);
    check("n_heads times latent_value_dim", std::uint64_t{a.n_heads} * b.latent.value_dim, 1, kMaxMerged);
    check("n_kv_heads of latent attention", a.n_kv_heads, 1, 1);
    check.expect(a.position == Position::rope, "rotary positions of latent attention", 1, 0);
    check.expect(a.head_dim == std::uint64_t{a.rotary_dim} + a.value_head_dim, "head_dim of latent attention",
                 std::uint64_t{a.rotary_dim} + a.value_head_dim, a.head_dim);
    const bool plain = a.query_key_norm == Norm::none && a.projection_clip == 0.0f && !a.query_bias && !a.key_bias &&
                       !a.value_bias && a.has_output_map && !b.feed.parallel && !a.cross_attention && !a.bias_kv &&
                       !a.zero_attn && b.norm_place != NormPlace::within;
    check.expect(plain, "latent attention with what it cannot have", 0, 1);
}

/// Queries, keys and values have one vector between them; a tied output head's matrix is looked up too.
void check_columns(const Block& b, const Stack& s, Checks& check) {
    if (!b.column_scales) return;
    const std::uint32_t width = or_else(b.attention.query_width, s.d_model);
    check.expect(or_else(b.attention.key_width, s.d_model) == width, "key_width with column scales", width,
                 b.attention.key_width);
    check.expect(or_else(b.attention.value_width, s.d_model) == width, "value_width with column scales", width,
                 b.attention.value_width);
    check.expect(!b.latent.query_rank && !b.latent.query_dim, "column scales of latent attention", 0, 1);
}

/// What an earlier layer's keys and values leave to a layer, and what tokens give each layer.
void check_layer_inputs(const Block& b, const Stack& s, Checks& check) {
    const AttentionShape& a = b.attention;
    check.needs("value_norm", a.value_norm, a.n_heads != 0 && !a.shared_keys);
    check.expect(b.inputs.width == s.blocks[0].inputs.width, "layer_input_width of every block",
                 s.blocks[0].inputs.width, b.inputs.width);
    check.needs("layer_input_width", b.inputs.width != 0, s.vocab_size != 0);
    const bool joined = b.recurrent && a.n_heads && a.causal && b.feed.d_ff && !b.feed.parallel && !b.experts.n &&
                        !b.feed.xielu && !b.inputs.width && !a.cross_attention && !b.latent.query_dim &&
                        !b.latent.query_rank && b.norm_place == NormPlace::pre && b.residual_scale == 0.0f &&
                        !b.column_scales && !s.joins_rows && !s.adapter_rank;
    check.needs("joins_embedding", b.inputs.joins_embedding, joined && s.vocab_size != 0);
    const bool plain = !b.latent.query_dim && !b.latent.query_rank && !a.bias_kv && !a.zero_attn && !a.no_projections;
    check.expect(plain || !(a.shared_keys || a.value_norm), "shared keys or a norm of values of other attention", 0, 1);
    if (!a.shared_keys) return;
    check.expect(a.n_heads && !a.key_bias && !a.value_bias, "shared keys with what makes keys", 0, 1);
    check.expect(a.head_norm != HeadNorm::together || a.query_key_norm == Norm::none, "a norm of heads together", 0, 1);
}

/// Whose keys a layer shares must be there.
void check_shared_keys(const Stack& s, Checks& check) {
    for (std::uint32_t layer = 0; layer < s.n_layers; ++layer)
        check.expect(!s.block(layer).attention.shared_keys || key_layer(s, layer) < layer,
                     "a layer whose keys are shared", layer, s.n_layers);
}

/// Attention inside a stack reads and adds to the stack's vectors; a lone attention may have widths of its own.
void check_widths(const Stack& s, const Block& b, Checks& check) {
    const AttentionShape& a = b.attention;
    if (s.n_layers == 1 && b.feed.d_ff == 0) return;
    const std::uint32_t d = s.d_model, read = attention_cols(s, b);
    const std::uint64_t merged = std::uint64_t{a.n_heads} * merged_head_dim(b);
    check.expect(or_else(a.query_width, d) == read, "query_width", read, a.query_width);
    check.expect(or_else(a.key_width, d) == read, "key_width", read, a.key_width);
    check.expect(or_else(a.value_width, d) == read, "value_width", read, a.value_width);
    check.expect(or_else(a.output_width, d) == d, "output_width", d, a.output_width);
    check.expect(a.has_output_map || merged == d, "n_heads times value_head_dim", d, merged);
}

/// Bounds of how many and how wide keep a matrix of all experts below 2^46 elements, see format.h.
void check_experts(const Block& b, Checks& check) {
    const ExpertShape& e = b.experts;
    const bool any = e.n != 0;
    check("n_experts_used", std::uint32_t{e.n_used}, any, e.n);
    check("n_experts times d_ff", std::uint64_t{e.n} * b.feed.d_ff, any, kMaxMerged);
    check.needs("shared_d_ff", e.shared_d_ff != 0, any);
    check.needs("normalize_experts", e.normalize, any);
    check.needs("shared_gate", e.shared_gate, e.shared_d_ff != 0);
    check.expect(!any || b.norm_place != NormPlace::within, "experts with norms within", 0, e.n);
    check.needs("router_bias", e.router_bias, any);
    check.expect(!e.shared_d_ff || !(b.feed.up_bias || b.feed.gate_bias || b.feed.down_bias),
                 "biases of a shared expert", 0, 1);
    check.needs("choice_bias", e.choice_bias, any);
    check.needs("router_score", e.router_score != RouterScore::softmax, any);
    check.needs("weigh_inputs", e.weigh_inputs, any && !e.shared_gate);
    check.needs("own_norms", e.own_norms,
                e.shared_d_ff && b.norm_place == NormPlace::both && b.norm == Norm::rms && !b.feed.parallel &&
                    !e.shared_gate && !e.weigh_inputs);
    const bool mixes = e.router_score == RouterScore::sparse_mixer;
    check.needs("router_margin", e.margin != 0.0f, mixes);
    check.expect(!mixes || !(e.normalize || e.choice_bias || e.n_groups), "scores one by one, or what orders all", 0,
                 1);
    check.needs("routed_scale", e.routed_scale != 0.0f, any);
    check.needs("n_expert_groups", e.n_groups != 0, any);
    check("n_groups_used", e.n_groups_used, e.n_groups != 0, e.n_groups);
    if (!e.n_groups) return;
    const std::uint32_t of_group = e.n / e.n_groups;
    check.expect(e.n % e.n_groups == 0, "n_expert_groups that divides n_experts", e.n, e.n_groups);
    check("n_experts_used of the groups used", std::uint32_t{e.n_used}, 0,
          of_group * e.n_groups_used);  // at most n_experts
}

/// What the last fields of a block's record need.
void check_last_fields(const Stack& s, const Block& b, Checks& check) {
    const AttentionShape& a = b.attention;
    check.needs("output_gate", a.output_gate != OutputGate::none,
                a.n_heads && a.has_output_map && !a.no_projections && !a.cross_attention &&
                    !(b.latent.query_dim && b.feed.parallel));
    check.needs("norm_turned", a.norm_turned,
                a.query_key_norm != Norm::none && a.head_norm != HeadNorm::together && a.position == Position::rope);
    check.needs("chunked", a.chunked, a.window && a.causal);
    check.needs("xielu", b.feed.xielu,
                b.feed.d_ff && !b.feed.gated && b.feed.activation == Activation::none && !b.experts.n);
    check.needs("query_growth", a.query_growth != 0.0f,
                a.growth_period && a.n_heads && !a.cross_attention && !a.no_projections && !b.latent.query_dim);
    check.needs("growth_period", a.growth_period != 0, a.query_growth != 0.0f);
    check.needs("latent_norm_epsilon", b.latent.norm_epsilon != 0.0f, b.latent.query_rank || b.latent.query_dim);
    if (!b.recurrent) return;
    check.expect(s.recurrent.kind != Recurrence::none, "a recurrent part of the stack", 1, 0);
    const bool beside = b.norm_place == NormPlace::pre && b.residual_scale == 0.0f &&
                        a.output_gate == OutputGate::none && !a.cross_attention && !b.latent.query_dim &&
                        a.has_output_map && !a.no_projections;
    check.expect((!a.n_heads || beside) && !b.feed.parallel && b.norm_place != NormPlace::within,
                 "a recurrent block with what it cannot have", 0, 1);
}

/// The bound of a state keeps all sizes of a plan below 2^64, see format.h.
void check_recurrent(const RecurrentShape& r, Checks& check) {
    if (r == RecurrentShape{}) return;
    for_each_recurrent_field(r, check);
    check.expect(r.n_key_heads && r.n_heads % r.n_key_heads == 0, "n_key_heads that divides recurrent n_heads",
                 r.n_heads, r.n_key_heads);
    check("n_key_heads times key_dim", std::uint64_t{r.n_key_heads} * r.key_dim, 1, kMaxMerged);
    check("recurrent n_heads times value_dim", std::uint64_t{r.n_heads} * r.value_dim, 1, kMaxMerged);
    if (!check.status.ok()) return;
    check("elements of a state", recurrent_state_bytes(r) / sizeof(float), 0, kMaxState);
    const bool by_dim = r.kind == Recurrence::delta_by_dim, is_space = r.kind == Recurrence::state_space;
    check.needs("step_most", r.step_most != 0.0f, is_space || by_dim);
    check.needs("step_least", r.step_least != 0.0f, r.step_most != 0.0f && is_space);
    check.expect(r.step_least <= r.step_most, "step_least at most step_most", 0, 1);
    check.needs("shared_norm", r.shared_norm, r.n_norm_groups != 0);
    const bool selects = r.kind == Recurrence::selective;
    check("step_rank", r.step_rank, selects, selects || by_dim ? kMaxWidth : 0);
    check("recurrent n_heads times key_dim", std::uint64_t{r.n_heads} * r.key_dim, 1, kMaxMerged);
    check.needs("inner_norm_epsilon", r.inner_norm_epsilon != 0.0f, selects || r.n_norm_groups);
    check.needs("sigmoid_gate", r.sigmoid_gate, r.has_states());
    check.needs("double_rate", r.double_rate, r.is_delta());
    check.expect(!r.n_norm_groups || r.value_width() % r.n_norm_groups == 0, "n_norm_groups that divides values",
                 r.value_width(), r.n_norm_groups);
    if (r.convolves_keys()) return;
    const bool plain = r.n_heads == 1 && !r.n_norm_groups && !r.gate_first && !r.keys_in_turn;
    if (selects) return check.expect(plain, "a selective state space with what it cannot have", 0, 1);
    check.expect(plain && r.key_dim == r.value_dim, "a short convolution with what it cannot have", 0, 1);
    check("n_taps of a short convolution", std::uint32_t{r.n_taps}, 2, kMaxTaps);  // so that it has a state
}

void check_block(const Stack& s, const Block& b, Checks& check) {
    const AttentionShape& a = b.attention;
    for_each_block_field(b, check);
    if (has(Part::states)) check_last_fields(s, b, check);
    if (has(Part::vectors) && has(Part::adapters) && a.position == Position::disentangled && s.adapter_rank)
        check.expect(!s.adapts(Adapted::query) && !s.adapts(Adapted::key),
                     "adapters of queries or keys, of which distances have been computed", 0, 1);
    if (has(Part::experts)) check_experts(b, check);
    if (has(Part::columns)) check_columns(b, s, check);
    if (has(Part::vectors))
        check.needs("relative_buckets", a.relative_buckets != 0, a.position == Position::disentangled);
    if (has(Part::layer_inputs)) check_layer_inputs(b, s, check);
    if (has(Part::rows)) {
        check.needs("rope_plane", a.rope_plane != 0, a.position == Position::rope && !s.rope_original_positions);
        check.needs("rope_interleaved", a.rope_interleaved, a.rope_plane != 0);
    }
    check.needs("norm_bias", b.norm_bias, b.norm == Norm::layer || a.query_key_norm == Norm::layer);
    check.needs("norm_bias of an RMS norm", b.norm_bias, b.norm != Norm::rms && a.query_key_norm != Norm::rms);
    check.needs("gate_bias", b.feed.gate_bias, b.feed.gated);
    check.needs("output_bias", a.output_bias, a.has_output_map);
    check.needs("cross_attention", a.cross_attention, a.n_heads != 0);
    check.needs("parallel", b.feed.parallel,
                a.n_heads && b.feed.d_ff && !a.cross_attention && b.norm_place == NormPlace::pre);
    check.needs("shared_norm", b.feed.shared_norm, b.feed.parallel && b.norm != Norm::none);
    check.needs("attention_sinks", a.attention_sinks, a.n_heads != 0 && !a.no_projections);
    check.needs("head_norm", a.head_norm != HeadNorm::shared, a.query_key_norm != Norm::none);
    if (a.n_heads == 0) {
        check.expect(b.feed.d_ff != 0 || (has(Part::states) && b.recurrent), "n_heads or d_ff", 1, 0);
        // Their products have no bound without heads, and a plan adds them up.
        std::uint32_t sizes = a.n_kv_heads | a.head_dim | a.value_head_dim;
        if (has(Part::latent)) sizes |= b.latent.query_rank | b.latent.query_dim | b.latent.value_dim;
        return check.expect(a.position == Position::none && !sizes, "n_heads", 1, 0);
    }
    check("n_kv_heads", a.n_kv_heads, 1, a.n_heads);
    check("head_dim", a.head_dim, 1, kMaxWidth);
    check("value_head_dim", a.value_head_dim, 1, kMaxWidth);
    check("n_heads times head_dim", std::uint64_t{a.n_heads} * a.head_dim, 1, kMaxMerged);
    check("n_heads times value_head_dim", std::uint64_t{a.n_heads} * a.value_head_dim, 1, kMaxMerged);
    check_positions(b, check);
    check_widths(s, b, check);
    if (has(Part::latent)) check_latent(b, check);
    const bool divides = a.n_kv_heads != 0 && a.n_heads % a.n_kv_heads == 0;
    check.expect(divides, "n_kv_heads that divides n_heads", a.n_heads, a.n_kv_heads);
}

void check_head(const Stack& s, Checks& check) {
    const std::uint32_t n = s.n_head_maps();
    for (std::uint32_t i = 0; i < kMaxHeadMaps; ++i) {
        const HeadMap& m = s.head[i];
        for_each_head_map_field(m, check);
        check.expect(i < n || m == HeadMap{}, "width of a head's map", 1, 0);
        check.expect(i + 1 >= n || m.width <= kMaxWidth, "width of a head's map", kMaxWidth, m.width);
        check.needs("norm_bias of a head's map", m.norm_bias, m.norm == Norm::layer);
        check.needs("norm of a head's last map", m.norm != Norm::none, i + 1 < n || s.has_output_head);
    }
    const std::uint32_t width = s.head_width(), embedded = or_else(s.embedding_width, s.d_model);
    check.expect(!s.tied_output || width == embedded, "width of what a tied output head reads", embedded, width);
    check.expect(!s.has_output_head || width <= kMaxWidth, "width of what an output head reads", kMaxWidth, width);
}

/// Frames take the place of vectors; two of them make a row.
void check_sound(const Stack& s, Checks& check) {
    const Sound& sound = s.sound;
    if (sound == Sound{}) return;
    for_each_sound_field(sound, check);
    check("n_mels times frequencies", std::uint64_t{sound.n_mels} * sound.n_bins(), 1, kMaxFilterWeights);
    check.expect(!s.vocab_size, "vocab_size of a stack that hears", 0, s.vocab_size);
    check.expect(!s.max_positions || sound.n_frames <= 2 * std::uint64_t{s.max_positions}, "n_frames",
                 2 * std::uint64_t{s.max_positions}, sound.n_frames);
}

void check_stack(const Stack& s, Checks& check) {
    for_each_stack_field(s, check);
    if (has(Part::vectors)) check_head(s, check), check_sound(s, check);
    if (has(Part::states)) check_recurrent(s.recurrent, check);
    if (has(Part::adapters) && (s.adapter_rank || s.adapted)) for_each_adapter_field(s, check);
    check.needs("embedding_bias", s.embedding_bias, s.embedding_width != 0);
    check.needs("embedding_width", s.embedding_width != 0, s.vocab_size != 0);
    check.needs("embedding_norm_bias", s.embedding_norm_bias, s.embedding_norm == Norm::layer);
    if (has(Part::rows) && s.joins_rows)
        check.expect(s.embedding_norm == Norm::rms && s.has_output_head && !s.embedding_width && !s.n_token_types &&
                         s.position == Position::none && !s.adapter_rank,
                     "a head that joins rows with what it cannot have", 0, 1);
    check.needs("final_norm_bias", s.final_norm_bias, s.final_norm == Norm::layer);
    check.needs("has_output_head", s.has_output_head, s.vocab_size != 0);
    check.needs("tied_output", s.tied_output, s.has_output_head);
    if (has(Part::columns)) check.needs("output_columns", s.output_columns, s.has_output_head);
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
    for (const Block& b : s.used_blocks()) check_block(s, b, check);
    if (has(Part::layer_inputs) && check.status.ok()) check_shared_keys(s, check);
}

/// A stack that is not there must have no field set, for much code looks at one field alone.
struct Absent {
    Checks& check;

    template<class T>
    void operator()(const char*, T value, auto...) {
        if constexpr (!std::is_floating_point_v<T>) check.expect(value == T{}, "n_layers", 1, 0);
    }
    void flags(auto... flag) { check.expect(!(flag || ...), "n_layers", 1, 0); }
    void skip(std::size_t) {}
};

/// What a valid configuration asks for and this build leaves out.
[[nodiscard]] Status check_parts(const Config& config) noexcept {
    for (const Stack* s : {&config.encoder, &config.decoder}) {
        if (!has(Part::vectors) && (s->n_head_maps() || embedding_cols(*s) || s->sound.is_speech()))
            return {Code::unsupported, "vectors: left out of this build", 0, 0};
        bool varies = s->n_layers && (s->logit_scale != 1.0f || s->logit_softcap != 0.0f || s->rope_original_positions),
             routes = false, is_latent = false, scales_columns = s->output_columns, has_inputs = false;
        for (const Block& b : s->used_blocks()) {
            varies |= is_variant(b);
            routes |= b.experts.n || b.feed.activation == Activation::silu_clamped;
            is_latent |= LatentTensors::needed(*s, b);
            scales_columns |= b.column_scales;
            has_inputs |= InputTensors::needed(*s, b);
        }
        for (const HeadMap& map : s->head) {
            routes |= has(Part::vectors) && map.activation == Activation::silu_clamped;
            varies |= has(Part::vectors) && map.activation >= Activation::relu2;
        }
        if (has(Part::experts) && !has(Part::latent) && is_latent)
            return {Code::unsupported, "latent attention: left out of this build", 0, 0};
        if (kLongBlockRecords && !has(Part::columns) && scales_columns)
            return {Code::unsupported, "column scales: left out of this build", 0, 0};
        if (kLongBlockRecords && !has(Part::layer_inputs) && has_inputs)
            return {Code::unsupported, "layer inputs: left out of this build", 0, 0};
        // One refusal for both where both are left out, for flash.
        if (!has(Part::experts) && (routes || (!has(Part::latent) && is_latent)))
            return {Code::unsupported,
                    has(Part::latent) ? "experts: left out of this build" : "experts, latent: left out of this build",
                    0, 0};
        if (!has(Part::block_variants) && varies)
            return {Code::unsupported, "variants of blocks: left out of this build", 0, 0};
    }
    return {};
}

}  // namespace

Status check(const Config& config) noexcept {
    Checks check;
    const Stack &encoder = config.encoder, &decoder = config.decoder;
    check.expect(encoder.n_layers || decoder.n_layers, "n_layers", 1, 0);
    Absent absent{check};
    for (const Stack* s : {&encoder, &decoder})
        if (!s->n_layers) {
            for_each_stack_field(*s, absent);
            check.expect(s->n_head_maps() == 0, "n_layers", 1, 0);
            if (has(Part::vectors)) check.expect(s->sound == Sound{}, "n_layers", 1, 0);
            if (has(Part::states)) check.expect(s->recurrent == RecurrentShape{}, "n_layers", 1, 0);
        }
    if (has(Part::vectors)) check.expect(decoder.sound == Sound{}, "sound of the decoder", 0, 1);
    if (has(Part::states)) check.expect(encoder.recurrent == RecurrentShape{}, "a recurrent part of the encoder", 0, 1);
    if (encoder.n_layers) check_stack(encoder, check);
    if (!check.status.ok()) return check.status;
    for (const Block& b : encoder.used_blocks())
        check.expect(!b.attention.cross_attention, "cross_attention in the encoder", 0, 1);
    if (decoder.n_layers) check_stack(decoder, check);
    if (!check.status.ok()) return check.status;
    for (const Block& b : decoder.used_blocks())
        check.expect(!has(Part::vectors) || b.attention.position != Position::disentangled,
                     "disentangled positions in the decoder", 0, 1);
    return check.status.ok() ? check_parts(config) : check.status;
}

}  // namespace fovea
