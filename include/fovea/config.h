// The shape of a model as data. Every architecture (Llama, BERT, Whisper) is one set of these values.
//
// A model has one or two stacks (encoder, decoder). A stack is n_layers layers; each layer is one of a few Blocks,
// chosen by a byte table. Every field's zero is its plain meaning ("none", "not used"), so a later version can add a
// field without touching older files.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "fovea/status.h"
#include "fovea/type.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

using Token = std::uint32_t;

enum class Norm : std::uint8_t { none = 0, layer = 1, rms = 2 };
/// x + f(norm(x)); norm(x + f(x)); x + post_norm(f(norm(x))); x + norm(f(x)); and x + W·post_norm(g(norm(x))), W being the
/// part's last matrix (Sub-LN: Wang et al. 2022).
enum class NormPlace : std::uint8_t { pre = 0, post = 1, both = 2, output = 3, within = 4 };
/// Scope of a norm of queries and keys: each head with one weight for all heads, each with a weight of its own, or all
/// heads of a row together.
enum class HeadNorm : std::uint8_t { shared = 0, each = 1, together = 2 };
/// A router's logits become scores before experts are compared: probabilities over all experts, or a sigmoid of each. Or a choice's
/// score is its probability among what was not chosen before it and is close to it: see ExpertShape::margin (Liu et al. 2023).
enum class RouterScore : std::uint8_t { softmax = 0, sigmoid = 1, sparse_mixer = 2 };
enum class Position : std::uint8_t {
    none = 0,
    learned = 1,
    sinusoidal = 2,
    rope = 3,
    relative = 4,
    alibi = 5,
    disentangled = 6,
};
/// What gates attention's output: the sigmoid of each element of a map, its softplus, or either of a number for each head.
enum class OutputGate : std::uint8_t {
    none = 0,
    sigmoid = 1,
    softplus = 2,
    softplus_of_heads = 3,
    sigmoid_of_heads = 4
};
/// How a sequence's rows become one vector (Reimers and Gurevych 2019, section 3). max: the largest of each element;
/// weighted_mean: a mean in which row i has weight i + 1 (Muennighoff 2022); mean_sqrt_len: the sum over √n_rows.
enum class Pooling : std::uint8_t {
    none = 0,
    mean = 1,
    first = 2,
    last = 3,
    max = 4,
    weighted_mean = 5,
    mean_sqrt_len = 6,
};

/// A block's attention. Widths and counts are in elements; 0 in a *_width means d_model.
struct AttentionShape {
    std::uint32_t n_heads = 0;         ///< query heads; 0: the block has no attention
    std::uint32_t n_kv_heads = 0;      ///< key-value heads; divides n_heads (Ainslie et al. 2023)
    std::uint32_t head_dim = 0;        ///< width of a query or key head
    std::uint32_t value_head_dim = 0;  ///< width of a value head; below head_dim: a low-rank value map
    std::uint32_t query_width = 0;     ///< input width of the query projection
    std::uint32_t key_width = 0;       ///< input width of the key projection
    std::uint32_t value_width = 0;     ///< input width of the value projection
    std::uint32_t output_width = 0;    ///< rows of the output map
    std::uint32_t window = 0;          ///< a query sees this many positions, itself included, and if it is not
                                       ///< causal as many on its other side; 0: no limit
    std::uint32_t rotary_dim = 0;      ///< leading dims of each head that are rotated (Position::rope)
    /// Position::relative (Raffel et al. 2020): each head has a table of numbers to add to its scores, one for each difference
    /// of the key's position and the query's. Differences beyond this many positions have the last one.
    std::uint32_t relative_max_distance = 0;
    float softmax_scale = 0.0f;  ///< multiplies scores; 0: 1/sqrt(head_dim)
    float score_softcap = 0.0f;  ///< scores become c·tanh(score/c); 0: unused
    /// Queries are multiplied by 1 + query_growth · log(1 + ⌊(pos + 1) / growth_period⌋) (Nakanishi 2025). 0: unused.
    float query_growth = 0.0f;
    std::uint32_t growth_period = 0;
    float rope_scale = 1.0f;       ///< multiplies sine and cosine (YaRN's attention factor, Peng et al. 2023)
    float projection_clip = 0.0f;  ///< queries, keys and values are kept within plus and minus this; 0: unused
    /// Position::disentangled (He et al. 2021): differences share this many buckets, and each head has two vectors for each
    /// bucket. A score gets the query's product with one and the key's with the other.
    std::uint16_t relative_buckets = 0;
    Position position = Position::none;
    /// Positions of three dimensions (Wang et al. 2024), see Step::positions: of the rotary_dim / 2 frequencies so many turn by a row's
    /// height, as many by its width, the others by its time. 0: all by its position.
    std::uint8_t rope_plane = 0;
    /// The first 3 · rope_plane frequencies are in turn of time, height and width. Else those of time come first, then those of height,
    /// then those of width.
    bool rope_interleaved = false;
    Norm query_key_norm = Norm::none;       ///< a norm over each query and key head before positions
    HeadNorm head_norm = HeadNorm::shared;  ///< what query_key_norm goes over
    bool norm_turned = false;               ///< that norm goes over what rotary positions have turned
    bool chunked = false;  ///< positions are in chunks of `window`; a query sees those of its own before it, and itself
    bool causal = false;
    bool cross_attention = false;  ///< a second attention over the encoder's output
    bool has_output_map = true;    ///< out = W_o · merged heads
    bool query_bias = false, key_bias = false, value_bias = false, output_bias = false;
    bool bias_kv = false;     ///< one learned key and value appended (PyTorch's add_bias_kv)
    bool zero_attn = false;   ///< one zero key and value appended (PyTorch's add_zero_attn)
    bool value_norm = false;  ///< an RMS norm over each value head, with one weight for all heads
    /// Merged heads are multiplied by a function of a map of the row (Qwen Team 2025).
    OutputGate output_gate = OutputGate::none;
    bool attention_sinks = false;  ///< a learned score for each head, of a key whose value is zero
    /// Keys and values are those of the last layer before this one that makes its own, for heads and a window like these (Brandon
    /// et al. 2024). The layer makes only queries, and its keys and values take no room.
    bool shared_keys = false;
    /// Heads come as they are, without projections: attention that has no weights. Never in a file.
    bool no_projections = false;

    bool operator==(const AttentionShape&) const = default;
};

/// What latent attention (DeepSeek-AI 2024) has beside: there is one key-value head, whose dims after rotary_dim are normed, and
/// are the values too.
struct LatentShape {
    std::uint32_t query_rank = 0;  ///< queries come from a normed projection of the row to this width; 0: from the row
    std::uint32_t query_dim =
        0;  ///< each query head's own map goes from this many dims to the key's; 0: attention is not latent
    std::uint32_t value_dim = 0;  ///< what each head's own map makes of its output
    float norm_epsilon = 0.0f;    ///< of the norms within; 0: the block's

    bool operator==(const LatentShape&) const = default;
};

/// A block's feed-forward part, or what each of its experts is.
struct FeedForwardShape {
    std::uint32_t d_ff = 0;  ///< hidden width; 0: the block has no feed-forward part
    Activation activation = Activation::none;
    bool gated = false;  ///< activation(gate)·up (Shazeer 2020)
    bool up_bias = false, gate_bias = false, down_bias = false;
    /// Attention and feed-forward both read x, and x becomes (x + attention) + feed-forward (Wang and Komatsuzaki 2021).
    bool parallel = false;
    bool shared_norm = false;  ///< parallel: the feed-forward reads attention's norm
    /// The activation is xIELU, whose four numbers each layer has (Huang and Schlag 2024, eq. 10): with α, α', β and ε, α·x² + β·x for
    /// x > 0, else α'·(e^min(x, ε) − 1 − x) + β·x. `activation` is none.
    bool xielu = false;

    bool operator==(const FeedForwardShape&) const = default;
};

/// Mixture of experts (Shazeer et al. 2017): a row's feed-forward part is the sum of a few of many experts; its router chooses
/// them.
struct ExpertShape {
    std::uint32_t shared_d_ff = 0;  ///< hidden width of the shared expert, which every row adds; 0: none
    float routed_scale = 0.0f;      ///< multiplies the chosen experts' weights; 0: 1
    float margin = 0.0f;  ///< sparse_mixer: what share of a logit another may be below it and still be close to it
    std::uint16_t n = 0;  ///< experts; 0: the block has one feed-forward part for all rows
    /// Groups of equal size that the experts are in (DeepSeek-AI 2024). A row's experts are in n_groups_used of them:
    /// those with the largest score or, with choice_bias, the largest sum of two. 0: no groups.
    std::uint16_t n_groups = 0;
    std::uint16_t n_groups_used = 0;
    std::uint8_t n_used = 0;  ///< by a row; those with the largest router logits, the lower of equal ones
    RouterScore router_score = RouterScore::softmax;
    bool normalize = false;     ///< a row's weights, its experts' probabilities, are divided by their sum
    bool shared_gate = false;   ///< the shared expert's output times the sigmoid of a learned dot product with the row
    bool router_bias = false;   ///< of the router's logits
    bool choice_bias = false;   ///< a learned number for each expert, added to its score only for the choice
    bool weigh_inputs = false;  ///< a row is multiplied by its weights before experts read it, not what they make of it
    /// The router and the chosen experts read norms of their own, the part's norm being the shared expert's. What that makes and the
    /// sum of the others are normed, each by itself, before they are added; an expert's weight is multiplied by a learned number
    /// (Gemma Team 2026).
    bool own_norms = false;

    bool operator==(const ExpertShape&) const = default;
};

/// What a layer reads beside the stream, and does behind its parts.
struct InputShape {
    /// Width of each token's input to every layer beside the stream (per-layer embeddings, Gemma Team 2025). With e
    /// being the token's embedding, t its row of a table, and W and G the stack's and the layer's maps, the layer ends
    /// with
    ///
    ///     i = (norm(W·e / sqrt(d_model)) + t · sqrt(width)) / sqrt(2)         i and t: this layer's part
    ///     x = x + norm(O · (activation(G·x) · i))
    ///
    /// 0: nothing. Every block of a stack has the same.
    std::uint16_t width = 0;
    bool layer_scale = false;  ///< the residual stream is multiplied by a learned number behind this layer
    /// With e being the token's embedding and O a map of the layer, attention and feed-forward part are a chain whose result only the
    /// recurrent part reads (Glorioso et al. 2024, Zamba2):
    ///
    ///     y = attention(norm([x, e]))
    ///     x = x + recurrent(norm(x + O · feed-forward(norm(y))))
    bool joins_embedding = false;

    bool operator==(const InputShape&) const = default;
};

/// What a recurrent part does with a row's query q, key k and value v. Those go through a convolution over time first, each channel by
/// itself, with SiLU behind it. Each head has a state S of [key_dim, value_dim], which starts at zero.
/// ⊙ multiplies element by element.
enum class Recurrence : std::uint8_t {
    none = 0,
    /// out = q · convolution(k · v), without SiLU and without heads (Liquid AI 2025, gated short convolutions).
    convolution = 1,
    /// S = e^(A·d)·S + k (d·v)ᵀ;  out = Sᵀ q + D·v;  d: softplus of a map (Dao and Gu 2024, eq. 16, Mamba-2).
    state_space = 2,
    /// S = e^(A·d)·S;  S = S + k (b·(v − Sᵀ k))ᵀ;  out = Sᵀ q;  b: sigmoid of a map. q and k have length 1, and q is divided by
    /// √key_dim (Yang et al. 2025, eq. 10, gated delta rule).
    delta = 3,
    /// S = e^(A ⊙ 1dᵀ) ⊙ S + k (d ⊙ v)ᵀ;  out = Sᵀ q + D ⊙ v. A is [key_dim, value_dim], D and d have a number for each value. The
    /// convolution goes over values alone; q, k and d are maps of what it leaves (Gu and Dao 2023, algorithm 2, Mamba). One head.
    selective = 4,
    /// As delta, with a d for each dim of a key: S = e^(A·d) 1ᵀ ⊙ S. d and the gate are maps of a narrower row each, or of the row
    /// (Kimi Team 2025, eq. 1, Kimi delta attention).
    delta_by_dim = 5,
};

/// The recurrent part that some of a stack's blocks have. What it leaves is gated by the SiLU of a map and normed, then mapped to
/// d_model.
struct RecurrentShape {
    std::uint32_t n_heads = 0;      ///< of values and states
    std::uint32_t n_key_heads = 0;  ///< of queries and keys; divides n_heads
    std::uint32_t key_dim = 0;      ///< of a head. Recurrence::convolution has one head
    std::uint32_t value_dim = 0;
    std::uint32_t n_norm_groups = 0;  ///< parts of equal size that the norm goes over, each by itself; 0: no norm
    /// state_space: d is kept within these. delta_by_dim: with m being step_most, e^(−m · sigmoid(−A·x)) takes the place of
    /// e^(A·softplus(x)). step_most 0: unused.
    float step_least = 0.0f;
    float step_most = 0.0f;
    Recurrence kind = Recurrence::none;
    std::uint8_t n_taps = 0;   ///< rows that the convolution reads, the row itself among them
    bool shared_norm = false;  ///< all groups have one weight
    bool gate_first = false;   ///< the gate multiplies what is normed, not what the norm leaves
    bool input_bias = false, kernel_bias = false, output_bias = false;  ///< of the maps that read a row, ...
    /// Head h has the queries and keys of h mod n_key_heads, not of h·n_key_heads / n_heads.
    bool keys_in_turn = false;
    std::uint32_t step_rank =
        0;  ///< selective, delta_by_dim: d is softplus of a map of a map to this width; 0: of the row
    /// selective: q, k and that map's rows have an RMS norm each; 0: none. Else of the norm behind the states; 0: the block's.
    float inner_norm_epsilon = 0.0f;
    bool sigmoid_gate = false;  ///< the gate is the sigmoid of its map, not its SiLU
    bool double_rate = false;   ///< b is twice the sigmoid (Grazzi et al. 2024)

    /// Whether q and k go through the convolution, and not only values.
    [[nodiscard]] constexpr bool convolves_keys() const noexcept {
        return kind == Recurrence::state_space || is_delta();
    }
    [[nodiscard]] constexpr bool is_delta() const noexcept {
        return kind == Recurrence::delta || kind == Recurrence::delta_by_dim;
    }
    /// Numbers d of a row.
    [[nodiscard]] constexpr std::uint32_t n_steps() const noexcept {
        return kind == Recurrence::selective      ? value_width()
               : kind == Recurrence::delta_by_dim ? n_heads * key_dim
                                                  : n_heads;
    }
    /// Elements of the queries of a row, which are those of its keys, and of its values.
    [[nodiscard]] constexpr std::uint32_t query_width() const noexcept { return n_key_heads * key_dim; }
    [[nodiscard]] constexpr std::uint32_t value_width() const noexcept { return n_heads * value_dim; }
    /// What the convolution goes over: queries, keys and values side by side; values alone; Recurrence::convolution's k · v.
    [[nodiscard]] constexpr std::uint32_t n_channels() const noexcept {
        return convolves_keys() ? 2 * query_width() + value_width() : value_width();
    }
    [[nodiscard]] constexpr bool has_states() const noexcept { return kind > Recurrence::convolution; }
    bool operator==(const RecurrentShape&) const = default;
};

/// One transformer block: what its parts have in common, and each part by itself.
struct Block {
    float norm_epsilon = 1e-5f;
    float residual_scale = 0.0f;  ///< multiplies what is added to the residual stream; 0: 1
    Norm norm = Norm::none;
    NormPlace norm_place = NormPlace::pre;
    bool norm_bias = false;
    /// This block's matrices are quantized with column scales: each column of an input is multiplied by its own power of two
    /// before it is quantized, and the matrices' columns are divided by it (Xiao et al. 2023). Not for experts.
    bool column_scales = false;
    /// The stack's RecurrentShape is in place of attention or, where there are heads, beside it: both read norm(x), and x becomes
    /// (x + recurrent) + attention.
    bool recurrent = false;
    FeedForwardShape feed;
    InputShape inputs;
    LatentShape latent;
    ExpertShape experts;
    AttentionShape attention;

    bool operator==(const Block&) const = default;
};

inline constexpr int kMaxBlocks = 8;  ///< distinct Blocks a stack may have

/// One map of a stack's head: y = norm(activation(W·x + bias)). The first reads the stack's result for a row or, if it
/// pools, for a sequence; each other reads the result of the map before it.
struct HeadMap {
    std::uint32_t width = 0;  ///< rows of W; 0: there is no such map, nor any after it
    float norm_epsilon = 1e-5f;
    Activation activation = Activation::none;
    Norm norm = Norm::none;
    bool bias = false, norm_bias = false;

    bool operator==(const HeadMap&) const = default;
};
inline constexpr int kMaxHeadMaps = 4;

/// The layer's matrices that an adapter has products for: a bit each.
/// query_down: the map to the narrower row that queries come from. latent: each head's latent_query and latent_value.
enum class Adapted : std::uint32_t {
    none = 0,
    query = 1,
    key = 2,
    value = 4,
    attention_output = 8,
    up = 16,
    down = 32,
    query_down = 64,
    latent = 128
};
inline constexpr std::uint32_t kAllAdapted = 255;

/// How samples become the rows of a stack that hears (Radford et al. 2022, section 2.2): powers of a short-time Fourier
/// transform in Hann windows, through mel filters, as logarithms. Two convolutions over time (each of three frames, the
/// second with a stride of two) and exact GELUs make a row of d_model of every two frames. All zero: the stack hears nothing.
struct Sound {
    std::uint32_t sample_rate = 0;  ///< samples per second
    std::uint32_t n_fft = 0;        ///< samples of a window
    std::uint32_t hop_length = 0;   ///< samples from one frame to the next
    std::uint32_t n_mels = 0;       ///< elements of a frame
    std::uint32_t n_frames = 0;     ///< frames that the model was made for; a stretch of n_frames·hop_length samples

    [[nodiscard]] bool is_speech() const noexcept { return n_mels != 0; }
    /// Frequencies of a window's transform, which filters weigh.
    [[nodiscard]] std::uint32_t n_bins() const noexcept { return n_fft / 2 + 1; }
    bool operator==(const Sound&) const = default;
};

struct Stack {
    std::uint32_t n_layers = 0;  ///< 0: the model has no such stack
    std::uint32_t d_model = 0;
    std::uint32_t vocab_size = 0;     ///< 0: the stack's input is vectors, not ids
    std::uint32_t max_positions = 0;  ///< positions the model was made for
    std::uint32_t n_token_types = 0;  ///< rows of BERT's segment table
    /// Width of the embedding tables and their norm, if a map makes d_model of it (Lan et al. 2020); 0: d_model, no
    /// map.
    std::uint32_t embedding_width = 0;
    std::uint32_t n_blocks = 0;          ///< how many of `blocks` are used
    Position position = Position::none;  ///< learned or sinusoidal, added to the embedding; rotary ones are per block
    Norm embedding_norm = Norm::none;
    Norm final_norm = Norm::none;
    bool embedding_norm_bias = false, final_norm_bias = false;
    bool tied_output = false;  ///< the output head is the embedding table
    bool has_output_head = false;
    bool output_bias = false;
    bool embedding_bias = false;  ///< of the map from embedding_width
    /// A head that predicts the token behind the next (multi-token prediction, DeepSeek-AI 2024, section 2.2): a step has tokens and
    /// rows, what Step::vectors gave of the token before. Each is normed, and a map of both side by side becomes the stream.
    bool joins_rows = false;
    Pooling pooling = Pooling::none;
    bool normalize_pooled =
        false;  ///< the vector of a sequence, after its head if it has one, is divided by its Euclidean length
    bool output_columns = false;  ///< the output head's input has column scales, see Block::column_scales
    float embedding_scale = 1.0f;
    float final_norm_epsilon = 1e-5f;
    float logit_softcap = 0.0f;  ///< 0: unused
    float logit_scale = 1.0f;
    /// Ding et al. (2024): blocks with rotary positions have two lists of frequencies. The first is for caches with room for at most
    /// this many positions and for texts of at most this many tokens, the second for longer ones. 0: one list, for all.
    std::uint32_t rope_original_positions = 0;
    std::array<Block, kMaxBlocks> blocks{};
    /// [n_layers] which of `blocks` each layer is; empty: all are blocks[0]. Points into the file.
    std::span<const std::uint8_t> layer_blocks{};

    std::array<HeadMap, kMaxHeadMaps> head{};

    /// For an encoder whose input is frames of n_mels each in place of vectors of d_model.
    Sound sound{};

    /// Above 0 the file is no model but an adapter of one (Hu et al. 2021): it has products of this rank for the
    /// matrices whose bits `adapted` has, and no other tensor. Everything else is as in the model.
    std::uint32_t adapter_rank = 0;
    std::uint32_t adapted = 0;
    /// The CRC-32C of the vectors (norms, biases) of the model that the adapter is for, which are the same in files of every
    /// type of weights. 0: not known.
    std::uint32_t adapter_base = 0;

    RecurrentShape recurrent{};

    [[nodiscard]] bool adapts(Adapted matrix) const noexcept {
        return (adapted & static_cast<std::uint32_t>(matrix)) != 0;
    }
    /// Those of `blocks` that layers are, in a checked configuration.
    [[nodiscard]] std::span<const Block> used_blocks() const noexcept { return std::span(blocks).first(n_blocks); }
    [[nodiscard]] const Block& block(std::uint32_t layer) const noexcept {
        return blocks[layer_blocks.empty() ? 0 : layer_blocks[layer]];
    }
    [[nodiscard]] std::uint32_t n_head_maps() const noexcept {
        std::uint32_t n = 0;
        while (n < kMaxHeadMaps && head[n].width) ++n;
        return n;
    }
    /// Width of the head's last map, else d_model: an output head reads it.
    [[nodiscard]] std::uint32_t head_width() const noexcept {
        const std::uint32_t n = n_head_maps();
        return n ? head[n - 1].width : d_model;
    }
    /// Elements of each result of encode: of a row or, if the stack pools, of a sequence.
    [[nodiscard]] std::uint32_t result_width() const noexcept { return has_output_head ? vocab_size : head_width(); }
};

struct Config {
    Stack encoder;
    Stack decoder;
};

/// Ok if every field is in its range; otherwise config_invalid with the name of the first that is not.
/// The ranges are such that no size in a Plan and no count of parameters overflows 64 bits.
[[nodiscard]] Status check(const Config& config) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
