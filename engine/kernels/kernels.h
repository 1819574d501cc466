// The one list of every kernel, with its contract. Pointers and sizes only; nothing here knows a model.
//
// Numerics, for all of them (docs/numerics.md): float32, round to nearest even, gradual underflow; every fma is one
// rounding; max(a, b) is a > b ? a : b. A *dot product* over columns runs in order, one fma each, in blocks of
// kColumnBlock columns: each block starts at zero, total = first block, then total = total + block. A *sum across a
// row* adds element i to lane i mod 16 in order, then folds lanes by a fixed tree: lane i += lane i + 8, then + 4, + 2,
// + 1. "Canonical" means that a NaN is stored as 0x7fc00000. kernels_scalar is the specification; every other table
// gives the same bits.
//
// Rows of activations are row-major float32 with a stride in elements that is a multiple of kLanes, padded with zeros,
// and 64-byte aligned. Kernels never read or write past what is stated, take no locks, and allocate nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "engine/format/panel.h"
#include "engine/format/parts.h"
#include "fovea/type.h"
#include "platform/features.h"

namespace fovea {

inline constexpr std::uint32_t kColumnBlock = 512;  // columns of a dot product that are summed on their own
inline constexpr std::uint32_t kRowBlock = 12;      // rows of an operand that are packed together, at most
inline constexpr std::uint32_t kFewRows = 24;       // rows up to which a product is one stream of weights, read once
inline constexpr std::uint32_t kTile = 64;          // positions of an attention tile, at multiples of 64
inline constexpr std::uint32_t kChunk = 512;        // positions after which attention's state restarts
inline constexpr std::uint32_t kChunkTiles = kChunk / kTile;

/// Rows of each block of an operand of n_rows rows; the last may have fewer. There are as few blocks as possible, of
/// sizes as equal as possible: 16 rows are 8 and 8, since 12 and 4 would cost more.
[[nodiscard]] constexpr std::uint32_t row_block(std::uint32_t n_rows) noexcept {
    const std::uint32_t n_blocks = (n_rows + kRowBlock - 1) / kRowBlock;
    return n_blocks < 2 ? n_rows : (n_rows + n_blocks - 1) / n_blocks;
}

/// Bytes per row of 32 quantized columns: see pack_q8.
inline constexpr std::uint32_t kQuantGroupBytes = kGroup + 3 * 4;

/// Groups of a quantized row: whole superblocks of two, as in panels.
[[nodiscard]] constexpr std::uint64_t quant_groups(std::uint64_t n_cols) noexcept {
    return round_up(n_cols, kSuperblock) / kGroup;
}

/// Bytes of n_rows rows packed as a matmul with weights of that type wants them, see pack and pack_q8. Linear in the
/// rows: the block that starts with row r, a multiple of row_block(n_rows), starts at operand_bytes(type, r, n_cols).
[[nodiscard]] constexpr std::uint64_t operand_bytes(Type type, std::uint64_t n_rows, std::uint64_t n_cols) noexcept {
    return n_rows * (is_quantized(type) ? quant_groups(n_cols) * kQuantGroupBytes : n_cols * 4);
}

/// Whether this build has caches of q4: they use the products of a type that not every build has.
inline constexpr bool kQ4Caches = has(Part::gguf_types);
/// Whether there are caches of a quantized type.
[[nodiscard]] constexpr bool has_caches(Type type) noexcept {
    return type == Type::q8 || (kQ4Caches && type == Type::q4);
}
inline constexpr Type kKeyTypeOfQ4 = Type::iq4_nl;  // in which a q4 cache's keys are, less their panel's reference

/// Bytes of 16 positions' key heads in a cache: a panel as a matrix has it. A panel of q4 is one of iq4_nl, then a reference
/// [head_dim]: the upper byte of a float16 for each dim, with zeros up to a multiple of 64. Keys near the reference are
/// stored as the difference from it.
[[nodiscard]] constexpr std::uint64_t key_panel_bytes(Type type, std::uint64_t head_dim) noexcept {
    if (!kQ4Caches || type != Type::q4) return panel_bytes(type, head_dim);
    return panel_bytes(kKeyTypeOfQ4, head_dim) + round_up(head_dim, kSuperblock);
}

/// Values of a q8 or q4 cache, for every 32 dims of 16 positions: f16 scales [16], one per position, then int8 quants
/// [16][32] or the codebook's indices [16][16], the low nibble of byte j being dim j, the high one dim 16 + j.
[[nodiscard]] constexpr std::uint32_t value_row_bytes(Type type) noexcept {
    return kQ4Caches && type == Type::q4 ? kGroup / 2 : kGroup;
}
[[nodiscard]] constexpr std::uint32_t value_group_bytes(Type type) noexcept {
    return kLanes * (2 + value_row_bytes(type));
}

/// Bytes of 16 positions' value heads in a cache: [16][value_stride] of f32 or f16; else a group for every 32 dims.
[[nodiscard]] constexpr std::uint64_t value_panel_bytes(Type type, std::uint64_t value_head_dim) noexcept {
    if (is_quantized(type)) return (value_head_dim + kGroup - 1) / kGroup * value_group_bytes(type);
    return kLanes * round_up(value_head_dim, kLanes) * (type == Type::f32 ? 4 : 2);
}

/// The last step of a product: what is stored of y = W·x + bias.
enum class Epilogue : std::uint8_t {
    store,  ///< out = act(y)
    add,    ///< out = out + y (residual); activation is none
    gate,   ///< panels 2i and 2i + 1 are gate and up: out panel i = act(y_gate)·y_up
};

/// Fields of builds with column scales alone.
template<class T>
using OfOutliers = std::conditional_t<has(Part::columns), T, LeftOut<T>>;

/// out[seq_len, ·] = finish(x · Wᵀ) for panels [panel_begin, panel_end) of W.
struct Matmul {
    const std::byte* panels;   // panel 0; 64-byte aligned
    std::size_t panel_stride;  // bytes
    std::uint32_t n_rows;      // outputs that are stored, of panel_end·16 at most (gate: of panel_end·8)
    std::uint32_t n_cols;
    std::uint32_t panel_begin, panel_end;  // gate: both even
    const void* operand;                   // packed rows, by row_block(seq_len): see Kernels::pack
    std::uint32_t seq_len;
    const float* bias;                 // [panels·16] or null
    float* out;                        // [seq_len][out_stride]; column 16·panel + lane (gate: 16·(panel / 2) + lane)
    std::size_t out_stride;            // elements; any, rows need not be aligned
    float* const* out_rows = nullptr;  // [seq_len] where each row starts, in place of out and out_stride; null: those
    Epilogue epilogue;
    Activation activation;
    bool canonical;             // store NaN as 0x7fc00000
    bool second_level = false;  // where weights of few rows are fetched to, see CpuFeatures; changes no bit
    // Of quantized types: outlier columns, whose inputs, float [seq_len][n_outliers], stand behind the operand, and whose
    // weights are at these bytes of a panel, see format/panel.h. y = fma(input, weight, y) of each in order, before the bias.
    [[no_unique_address]] OfOutliers<std::uint32_t> n_outliers{};
    [[no_unique_address]] OfOutliers<std::size_t> outliers_at{};

    [[nodiscard]] float* row(std::size_t i) const noexcept { return out_rows ? out_rows[i] : out + i * out_stride; }
    /// The inputs of a row's outlier columns.
    [[nodiscard]] const float* outliers(std::size_t i) const noexcept {
        const auto behind = static_cast<std::size_t>(operand_bytes(Type::q8, seq_len, n_cols));
        return reinterpret_cast<const float*>(static_cast<const std::byte*>(operand) + behind) +
               i * std::uint32_t{n_outliers};
    }
};

/// Totals of n_panels panels from `panel` on for n_rows rows from `row` on: [row][stride], 16 per panel. They may be changed.
struct Totals {
    float* at;
    std::size_t stride;
    std::uint32_t row, n_rows, panel, n_panels;
};

/// One mask for one query row and the positions below `end`. Positions from n_keys on are hidden, others if `hidden` is
/// not 0 or `added` is −inf; `added` is added to the score. Either pointer may be null.
struct MaskRow {
    const std::uint8_t* hidden;  // [n_keys]
    const float* added;          // [n_keys]
    std::uint32_t n_keys, end;
};
inline constexpr std::uint32_t kMasks = 3;  // a row's masks: the caller's two, and a causal one beside appended keys

/// One chunk of attention for up to kRowBlock query rows that share a key-value head (Milakov and Gimelshein 2018;
/// Dao et al. 2022). Row r sees positions [first[r], last[r]) of its sequence. This call does those of them in
/// [512·chunk, 512·chunk + 512). A tile of 64 positions lies together; tiles may lie anywhere. Per row, over tiles:
///   score = dot(query, key)·scale; with softcap c: score = c·tanh(score / c); with slopes: score = fma(−slope, d, score),
///   d = float(key position) − position, or 0 − d if that is greater; plus the masks' sum; unseen, hidden: −inf
///   m' = max(m, max of the tile's scores); a = exp(m − m'), 1 if m = −inf; p = exp(score − m')
///   l[lane] = l[lane]·a, then + p of position lane mod 16, panel by panel;   o = o·a, then fma(p, value, o) in order
/// A tile in which a row's window has nothing leaves that row as it is. p is 0 if unseen or hidden, whatever m is, and
/// unseen positions' values are not read. Pairs with p = 0 add nothing, whatever the value holds. Last, o + 0: no sum is
/// a negative zero. With a q8 cache the dot product is that of a q8 matmul, and o = fma(float(quant), p·scale, o).
/// With a q4 cache it is that of an iq4_nl matmul. If a key's first scale is odd, the dot product with the panel's
/// reference is added: over all columns of whole groups, lane i mod 16 = fma(float(quant)·its scale, reference[i],
/// lane), folded. Values are as q8's.
struct Attend {
    const float* query;    // [head_dim][n_rows]; q8, q4: packed by pack_q8
    std::uint32_t n_rows;  // 1 to kRowBlock
    std::uint32_t head_dim, value_head_dim;
    const std::byte* keys[kChunkTiles];    // this head's panels of 16 positions, see key_panel_bytes
    const std::byte* values[kChunkTiles];  // this head's panels of 16 positions, see value_panel_bytes
    std::uint32_t value_stride;            // elements, value_head_dim rounded up to 16; the padding holds zeros
    const std::uint32_t* first;            // [n_rows]
    const std::uint32_t* last;             // [n_rows]
    const MaskRow* masks;                  // [n_rows][kMasks]; null: nothing is hidden
    const float* slopes = nullptr;         // [n_rows]; null: none (Press et al. 2022)
    const float* positions = nullptr;      // [n_rows] of the queries, if there are slopes; whole numbers below 2^24
    float scale;                           // multiplies a dot product
    float softcap;                         // 0: unused
    std::uint32_t chunk;
    bool second_level = false;  // where lines are fetched to, as in Matmul
    float* m;                   // out [n_rows]: largest score, −inf if nothing was seen
    float* l;                   // out [n_rows]: sum of exp(score − m)
    float* o;                   // out [n_rows][value_stride]: unnormalised weighted sum

    /// The start of the tile of a position of the chunk. Tiles that no row sees may be missing.
    [[nodiscard]] const std::byte* keys_at(std::uint32_t pos) const noexcept { return keys[pos / kTile % kChunkTiles]; }
    [[nodiscard]] const std::byte* values_at(std::uint32_t pos) const noexcept {
        return values[pos / kTile % kChunkTiles];
    }
};

/// Running state (m, l, o) of n_rows rows; merge folds one chunk's state in, finish turns it into attention's output.
struct AttendMerge {
    std::uint32_t n_rows;
    std::uint32_t value_stride;
    float *m, *l, *o;                          // in and out: [n_rows], [n_rows], [n_rows][value_stride]
    const float *chunk_m, *chunk_l, *chunk_o;  // the next chunk to the right
};

/// A convolution over a sequence's rows, each channel by itself. An input is x, or x·factor if there are factors. A row's sum starts at
/// the channel's bias, or at 0, and goes over the inputs of the n_taps − 1 rows before it and its own: sum = fma(kernel, input, sum),
/// the oldest first. Its output is sum·output_factor, or SiLU of the sum without such factors.
struct Convolve {
    const float* x;                        // [n_rows][x_stride]
    const float* factor = nullptr;         // [n_rows][x_stride]; null: none
    const float* output_factor = nullptr;  // the same
    std::size_t x_stride;
    std::uint32_t n_rows, n_channels, n_taps;
    const float* kernel;  // [n_taps][kernel_stride]
    std::size_t kernel_stride;
    const float* bias;  // [n_channels]; null: none
    const float* past;  // [n_taps − 1][kernel_stride] inputs before the first row, the oldest first; null: zeros
    float* kept;        // the same after the last row; may be `past`
    float* out;         // [n_rows][out_stride]; apart from all others
    std::size_t out_stride;
};

/// What rows do to 16 columns of a head's state S, one after another (Recurrence). With g a row's decay, b its rate and v its values:
///   delta:       S = S·g; m = Sᵀk; d = (v − m)·b; S = fma(k, d, S); out = Sᵀq
///   state space: d = v·b; S = fma(k, d, S·g); out = fma(skip, v, Sᵀq)
///   delta by dim: as delta, each row of S having its own g
///   selective: as a state space, each column having its own b and skip, and each element of S its own g = e^(exponent·b)
/// Products with Sᵀ go over key_dim in four chains from 0, element i to chain i mod 4, by fma in order; they become
/// (chain 0 + chain 2) + (chain 1 + chain 3). Columns of S from n_values on stay zero.
struct UpdateState {
    const float *query, *key, *value;  // [n_rows][stride]: [key_dim], [key_dim], [n_values]
    std::size_t stride;
    const float *decay,
        *rate;  // of each row, scalar_stride apart; by dim: [key_dim] decays; selective: none, and [n_values] rates
    std::size_t scalar_stride;
    const float* skip;                // one number; null: the delta rule; selective: [n_values]
    const float* exponent = nullptr;  // [key_dim][exponent_stride]: [n_values]; null: not selective
    std::size_t exponent_stride = 0;
    bool decays_dims = false;  // delta by dim
    const float* from;         // [key_dim][16] before the first row; null: zeros
    float* state;              // [key_dim][16] after the last; may be `from`
    float* out;                // [n_rows][out_stride]: [n_values]; apart from all others
    std::size_t out_stride;
    std::uint32_t n_rows, key_dim, n_values;
};

/// Functions of one value; the activations from GELU on follow.
enum class Unary : std::uint8_t { exp, tanh, erf, sin, cos };
inline constexpr int kFirstActivation = 5 - static_cast<int>(Activation::gelu);
/// A build without variants of blocks leaves out the activations from relu2 on.
inline constexpr int kActivationsBuilt =
    has(Part::block_variants) ? kActivationCount : static_cast<int>(Activation::relu2);
inline constexpr int kUnaryCount = kFirstActivation + kActivationsBuilt;
[[nodiscard]] constexpr Unary unary_of(Activation activation) noexcept {
    return static_cast<Unary>(kFirstActivation + static_cast<int>(activation));
}
[[nodiscard]] constexpr Activation activation_of(Unary function) noexcept {
    return static_cast<Activation>(static_cast<int>(function) - kFirstActivation);
}

/// Kernels whose operands are weights or caches of one type; null for caches of bf16 and of the types after q4, which
/// there are none of.
struct TypeKernels {
    /// out = W·x with the epilogue of Matmul.
    /// In a dot product of quantized weights a group of columns that share a scale is one step: the exact int32 sum s
    /// of the quants' products, then sum = fma(float(s), w_scale·x_scale, sum). After them follows the group's minimum,
    /// if the format has minima: sum = fma((−Σ x quants)·x_scale, minimum, sum). All groups of the panel count, padding
    /// too.
    void (*matmul)(const Matmul&) noexcept;

    void (*attend)(const Attend&) noexcept;

    /// weights [n_rows][kTile] of one tile's positions: exp(score − m) / l, with the scores above and a row's final m
    /// and l (o is not used, the tile is the chunk's); 0 if unseen or hidden, or l = 0; canonical.
    void (*attend_weights)(const Attend&, std::uint32_t tile, float* weights) noexcept;
};

/// Rows [first, first + n_rows) of an operand of n_all rows: one of its blocks, see row_block.
struct PackedRows {
    std::uint32_t first, n_rows, n_all;
};

/// Quantizes and packs n_rows <= kRowBlock rows: see FloatKernels::pack_q8.
using PackQuants = void (*)(const float* x, std::size_t x_stride, const float* columns, std::uint32_t n_rows,
                            std::uint32_t n_cols, std::byte* packed) noexcept;

struct UnaryTable {
    void (*functions[kUnaryCount])(const float* x, std::size_t n, float* y) noexcept;
    [[nodiscard]] auto operator[](int i) const noexcept { return functions[i]; }
};

/// A kernel of builds with states alone.
template<class T>
using OfStates = std::conditional_t<has(Part::states), T, LeftOut<T>>;

/// The kernels that multiply no quants. Instruction sets that differ only in integer products share them.
struct FloatKernels {
    TypeKernels types[3];  // f32, f16, bf16

    /// Packs n_rows <= kRowBlock rows of x into the operand of a matmul: packed[col][row], no padding: see
    /// operand_bytes for where a block starts.
    void (*pack)(const float* x, std::size_t x_stride, std::uint32_t n_rows, std::uint32_t n_cols,
                 float* packed) noexcept;

    /// Quantizes and packs n_rows <= kRowBlock rows, by row and group of 32 columns. `columns` [n_cols], if it is not
    /// null, first multiplies each row: x = x·column, rounded to float32. Then amax = largest magnitude; infinite
    /// or NaN: quants 0, scale NaN; below 2^-100: quants and scale 0; else scale = amax/127, quant = x·(127/amax)
    /// rounded to nearest even. Columns from n_cols on are 0. packed is 4-byte aligned, a group after another:
    ///   int8 quants [8][n_rows][4]   four columns of a row together
    ///   float scales [n_rows]
    ///   int32 [n_rows] −128·(sum of quants), int32 [n_rows] −8·(sum of quants): where a dot product starts whose
    ///   weights are unsigned, with 128 or 8 for zero
    PackQuants pack_q8;

    /// The same with a scale over 128 columns, or the 64 that are left, for weights in broad groups. Each of their
    /// groups of 32 has that scale; the first group has both starts of all, the others 0. Null without them.
    PackQuants pack_broad;

    /// y[i] = x[i]·(1/sqrt(mean(x²) + epsilon))·weight[i] (Zhang and Sennrich 2019, eq. 4). x, y [n]; weight [n].
    /// mean = sum·(1/n) with the sum across a row of x² by fma; order of products as written. y may be x.
    void (*rms_norm)(const float* x, std::uint32_t n, const float* weight, float epsilon, float* y) noexcept;

    /// mean = sum(x)·(1/n); d = x − mean; y = fma(d·(1/sqrt(sum(d²)·(1/n) + epsilon)), weight, bias) (Ba et al. 2016,
    /// eq. 4); bias null: the product alone. y may be x.
    void (*layer_norm)(const float* x, std::uint32_t n, const float* weight, const float* bias, float epsilon,
                       float* y) noexcept;

    /// cos, sin [2·n_pairs] each, every value twice in a row: cos(pos·frequency[i])·scale of pair i. pos is converted
    /// to float32 and the product rounded (Su et al. 2021, eq. 34).
    void (*rope_table)(std::uint32_t pos, const float* frequency, std::uint32_t n_pairs, float scale, float* cos,
                       float* sin) noexcept;

    /// Rotates adjacent pairs of x [n], n even, in place: x0 = fma(x0, cos, −(x1·sin)), x1 = fma(x1, cos, x0·sin).
    void (*rotate)(float* x, const float* cos, const float* sin, std::uint32_t n) noexcept;

    /// Indexed by Type (f32, f16, q8, q4; null for others). Writes one position's key head [head_dim] into lane
    /// pos mod 16 of its panel, canonical; lane 0 first sets the other lanes to zero. q8: groups as pack_q8 makes them,
    /// their scales rounded to f16. q4: lane 0 also writes the panel's reference, see engine/kernels/scalar/cache_q4.h.
    void (*write_key[kTypeCount])(const float* key, std::uint32_t head_dim, std::uint32_t lane,
                                  std::byte* panel) noexcept;

    /// The same for its value head [value_head_dim], with zeros after it; only q8 and q4 clear, and only the scales.
    void (*write_value[kTypeCount])(const float* value, std::uint32_t value_head_dim, std::uint32_t lane,
                                    std::byte* panel) noexcept;

    /// Skips rows with chunk_l = 0; copies if l = 0; else m' = max(m, chunk_m), a = exp(m − m'),
    /// b = exp(chunk_m − m'), l = fma(chunk_l, b, l·a), o = fma(chunk_o, b, o·a).
    void (*attend_merge)(const AttendMerge&) noexcept;

    /// out[row][i] = o[row][i] / l[row] + 0 for i < value_head_dim; zeros if l = 0; canonical.
    /// Row r's output starts at out + r·out_stride.
    void (*attend_finish)(const float* l, const float* o, std::uint32_t n_rows, std::uint32_t value_head_dim,
                          std::uint32_t value_stride, float* out, std::size_t out_stride) noexcept;

    /// y[i] = f(x[i]), canonical. Indexed by Unary. Errors of each are stated in docs/numerics.md.
    UnaryTable unary;

    /// y[i] = cap·tanh(x[i]/cap), in place, canonical.
    void (*softcap)(float* x, std::size_t n, float cap) noexcept;

    [[no_unique_address]] OfStates<void (*)(const Convolve&) noexcept> convolve;
    [[no_unique_address]] OfStates<void (*)(const UpdateState&) noexcept> update_state;
};

/// 0, 1, … for the quantized types, from which the tables are made.
using QuantIndices = std::make_integer_sequence<int, kQuantTypeCount>;

/// Kernels of q8 and of the types after it, in their order.
struct QuantKernels {
    TypeKernels types[kQuantTypeCount];
};

/// Floats that the operand of a product by tiles has for a row's group of 32 columns: its scale, then −Σ of the quants of each
/// half. A broad group has only its scale.
inline constexpr std::uint32_t kTileFactors = 3;
inline constexpr std::uint32_t kTileRows = 16;  // at most

/// Whether a build can have them.
#if defined(__x86_64__)
inline constexpr bool kMayHaveTiles = true;
#else
inline constexpr bool kMayHaveTiles = false;
#endif

/// The cutting of rows into tiles: as few as possible, and of one size, except the last.
struct RowTiles {
    std::uint32_t n_all, n, rows_each;
    explicit constexpr RowTiles(std::uint32_t n_rows) noexcept
        : n_all(n_rows), n((n_rows + kTileRows - 1) / kTileRows), rows_each((n_rows + n - 1) / n) {}
    [[nodiscard]] constexpr std::uint32_t first(std::uint32_t tile) const noexcept { return tile * rows_each; }
    [[nodiscard]] constexpr std::uint32_t n_rows(std::uint32_t tile) const noexcept {
        const std::uint32_t left = n_all - first(tile);
        return left < rows_each ? left : rows_each;
    }
};

/// Products of more than kFewRows rows with quantized weights (of two tiles of rows, if groups are not broad: those
/// gain less) by a unit that multiplies matrices. Their operand takes as many bytes as operand_bytes says, but lies
/// otherwise. First, of one tile of n rows after another,
///   int8 quants [units][n][64]: 64 columns of a row together
/// then, likewise,
///   float [groups][kTileFactors][n]; of broad groups [groups][n]
struct TileKernels {
    /// As FloatKernels::pack_q8 and pack_broad quantize. The operand is that of all rows, 4-byte aligned.
    using Pack = void (*)(const float* x, std::size_t x_stride, const float* columns, PackedRows rows,
                          std::uint32_t n_cols, std::byte* operand) noexcept;
    Pack pack, pack_broad;
    void (*matmul[kQuantTypeCount])(const Matmul&) noexcept;
};

struct Kernels {
    const char* isa;
    CpuFeatures needs;
    const FloatKernels& floats;
    const QuantKernels& quants;
    const TileKernels* tiles = nullptr;  // null: none

    [[nodiscard]] const TypeKernels& of(Type type) const noexcept {
        const int i = static_cast<int>(type), first = static_cast<int>(Type::q8);
        return i < first ? floats.types[i] : quants.types[i - first];
    }
    /// The product with a type.
    void matmul(Type type, const Matmul& m) const noexcept {
        by_tiles(type, m.seq_len) ? tiles->matmul[static_cast<int>(type) - static_cast<int>(Type::q8)](m)
                                  : of(type).matmul(m);
    }
    /// Packs a block of rows, the first of which is at x, into their place in the operand of a product with a type. `columns`:
    /// see FloatKernels::pack_q8; of quantized types alone.
    void pack(Type type, const float* x, std::size_t x_stride, const float* columns, PackedRows rows,
              std::uint32_t n_cols, std::byte* operand) const noexcept {
        std::byte* packed = operand + operand_bytes(type, rows.first, n_cols);
        if (!is_quantized(type)) return floats.pack(x, x_stride, rows.n_rows, n_cols, reinterpret_cast<float*>(packed));
        const bool broad = format_of(type).broad();
        if (by_tiles(type, rows.n_all))
            return (broad ? tiles->pack_broad : tiles->pack)(x, x_stride, columns, rows, n_cols, operand);
        (broad ? floats.pack_broad : floats.pack_q8)(x, x_stride, columns, rows.n_rows, n_cols, packed);
    }
    [[nodiscard]] bool by_tiles(Type type, std::uint32_t n_all) const noexcept {
        if (!kMayHaveTiles || !tiles || !is_quantized(type)) return false;
        return n_all > kFewRows && (n_all >= 2 * kTileRows || format_of(type).broad());
    }
};

extern const Kernels kernels_scalar;

/// Instruction sets beside scalar.
enum class Isa : std::uint8_t {
    avx2,
    avxvnni,
    avx512,
    avx512vnni,
    amx,
    neon,
    neon_dotprod,
    neon_i8mm,
    simd128,
    relaxed_simd
};

/// What the files of engine/kernels/isa/ define for one instruction set, each compiled with its flags. select.cpp makes tables of
/// them: sets that differ only in integer products share their floats.
template<Isa kIsa>
struct FloatsOf {
    static const FloatKernels kernels;
};
template<Isa kIsa, Type kType>
struct QuantsOf {  // see TypeKernels
    static void matmul(const Matmul& m) noexcept;
    static void attend(const Attend& a) noexcept;
    static void attend_weights(const Attend& a, std::uint32_t tile, float* weights) noexcept;
    // Parts of products that types share, compiled once: q8's takes totals to a product's `out`, and each type's multiplies
    // two panels of other types too, whose cells are widened to its own. See matmul.h.
    static void finish(const Matmul& m, const Totals& t) noexcept;
    static void two_panels(const Matmul& m, const void* pair, std::uint32_t row, std::uint32_t row_end,
                           float* total) noexcept;
};
template<Isa kIsa>
struct TilesOf {
    static const TileKernels kernels;
};

/// The built-in tables that this CPU can run, best first; kernels_scalar is last. n is their number.
[[nodiscard]] const Kernels* const* usable_kernels(std::size_t& n) noexcept;
/// The table of that name; for null the best, which has tiles only if they are wanted. Null if there is none, or if it
/// has tiles and the operating system does not let the process use them.
[[nodiscard]] const Kernels* find_kernels(const char* isa, bool wants_tiles = false) noexcept;

}  // namespace fovea
