// nanochat (Karpathy 2025): RMS norms without weights, one of them behind the embeddings, and heads that turn backwards.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kNanochatTypes[] = {{"nanochat", R"({"max_position_embeddings": 2048})"}};

// Norms have no weights.
constexpr TensorName kNanochatNames[] = {
    {Role::token_embedding, "embed_tokens.weight"},
    {Role::output, "/lm_head.weight"},
    {Role::query, "#self_attn.q_proj.weight"},
    {Role::key, "#self_attn.k_proj.weight"},
    {Role::value, "#self_attn.v_proj.weight"},
    {Role::attention_output, "#self_attn.o_proj.weight"},
    {Role::up, "#mlp.fc1.weight"},
    {Role::down, "#mlp.fc2.weight"},
};

void read_nanochat(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    stack.embedding_norm = Norm::rms;  // its epsilon is final_norm's, as here
    stack.logit_softcap = read_softcap(fields, "final_logit_softcapping", 15.0);
    block.attention.query_key_norm = Norm::rms;  // it norms turned heads: their length is the same before
    block.feed.activation = read_activation(fields, "hidden_act", "relu2");
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    LayerShape layer = with_rope(fields, block);
    if (layer.rope.scaling != RopeScaling::none)
        fields.refuse(fields.has("rope_scaling") ? "rope_scaling" : "rope_parameters", "rope_type default");
    layer.rope.scaling = RopeScaling::divided;
    layer.rope.divisors.assign(block.attention.head_dim / 2, -1.0f);
    set_layers(fields, layer, result);
}

}  // namespace

const Family families::nanochat = {.types = kNanochatTypes, .names = kNanochatNames, .read = read_nanochat};

}  // namespace fovea
