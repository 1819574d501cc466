// BERT (Devlin et al. 2019), and models that differ from it only in names, positions or a map: RoBERTa (Liu et al.
// 2019) with its translations, data2vec's of texts (Baevski et al. 2022), ELECTRA (Clark et al. 2020), DistilBERT (Sanh
// et al. 2019), ERNIE (Sun et al. 2020), BERT for generation (Rothe et al. 2020), RemBERT (Chung et al. 2021), RoFormer
// (Su et al. 2021).
#include "convert/families/bert_names.h"

namespace fovea {

void set_bert_norms(Stack& stack, Block& block) {
    stack.embedding_norm = Norm::layer;
    stack.embedding_norm_bias = true;
    stack.final_norm = Norm::none;  // its epsilon is the embeddings' norm's
    stack.final_norm_bias = false;
    block.norm_place = NormPlace::post;
    block.attention.causal = false;
}

Block read_bert_stack(const Fields& fields, const SizeNames& sizes, HfConfig& result) {
    refuse_true(fields, "is_decoder");
    refuse_true(fields, "add_cross_attention");
    if (fields.text_or("position_embedding_type", "absolute") != "absolute")
        fields.refuse("position_embedding_type", "absolute");
    Stack& stack = result.stack();
    Block block = read_sizes(fields, sizes, Norm::layer, stack);
    stack.position = Position::learned;
    set_bert_norms(stack, block);
    set_biases(block, true);
    return block;
}

void skip_padding_positions(const Fields& fields, std::uint32_t padding, HfConfig& result) {
    Stack& stack = result.stack();
    if (stack.max_positions <= padding + std::uint64_t{1})
        fields.refuse("max_position_embeddings", "more than the padding's id and 1, " + std::to_string(padding));
    result.n_skipped_positions = padding + 1;
    stack.max_positions -= padding + 1;
}

bool is_of_head(std::string_view name) {
    constexpr std::string_view kStarts[] = {"cls.",       "classifier.", "pre_classifier.", "qa_outputs.",
                                            "lm_head.",   "vocab_",      "predictions.",    "sop_classifier.",
                                            "generator_", "head.",       "discriminator_",  "decoder."};
    for (const std::string_view start : kStarts)
        if (name.starts_with(start)) return true;
    return name.starts_with("pooler.") || name.find(".pooler.") != name.npos;
}

namespace {

constexpr ModelType kBertTypes[] = {{"bert", R"({"max_position_embeddings": 512})"}};
constexpr ModelType kRobertaTypes[] = {{"roberta", R"({"max_position_embeddings": 512})"},
                                       {"xlm-roberta", R"({"max_position_embeddings": 512})"},
                                       {"camembert", R"({"max_position_embeddings": 512})"}};
constexpr ModelType kData2vecTypes[] = {{"data2vec-text", R"({"max_position_embeddings": 512})"}};
constexpr ModelType kErnieTypes[] = {{"ernie", R"({"max_position_embeddings": 512})"}};
constexpr ModelType kGenerationTypes[] = {{"bert-generation", R"({"max_position_embeddings": 512})"}};
constexpr ModelType kRemTypes[] = {{"rembert", R"({"max_position_embeddings": 512})"}};
constexpr ModelType kRoformerTypes[] = {{"roformer", R"({"max_position_embeddings": 1536})"}};
constexpr ModelType kElectraTypes[] = {{"electra", R"({"max_position_embeddings": 512})"}};
constexpr ModelType kDistilTypes[] = {{"distilbert", R"({"max_position_embeddings": 512})"}};

void finish(const Fields& fields, Block block, const char* activation, HfConfig& result) {
    block.feed.activation = read_activation(fields, activation, "gelu");
    set_layers(fields, LayerShape{block}, result);
}

void read_bert(const Fields& fields, const std::string&, HfConfig& result) {
    const Block block = read_bert_stack(fields, kBertSizes, result);
    result.stack().n_token_types = fields.count_or("type_vocab_size", 2);
    finish(fields, block, "hidden_act", result);
}

/// Every text is of the first task.
void read_ernie(const Fields& fields, const std::string& type, HfConfig& result) {
    read_bert(fields, type, result);
    if (fields.flag_or("use_task_id", false))
        result.added_rows[Role::type_embedding] = {"embeddings.task_type_embeddings.weight",
                                                   fields.count_or("task_type_vocab_size", 3)};
}

void read_generation(const Fields& fields, const std::string&, HfConfig& result) {
    finish(fields, read_bert_stack(fields, kBertSizes, result), "hidden_act", result);
}

void read_rem(const Fields& fields, const std::string&, HfConfig& result) {
    const Block block = read_bert_stack(fields, kBertSizes, result);
    Stack& stack = result.stack();
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    stack.embedding_width = fields.count_or("input_embedding_size", 256);
    stack.embedding_bias = true;
    finish(fields, block, "hidden_act", result);
}

void read_roformer(const Fields& fields, const std::string&, HfConfig& result) {
    refuse_true(fields, "rotary_value");
    Block block = read_bert_stack(fields, kBertSizes, result);
    Stack& stack = result.stack();
    stack.position = Position::none;
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    if (const std::uint32_t width = fields.count_or("embedding_size", stack.d_model); width != stack.d_model)
        stack.embedding_width = width;
    stack.embedding_bias = stack.embedding_width != 0;
    block.feed.activation = read_activation(fields, "hidden_act", "gelu");
    block.attention.position = Position::rope;
    block.attention.rotary_dim = block.attention.head_dim;
    set_layers(fields, {block, {.halves = false}}, result);  // the class has no settings for turning
}

void read_roberta(const Fields& fields, const std::string&, HfConfig& result) {
    const Block block = read_bert_stack(fields, kBertSizes, result);
    result.stack().n_token_types = fields.count_or("type_vocab_size", 2);
    skip_padding_positions(fields, fields.has("pad_token_id") ? fields.count("pad_token_id", 0) : 1, result);
    finish(fields, block, "hidden_act", result);
}

void read_electra(const Fields& fields, const std::string&, HfConfig& result) {
    const Block block = read_bert_stack(fields, kBertSizes, result);
    Stack& stack = result.stack();
    stack.n_token_types = fields.count_or("type_vocab_size", 2);
    if (const std::uint32_t width = fields.count_or("embedding_size", 128); width != stack.d_model)
        stack.embedding_width = width;
    stack.embedding_bias = stack.embedding_width != 0;
    finish(fields, block, "hidden_act", result);
}

constexpr auto kRemNames = kBertNames.with({
    {Role::embedding_map, "encoder.embedding_hidden_mapping_in.weight"},
});

constexpr auto kDistilNames = kBertNames.with({
    {Role::attention_norm, "#sa_layer_norm.weight"},
    {Role::query, "#attention.q_lin.weight"},
    {Role::key, "#attention.k_lin.weight"},
    {Role::value, "#attention.v_lin.weight"},
    {Role::attention_output, "#attention.out_lin.weight"},
    {Role::feed_forward_norm, "#output_layer_norm.weight"},
    {Role::up, "#ffn.lin1.weight"},
    {Role::down, "#ffn.lin2.weight"},
});

void read_distil(const Fields& fields, const std::string&, HfConfig& result) {
    constexpr SizeNames kSizes = {.d_model = "dim",
                                  .n_layers = "n_layers",
                                  .n_heads = "n_heads",
                                  .n_kv_heads = nullptr,
                                  .d_ff = "hidden_dim",
                                  .epsilon = "layer_norm_eps"};
    const Fields fixed = fields.with("layer_norm_eps", 1e-12);  // whatever a file says
    finish(fixed, read_bert_stack(fixed, kSizes, result), "activation", result);
}

// ---- heads ---------------------------------------------------------------------------------------------------------

/// Jina's code calls its config.json BERT's too.
const Family* bert_or_jina(const Fields& fields) {
    return fields.text_or("position_embedding_type", "absolute") == "alibi" ? &families::jina : nullptr;
}

constexpr HeadLayer kRobertaClasses[] = {{"/classifier.dense", Activation::tanh}, {"/classifier.out_proj"}};
constexpr HeadLayer kRobertaMasked[] = {{"/lm_head.dense", Activation::gelu, "/lm_head.layer_norm"}};
constexpr HeadLayer kRoformerClasses[] = {{.name = "/classifier.dense", .activation_field = "hidden_act"},
                                          {"/classifier.out_proj"}};
constexpr HeadLayer kRoformerMasked[] = {{.name = "/cls.predictions.transform.dense",
                                          .norm = "/cls.predictions.transform.LayerNorm",
                                          .activation_field = "hidden_act",
                                          .of_embedding = true}};
constexpr HeadForms kRoformerHeads = {.classes = kRoformerClasses,
                                      .masked = kRoformerMasked,
                                      .decoder = "/cls.predictions.decoder",
                                      .decoder_bias = "/cls.predictions.bias"};

constexpr HeadLayer kElectraClasses[] = {{"/classifier.dense", Activation::gelu}, {"/classifier.out_proj"}};
constexpr HeadLayer kElectraMasked[] = {{.name = "/generator_predictions.dense",
                                         .activation = Activation::gelu,
                                         .norm = "/generator_predictions.LayerNorm",
                                         .of_embedding = true}};
constexpr HeadForms kElectraHeads = {.classes = kElectraClasses,
                                     .masked = kElectraMasked,
                                     .decoder = "/generator_lm_head",
                                     .decoder_bias = "/generator_lm_head.bias"};

constexpr HeadLayer kDistilClasses[] = {{"/pre_classifier", Activation::relu}, {"/classifier"}};
constexpr HeadLayer kDistilMasked[] = {
    {.name = "/vocab_transform", .norm = "/vocab_layer_norm", .activation_field = "activation"}};
constexpr HeadForms kDistilHeads = {.classes = kDistilClasses,
                                    .masked = kDistilMasked,
                                    .decoder = "/vocab_projector",
                                    .decoder_bias = "/vocab_projector.bias"};

}  // namespace

const HeadForms kBertHeads = {.classes = kBertClasses,
                              .masked = kBertMasked,
                              .decoder = "/cls.predictions.decoder",
                              .decoder_bias = "/cls.predictions.bias"};

const HeadForms kRobertaHeads = {.classes = kRobertaClasses,
                                 .masked = kRobertaMasked,
                                 .decoder = "/lm_head.decoder",
                                 .decoder_bias = "/lm_head.bias"};

const Family families::bert = {.types = kBertTypes,
                               .names = kBertNames,
                               .outer = "bert.",
                               .layers = "encoder.layer.",
                               .read = read_bert,
                               .stack = StackIndex::encoder,
                               .older = kBertOlder,
                               .ignores = is_of_head,
                               .variant = bert_or_jina,
                               .heads = &kBertHeads};

const Family families::roberta = bert_family(kRobertaTypes, kBertNames, "roberta.", read_roberta, &kRobertaHeads);

const Family families::data2vec_text =
    bert_family(kData2vecTypes, kBertNames, "data2vec_text.", read_roberta, &kRobertaHeads);

const Family families::ernie = bert_family(kErnieTypes, kBertNames, "ernie.", read_ernie, &kBertHeads);

const Family families::bert_generation = bert_family(kGenerationTypes, kBertNames, "bert.", read_generation, nullptr);

const Family families::rembert = bert_family(kRemTypes, kRemNames, "rembert.", read_rem, &kBertHeadsOfClasses);

const Family families::roformer = {.types = kRoformerTypes,
                                   .names = kBertNames,
                                   .outer = "roformer.",
                                   .layers = "encoder.layer.",
                                   .read = read_roformer,
                                   .stack = StackIndex::encoder,
                                   .older = kBertOlder,
                                   .ignores = is_of_head,
                                   .heads = &kRoformerHeads};

const Family families::electra = bert_family(kElectraTypes, kBertNames, "electra.", read_electra, &kElectraHeads);

const Family families::distilbert = {.types = kDistilTypes,
                                     .names = kDistilNames,
                                     .outer = "distilbert.",
                                     .layers = "transformer.layer.",
                                     .read = read_distil,
                                     .stack = StackIndex::encoder,
                                     .older = kBertOlder,
                                     .ignores = is_of_head,
                                     .heads = &kDistilHeads};

}  // namespace fovea
