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
#include <bit>
#include <cstddef>
#include <cstdint>

#include "fovea/config.h"

namespace fovea {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint8_t kMagic[8] = {'F', 'o', 'v', 'e', 'a', '\r', '\n', 0x1a};
inline constexpr std::uint16_t kFormatMajor = 1;
inline constexpr std::uint16_t kFormatMinor = 0;
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

enum class RecordTag : std::uint32_t { stack = 1, block = 2, layer_blocks = 3 };
enum class StackIndex : std::uint16_t { encoder = 0, decoder = 1 };

struct RecordHeader {
    std::uint32_t tag;    // RecordTag
    std::uint32_t bytes;  // of the payload that follows; the next record starts at the next multiple of 8
    std::uint16_t flags;
    std::uint16_t stack;  // StackIndex
    std::uint32_t index;  // which block; 0 for the others
};
static_assert(sizeof(RecordHeader) == 16);

struct StackRecord {
    std::uint32_t n_layers, d_model, vocab_size, max_positions, n_token_types, n_blocks;
    std::uint8_t position, embedding_norm, final_norm, pooling;
    std::uint8_t embedding_norm_bias, final_norm_bias, tied_output, has_output_head;
    std::uint8_t output_bias, normalize_pooled, reserved[6];
    float embedding_scale, final_norm_epsilon, logit_softcap, logit_scale;
};
static_assert(sizeof(StackRecord) == 56);

struct BlockRecord {
    std::uint32_t n_heads, n_kv_heads, head_dim, value_head_dim;
    std::uint32_t query_width, key_width, value_width, output_width;
    std::uint32_t d_ff, window, rotary_dim, relative_buckets, relative_max_distance;
    float norm_epsilon, softmax_scale, score_softcap, rope_scale;
    std::uint8_t norm, norm_place, query_key_norm, position, activation, gated, causal, cross_attention;
    std::uint8_t has_output_map, query_bias, key_bias, value_bias, output_bias, up_bias, gate_bias, down_bias;
    std::uint8_t norm_bias, bias_kv, zero_attn, reserved;
};
static_assert(sizeof(BlockRecord) == 88);

// A layer_blocks record's payload is n_layers bytes, the number of each layer's block. Absent: every layer is block 0.

// ---- tensors -------------------------------------------------------------------------------------------------------

enum class Layout : std::uint8_t {
    vector = 0,  // f32 [n_cols], zero-padded to a multiple of 16; n_rows is 1
    rows = 1,    // [n_rows][n_cols] row-major, no padding: tables that are only looked up
    panels = 2,  // 16 rows at a time, see panel_bytes
};

// What a tensor is. Per-layer roles use TensorRecord::layer; rope_frequencies uses it for the block's number.
enum class Role : std::uint16_t {
    token_embedding = 1,   // [vocab_size, d_model]; panels where it is also the output head, else rows
    position_embedding,    // [max_positions, d_model] rows
    type_embedding,        // [n_token_types, d_model] rows
    embedding_norm, embedding_norm_bias,
    final_norm, final_norm_bias,
    output, output_bias,   // [vocab_size, d_model] panels
    rope_frequencies,      // [rotary_dim / 2] vector: radians per position of each adjacent pair
    relative_bias,         // [relative_buckets, n_heads] rows f32; layer = block number

    attention_norm = 32, attention_norm_bias,            // before attention (pre, both) or after it (post)
    attention_post_norm, attention_post_norm_bias,       // after attention (both)
    query, query_bias,     // [n_heads·head_dim, query_width]; rotated dims of a head are adjacent pairs
    key, key_bias,         // [n_kv_heads·head_dim, key_width]
    value, value_bias,     // [n_kv_heads·value_head_dim, value_width]
    query_norm, key_norm, query_norm_bias, key_norm_bias,  // [head_dim]
    attention_output, attention_output_bias,             // [output_width, n_heads·value_head_dim]
    appended_key, appended_value,                        // bias_kv: [n_kv_heads·head_dim], [n_kv_heads·value_head_dim]

    cross_norm = 64, cross_norm_bias, cross_post_norm, cross_post_norm_bias,
    cross_query, cross_query_bias, cross_key, cross_key_bias, cross_value, cross_value_bias,
    cross_output, cross_output_bias,

    feed_forward_norm = 96, feed_forward_norm_bias, feed_forward_post_norm, feed_forward_post_norm_bias,
    up, up_bias,           // [d_ff, d_model]; gated: [2·padded d_ff, d_model], panels of gate and up in turn
    down, down_bias,       // [d_model, d_ff]
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
    std::uint64_t panel_stride; // bytes from one panel to the next; 0 where layout is not panels
    std::uint64_t reserved[2];
};
static_assert(sizeof(TensorRecord) == 64);
// Records are sorted by (stack, layer, role, expert), so that a tensor is found by binary search.

inline constexpr std::uint32_t kLanes = 16;     // rows of a panel
inline constexpr std::uint32_t kGroup = 32;     // columns that share a q8 or q4 scale
inline constexpr std::uint32_t kSuperblock = 64;

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t x, std::uint64_t multiple) noexcept {
    return (x + multiple - 1) / multiple * multiple;
}

/// Bytes of one panel of `n_cols` columns. n_cols below 2^32, so nothing overflows.
///   f32, f16, bf16   [col][16]
///   q8   per 64 columns: f16 scales [2][16], then int8 [2][8][16][4]: group, four columns, row, column
///   q4   per 64 columns: f16 scales [2][16], then bytes [2][4][16][4]: low nibble of byte j is column 8·i + j of its
///        group, high nibble column 8·i + 4 + j; a nibble is the quant plus 8. An odd last group is followed by zeros.
[[nodiscard]] constexpr std::uint64_t panel_bytes(std::uint8_t type, std::uint64_t n_cols) noexcept {
    const std::uint64_t superblocks = (n_cols + kSuperblock - 1) / kSuperblock;
    switch (type) {
        case 0: return n_cols * kLanes * 4;
        case 1:
        case 2: return n_cols * kLanes * 2;
        case 3: return superblocks * (64 + 1024);
        case 4: return superblocks * (64 + 512);
        default: return 0;
    }
}

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

/// Rows of `up`: gate and up alternate by whole panels, so each is padded to panels.
[[nodiscard]] constexpr std::uint32_t up_rows(const Block& b) noexcept {
    return b.gated ? 2 * static_cast<std::uint32_t>(round_up(b.d_ff, kLanes)) : b.d_ff;
}

[[nodiscard]] constexpr std::uint32_t or_else(std::uint32_t x, std::uint32_t otherwise) noexcept { return x ? x : otherwise; }

/// Calls visit(TensorSpec) for each tensor of one layer of a checked stack, in the order of the roles.
template <class Visit>
void for_each_layer_tensor(const Stack& s, StackIndex stack, std::uint32_t layer, Visit&& visit) {
    const Block& b = s.block(layer);
    const auto vector = [&](bool present, Role role, std::uint32_t n) {
        if (present) visit(TensorSpec{role, stack, layer, Layout::vector, 1, n});
    };
    const auto panels = [&](bool present, Role role, std::uint32_t n_rows, std::uint32_t n_cols) {
        if (present) visit(TensorSpec{role, stack, layer, Layout::panels, n_rows, n_cols});
    };
    // The roles of a norm are consecutive: weight, bias, and for NormPlace::both the second norm's weight, bias.
    const auto norms = [&](Role role) {
        const auto at = [&](int i) { return static_cast<Role>(static_cast<int>(role) + i); };
        const bool two = b.norm_place == NormPlace::both;
        vector(b.norm != Norm::none, role, s.d_model);
        vector(b.norm != Norm::none && b.norm_bias, at(1), s.d_model);
        vector(b.norm != Norm::none && two, at(2), s.d_model);
        vector(b.norm != Norm::none && two && b.norm_bias, at(3), s.d_model);
    };
    // So are those of an attention's projections.
    const auto projections = [&](Role query, Role output, std::uint32_t kv_width) {
        const auto at = [&](int i) { return static_cast<Role>(static_cast<int>(query) + i); };
        panels(true, query, b.n_heads * b.head_dim, or_else(b.query_width, s.d_model));
        vector(b.query_bias, at(1), b.n_heads * b.head_dim);
        panels(true, at(2), b.n_kv_heads * b.head_dim, or_else(b.key_width, kv_width));
        vector(b.key_bias, at(3), b.n_kv_heads * b.head_dim);
        panels(true, at(4), b.n_kv_heads * b.value_head_dim, or_else(b.value_width, kv_width));
        vector(b.value_bias, at(5), b.n_kv_heads * b.value_head_dim);
        if (query == Role::query && b.query_key_norm != Norm::none) {
            vector(true, Role::query_norm, b.head_dim);
            vector(true, Role::key_norm, b.head_dim);
            vector(b.norm_bias && b.query_key_norm == Norm::layer, Role::query_norm_bias, b.head_dim);
            vector(b.norm_bias && b.query_key_norm == Norm::layer, Role::key_norm_bias, b.head_dim);
        }
        const std::uint32_t width = or_else(b.output_width, s.d_model);
        panels(b.has_output_map, output, width, b.n_heads * b.value_head_dim);
        vector(b.has_output_map && b.output_bias, static_cast<Role>(static_cast<int>(output) + 1), width);
    };
    if (b.n_heads) {
        norms(Role::attention_norm);
        projections(Role::query, Role::attention_output, s.d_model);
        vector(b.bias_kv, Role::appended_key, b.n_kv_heads * b.head_dim);
        vector(b.bias_kv, Role::appended_value, b.n_kv_heads * b.value_head_dim);
        if (b.cross_attention) {
            norms(Role::cross_norm);
            projections(Role::cross_query, Role::cross_output, s.d_model);
        }
    }
    if (b.d_ff) {
        norms(Role::feed_forward_norm);
        panels(true, Role::up, up_rows(b), s.d_model);
        vector(b.up_bias || b.gate_bias, Role::up_bias, up_rows(b));
        panels(true, Role::down, s.d_model, b.d_ff);
        vector(b.down_bias, Role::down_bias, s.d_model);
    }
}

/// Calls visit(TensorSpec) for every tensor a checked stack calls for, in the order the directory holds them.
template <class Visit>
void for_each_tensor(const Stack& s, StackIndex stack, Visit&& visit) {
    const auto global = [&](bool present, Role role, Layout layout, std::uint32_t n_rows, std::uint32_t n_cols) {
        if (present) visit(TensorSpec{role, stack, 0, layout, n_rows, n_cols});
    };
    for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) {
        if (layer == 0) {
            const bool tied = s.has_output_head && s.tied_output;
            global(s.vocab_size, Role::token_embedding, tied ? Layout::panels : Layout::rows, s.vocab_size, s.d_model);
            global(s.position == Position::learned, Role::position_embedding, Layout::rows, s.max_positions, s.d_model);
            global(s.n_token_types, Role::type_embedding, Layout::rows, s.n_token_types, s.d_model);
            global(s.embedding_norm != Norm::none, Role::embedding_norm, Layout::vector, 1, s.d_model);
            global(s.embedding_norm_bias, Role::embedding_norm_bias, Layout::vector, 1, s.d_model);
            global(s.final_norm != Norm::none, Role::final_norm, Layout::vector, 1, s.d_model);
            global(s.final_norm_bias, Role::final_norm_bias, Layout::vector, 1, s.d_model);
            global(s.has_output_head && !tied, Role::output, Layout::panels, s.vocab_size, s.d_model);
            global(s.output_bias, Role::output_bias, Layout::vector, 1, s.vocab_size);
        }
        if (layer < s.n_blocks && s.blocks[layer].position == Position::rope)
            visit(TensorSpec{Role::rope_frequencies, stack, layer, Layout::vector, 1, s.blocks[layer].rotary_dim / 2});
        if (layer < s.n_blocks && s.blocks[layer].position == Position::relative)
            visit(TensorSpec{Role::relative_bias, stack, layer, Layout::rows, s.blocks[layer].relative_buckets,
                             s.blocks[layer].n_heads});
        for_each_layer_tensor(s, stack, layer, visit);
    }
}

// ---- info: metadata as text ----------------------------------------------------------------------------------------
// A sequence of {u32 key_bytes, u32 value_bytes, key, value}, each entry padded to 4 bytes; UTF-8, no terminators.
// Keys: "name", "architecture", "prompt_suffix", "chat_template", "source_type", "converter".

}  // namespace fovea
