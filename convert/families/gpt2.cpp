// GPT-2 (Radford et al. 2019): LayerNorms, learned positions, matrices transposed. GPT BigCode (Li et al. 2023: SantaCoder,
// StarCoder) has them as they are, and one key-value head.
#include <array>
#include <cmath>

#include "convert/families/family.h"
#include "convert/families/heads.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kGpt2Types[] = {{"gpt2", R"({"n_positions": 1024})"}};
constexpr ModelType kBigCode[] = {{"gpt_bigcode", R"({"n_positions": 1024})"}};

constexpr auto kGpt2Names = names_of({
    {Role::token_embedding, "wte.weight"},
    {Role::position_embedding, "wpe.weight"},
    {Role::final_norm, "ln_f.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::attention_norm, "#ln_1.weight"},
    {Role::query, "#attn.c_attn.weight", Within::stacked},
    {Role::attention_output, "#attn.c_proj.weight"},
    {Role::feed_forward_norm, "#ln_2.weight"},
    {Role::up, "#mlp.c_fc.weight"},
    {Role::down, "#mlp.c_proj.weight"},
});

/// With as many key-value heads as heads, each head has its query, key and value side by side; with one key-value head,
/// the rows are as stacked.
constexpr auto kBigCodeNames = kGpt2Names.with({
    {Role::query, "#attn.c_attn.weight", Within::grouped},
});

void read_gpt2(const Fields& fields, const std::string& type, HfConfig& result) {
    refuse_true(fields, "add_cross_attention");
    Stack& stack = result.stack();
    Block block = read_sizes(fields, kGpt2Sizes, Norm::layer, stack);
    read_output_head(fields, true, stack);
    stack.position = Position::learned;
    if (type == "gpt_bigcode" && fields.flag_or("multi_query", true)) block.attention.n_kv_heads = 1;
    block.feed.activation =
        read_activation(fields, "activation_function", "gelu_new");  // of gpt_bigcode another name of it
    set_biases(block, true);
    if (!fields.flag_or("scale_attn_weights", true)) block.attention.softmax_scale = 1.0f;

    std::vector<LayerShape> layers(stack.n_layers, {block, {}});
    if (fields.flag_or("scale_attn_by_inverse_layer_idx", false)) {
        const double scale = block.attention.softmax_scale != 0.0f
                                 ? 1.0
                                 : 1.0 / std::sqrt(static_cast<double>(block.attention.head_dim));
        for (std::uint32_t i = 0; i < stack.n_layers; ++i)
            layers[i].block.attention.softmax_scale = static_cast<float>(scale / (i + 1.0));
    }
    set_layers(fields, layers, result);
}

/// The classes always have biases, but a model trained without any leaves them out: then it has none, and the user is
/// told. If only some are missing, the assembler refuses and names one: the checkpoint may have lost them.
void settle_biases(const Lookup& tensors, HfConfig& result) {
    for (const char* name : {"#attn.c_attn.bias", "#attn.c_proj.bias", "#mlp.c_fc.bias", "#mlp.c_proj.bias",
                             "#ln_1.bias", "#ln_2.bias", "ln_f.bias"})
        if (tensors.has(name)) return;
    result.source.notes.push_back(tensors.file() + ": no tensor " + tensors.full_name("#attn.c_attn.bias") +
                                  " nor any other bias; the model is taken to have none");
    Stack& stack = result.stack();
    for (std::uint32_t i = 0; i < stack.n_blocks; ++i) {
        Block& b = stack.blocks[i];
        set_biases(b, false);
        b.norm_bias = false;
    }
    stack.final_norm_bias = false;
}

}  // namespace

const Family families::gpt2 = {.types = kGpt2Types,
                               .names = kGpt2Names,
                               .outer = "transformer.",
                               .layers = "h.",
                               .read = read_gpt2,
                               .transposed = true,
                               .settle = settle_biases,
                               .heads = &kOlderDecoderHeads};

const Family families::gpt_bigcode = {.types = kBigCode,
                                      .names = kBigCodeNames,
                                      .outer = "transformer.",
                                      .layers = "h.",
                                      .read = read_gpt2,
                                      .heads = &kOlderDecoderHeads};

}  // namespace fovea
