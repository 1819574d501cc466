// The file's bytes as structs: the only place that knows them. docs/format.md is the same in words.
//
//     FileHeader                      64 bytes at offset 0
//     SectionRecord[n_sections]       the directory, at offset 64
//     sections                        each 64-byte aligned, in any order, without overlap; gaps are zero
//
// Little-endian throughout; every struct is read in place on little-endian machines, the only ones supported.
// Versions: a reader refuses a newer major version. It skips sections, configuration records and tensor roles it does
// not know unless their critical bit is set. A record may be longer than the reader's struct if the rest is zero.
#pragma once
// clang-format off
#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/format/panel.h"
#include "engine/format/parts.h"
#include "engine/format/roles.inc"
#include "engine/format/tokenizer_format.h"
#include "fovea/config.h"

namespace fovea {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint8_t kMagic[8] = {'F', 'o', 'v', 'e', 'a', '\r', '\n', 0x1a};
inline constexpr std::uint16_t kFormatMajor = 1, kFormatMinor = 0;
inline constexpr std::uint64_t kSectionAlignment = 64;
inline constexpr std::uint64_t kWeightsAlignment = 65536;  // whole pages when mapped; flash images may use 64

struct FileHeader {
    std::uint8_t magic[8];
    std::uint16_t major, minor;
    std::uint32_t n_sections;
    std::uint64_t file_bytes;         // of the whole file
    std::uint32_t directory_crc;      // CRC-32C of the SectionRecords
    std::uint8_t reserved[32];        // zero
    std::uint32_t header_crc;         // CRC-32C of the 60 bytes before it
};
static_assert(sizeof(FileHeader) == 64);

enum class SectionKind : std::uint32_t { config = 1, tensors = 2, weights = 3, tokenizer = 4, info = 5 };
[[nodiscard]] const char* section_name(std::uint32_t kind) noexcept;  // as above; "unknown" for others
inline constexpr std::uint32_t kCritical = 1;  // in flags: a reader that does not know this must refuse the file

struct SectionRecord {
    std::uint32_t kind;   // SectionKind; at most one of each
    std::uint32_t flags;
    std::uint64_t offset; // from the file's start, a multiple of 64
    std::uint64_t bytes;
    std::uint32_t crc;    // CRC-32C of the section's bytes
    std::uint32_t reserved;
};
static_assert(sizeof(SectionRecord) == 32);

// ---- config: a sequence of records, each 8-byte aligned ------------------------------------------------------------

enum class RecordTag : std::uint32_t { stack = 1, block = 2, layer_blocks = 3, head_map = 4, adapter = 5, sound = 6, recurrent = 7 };
enum class StackIndex : std::uint16_t { encoder = 0, decoder = 1 };

struct RecordHeader {
    std::uint32_t tag;    // RecordTag
    std::uint32_t bytes;  // of the payload that follows; the next record starts at the next multiple of 8
    std::uint16_t flags;
    std::uint16_t stack;  // StackIndex
    std::uint32_t index;  // which block or map; 0 for the others
};
static_assert(sizeof(RecordHeader) == 16);

// Bounds of their fields. With these a matrix has at most 2^42 elements, a model 2^58, and the largest cache (2^12
// layers of 2^22 positions, keys and values of 2^22 floats each) 2^59 bytes.
inline constexpr std::uint32_t kMaxWidth = 1u << 20;   // d_model, a head, d_ff
inline constexpr std::uint32_t kMaxMerged = 1u << 22;  // all heads of a layer side by side
inline constexpr std::uint32_t kMaxPositions = 1u << 22;  // as far as sine and cosine go (kernels/constants.h)
inline constexpr std::uint32_t kMaxLayers = 1u << 12, kMaxVocab = 1u << 24;
inline constexpr std::uint32_t kMaxHeads = 1u << 16, kMaxTokenTypes = 1u << 16;
inline constexpr std::uint32_t kMaxBuckets = 0xfffe;  // of distances
inline constexpr std::uint32_t kMaxAdapterRank = 1u << 12;
inline constexpr std::uint32_t kMaxExperts = 1u << 10, kMaxExpertsUsed = 1u << 6;
inline constexpr std::uint32_t kMaxInputWidth = 1u << 10;  // of every layer: of all together 2^22
inline constexpr std::uint32_t kMaxSampleRate = 1u << 20, kMaxFft = 1u << 16, kMaxHop = 1u << 16;
inline constexpr std::uint32_t kMaxFilterWeights = 1u << 24;  // n_mels times n_bins
inline constexpr std::uint32_t kMaxTaps = 16, kMaxState = 1u << 23;  // floats of a layer's state
inline constexpr float kMaxFloat = 0x1.fffffep+127f;

/// Whether this build reads the fields of blocks that came last, or refuses them.
inline constexpr bool kLongBlockRecords = has(Part::experts) || has(Part::latent) || has(Part::columns) || has(Part::layer_inputs);
inline constexpr std::size_t kStackRecordBytes = kLongBlockRecords ? 64 : 56,
                             kBlockRecordBytes = has(Part::states) ? 168 : kLongBlockRecords ? 144 : 104,
                             kHeadMapRecordBytes = 16, kAdapterRecordBytes = 16, kSoundRecordBytes = 24,
                             kRecurrentRecordBytes = 48;
/// Bytes of a record that are always written. The rest is left out if it is zero, as older readers want it.
inline constexpr std::size_t kLeastStackRecordBytes = 56, kLeastBlockRecordBytes = 88, kLeastRecurrentRecordBytes = 40;

/// The last fields of a stack's record.
template <class S, class Field>
void last_stack_fields(S& s, Field& field) {
    if (!has(Part::rows)) return field.skip(4);
    field.flags(s.joins_rows), field.skip(3);
}

/// Goes through a stack's record in the file's order: field(name, x, least, most) for a field as wide as x,
/// field.wide(...) for one of four bytes of which fewer are kept, field.flags(x...) for bytes that are 0 or 1,
/// field.skip(n) for reserved bytes. Readers, checkers and writers of configurations all use this list. S is Stack or
/// const Stack.
template <class S, class Field>
void for_each_stack_field(S& s, Field& field) {
    field("n_layers", s.n_layers, 1, kMaxLayers), field("d_model", s.d_model, 1, kMaxWidth),
    field("vocab_size", s.vocab_size, 0, kMaxVocab), field("max_positions", s.max_positions, 0, kMaxPositions),
    field("n_token_types", s.n_token_types, 0, kMaxTokenTypes), field("n_blocks", s.n_blocks, 1, kMaxBlocks),
    field("position", s.position, Position::none, Position::sinusoidal),
    field("embedding_norm", s.embedding_norm, Norm::none, Norm::rms),
    field("final_norm", s.final_norm, Norm::none, Norm::rms),
    field("pooling", s.pooling, Pooling::none, Pooling::mean_sqrt_len);
    field.flags(s.embedding_norm_bias, s.final_norm_bias, s.tied_output, s.has_output_head, s.output_bias,
                s.normalize_pooled, s.embedding_bias);
    kLongBlockRecords ? field.flags(s.output_columns) : field.skip(1);
    field("embedding_width", s.embedding_width, 0, kMaxWidth),
    field("embedding_scale", s.embedding_scale, -kMaxFloat, kMaxFloat),
    field("final_norm_epsilon", s.final_norm_epsilon, 0, kMaxFloat),
    field("logit_softcap", s.logit_softcap, 0, kMaxFloat), field("logit_scale", s.logit_scale, -kMaxFloat, kMaxFloat);
    if (kLongBlockRecords)
        field("rope_original_positions", s.rope_original_positions, 0, kMaxPositions), last_stack_fields(s, field);
}

inline constexpr Position kLastPosition = has(Part::vectors) ? Position::disentangled : Position::alibi;

/// The same for a block's record.
template <class B, class Field>
void for_each_block_field(B& b, Field& field) {
    auto& a = b.attention;
    auto& e = b.experts;
    field("n_heads", a.n_heads, 0, kMaxHeads), field("n_kv_heads", a.n_kv_heads, 0, kMaxHeads),
    field("head_dim", a.head_dim, 0, kMaxWidth), field("value_head_dim", a.value_head_dim, 0, kMaxWidth),
    field("query_width", a.query_width, 0, kMaxWidth), field("key_width", a.key_width, 0, kMaxWidth),
    field("value_width", a.value_width, 0, kMaxWidth), field("output_width", a.output_width, 0, kMaxWidth),
    field("d_ff", b.feed.d_ff, 0, kMaxWidth), field("window", a.window, 0, kMaxPositions),
    field("rotary_dim", a.rotary_dim, 0, kMaxWidth);
    if (has(Part::vectors))
        field.wide("relative_buckets", a.relative_buckets, 0, kMaxBuckets);
    else
        field.skip(4);
    field("relative_max_distance", a.relative_max_distance, 0, kMaxPositions),
    field("norm_epsilon", b.norm_epsilon, 0, kMaxFloat),
    field("softmax_scale", a.softmax_scale, -kMaxFloat, kMaxFloat),
    field("score_softcap", a.score_softcap, 0, kMaxFloat), field("rope_scale", a.rope_scale, -kMaxFloat, kMaxFloat),
    field("norm", b.norm, Norm::none, Norm::rms), field("norm_place", b.norm_place, NormPlace::pre, NormPlace::within),
    field("query_key_norm", a.query_key_norm, Norm::none, Norm::rms),
    field("block position", a.position, Position::none, kLastPosition),
    field("activation", b.feed.activation, Activation::none, static_cast<Activation>(kActivationCount - 1));
    field.flags(b.feed.gated, a.causal, a.cross_attention, a.has_output_map, a.query_bias, a.key_bias, a.value_bias,
                a.output_bias, b.feed.up_bias, b.feed.gate_bias, b.feed.down_bias, b.norm_bias, a.bias_kv, a.zero_attn);
    if (has(Part::rows))
        field("rope_plane", a.rope_plane, 0, 255);
    else
        field.skip(1);
    field("residual_scale", b.residual_scale, -kMaxFloat, kMaxFloat),
    field("projection_clip", a.projection_clip, 0, kMaxFloat),
    field("head_norm", a.head_norm, HeadNorm::shared, HeadNorm::together);
    field.flags(b.feed.parallel, b.feed.shared_norm, a.attention_sinks);
    if (!kLongBlockRecords) return field.skip(4);
    field.flags(e.normalize, e.shared_gate, e.router_bias, e.choice_bias);
    field.wide("n_experts", e.n, 0, kMaxExperts), field.wide("n_experts_used", e.n_used, 0, kMaxExpertsUsed),
    field("shared_d_ff", e.shared_d_ff, 0, kMaxWidth), field("routed_scale", e.routed_scale, -kMaxFloat, kMaxFloat);
    field("n_expert_groups", e.n_groups, 0, kMaxExperts), field("n_groups_used", e.n_groups_used, 0, kMaxExperts);
    field("query_rank", b.latent.query_rank, 0, kMaxWidth), field("latent_query_dim", b.latent.query_dim, 0, kMaxWidth),
    field("latent_value_dim", b.latent.value_dim, 0, kMaxWidth);
    field("router_score", e.router_score, RouterScore::softmax,
          has(Part::states) ? RouterScore::sparse_mixer : RouterScore::sigmoid);
    field.flags(b.column_scales, a.shared_keys, a.value_norm, b.inputs.layer_scale);
    has(Part::rows) ? field.flags(a.rope_interleaved) : field.skip(1);
    field("layer_input_width", b.inputs.width, 0, kMaxInputWidth);
    if (!has(Part::states)) return;
    field("output_gate", a.output_gate, OutputGate::none, OutputGate::sigmoid_of_heads);
    field.flags(b.recurrent, a.norm_turned, a.chunked, e.weigh_inputs, e.own_norms, b.feed.xielu, b.inputs.joins_embedding);
    field("latent_norm_epsilon", b.latent.norm_epsilon, 0, kMaxFloat),
    field("query_growth", a.query_growth, -kMaxFloat, kMaxFloat),
    field("growth_period", a.growth_period, 0, kMaxPositions), field("router_margin", e.margin, 0, kMaxFloat);
}

/// The same for a map's record.
template <class M, class Field>
void for_each_head_map_field(M& m, Field& field) {
    field("width of a head's map", m.width, 0, kMaxVocab),
    field("norm_epsilon of a head's map", m.norm_epsilon, 0, kMaxFloat),
    field("activation of a head's map", m.activation, Activation::none, static_cast<Activation>(kActivationCount - 1)),
    field("norm of a head's map", m.norm, Norm::none, Norm::rms);
    field.flags(m.bias, m.norm_bias);
    field.skip(4);
}

/// The same for an adapter's record, which is of a stack.
template <class S, class Field>
void for_each_adapter_field(S& s, Field& field) {
    field("adapter_rank", s.adapter_rank, 1, kMaxAdapterRank), field("adapted", s.adapted, 1, kAllAdapted);
    field("adapter_base", s.adapter_base, 0, 0xffffffffu), field.skip(4);
}

/// The same for a sound's record, which a stack that hears has.
template <class S, class Field>
void for_each_sound_field(S& s, Field& field) {
    field("sample_rate", s.sample_rate, 1, kMaxSampleRate), field("n_fft", s.n_fft, 2, kMaxFft),
    field("hop_length", s.hop_length, 1, kMaxHop), field("n_mels", s.n_mels, 1, kMaxWidth),
    field("n_frames", s.n_frames, 1, kMaxPositions), field.skip(4);
}

/// The same for a recurrent part's record, which is of a stack.
template <class R, class Field>
void for_each_recurrent_field(R& r, Field& field) {
    field("recurrent n_heads", r.n_heads, 1, kMaxHeads), field("recurrent n_key_heads", r.n_key_heads, 1, kMaxHeads),
    field("key_dim", r.key_dim, 1, kMaxWidth), field("value_dim", r.value_dim, 1, kMaxWidth),
    field("n_norm_groups", r.n_norm_groups, 0, kMaxHeads), field("step_least", r.step_least, 0, kMaxFloat),
    field("step_most", r.step_most, 0, kMaxFloat),
    field("recurrence", r.kind, Recurrence::convolution, Recurrence::delta_by_dim),
    field("n_taps", r.n_taps, std::uint8_t{1}, static_cast<std::uint8_t>(kMaxTaps));
    field.flags(r.shared_norm, r.gate_first, r.input_bias, r.kernel_bias, r.output_bias, r.keys_in_turn);
    field("step_rank", r.step_rank, 0, kMaxWidth), field("inner_norm_epsilon", r.inner_norm_epsilon, 0, kMaxFloat);
    field.flags(r.sigmoid_gate, r.double_rate);
    field.skip(2);
}

// A layer_blocks record's payload is n_layers bytes, the number of each layer's block. Absent: every layer is block 0.

// ---- tensors -------------------------------------------------------------------------------------------------------

enum class Layout : std::uint8_t {
    vector = 0,  // f32 [n_cols], zero-padded to a multiple of 16; n_rows is 1
    rows = 1,    // [n_rows][n_cols] row-major, no padding: tables that are only looked up
    panels = 2,  // 16 rows at a time, see panel_bytes
};

// Roles of tensors, as roles.inc lists them, by their numbers in a file.
enum class Role : std::uint16_t {
#define FOVEA_TENSOR(field, role, number, ...) role = number,
    FOVEA_TENSORS(FOVEA_TENSOR)
#undef FOVEA_TENSOR
};

/// "query_bias" for Role::query_bias; "unknown" for numbers that are no role.
[[nodiscard]] const char* role_name(std::uint16_t role) noexcept;

struct TensorRecord {
    std::uint16_t role;   // Role
    std::uint16_t stack;  // StackIndex
    std::uint32_t layer;
    std::uint32_t expert; // 0
    std::uint8_t layout;  // Layout
    std::uint8_t type;    // Type
    std::uint16_t flags;  // kCritical
    std::uint32_t n_rows, n_cols;
    std::uint64_t offset;       // from the weights section's start, a multiple of 64
    std::uint64_t bytes;
    std::uint64_t panel_stride; // bytes from one panel to the next; 0 if layout is not panels
    std::uint32_t n_outliers;   // columns whose weights stand behind each panel's units, see outliers_at
    std::uint32_t reserved[3];
};
static_assert(sizeof(TensorRecord) == 64);
// Records are sorted by (stack, layer, role, expert), so that a tensor is found by binary search.

/// Bytes of a tensor's data. At most 2^32 rows of 2^32·64 bytes: callers bound n_rows·n_cols first (see check).
[[nodiscard]] constexpr std::uint64_t tensor_bytes(Layout layout, Type type, std::uint64_t n_rows, std::uint64_t n_cols,
                                                   std::uint64_t panel_stride) noexcept {
    switch (layout) {
        case Layout::vector: return round_up(n_cols, kLanes) * 4;
        case Layout::rows: return n_rows * n_cols * (type == Type::f32 ? 4 : 2);
        case Layout::panels: return round_up(n_rows, kLanes) / kLanes * panel_stride;
    }
    return 0;
}

// ---- the tensors a configuration calls for -------------------------------------------------------------------------

struct TensorSpec {
    Role role;
    StackIndex stack;
    std::uint32_t layer;
    Layout layout;
    std::uint32_t n_rows, n_cols;
};

/// Whether they are column scales, which come with the types of a file's matrices.
[[nodiscard]] constexpr bool is_columns(Role role) noexcept {
    return role >= Role::projections_columns && role <= Role::output_columns;
}

/// Whether Stack::adapter_base covers the tensor: vectors are f32 in every file of a model.
[[nodiscard]] constexpr bool tells_model(const TensorSpec& t) noexcept {
    return t.layout == Layout::vector && t.role != Role::rope_frequencies && t.role != Role::alibi_slopes &&
           t.role != Role::mel_filters && !is_columns(t.role);
}

/// Numbers of a block's frequencies: one list or two, one after the other.
[[nodiscard]] constexpr std::uint32_t n_rope_frequencies(const Stack& s, const AttentionShape& a) noexcept {
    return a.rotary_dim / 2 * (s.rope_original_positions ? 2 : 1);
}

/// Rows of `up`: gate and up alternate by whole panels, so each is padded to panels.
[[nodiscard]] constexpr std::uint32_t up_rows(const Block& b) noexcept {
    return b.feed.gated ? 2 * static_cast<std::uint32_t>(round_up(b.feed.d_ff, kLanes)) : b.feed.d_ff;
}

/// Rows of one expert among those of all: whole panels.
[[nodiscard]] constexpr std::uint32_t expert_up_rows(const Block& b) noexcept {
    return static_cast<std::uint32_t>(round_up(b.feed.d_ff, kLanes)) * (b.feed.gated ? 2 : 1);
}
[[nodiscard]] constexpr std::uint32_t expert_down_rows(const Stack& s) noexcept {
    return static_cast<std::uint32_t>(round_up(s.d_model, kLanes));
}
/// Rows of one head's maps among those of all: whole panels.
[[nodiscard]] constexpr std::uint32_t latent_query_rows(const Block& b) noexcept {
    return static_cast<std::uint32_t>(round_up(b.attention.value_head_dim, kLanes));
}
[[nodiscard]] constexpr std::uint32_t latent_value_rows(const Block& b) noexcept {
    return static_cast<std::uint32_t>(round_up(b.latent.value_dim, kLanes));
}
/// Rows of one head's vectors for buckets of distances: whole panels.
[[nodiscard]] constexpr std::uint32_t bucket_rows(const Block& b) noexcept {
    return static_cast<std::uint32_t>(round_up(b.attention.relative_buckets, kLanes));
}
/// Rows of one head's first matrix of an adapter: whole panels.
[[nodiscard]] constexpr std::uint32_t latent_rank_rows(const Stack& s) noexcept {
    return static_cast<std::uint32_t>(round_up(s.adapter_rank, kLanes));
}
/// Dims of a head as `query` makes it, and as `attention_output` reads it.
[[nodiscard]] constexpr std::uint32_t query_head_dim(const Block& b) noexcept {
    return has(Part::latent) && b.latent.query_dim ? b.attention.rotary_dim + b.latent.query_dim : b.attention.head_dim;
}
[[nodiscard]] constexpr std::uint32_t merged_head_dim(const Block& b) noexcept {
    return has(Part::latent) && b.latent.query_dim ? b.latent.value_dim : b.attention.value_head_dim;
}
/// Rows of `up` if it is the shared expert's.
[[nodiscard]] constexpr std::uint32_t shared_up_rows(const Block& b) noexcept {
    return b.feed.gated ? 2 * static_cast<std::uint32_t>(round_up(b.experts.shared_d_ff, kLanes)) : b.experts.shared_d_ff;
}

[[nodiscard]] constexpr std::uint32_t or_else(std::uint32_t x, std::uint32_t otherwise) noexcept { return x ? x : otherwise; }
/// Elements of the rows that a block's attention reads in a stack.
[[nodiscard]] constexpr std::uint32_t attention_cols(const Stack& s, const Block& b) noexcept {
    return has(Part::layer_inputs) && b.inputs.joins_embedding ? 2 * s.d_model : s.d_model;
}

#define FOVEA_TENSOR(field, role, number, layout, called_for, n_rows, n_cols) \
    if (called_for) tensor(Role::role, layout, n_rows, n_cols);

/// Calls visit(TensorSpec) for each tensor of one layer of a checked stack, in the order of the roles.
template <class Visit>
void for_each_layer_tensor(const Stack& s, StackIndex stack, std::uint32_t layer, Visit&& visit) {
    using enum Layout;
    const Block& b = s.block(layer);
    const AttentionShape& a = b.attention;
    const bool adapter = has(Part::adapters) && s.adapter_rank != 0;
    const bool projects = a.n_heads && !a.no_projections, attends = projects && !adapter;
    const bool reads_memory = attends && a.cross_attention, feeds = b.feed.d_ff != 0 && !adapter;
    const bool routes = has(Part::experts) && b.experts.n != 0 && !adapter;
    const bool feeds_all = feeds && !routes, shares = routes && b.experts.shared_d_ff, norms_apart = routes && b.experts.own_norms;
    const bool curves = has(Part::states) && feeds_all && b.feed.xielu;
    const bool latent = has(Part::latent) && attends && b.latent.query_dim;
    const bool narrow = has(Part::latent) && attends && b.latent.query_rank;
    const bool disentangled = has(Part::vectors) && attends && a.position == Position::disentangled;
    const bool adapts_feed = adapter && b.feed.d_ff && !b.experts.n;
    const auto adapts = [&](bool there, Adapted matrix) { return has(Part::adapters) && there && s.adapts(matrix); };
    const bool norm = b.norm != Norm::none, norm_bias = norm && b.norm_bias;
    const bool within = has(Part::block_variants) && b.norm_place == NormPlace::within;
    const bool post_norm = norm && (b.norm_place == NormPlace::both || within), post_norm_bias = post_norm && b.norm_bias;
    const bool head_norm = a.query_key_norm != Norm::none, output_bias = a.has_output_map && a.output_bias;
    const bool head_norm_bias = b.norm_bias && a.query_key_norm == Norm::layer;
    const bool feeds_norm = feeds && norm && !b.feed.shared_norm, one_head = a.head_norm == HeadNorm::shared;
    const std::uint32_t query_rows = a.n_heads * query_head_dim(b), key_rows = a.n_kv_heads * a.head_dim;
    const bool adapts_attention = adapter && projects;
    const bool adapts_keys = adapts_attention && !(has(Part::layer_inputs) && a.shared_keys);
    const bool adapts_latent = has(Part::latent) && adapts_attention && b.latent.query_dim;
    const bool adapts_narrow = has(Part::latent) && adapts_attention && b.latent.query_rank;
    const std::uint32_t query_cols = narrow || adapts_narrow ? b.latent.query_rank : or_else(a.query_width, s.d_model);
    const std::uint32_t value_rows = a.n_kv_heads * a.value_head_dim, merged = a.n_heads * merged_head_dim(b);
    const std::uint32_t gate_rows = a.output_gate >= OutputGate::softplus_of_heads ? a.n_heads : merged;
    const std::uint32_t normed_query = one_head ? a.head_dim : query_rows, normed_key = one_head ? a.head_dim : key_rows;
    const std::uint32_t output_rows = or_else(a.output_width, s.d_model);
    const std::uint32_t post_attention = within ? merged : s.d_model, post_feed_forward = within ? b.feed.d_ff : s.d_model;
    const std::uint32_t rank = s.adapter_rank, up_rank = b.feed.gated ? 2 * rank : rank;
    const bool columns = has(Part::columns) && b.column_scales;
    const bool inputs = has(Part::layer_inputs) && !adapter, makes_keys = attends && !(inputs && a.shared_keys);
    const bool scales_layer = inputs && b.inputs.layer_scale, norms_values = inputs && a.value_norm;
    const std::uint32_t input_width = inputs ? b.inputs.width : 0;
    const bool joins = inputs && b.inputs.joins_embedding;
    const bool output_columns = has(Part::columns) && s.output_columns && !adapter;
    const bool gates = has(Part::states) && attends && a.output_gate != OutputGate::none, recurs = has(Part::states) && b.recurrent && !adapter;
    const RecurrentShape& r = s.recurrent;
    const bool has_states = recurs && r.has_states(), selects = recurs && r.kind == Recurrence::selective;
    const bool norms_inner = selects && r.inner_norm_epsilon != 0.0f, by_dim = recurs && r.kind == Recurrence::delta_by_dim;
    const bool narrows = (selects || by_dim) && r.step_rank;
    const std::uint32_t recurrent_cols = selects ? r.value_width() : s.d_model, n_steps = r.n_steps();
    const std::uint32_t step_cols = narrows ? r.step_rank : s.d_model, gate_cols = by_dim && narrows ? r.step_rank : s.d_model;
    const std::uint32_t recurrent_norm_width = r.shared_norm && r.n_norm_groups ? r.value_width() / r.n_norm_groups : r.value_width();
    const auto tensor = [&](Role role, Layout layout, std::uint32_t n_rows, std::uint32_t n_cols) {
        visit(TensorSpec{role, stack, layer, layout, n_rows, n_cols});
    };
    FOVEA_LAYER_TENSORS(FOVEA_TENSOR)
}

/// Columns of the map of what embeddings are made of; 0: there is none.
[[nodiscard]] constexpr std::uint32_t embedding_cols(const Stack& s) noexcept {
    return has(Part::rows) && s.joins_rows ? 2 * s.d_model : s.embedding_width;
}

/// Calls visit(TensorSpec) for every tensor a checked stack calls for, in the order the directory holds them.
template <class Visit>
void for_each_tensor(const Stack& s, StackIndex stack, Visit&& visit) {
    using enum Layout;
    const Layout rows_or_panels = s.has_output_head && s.tied_output ? panels : rows;  // also the output head, or not
    const std::uint32_t embedded = or_else(s.embedding_width, s.d_model);
    const bool joins = has(Part::rows) && s.joins_rows;
    const bool whole = !has(Part::adapters) || !s.adapter_rank;  // an adapter has only its layers' tensors
    const std::uint32_t n_maps = has(Part::vectors) && whole ? s.n_head_maps() : 0;
    for (std::uint32_t layer = 0; layer < s.n_layers || layer < n_maps; ++layer) {
        const auto tensor = [&](Role role, Layout layout, std::uint32_t n_rows, std::uint32_t n_cols) {
            visit(TensorSpec{role, stack, layer, layout, n_rows, n_cols});
        };
        if (layer == 0 && whole) {
            FOVEA_STACK_TENSORS(FOVEA_TENSOR)
        }
        if (layer < s.n_blocks && whole) {  // here it is a block's number
            const Block& b = s.blocks[layer];
            FOVEA_BLOCK_TENSORS(FOVEA_TENSOR)
        }
        if (has(Part::vectors) && layer == 0 && whole) {
            FOVEA_EMBEDDING_TENSORS(FOVEA_TENSOR)
        }
        if (layer < n_maps) {  // here it is a map's number
            const HeadMap& m = s.head[layer];
            const std::uint32_t map_cols = layer ? s.head[layer - 1].width : s.d_model;
            FOVEA_HEAD_TENSORS(FOVEA_TENSOR)
        }
        if (has(Part::vectors) && layer == 0 && whole && s.sound.is_speech()) {
            FOVEA_SOUND_TENSORS(FOVEA_TENSOR)
        }
        if (layer < s.n_layers) for_each_layer_tensor(s, stack, layer, visit);
    }
}

#undef FOVEA_TENSOR

// ---- info: metadata as text ----------------------------------------------------------------------------------------
// A sequence of {u32 key_bytes, u32 value_bytes, key, value}, each entry padded to 4 bytes; UTF-8, no terminators.
// Keys: "name", "architecture", "prompt_suffix", "chat_template", "source_type", "converter"; of a head's results "task",
// "labels" (a line each), "scores"; "max_seq_length"; of a speech model "speech".

}  // namespace fovea
