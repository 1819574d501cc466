// EuroBERT (Boizard et al. 2025): Llama's layers without the causal order, under the heads of an encoder.
#include "convert/families/heads.h"
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kEurobertTypes[] = {
    {"eurobert", R"({"max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "classifier_pooling": "late"})"}};

void read_eurobert(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {}, Norm::rms, stack);
    const bool bias = fields.flag_or("attention_bias", false), inner_bias = fields.flag_or("mlp_bias", false);
    set_biases(block.attention, bias);
    block.feed.up_bias = block.feed.gate_bias = block.feed.down_bias = inner_bias;
    block.feed.activation = read_activation(fields, "hidden_act", "silu");
    block.feed.gated = true;
    block.attention.causal = false;
    set_layers(fields, with_rope(fields, block), result);
    const auto classes = fields.has("architectures") ? fields.texts("architectures") : std::vector<std::string>{};
    // "late" pools what the head makes of every row.
    if (!classes.empty() && classes[0].ends_with("ForSequenceClassification") &&
        fields.text_or("classifier_pooling", "late") == "late")
        fields.refuse("classifier_pooling", "bos or mean");
}

bool ignores_in_eurobert(std::string_view name) {
    return name.starts_with("lm_head.") || name.starts_with("classifier.");
}

constexpr HeadLayer kEurobertClasses[] = {{"/dense", Activation::gelu}, {"/classifier"}};
constexpr HeadForms kEurobertHeads = {
    .classes = kEurobertClasses, .answers = {}, .pooling_field = "classifier_pooling"};

}  // namespace

const Family families::eurobert = {.types = kEurobertTypes,
                                   .names = kLlamaNames,
                                   .read = read_eurobert,
                                   .stack = StackIndex::encoder,
                                   .ignores = ignores_in_eurobert,
                                   .heads = &kEurobertHeads};

}  // namespace fovea
