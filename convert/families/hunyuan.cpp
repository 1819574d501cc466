// Hunyuan (Tencent 2024 and 2025): Llama with norms of queries and keys behind their rotation; with experts, each layer beside a
// shared one.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"
#include "host/base/exact_math.h"

namespace fovea {
namespace {

constexpr ModelType kHunyuanTypes[] = {
    {"hunyuan_v1_dense", R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5})"},
    {"hunyuan_v1_moe", R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "num_experts": 1})"}};

constexpr auto kHunyuanNames = kExpertNames.with({
    {Role::query_norm, "#self_attn.query_layernorm.weight"},
    {Role::key_norm, "#self_attn.key_layernorm.weight"},
    {Role::router, "#mlp.gate.wg.weight"},
    {Role::shared_up, "#mlp.shared_mlp.up_proj.weight", Within::alone, "#mlp.shared_mlp.gate_proj.weight"},
    {Role::shared_down, "#mlp.shared_mlp.down_proj.weight"},
});

/// A scaling that is called dynamic and has an alpha is another base.
void grow_base(const Fields& fields, LayerShape& layer) {
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
        if (!fields.has(name)) continue;
        const Fields own = fields.object(name);
        if (own.text_or("rope_type", own.text_or("type", "")) != "dynamic" || !own.has("alpha")) return;
        const double alpha = own.number("alpha", 1e-3, 1e6), dim = layer.block.attention.head_dim;
        if (dim < 3) fields.refuse("head_dim", "3 or more");
        layer.rope.base *= exact_exp(exact_log(alpha) * dim / (dim - 2));
        return;
    }
}

/// moe_topk, which has the usual name too, is a number or one for each layer.
std::uint32_t experts_used(const Fields& fields, std::uint32_t layer, std::uint32_t n_layers) {
    const char* const name = fields.has("moe_topk") ? "moe_topk" : "num_experts_per_tok";
    if (!fields.has(name)) return 1;
    const SortedJson& list = fields.json()[name];
    if (!list.is_array()) return fields.count(name);
    if (list.size() != n_layers) fields.refuse(name, std::to_string(n_layers) + " numbers");
    return fields.with(name, list[layer]).count(name);
}

void read_hunyuan(const Fields& fields, const std::string& type, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {}, false, stack);
    block.attention.query_key_norm = Norm::rms;
    block.attention.norm_turned = true;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    LayerShape layer = with_rope(fields, block);
    grow_base(fields, layer);
    std::vector<LayerShape> layers(stack.n_layers, layer);
    for (std::uint32_t i = 0; type == "hunyuan_v1_moe" && i < stack.n_layers; ++i) {
        const std::uint32_t n_used = experts_used(fields, i, stack.n_layers);
        Block& own = layers[i].block;
        read_experts(fields.with("num_experts_per_tok", n_used), {}, true, own);
        own.experts.shared_d_ff = own.feed.d_ff;
    }
    set_layers(fields, layers, result);
}

}  // namespace

const Family families::hunyuan = {.types = kHunyuanTypes, .names = kHunyuanNames, .read = read_hunyuan};

}  // namespace fovea
