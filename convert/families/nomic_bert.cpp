// Nomic's BERT (Nussbaum et al. 2024): rotary positions, a gated feed-forward part, and hardly a bias. Its config.json has
// the words of its first code (n_embd, rotary_emb_base, …) or those of transformers; its tensors have the first code's names.
#include "convert/families/bert_names.h"

namespace fovea {
namespace {

constexpr ModelType kNomicBertTypes[] = {{"nomic_bert", R"({"rope_theta": 1000.0})"}};

constexpr TensorName kNomicBertNames[] = {
    {Role::token_embedding, "embeddings.word_embeddings.weight"},
    {Role::type_embedding, "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "emb_ln.weight"},
    {Role::attention_norm, "#norm1.weight"},
    {Role::query, "#attn.Wqkv.weight", Within::stacked},
    {Role::attention_output, "#attn.out_proj.weight"},
    {Role::feed_forward_norm, "#norm2.weight"},
    {Role::up, "#mlp.fc11.weight", Within::alone, "#mlp.fc12.weight"},
    {Role::down, "#mlp.fc2.weight"},
};

/// Sizes by the names of the first code. Its other settings must be those of the published models.
Block read_first(const Fields& fields, Stack& stack, Rope& rope) {
    for (const char* off : {"prenorm", "parallel_block", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "causal",
                            "use_rms_norm", "rotary_emb_interleaved"})
        refuse_true(fields, off);
    for (const char* none : {"rotary_emb_scale_base", "rotary_scaling_factor"}) refuse_present(fields, none);
    if (fields.number_or("rotary_emb_fraction", 0.0, 1.0, 1.0) != 1.0) fields.refuse("rotary_emb_fraction", "1");
    if (fields.text_or("activation_function", "swiglu") != "swiglu") fields.refuse("activation_function", "swiglu");
    rope.base = fields.number_or("rotary_emb_base", 1.01, 1e30, 10000.0);
    SizeNames sizes = kGpt2Sizes;
    sizes.default_epsilon = 1e-12;
    return read_sizes(fields, sizes, Norm::layer, stack);
}

void read_nomic_bert(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    const bool first = fields.has("n_embd");
    Rope rope;
    Block block = first ? read_first(fields, stack, rope) : read_sizes(fields, kBertSizes, Norm::layer, stack);
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    set_bert_norms(stack, block);
    block.feed.gated = true;
    block.feed.activation = read_activation(fields, "hidden_act", "silu");
    block.attention.position = Position::rope;
    block.attention.rotary_dim = block.attention.head_dim;
    set_layers(fields, first ? LayerShape{block, rope} : with_rope(fields, block), result);
}

constexpr HeadLayer kNomicBertMasked[] = {{.name = "/cls.predictions.transform.dense",
                                           .norm = "/cls.predictions.transform.layer_norm",
                                           .activation_field = "hidden_act"}};
constexpr HeadForms kNomicBertHeads = {.classes = kBertClasses,
                                       .answers = {},
                                       .masked = kNomicBertMasked,
                                       .decoder = "/cls.predictions.decoder",
                                       .decoder_bias = "/cls.predictions.bias"};

}  // namespace

const Family families::nomic_bert = {.types = kNomicBertTypes,
                                     .names = kNomicBertNames,
                                     .outer = "nomic_bert.",
                                     .layers = "encoder.layers.",
                                     .read = read_nomic_bert,
                                     .stack = StackIndex::encoder,
                                     .ignores = is_of_head,
                                     .heads = &kNomicBertHeads};

}  // namespace fovea
