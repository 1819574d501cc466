// BitNet b1.58 (Ma et al. 2024; Microsoft's 2B4T 2025): Llama with norms within its parts, before the output map and
// before down (Wang et al. 2022), and a squared ReLU. convert/packed/bitnet.cpp reads its matrices.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kBitnetTypes[] = {
    {"bitnet", R"({"max_position_embeddings": 2048, "num_key_value_heads": 5, "rope_theta": 500000.0})"}};

constexpr auto kBitnetNames = kLlamaNames.with({
    {Role::attention_post_norm, "#self_attn.attn_sub_norm.weight"},
    {Role::feed_forward_post_norm, "#mlp.ffn_sub_norm.weight"},
});

void read_bitnet(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack, Norm::rms, "relu2");
    block.norm_place = NormPlace::within;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    set_layers(fields, with_rope(fields, block), result);
}

}  // namespace

const Family families::bitnet = {.types = kBitnetTypes, .names = kBitnetNames, .read = read_bitnet};

}  // namespace fovea
