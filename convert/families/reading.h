// Shared by readers of config.json: the names of widths, activations and windows, and layers as shapes of blocks.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "convert/families/family.h"

namespace fovea {

/// config.json's names for the sizes of a stack.
struct SizeNames {
    const char* d_model = "hidden_size";
    const char* n_layers = "num_hidden_layers";
    const char* n_heads = "num_attention_heads";
    const char* n_kv_heads = "num_key_value_heads";  ///< null: as many as query heads
    const char* d_ff = "intermediate_size";          ///< if it may lack: 4·d_model, see read_sizes
    const char* max_positions = "max_position_embeddings";
    const char* epsilon = "rms_norm_eps";
    double default_epsilon = 1e-6;
    bool d_ff_is_ratio = false;  ///< to d_model
    bool d_ff_may_lack = false;
    std::uint32_t default_positions = 0;  ///< 0: max_positions must be there
};

/// GPT-2's.
inline constexpr SizeNames kGpt2Sizes = {.d_model = "n_embd",
                                         .n_layers = "n_layer",
                                         .n_heads = "n_head",
                                         .n_kv_heads = nullptr,
                                         .d_ff = "n_inner",
                                         .max_positions = "n_positions",
                                         .epsilon = "layer_norm_epsilon",
                                         .default_epsilon = 1e-5,
                                         .d_ff_may_lack = true};

/// Sizes, final norm and output head of a stack, into `stack`; and a block of its heads, widths and norms. The block is
/// causal and rotates nothing yet.
[[nodiscard]] Block read_sizes(const Fields& fields, const SizeNames& names, Norm norm, Stack& stack);

/// The same of RMS norms, an output head, and a gated feed-forward part whose activation is SiLU if hidden_act says no other.
[[nodiscard]] Block read_gated(const Fields& fields, const SizeNames& names, bool tied_by_default, Stack& stack,
                               Norm norm = Norm::rms, const char* activation = "silu");

/// The default for an output head if config.json does not say whether it is the embedding table.
void read_output_head(const Fields& fields, bool tied_by_default, Stack& stack);

/// A layer before equal ones share a Block.
struct LayerShape {
    Block block;
    Rope rope = {};                  ///< if it rotates
    std::vector<float> slopes = {};  ///< [n_heads] if its positions are ALiBi
    bool operator==(const LayerShape&) const = default;
};

/// Whether queries, keys, values and outputs have biases; of a block, whether up and down have them too.
inline void set_biases(AttentionShape& a, bool has) { a.query_bias = a.key_bias = a.value_bias = a.output_bias = has; }
inline void set_biases(Block& b, bool has) {
    set_biases(b.attention, has);
    b.feed.up_bias = b.feed.down_bias = has;
}

/// The rotary settings among config.json's fields, in the older spelling (rope_theta, rope_scaling) or the newer
/// (rope_parameters, maybe with settings for each kind of layer; `layer_type` is one). A scaling that follows the
/// current length is fixed at the length the model was made for.
[[nodiscard]] Rope read_hf_rope(const Fields& config, const char* layer_type = nullptr);

/// Makes `block` turn by positions of three dimensions, where config.json says how many frequencies each has.
void read_hf_sections(const Fields& config, const char* layer_type, Block& block);

/// How many dims of each head turn: head_dim times partial_rotary_factor, which is `part` if no field has it. Without `part` the
/// model's class has no such field: all dims turn, whatever the file says, but for proportional scaling, which has its own.
[[nodiscard]] std::uint32_t read_hf_rotary_dim(const Fields& config, std::uint32_t head_dim, const char* layer_type,
                                               std::optional<double> part);

/// Refuses lists of divisors that are not of so many frequencies.
void check_divisors(const Fields& fields, const Rope& rope, std::size_t n);

/// Makes `block` rotate its heads as config.json's rotary settings say, and returns the shape. Settings may differ by kind of
/// layer: `layer_type` is the kind's name. `part` is as read_hf_rotary_dim has it.
[[nodiscard]] LayerShape with_rope(const Fields& fields, Block block, const char* layer_type = nullptr,
                                   std::optional<double> part = {});
/// The same for a source whose adjacent dims turn together.
[[nodiscard]] LayerShape with_adjacent_rope(const Fields& fields, const Block& block, std::optional<double> part = {});

/// A head's slopes (Press et al. 2022): powers of 2^(−most / n) if the number n of heads is a power of two; else those
/// of the power of two below, then every other one of the power above.
[[nodiscard]] std::vector<float> alibi_slopes(std::uint32_t n_heads, double most = 8.0);
/// A layer of that block with such slopes.
[[nodiscard]] LayerShape with_slopes(const Block& block);

/// Layers of equal shape share a Block. Positions end where a scaling that is fixed at a length says so, and the user is
/// told.
void set_layers(const Fields& fields, const std::vector<LayerShape>& layers, HfConfig& result);
/// All layers are of that shape.
void set_layers(const Fields& fields, const LayerShape& layer, HfConfig& result);
/// Equal layers share a block, by the order in which they come first: each layer's number, and the shapes. The numbers are none if
/// there is one shape, and no shape is left if there are more than kMaxBlocks.
[[nodiscard]] std::vector<LayerShape> share_blocks(const std::vector<LayerShape>& layers,
                                                   std::vector<std::uint8_t>& numbers);

/// What logits or scores are capped at by tanh: `otherwise` where the field is not there, 0 (nothing is capped) where it is null.
[[nodiscard]] float read_softcap(const Fields& fields, const char* name, double otherwise);
[[nodiscard]] Activation read_activation(const Fields& fields, const char* name, const char* otherwise);

/// Which layers the list of words `name` calls `yes`, all others being `no`.
[[nodiscard]] std::vector<bool> read_layer_words(const Fields& fields, const char* name, const std::string& no,
                                                 const std::string& yes, std::size_t n_layers);
/// Makes those false whose numbers are in the list `name`.
void unset_listed(const Fields& fields, const char* name, std::vector<bool>& layers);

/// From the field `layer_types`, if it is there: which layers are of `sliding_attention`, the others being of
/// `full_attention`.
[[nodiscard]] std::vector<bool> read_sliding_layers(const Fields& fields, std::uint32_t n_layers);
/// The same; without that field `otherwise`, of as many layers.
[[nodiscard]] std::vector<bool> sliding_layers_or(const Fields& fields, const std::vector<bool>& otherwise);
/// All but every `period`-th; a period of 0 is none.
[[nodiscard]] std::vector<bool> all_but_every(std::uint32_t period, std::uint32_t n_layers);
/// Gives those layers the window that config.json has.
void set_windows(const Fields& fields, const std::vector<bool>& windowed, std::vector<LayerShape>& layers);

/// Layers with rotary positions: those that no_rope_layers does not call 0 or, without it, all but one in so many.
[[nodiscard]] std::vector<bool> read_rotated_layers(const Fields& fields, std::uint32_t n_layers);

/// The layers that see only a window: Mistral's "all of them", if there is a window; or as Qwen's settings say.
[[nodiscard]] std::vector<bool> read_windows_of_all(const Fields& fields, std::uint32_t n_layers);
[[nodiscard]] std::vector<bool> read_qwen_windows(const Fields& fields, std::uint32_t n_layers);

/// config.json's names for a block's experts.
struct ExpertNames {
    const char* n_experts = "num_experts";  ///< num_local_experts is read too
    const char* d_ff = nullptr;             ///< null: as for a part without experts
    const char* shared_d_ff = nullptr;      ///< null: there is no shared one
};

/// Puts experts into a block whose d_ff is that of a part without experts. norm_topk_prob says whether weights are
/// normalized; with `always` they are.
void read_experts(const Fields& fields, const ExpertNames& names, bool always, Block& block);

/// Layers with experts among layers without: but those of mlp_only_layers, every decoder_sparse_step-th.
[[nodiscard]] std::vector<bool> read_sparse_layers(const Fields& fields, std::uint32_t n_layers);

/// Makes `block`'s positions relative ones in that many buckets (Raffel et al. 2020, section 2.1): those nearer than a
/// quarter of them exact, further ones by logarithm, the rest one. The source's tensor relative_bias is a row a bucket.
void read_relative(const Fields& fields, const char* n_buckets, std::uint32_t max_distance, Block& block,
                   HfConfig& result);

/// The part of "_name_or_path" after the last slash, the same wherever the folder lies now; without one the type.
[[nodiscard]] std::string model_name(const Fields& fields, const std::string& type);

/// Refuses a field that is there, or true.
void refuse_present(const Fields& fields, const char* name);
void refuse_true(const Fields& fields, const char* name);

}  // namespace fovea
