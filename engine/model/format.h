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

#include "fovea/config.h"
#include "panel.h"

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

// Bounds of their fields. With these a matrix has at most 2^42 elements, a model 2^58, and the largest cache (2^12
// layers of 2^22 positions, keys and values of 2^22 floats each) 2^59 bytes.
inline constexpr std::uint32_t kMaxWidth = 1u << 20;   // d_model, a head, d_ff
inline constexpr std::uint32_t kMaxMerged = 1u << 22;  // all heads of a layer side by side
inline constexpr std::uint32_t kMaxPositions = 1u << 22;  // as far as sine and cosine go (kernels/constants.h)
inline constexpr std::uint32_t kMaxLayers = 1u << 12, kMaxVocab = 1u << 24;
inline constexpr std::uint32_t kMaxHeads = 1u << 16, kMaxTokenTypes = 1u << 16, kMaxBuckets = 1u << 16;
inline constexpr float kMaxFloat = 0x1.fffffep+127f;

inline constexpr std::size_t kStackRecordBytes = 56, kBlockRecordBytes = 88;

/// Goes through a stack's record in the file's order: field(name, x, least, most) for each of four bytes or, if an
/// enumeration, of one; field.flags(x...) for bytes that are 0 or 1; field.skip(n) for bytes that are reserved. The one
/// list for whoever reads, checks or writes configurations. S is Stack or const Stack.
template <class S, class Field>
void for_each_stack_field(S& s, Field& field) {
    field("n_layers", s.n_layers, 1, kMaxLayers), field("d_model", s.d_model, 1, kMaxWidth),
    field("vocab_size", s.vocab_size, 0, kMaxVocab), field("max_positions", s.max_positions, 0, kMaxPositions),
    field("n_token_types", s.n_token_types, 0, kMaxTokenTypes), field("n_blocks", s.n_blocks, 1, kMaxBlocks),
    field("position", s.position, Position::none, Position::sinusoidal),
    field("embedding_norm", s.embedding_norm, Norm::none, Norm::rms),
    field("final_norm", s.final_norm, Norm::none, Norm::rms),
    field("pooling", s.pooling, Pooling::none, Pooling::last);
    field.flags(s.embedding_norm_bias, s.final_norm_bias, s.tied_output, s.has_output_head, s.output_bias,
                s.normalize_pooled);
    field.skip(6);
    field("embedding_scale", s.embedding_scale, -kMaxFloat, kMaxFloat),
    field("final_norm_epsilon", s.final_norm_epsilon, 0, kMaxFloat),
    field("logit_softcap", s.logit_softcap, 0, kMaxFloat), field("logit_scale", s.logit_scale, -kMaxFloat, kMaxFloat);
}

/// The same for a block's record.
template <class B, class Field>
void for_each_block_field(B& b, Field& field) {
    field("n_heads", b.n_heads, 0, kMaxHeads), field("n_kv_heads", b.n_kv_heads, 0, kMaxHeads),
    field("head_dim", b.head_dim, 0, kMaxWidth), field("value_head_dim", b.value_head_dim, 0, kMaxWidth),
    field("query_width", b.query_width, 0, kMaxWidth), field("key_width", b.key_width, 0, kMaxWidth),
    field("value_width", b.value_width, 0, kMaxWidth), field("output_width", b.output_width, 0, kMaxWidth),
    field("d_ff", b.d_ff, 0, kMaxWidth), field("window", b.window, 0, kMaxPositions),
    field("rotary_dim", b.rotary_dim, 0, kMaxWidth), field("relative_buckets", b.relative_buckets, 0, kMaxBuckets),
    field("relative_max_distance", b.relative_max_distance, 0, kMaxPositions),
    field("norm_epsilon", b.norm_epsilon, 0, kMaxFloat),
    field("softmax_scale", b.softmax_scale, -kMaxFloat, kMaxFloat),
    field("score_softcap", b.score_softcap, 0, kMaxFloat), field("rope_scale", b.rope_scale, -kMaxFloat, kMaxFloat),
    field("norm", b.norm, Norm::none, Norm::rms), field("norm_place", b.norm_place, NormPlace::pre, NormPlace::both),
    field("query_key_norm", b.query_key_norm, Norm::none, Norm::rms),
    field("block position", b.position, Position::none, Position::relative),
    field("activation", b.activation, Activation::none, static_cast<Activation>(kActivationCount - 1));
    field.flags(b.gated, b.causal, b.cross_attention, b.has_output_map, b.query_bias, b.key_bias, b.value_bias,
                b.output_bias, b.up_bias, b.gate_bias, b.down_bias, b.norm_bias, b.bias_kv, b.zero_attn);
    field.skip(1);
}

// A layer_blocks record's payload is n_layers bytes, the number of each layer's block. Absent: every layer is block 0.

// ---- tensors -------------------------------------------------------------------------------------------------------

enum class Layout : std::uint8_t {
    vector = 0,  // f32 [n_cols], zero-padded to a multiple of 16; n_rows is 1
    rows = 1,    // [n_rows][n_cols] row-major, no padding: tables that are only looked up
    panels = 2,  // 16 rows at a time, see panel_bytes
};

// What a tensor is: the roles that roles.inc lists, by their numbers in a file.
enum class Role : std::uint16_t {
#define FOVEA_TENSOR(field, role, number, ...) role = number,
#include "roles.inc"
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
    using enum Layout;
    const Block& b = s.block(layer);
    const bool attends = b.n_heads && !b.no_projections, reads_memory = attends && b.cross_attention, feeds = b.d_ff != 0;
    const bool norm = b.norm != Norm::none, norm_bias = norm && b.norm_bias;
    const bool post_norm = norm && b.norm_place == NormPlace::both, post_norm_bias = post_norm && b.norm_bias;
    const bool head_norm = b.query_key_norm != Norm::none, output_bias = b.has_output_map && b.output_bias;
    const bool head_norm_bias = b.norm_bias && b.query_key_norm == Norm::layer;
    const std::uint32_t query_rows = b.n_heads * b.head_dim, key_rows = b.n_kv_heads * b.head_dim;
    const std::uint32_t value_rows = b.n_kv_heads * b.value_head_dim, merged = b.n_heads * b.value_head_dim;
    const std::uint32_t output_rows = or_else(b.output_width, s.d_model);
    const auto tensor = [&](Role role, Layout layout, std::uint32_t n_rows, std::uint32_t n_cols) {
        visit(TensorSpec{role, stack, layer, layout, n_rows, n_cols});
    };
#define FOVEA_TENSOR(field, role, number, layout, called_for, n_rows, n_cols) \
    if (called_for) tensor(Role::role, layout, n_rows, n_cols);
#define FOVEA_STACK_TENSOR(...)
#define FOVEA_BLOCK_TENSOR(...)
#include "roles.inc"
}

/// Calls visit(TensorSpec) for every tensor a checked stack calls for, in the order the directory holds them.
template <class Visit>
void for_each_tensor(const Stack& s, StackIndex stack, Visit&& visit) {
    using enum Layout;
    const Layout rows_or_panels = s.has_output_head && s.tied_output ? panels : rows;  // also the output head, or not
    for (std::uint32_t layer = 0; layer < s.n_layers; ++layer) {
        const auto tensor = [&](Role role, Layout layout, std::uint32_t n_rows, std::uint32_t n_cols) {
            visit(TensorSpec{role, stack, layer, layout, n_rows, n_cols});
        };
        if (layer == 0) {
#define FOVEA_STACK_TENSOR(field, role, number, layout, called_for, n_rows, n_cols) \
    if (called_for) tensor(Role::role, layout, n_rows, n_cols);
#include "roles.inc"
        }
        if (layer < s.n_blocks) {  // here it is a block's number
            const Block& b = s.blocks[layer];
#define FOVEA_BLOCK_TENSOR(field, role, number, layout, called_for, n_rows, n_cols) \
    if (called_for) tensor(Role::role, layout, n_rows, n_cols);
#include "roles.inc"
        }
        for_each_layer_tensor(s, stack, layer, visit);
    }
}

// ---- info: metadata as text ----------------------------------------------------------------------------------------
// A sequence of {u32 key_bytes, u32 value_bytes, key, value}, each entry padded to 4 bytes; UTF-8, no terminators.
// Keys: "name", "architecture", "prompt_suffix", "chat_template", "source_type", "converter".

// ---- tokenizer: tables that are searched where they lie ------------------------------------------------------------
//
//     TokenizerHeader             at the section's start
//     TokenizerTable[n_tables]    the directory, at offset 64; each table is 64-byte aligned and stands there once
//
// Offsets count from the section's start. A reader skips tables it does not know unless their critical bit is set, and
// refuses models, flags and steps it does not know; so further models come with new numbers and tables, not versions.

inline constexpr std::uint32_t kNoId = 0xffffffffu;

enum class TokenizerModel : std::uint32_t { bpe = 1, word_piece = 2 };

enum TokenizerFlag : std::uint32_t {
    kSymbolsAreBytes = 1,   // words start as bytes, else as characters
    kWholeWords = 2,        // a word that is itself in the vocabulary is one token, whatever the merges say
    kByteFallback = 4,      // an unknown character becomes its bytes
    kFuseUnknown = 8,       // neighbouring unknown characters become one unknown token
    kDropFirstSpace = 16,   // decoding drops the space a text starts with
    kDropFirstSpaces = 32,  // decoding drops every space of the first token
    kTokenizerFlags = 63,
};

// Bounded, so that a file cannot make its reader ask for more memory, or calls within calls, than the text justifies.
inline constexpr std::uint32_t kMaxTextGrowth = 64, kMaxTokenGrowth = 16, kMaxSteps = 16;
inline constexpr std::uint32_t kMaxWordCharacters = 1000;  // and the time a word of word_piece may take

struct TokenizerHeader {
    std::uint32_t model;            // TokenizerModel
    std::uint32_t flags;            // TokenizerFlag
    std::uint32_t n_tokens;         // ids are below this
    std::uint32_t n_tables;
    std::uint32_t bos, unknown;     // ids, or kNoId
    std::uint32_t max_token_bytes;  // of the longest token
    std::uint32_t text_growth;      // at most this many bytes are rewritten by all steps, per byte of a text
    std::uint32_t token_growth;     // at most this many ids come of each byte of a text, its template's ids apart
    std::uint32_t max_word_characters;  // word_piece: a longer word, its space counted, is unknown; else 0
    std::uint32_t reserved[6];          // zero
};
static_assert(sizeof(TokenizerHeader) == 64);

enum class TokenizerTableKind : std::uint32_t {
    token_offsets = 1,  // u32 [n_tokens + 1]: where each token starts in token_text, and the two bits below
    token_text,         // the bytes each token stands for in a text
    end_ids,            // u32: tokens that end a text
    prefix_ids,         // u32: the template's tokens before a text
    suffix_ids,         // u32: and after it
    steps,              // TokenizerStep: from a text to words, in order
    byte_ids,           // u32 [256]: the token of each byte, or kNoId
    merges,             // TokenizerMerge: a hash table in buckets of 4
    vocabulary,         // TokenizerEntry: a hash table in buckets of 8; only where words or characters are looked up
    added_tokens,       // AddedToken, sorted by their bytes
    added_text,         // the bytes that spell them
    classes,            // u32 ascending: first code point << 8 | UnicodeClass bits, up to the next one's
    combining,          // u32 likewise: canonical combining classes
    decompositions,     // u64 ascending: code point | first << 21 | second (or 0) << 42 | bit 63: composes again
    compositions,       // u16: those with bit 63, as indices into decompositions, sorted by (first, second)
    characters,         // u32 as classes: CharacterBit
    lower_case,         // u64 as decompositions
};

// Bits of an offset. A token that joins the one before it leaves its first space out when decoded.
inline constexpr std::uint32_t kSpecialToken = 0x80000000u, kJoinedToken = 0x40000000u;

struct TokenizerTable {
    std::uint32_t kind;    // TokenizerTableKind
    std::uint32_t flags;   // kCritical
    std::uint32_t offset;
    std::uint32_t bytes;
};
static_assert(sizeof(TokenizerTable) == 16);

// A step takes a piece of text and hands on pieces of it, or a rewritten one; what leaves the last step are words.
enum class StepKind : std::uint8_t {
    added_tokens = 1,  // takes out added tokens: mode 0 those matched in the text as given, 1 in the normalized one
    normal_form,       // Unicode's: mode 0 form C, 1 form D without nonspacing marks
    replace,           // every `from` becomes `to`
    prepend,           // puts `to` first: mode 0 always, 1 unless the piece starts with it, 2 so at a text's start
    words,             // contractions, letters, numbers, punctuation, space: mode WordFlag bits; `limit`
    digits,            // numbers apart from the rest: mode 0 in runs, 1 one by one
    split_before,      // a piece starts at every `from`
    characters,        // each by its bits: mode RewriteFlag bits
    bert_words,        // space goes, each punctuation character is a piece (Devlin et al. 2019)
};

enum WordFlag : std::uint8_t {
    kIgnoreCase = 1,   // 'S as 's
    kAnyPrefix = 2,    // letters take one character before them that is no line end, letter or number; else one space
    kLineEnds = 4,     // punctuation takes the line ends after it, and a run of space ends with its last line end
    kWordFlags = 7,
};

enum RewriteFlag : std::uint8_t {
    kClean = 1,         // dropped characters and bytes that are none go, other space becomes " "
    kApart = 2,         // a space on both sides of an ideograph
    kLowerCase = 4,
    kRewriteFlags = 7,
};

struct TokenizerStep {
    std::uint8_t kind;    // StepKind
    std::uint8_t mode;
    std::uint8_t n_from, n_to;
    std::uint32_t limit;  // words: digits that stay together; 0: all, with one space before them
    std::uint8_t from[12], to[12];
};
static_assert(sizeof(TokenizerStep) == 32);

struct TokenizerMerge {
    std::uint32_t left, right;  // ids; left is kNoId in an unused place
    std::uint32_t rank;         // lower merges first
    std::uint32_t merged;       // id
};
static_assert(sizeof(TokenizerMerge) == 16);

struct TokenizerEntry {
    std::uint32_t hash;         // of the token's bytes
    std::uint32_t id;           // kNoId in an unused place
};
static_assert(sizeof(TokenizerEntry) == 8);

// Where to look: in bucket first_bucket(hash) and the next ones, until one is not full; kMaxProbes at most.
inline constexpr std::uint32_t kMergeBucket = 4, kEntryBucket = 8, kMaxProbes = 16;

[[nodiscard]] constexpr std::uint32_t first_bucket(std::uint32_t hash, std::uint32_t n_buckets) noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{hash} * n_buckets >> 32);
}

/// Multiply and fold, so that the high bits that first_bucket uses depend on every bit of both ids.
[[nodiscard]] constexpr std::uint32_t hash_pair(std::uint32_t left, std::uint32_t right) noexcept {
    std::uint64_t h = (std::uint64_t{left} << 32 | right) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return static_cast<std::uint32_t>(h >> 32);
}

/// FNV-1a (Fowler, Noll, Vo 1991), its high bits stirred by one more multiplication. In steps, for growing strings.
inline constexpr std::uint32_t kHashStart = 2166136261u;
[[nodiscard]] constexpr std::uint32_t hash_step(std::uint32_t h, char byte) noexcept {
    return (h ^ static_cast<std::uint8_t>(byte)) * 16777619u;
}
[[nodiscard]] constexpr std::uint32_t hash_end(std::uint32_t h) noexcept { return (h ^ h >> 15) * 0x85ebca6bu; }
[[nodiscard]] constexpr std::uint32_t hash_bytes(const char* bytes, std::size_t n) noexcept {
    std::uint32_t h = kHashStart;
    for (std::size_t i = 0; i < n; ++i) h = hash_step(h, bytes[i]);
    return hash_end(h);
}

struct AddedToken {
    std::uint32_t id;
    std::uint32_t offset;  // in added_text
    std::uint16_t bytes;   // at most kMaxAddedBytes
    std::uint16_t flags;   // AddedFlag
};
static_assert(sizeof(AddedToken) == 12);
inline constexpr std::uint32_t kMaxAddedBytes = 255;

enum AddedFlag : std::uint16_t {
    kAddedSpecial = 1,      // read only where special tokens are asked for
    kAddedNormalized = 2,   // matched in the normalized text, and spelled so
    kAddedWord = 4,         // only where no word character is next to it
    kAddedTakesLeft = 8,    // with the space before it
    kAddedTakesRight = 16,  // with the space after it
    kAddedFlags = 31,
};

enum UnicodeClass : std::uint8_t {
    kLetter = 1,   // \p{L} of the regular expressions
    kNumber = 2,   // \p{N}
    kSpace = 4,    // \s
    kNumeric = 8,  // what Digits takes for a number: \p{N} of a later Unicode
    kWord = 16,    // \w, next to added tokens
};

enum CharacterBit : std::uint8_t {
    kDropped = 1,      // control characters and the like
    kBlank = 2,        // space, among them some that are dropped too
    kIdeograph = 4,    // Chinese, Japanese, Korean
    kPunctuation = 8,
    kMark = 16,        // nonspacing, after decomposition
};

}  // namespace fovea
