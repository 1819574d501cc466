// MiniMax M2 (MiniMax 2025): Mixtral's names, queries and keys normed whole, and experts chosen by sigmoids and a learned bias.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kMinimaxTypes[] = {
    {"minimax_m2",
     R"({"max_position_embeddings": 196608, "num_key_value_heads": 8, "head_dim": 128, "num_experts_per_tok": 8,
         "rope_theta": 5000000.0})"}};

constexpr auto kMinimaxNames = kLlamaNames.with({
    {Role::router, "#block_sparse_moe.gate.weight"},
    {Role::choice_bias, "#block_sparse_moe.e_score_correction_bias"},
    {Role::expert_up, "#block_sparse_moe.experts.*.w3.weight", Within::alone, "#block_sparse_moe.experts.*.w1.weight"},
    {Role::expert_down, "#block_sparse_moe.experts.*.w2.weight"},
});

/// Further settings of the published files, for which transformers has no other form.
void check_form(const Fields& fields) {
    for (const char* name : {"use_qk_norm", "use_routing_bias"})
        if (!fields.flag_or(name, true)) fields.refuse(name, "true");
    if (fields.text_or("qk_norm_type", "per_layer") != "per_layer") fields.refuse("qk_norm_type", "per_layer");
    if (fields.text_or("scoring_func", "sigmoid") != "sigmoid") fields.refuse("scoring_func", "sigmoid");
    if (fields.count_or("shared_intermediate_size", 0) != 0) fields.refuse("shared_intermediate_size", "0");
    if (!fields.has("attn_type_list")) return;
    const SortedJson& types = fields.json()["attn_type_list"];
    for (const SortedJson& type : types)
        if (type != 1) fields.refuse("attn_type_list", "1 for each layer");
}

void read_minimax(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    check_form(fields);
    Block block = read_gated(fields, {}, false, stack);
    block.attention.query_key_norm = Norm::rms;
    block.attention.head_norm = HeadNorm::together;
    read_experts(fields, {.n_experts = "num_local_experts"}, true, block);
    block.experts.router_score = RouterScore::sigmoid;
    block.experts.choice_bias = true;
    // Their files give the number of dims that turn, others the share.
    const double part = fields.has("rotary_dim")
                            ? fields.count("rotary_dim", 2, block.attention.head_dim) * 1.0 / block.attention.head_dim
                            : 1.0;
    set_layers(fields, with_rope(fields, block, nullptr, part), result);
}

}  // namespace

const Family families::minimax = {.types = kMinimaxTypes, .names = kMinimaxNames, .read = read_minimax};

}  // namespace fovea
